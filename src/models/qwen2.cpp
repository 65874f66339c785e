// qwen2: Qwen2, Qwen2.5, DeepSeek-R1-Distill-Qwen. llama with biases on q, k and v and half-split rope; released
// checkpoints state a window and do not use it, and converters leave it out.
#include "models/blocks.h"
#include "models/rope.h"

namespace hearth {

Result<void> build_qwen2(GraphBuilder& b) {
  HEARTH_ASSIGN(Dense d, read_dense(b));
  HEARTH_TRY(refuse_window(b));
  HEARTH_ASSIGN(Rope rope, read_rope(b, d.head_dim, RopePairing::kHalf));
  return build_prenorm_decoder(b, d, {.rope = b.add_rope(std::move(rope))});
}

}  // namespace hearth
