// qwen3: Qwen3 dense. llama with an RMSNorm on every q and k head before half-split rope; heads are not n / H wide.
#include "models/blocks.h"
#include "models/rope.h"

namespace hearth {

Result<void> build_qwen3(GraphBuilder& b) {
  HEARTH_ASSIGN(Dense d, read_dense(b));
  HEARTH_TRY(refuse_window(b));
  HEARTH_ASSIGN(Rope rope, read_rope(b, d.head_dim, RopePairing::kHalf));
  return build_prenorm_decoder(b, d, {.rope = b.add_rope(std::move(rope)), .qk_norm = true});
}

}  // namespace hearth
