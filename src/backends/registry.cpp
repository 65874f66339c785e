#include "backends/backend.h"
#include "hearth/model.h"

namespace hearth {

Result<std::unique_ptr<Backend>> make_backend(std::string_view name, const BackendOptions& options) {
  if (options.threads < 0 || options.threads > kMaxThreads) {
    return fail(ErrorCode::kUsage, "threads is {}; it must be from 1 to {}, or 0 to let Hearth decide", options.threads,
                kMaxThreads);
  }
  if (name == "cpu") return make_cpu_backend(options);
  if (name == "reference") return make_reference_backend(options);
  if (name == "cuda") return make_cuda_backend(options);
  if (name == "vulkan") return make_vulkan_backend(options);
  return fail(ErrorCode::kUsage, "there is no device \"{}\"; devices are cpu, reference, cuda and vulkan", name);
}

}  // namespace hearth
