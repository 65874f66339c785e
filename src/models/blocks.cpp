#include "models/blocks.h"

#include <cmath>

namespace hearth {

Result<Dense> read_dense(GraphBuilder& b) {
  Dense d;
  HEARTH_ASSIGN(d.layers, b.integer("block_count", 1, 4096));
  HEARTH_ASSIGN(d.width, b.integer("embedding_length", 1, 1 << 20));
  HEARTH_ASSIGN(d.ff_width, b.integer("feed_forward_length", 1, 1 << 24));
  HEARTH_ASSIGN(d.heads, b.integer("attention.head_count", 1, 1 << 16));
  HEARTH_ASSIGN(d.kv_heads, b.integer_or("attention.head_count_kv", d.heads, 1, 1 << 16));
  if (d.heads % d.kv_heads) {
    return fail(ErrorCode::kInvalidInput, "{} query heads cannot share {} KV heads", d.heads, d.kv_heads);
  }
  HEARTH_ASSIGN(d.head_dim, b.integer_or("attention.key_length", d.width / d.heads, 1, 1 << 12));
  HEARTH_ASSIGN(int64_t value_dim, b.integer_or("attention.value_length", d.head_dim, 1, 1 << 12));
  if (d.head_dim < 1 || value_dim != d.head_dim) {
    return fail(ErrorCode::kUnsupported, "heads with keys of {} and values of {} entries are not supported", d.head_dim,
                value_dim);
  }
  HEARTH_ASSIGN(double eps, b.positive("attention.layer_norm_rms_epsilon"));
  d.eps = static_cast<float>(eps);
  const TensorEntry* table = b.find("token_embd.weight");
  if (!table || table->shape.size() != 2) return fail(ErrorCode::kInvalidInput, "tensor token_embd.weight is missing");
  d.vocab = table->shape[0];
  if (d.vocab < 1 || d.vocab > (1 << 24)) return fail(ErrorCode::kInvalidInput, "a vocabulary of {} tokens", d.vocab);

  HEARTH_ASSIGN(b.model().context_length, b.integer("context_length", 1, int64_t{1} << 31));
  b.model().vocab_size = d.vocab;
  return d;
}

Result<void> refuse_window(const GraphBuilder& b) {
  HEARTH_ASSIGN(int64_t context, b.integer("context_length", 1, int64_t{1} << 31));
  HEARTH_ASSIGN(int64_t window, b.integer_or("attention.sliding_window", 0, 0, int64_t{1} << 31));
  if (window == 0 || window >= context) return {};
  return fail(ErrorCode::kUnsupported,
              "metadata key {}: a window of {} tokens is not supported for this family; files without the key work",
              b.key("attention.sliding_window"), window);
}

Result<ValueId> attention_block(GraphBuilder& b, const Dense& d, const std::string& prefix, ValueId x,
                                const AttentionBlock& options) {
  auto project = [&](std::string_view part, int64_t heads) -> Result<ValueId> {
    std::string name = prefix + "attn_" + std::string(part);
    HEARTH_ASSIGN(WeightId weight, b.matrix(name + ".weight", heads * d.head_dim, d.width));
    HEARTH_ASSIGN(WeightId bias, b.optional_vector(name + ".bias", heads * d.head_dim));
    return b.linear(name, x, weight, bias);
  };
  HEARTH_ASSIGN(ValueId q, project("q", d.heads));
  HEARTH_ASSIGN(ValueId k, project("k", d.kv_heads));
  HEARTH_ASSIGN(ValueId v, project("v", d.kv_heads));
  if (options.qk_norm) {
    HEARTH_ASSIGN(WeightId q_norm, b.vector(prefix + "attn_q_norm.weight", d.head_dim));
    HEARTH_ASSIGN(WeightId k_norm, b.vector(prefix + "attn_k_norm.weight", d.head_dim));
    q = b.rms_norm(prefix + "attn_q_norm", q, {.weight = q_norm, .eps = d.eps});
    k = b.rms_norm(prefix + "attn_k_norm", k, {.weight = k_norm, .eps = d.eps});
  }
  q = b.rope(prefix + "rope_q", q, d.head_dim, options.rope);
  k = b.rope(prefix + "rope_k", k, d.head_dim, options.rope);
  int32_t group = b.kv_group(d.kv_heads, d.head_dim, options.window);
  ValueId attended =
      b.attention(prefix + "attention", {.q = q,
                                         .k = k,
                                         .v = v,
                                         .kv_group = group,
                                         .kv_layer = b.graph().kv_groups[static_cast<size_t>(group)].layers - 1,
                                         .heads = d.heads,
                                         .scale = 1.0f / std::sqrt(static_cast<float>(d.head_dim))});
  std::string name = prefix + "attn_output";
  HEARTH_ASSIGN(WeightId weight, b.matrix(name + ".weight", d.width, d.heads * d.head_dim));
  HEARTH_ASSIGN(WeightId bias, b.optional_vector(name + ".bias", d.width));
  return b.linear(name, attended, weight, bias);
}

Result<ValueId> swiglu_block(GraphBuilder& b, const Dense& d, const std::string& prefix, ValueId x) {
  auto project = [&](std::string_view part, ValueId in, int64_t rows, int64_t cols) -> Result<ValueId> {
    std::string name = prefix + "ffn_" + std::string(part);
    HEARTH_ASSIGN(WeightId weight, b.matrix(name + ".weight", rows, cols));
    HEARTH_ASSIGN(WeightId bias, b.optional_vector(name + ".bias", rows));
    return b.linear(name, in, weight, bias);
  };
  HEARTH_ASSIGN(ValueId gate, project("gate", x, d.ff_width, d.width));
  HEARTH_ASSIGN(ValueId up, project("up", x, d.ff_width, d.width));
  return project("down", b.glu(prefix + "ffn_glu", gate, up, Activation::kSilu), d.width, d.ff_width);
}

Result<void> build_prenorm_decoder(GraphBuilder& b, const Dense& d, const AttentionBlock& attention) {
  HEARTH_ASSIGN(WeightId table, b.matrix("token_embd.weight", d.vocab, d.width));
  ValueId x = b.embed("token_embd", table);
  for (int64_t layer = 0; layer < d.layers; ++layer) {
    std::string prefix = fmt::format("blk.{}.", layer);
    HEARTH_ASSIGN(WeightId attn_norm, b.vector(prefix + "attn_norm.weight", d.width));
    ValueId h = b.rms_norm(prefix + "attn_norm", x, {.weight = attn_norm, .eps = d.eps});
    HEARTH_ASSIGN(ValueId attended, attention_block(b, d, prefix, h, attention));
    x = b.add(prefix + "attn_residual", x, attended);
    HEARTH_ASSIGN(WeightId ffn_norm, b.vector(prefix + "ffn_norm.weight", d.width));
    h = b.rms_norm(prefix + "ffn_norm", x, {.weight = ffn_norm, .eps = d.eps});
    HEARTH_ASSIGN(ValueId fed, swiglu_block(b, d, prefix, h));
    x = b.add(prefix + "ffn_residual", x, fed);
  }
  x = b.gather_rows("logit_rows", x);
  HEARTH_ASSIGN(WeightId output_norm, b.vector("output_norm.weight", d.width));
  const Norm norm{.weight = output_norm, .eps = d.eps};
  b.graph().hidden = {.value = x, .norm = norm};
  x = b.rms_norm("output_norm", x, norm);
  WeightId head = table;
  if (b.find("output.weight")) {
    HEARTH_ASSIGN(head, b.matrix("output.weight", d.vocab, d.width));
  }
  HEARTH_ASSIGN(WeightId head_bias, b.optional_vector("output.bias", d.vocab));
  b.graph().logits = b.linear("output", x, head, head_bias);
  return {};
}

}  // namespace hearth
