// Speed of a GPU's memory and of the bus to it.
#pragma once

#include "backends/cuda/kernels.h"
#include "backends/probe.h"

namespace hearth::cuda {

// Bytes per second at which a kernel reads the GPU's memory; the best of passes for about `seconds`.
Result<double> measure_reads(const Device& device, Kernels& kernels, double seconds);

// All GPUs of this driver; as probe_cuda(), without what the system says.
void probe_devices(const Driver& driver, CudaReport& report, double seconds, ReadMeter* host);

}  // namespace hearth::cuda
