#include "backends/cuda/step.h"
namespace hearth::cuda {
Result<void> prepare(const AttentionOp&, PrepareContext&) { return fail(ErrorCode::kUnsupported, "no attention yet"); }
}  // namespace hearth::cuda
