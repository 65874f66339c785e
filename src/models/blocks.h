// Transformer blocks that several families share. They grow by a named option when a second family needs one.
#pragma once

#include "models/builder.h"

namespace hearth {

// Sizes that all dense families have, with the checks that make them usable as divisors and shapes.
struct Dense {
  int64_t layers = 0;
  int64_t width = 0;     // n
  int64_t ff_width = 0;  // F
  int64_t heads = 0;     // H
  int64_t kv_heads = 0;  // Hkv
  int64_t head_dim = 0;  // hd
  int64_t vocab = 0;     // V
  float eps = 0;
};

// Reads them and sets the fields of ModelGraph.
Result<Dense> read_dense(GraphBuilder& b);

// For families whose released checkpoints have no window. A file that states one shorter than its context is refused:
// in which layers it counts is not in the file.
Result<void> refuse_window(const GraphBuilder& b);

struct AttentionBlock {
  int32_t rope = 0;
  int64_t window = 0;    // 0: full
  bool qk_norm = false;  // attn_q_norm and attn_k_norm over each head, before rope
};

// attn_q/k/v (biases where the file has them), head norms, rope, attention, attn_output. x is the normed input of the
// layer `prefix` ("blk.3.").
Result<ValueId> attention_block(GraphBuilder& b, const Dense& d, const std::string& prefix, ValueId x,
                                const AttentionBlock& options);

// ffn_down(silu(ffn_gate x) * ffn_up x), biases where the file has them.
Result<ValueId> swiglu_block(GraphBuilder& b, const Dense& d, const std::string& prefix, ValueId x);

// The decoder that llama, mistral, qwen2 and qwen3 share: embedding, pre-norm layers, final norm, head (tied to the
// embedding when the file has no output.weight).
Result<void> build_prenorm_decoder(GraphBuilder& b, const Dense& d, const AttentionBlock& attention);

}  // namespace hearth
