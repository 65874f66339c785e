// What each backend finds on this machine, for `hearth doctor`. No model is needed.
#pragma once

#include "base/bandwidth.h"
#include "hearth/doctor.h"

namespace hearth {

// Features, kernels and problem.
void probe_cpu(CpuReport& report);

// What the driver tells, and how fast it is: about `seconds` for all GPUs together; 0: nothing is measured. `host`
// reads the host's memory beside the bus; nullptr: not measured.
void probe_cuda(CudaReport& report, double seconds, ReadMeter* host);

}  // namespace hearth
