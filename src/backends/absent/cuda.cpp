// Linked when this build has no CUDA backend.
#include "backends/backend.h"

namespace hearth {

Result<std::unique_ptr<Backend>> make_cuda_backend(const BackendOptions&) {
  return fail(ErrorCode::kUnsupported,
              "cannot use the device \"cuda\": this build has no CUDA backend; --device cpu works");
}

}  // namespace hearth
