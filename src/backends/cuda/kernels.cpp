#include "backends/cuda/kernels.h"

#include <algorithm>

namespace hearth::cuda {

Kernels::~Kernels() {
  device_.use();
  for (const auto& [name, module] : modules_) device_.driver().cuModuleUnload(module);
}

Result<Kernel> Kernels::get(std::string_view file, const std::string& name, size_t shared_bytes) {
  device_.use();
  const Driver& driver = device_.driver();
  auto found = modules_.find(file);
  if (found == modules_.end()) {
    for (const KernelFile& candidate : kernel_files()) {
      if (candidate.name != file) continue;
      CUmodule module = nullptr;
      HEARTH_TRY(driver.check(
          driver.cuModuleLoadData(&module, candidate.image.data()),
          fmt::format("load the kernels \"{}\" on {} (compute capability {}.{})", file, device_.properties().name,
                      device_.properties().capability / 10, device_.properties().capability % 10)));
      found = modules_.emplace(candidate.name, module).first;
    }
    if (found == modules_.end()) return fail(ErrorCode::kInternal, "there are no kernels \"{}\"", file);
  }
  Kernel kernel{.name = name};
  HEARTH_TRY(driver.check(driver.cuModuleGetFunction(&kernel.function, found->second, name.c_str()),
                          fmt::format("find the kernel {} of \"{}\"", name, file)));
  HEARTH_TRY(
      driver.check(driver.cuFuncGetAttribute(&kernel.compiled_for, CU_FUNC_ATTRIBUTE_PTX_VERSION, kernel.function),
                   "ask what the kernel " + name + " was compiled for"));
  const DeviceProperties& gpu = device_.properties();
  if (shared_bytes > gpu.shared_bytes) {
    return fail(ErrorCode::kUnsupported,
                "cannot run the kernel {} on {}: it was compiled for compute capability {}.{} and needs {} KiB of "
                "shared memory for a block, of {} KiB; build with -D HEARTH_CUDA_ARCHITECTURES={}",
                name, gpu.name, kernel.compiled_for / 10, kernel.compiled_for % 10, shared_bytes >> 10,
                gpu.shared_bytes >> 10, gpu.capability);
  }
  // The limit holds for every launch of the kernel, also for those that were recorded before.
  size_t& most = shared_bytes_[kernel.function];
  if (shared_bytes > std::max(most, size_t{48} << 10)) {
    HEARTH_TRY(driver.check(driver.cuFuncSetAttribute(kernel.function, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES,
                                                      static_cast<int>(shared_bytes)),
                            fmt::format("give {} KiB of shared memory to the kernel {}", shared_bytes >> 10, name)));
    most = shared_bytes;
  }
  return kernel;
}

Result<int> Kernels::compiled_for() {
  if (!compiled_for_) {  // one list of architectures for all files
    HEARTH_ASSIGN(const Kernel kernel, get("elementwise", "quantize_rows", 0));
    compiled_for_ = kernel.compiled_for;
  }
  return *compiled_for_;
}

Result<int> Kernels::blocks_per_processor(const Kernel& kernel, int threads, size_t shared_bytes) const {
  device_.use();
  int blocks = 0;
  HEARTH_TRY(device_.driver().check(
      device_.driver().cuOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, kernel.function, threads, shared_bytes),
      "ask how many blocks of " + kernel.name + " run together"));
  if (blocks < 1) return fail(ErrorCode::kInternal, "no block of the kernel {} fits on a multiprocessor", kernel.name);
  return blocks;
}

Result<void> Launch::enqueue(const Device& device) const {
  CUlaunchAttribute attribute = {};
  attribute.id = CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION;
  attribute.value.programmaticStreamSerializationAllowed = 1;
  CUlaunchConfig config = {};
  config.gridDimX = grid[0], config.gridDimY = grid[1], config.gridDimZ = grid[2];
  config.blockDimX = threads, config.blockDimY = config.blockDimZ = 1;
  config.sharedMemBytes = static_cast<unsigned>(shared_bytes);
  config.hStream = device.stream();
  config.attrs = &attribute;
  config.numAttrs = dependent && kernel.waits() ? 1 : 0;
  void* arguments[] = {const_cast<std::byte*>(params.data())};
  return device.driver().check(device.driver().cuLaunchKernelEx(&config, kernel.function, arguments, nullptr),
                               "start the kernel " + kernel.name);
}

}  // namespace hearth::cuda
