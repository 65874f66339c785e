// The backend over any driver, also one that tests make.
#pragma once

#include "backends/backend.h"
#include "backends/cuda/step.h"

namespace hearth::cuda {

// What is set aside in GPU memory beside weights, KV and the memory of plans: code of kernels, recorded graphs, the
// data of a step, what rounding up to the GPU's pages loses, and some for whoever else uses the GPU.
inline constexpr size_t kReservedBytes = size_t{256} << 20;

// The GPU with this index, or the one with the most free memory. The driver must outlive the backend.
Result<std::unique_ptr<Backend>> make_backend(const Driver& driver, const Tuning& tuning, std::optional<int> index);

}  // namespace hearth::cuda
