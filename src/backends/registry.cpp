#include <charconv>

#include <fmt/ranges.h>

#include "backends/backend.h"
#include "hearth/model.h"

namespace hearth {

namespace {

struct Named {
  std::string_view name;
  Result<std::unique_ptr<Backend>> (*make)(const BackendOptions& options);
};
constexpr Named kBackends[] = {{"cpu", make_cpu_backend},
                               {"reference", make_reference_backend},
                               {"cuda", make_cuda_backend},
                               {"vulkan", make_vulkan_backend}};

}  // namespace

std::vector<std::string_view> backend_names() {
  std::vector<std::string_view> names;
  for (const Named& named : kBackends) names.push_back(named.name);
  return names;
}

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
  for (const Named& named : kBackends) {
    if (named.name == name) return named.make(options);
  }
  return fail(ErrorCode::kUsage, "there is no device \"{}\"; devices are {}", name, fmt::join(backend_names(), ", "));
}

}  // namespace hearth
