// Linked when this build has no Vulkan backend.
#include "backends/backend.h"

namespace hearth {

Result<std::unique_ptr<Backend>> make_vulkan_backend(const BackendOptions&) {
  return fail(ErrorCode::kNotFound,
              "cannot use the device \"vulkan\": this build has no Vulkan backend; --device cpu works");
}

}  // namespace hearth
