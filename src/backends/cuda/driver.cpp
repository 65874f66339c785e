#include "backends/cuda/driver.h"

#include <dlfcn.h>

namespace hearth::cuda {
namespace {

#define HEARTH_CUDA_TEXT_(name) #name
#define HEARTH_CUDA_TEXT(name) HEARTH_CUDA_TEXT_(name)

Result<Driver> load_driver() {
  // Never closed: its threads live as long as the program.
  void* library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) {
    return fail(ErrorCode::kNotFound,
                "cannot use an NVIDIA GPU: this machine has no driver for one (libcuda.so.1); --device cpu works");
  }
  Driver driver;
#define HEARTH_CUDA_LOOK_UP(name)                                                                                \
  driver.name = reinterpret_cast<decltype(driver.name)>(dlsym(library, HEARTH_CUDA_TEXT(name)));                 \
  if (driver.name == nullptr) {                                                                                  \
    return fail(ErrorCode::kUnsupported,                                                                         \
                "cannot use an NVIDIA GPU: its driver lacks {}; a driver for CUDA 12.3 or newer would work, or " \
                "--device cpu",                                                                                  \
                HEARTH_CUDA_TEXT(name));                                                                         \
  }
  HEARTH_CUDA_DRIVER_FUNCTIONS(HEARTH_CUDA_LOOK_UP)
#undef HEARTH_CUDA_LOOK_UP
  if (CUresult result = driver.cuInit(0); result != CUDA_SUCCESS) {
    const char* text = nullptr;
    driver.cuGetErrorString(result, &text);
    return fail(result == CUDA_ERROR_NO_DEVICE ? ErrorCode::kNotFound : ErrorCode::kUnsupported,
                "cannot use an NVIDIA GPU: the driver says \"{}\"; --device cpu works", text ? text : "unknown error");
  }
  return driver;
}

const Driver* replacement = nullptr;

}  // namespace

void replace_driver(const Driver* driver) { replacement = driver; }

Result<void> Driver::check(CUresult result, std::string_view attempt) const {
  if (result == CUDA_SUCCESS) return {};
  const char* name = nullptr;
  const char* text = nullptr;
  cuGetErrorName(result, &name);
  cuGetErrorString(result, &text);
  ErrorCode code = ErrorCode::kInternal;
  switch (result) {
    case CUDA_ERROR_OUT_OF_MEMORY:
      code = ErrorCode::kOutOfMemory;
      break;
    case CUDA_ERROR_NOT_SUPPORTED:
    case CUDA_ERROR_NO_DEVICE:
    case CUDA_ERROR_DEVICE_UNAVAILABLE:
    // The kernels of this build and the driver do not go together.
    case CUDA_ERROR_NO_BINARY_FOR_GPU:
    case CUDA_ERROR_INVALID_IMAGE:
    case CUDA_ERROR_INVALID_PTX:
    case CUDA_ERROR_UNSUPPORTED_PTX_VERSION:
    case CUDA_ERROR_JIT_COMPILER_NOT_FOUND:
    case CUDA_ERROR_SYSTEM_DRIVER_MISMATCH:
      code = ErrorCode::kUnsupported;
      break;
    default:
      break;
  }
  return fail(code, "{}: {} ({})", attempt, text ? text : "unknown error", name ? name : "?");
}

Result<const Driver*> find_driver() {
  if (replacement != nullptr) return replacement;
  static const Result<Driver> kDriver = load_driver();
  if (!kDriver) return kDriver.error();
  return &*kDriver;
}

}  // namespace hearth::cuda
