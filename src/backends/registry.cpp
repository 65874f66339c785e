#include <charconv>

#include "backends/backend.h"
#include "hearth/model.h"

namespace hearth {

Result<std::unique_ptr<Backend>> make_backend(std::string_view name, const BackendOptions& options) {
  if (options.threads < 0 || options.threads > kMaxThreads) {
    return fail(ErrorCode::kUsage, "threads is {}; it must be from 1 to {}, or 0 to let Hearth decide", options.threads,
                kMaxThreads);
  }
  if (name.starts_with("cuda:")) {
    BackendOptions one = options;
    const std::string_view digits = name.substr(5);
    int index = -1;
    const auto [end, problem] = std::from_chars(digits.data(), digits.data() + digits.size(), index);
    if (problem != std::errc{} || end != digits.data() + digits.size() || index < 0) {
      return fail(ErrorCode::kUsage, "there is no device \"{}\"; GPUs are cuda:0, cuda:1 and so on", name);
    }
    one.device_index = index;
    return make_cuda_backend(one);
  }
  if (name == "cpu") return make_cpu_backend(options);
  if (name == "reference") return make_reference_backend(options);
  if (name == "cuda") return make_cuda_backend(options);
  if (name == "vulkan") return make_vulkan_backend(options);
  return fail(ErrorCode::kUsage, "there is no device \"{}\"; devices are cpu, reference, cuda and vulkan", name);
}

}  // namespace hearth
