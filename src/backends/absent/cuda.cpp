// Linked when this build has no CUDA backend.
#include "backends/backend.h"
#include "backends/probe.h"

namespace hearth {

Result<std::unique_ptr<Backend>> make_cuda_backend(const BackendOptions&) {
  return fail(ErrorCode::kNotFound,
              "cannot use the device \"cuda\": this build has no CUDA backend; --device cpu works");
}

void probe_cuda(CudaReport& report, double, ReadMeter*) { report.problem = "this build has no CUDA backend"; }

}  // namespace hearth
