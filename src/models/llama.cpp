// llama: Llama 1-3, SmolLM2, Mistral and the many clones. Pre-norm decoder, grouped-query attention, interleaved rope
// (the converter permutes the rows of q and k), SwiGLU. llama3 scaling comes as the tensor rope_freqs.
#include "models/blocks.h"
#include "models/rope.h"

namespace hearth {

Result<void> build_llama(GraphBuilder& b) {
  HEARTH_ASSIGN(Dense d, read_dense(b));
  HEARTH_ASSIGN(Rope rope, read_rope(b, d.head_dim, RopePairing::kInterleaved));
  // Mistral 7B v0.1 has one on every layer; most converters drop it. A file that states a window means it.
  HEARTH_ASSIGN(int64_t window, b.integer_or("attention.sliding_window", 0, 0, int64_t{1} << 31));
  return build_prenorm_decoder(b, d, {.rope = b.add_rope(std::move(rope)), .window = window});
}

}  // namespace hearth
