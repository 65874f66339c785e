#include "backends/probe.h"

#include "backends/cpu/isa.h"
#include "backends/cpu/step.h"

namespace hearth {

void probe_cpu(CpuReport& report) {
  report.features = cpu::features_text();
  if (const Result<const cpu::KernelTable*> kernels = cpu::select_isa("")) {
    report.kernels = (*kernels)->title;
  } else {
    report.problem = kernels.error().message;
  }
  if (auto forced = cpu::forced_linear_kernel(); !forced) report.problem = forced.error().message;
}

}  // namespace hearth
