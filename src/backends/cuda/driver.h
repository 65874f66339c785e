// The CUDA driver, found at run time: the program starts without one, and no CUDA library has to be installed. Kernels
// are machine code inside this program (kernels.h), so nothing but the driver's own interface is used.
#pragma once

#include <cuda.h>

#include <string_view>

#include "base/result.h"

namespace hearth::cuda {

// clang-format off
#define HEARTH_CUDA_DRIVER_FUNCTIONS(X)                                                                              \
  X(cuInit) X(cuDriverGetVersion) X(cuGetErrorName) X(cuGetErrorString) X(cuDeviceGetCount) X(cuDeviceGet)           \
  X(cuDeviceGetName) X(cuDeviceGetAttribute) X(cuDeviceTotalMem) X(cuDevicePrimaryCtxRetain)                         \
  X(cuDevicePrimaryCtxRelease) X(cuCtxSetCurrent) X(cuMemGetInfo) X(cuMemGetAllocationGranularity)                   \
  X(cuMemAddressReserve) X(cuMemAddressFree) X(cuMemCreate) X(cuMemRelease) X(cuMemMap) X(cuMemUnmap)                \
  X(cuMemSetAccess) X(cuMemHostAlloc) X(cuMemFreeHost) X(cuMemcpyHtoDAsync) X(cuMemcpyDtoHAsync) X(cuMemsetD8Async)  \
  X(cuStreamCreate) X(cuStreamDestroy) X(cuStreamSynchronize) X(cuStreamBeginCapture) X(cuStreamEndCapture)          \
  X(cuGraphInstantiate) X(cuGraphDestroy) X(cuGraphExecDestroy) X(cuGraphLaunch) X(cuModuleLoadData)                 \
  X(cuModuleUnload) X(cuModuleGetFunction) X(cuFuncSetAttribute) X(cuFuncGetAttribute)                                  \
  X(cuOccupancyMaxActiveBlocksPerMultiprocessor)                                                                     \
  X(cuLaunchKernelEx) X(cuEventCreate) X(cuEventDestroy) X(cuEventRecord) X(cuEventSynchronize) X(cuEventElapsedTime)
// clang-format on

// cuda.h renames some functions to their newest version by macros; these members follow.
struct Driver {
#define HEARTH_CUDA_MEMBER(name) decltype(&::name) name = nullptr;
  HEARTH_CUDA_DRIVER_FUNCTIONS(HEARTH_CUDA_MEMBER)
#undef HEARTH_CUDA_MEMBER

  // kOutOfMemory, kUnsupported (a device or driver that cannot do it) or kInternal; says what was attempted.
  Result<void> check(CUresult result, std::string_view attempt) const;
};

// The driver of this machine, initialized once. kNotFound: there is none, or it has no device; kUnsupported: it fails,
// or is too old.
Result<const Driver*> find_driver();
// For tests: what find_driver() gives from now on; nullptr: the machine's again.
void replace_driver(const Driver* driver);

}  // namespace hearth::cuda
