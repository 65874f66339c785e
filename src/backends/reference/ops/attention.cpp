#include <algorithm>
#include <cmath>

#include "backends/reference/step.h"
#include "base/check.h"

namespace hearth::reference {
namespace {

// The row of `x`, after the norm of each head and the rotation that the op has folded in.
std::vector<float> prepare(std::span<const float> x, const std::optional<Norm>& norm, const AttentionOp& op,
                           int64_t position, const StepState& step) {
  std::vector<float> out(x.begin(), x.end());
  auto head_dim = static_cast<size_t>(step.graph.kv_groups[static_cast<size_t>(op.kv_group)].head_dim);
  for (size_t begin = 0; begin < out.size(); begin += head_dim) {
    std::span<float> head = std::span(out).subspan(begin, head_dim);
    if (norm) rms_norm(head, step.weights[norm->weight], norm->eps, head);
    if (op.rope) rotate(step.graph.ropes[static_cast<size_t>(*op.rope)], position, head, head);
  }
  return out;
}

int32_t page_of(const SequenceRows& sequence, const AttentionOp& op, int64_t position) {
  const auto& pages = sequence.pages[static_cast<size_t>(op.kv_group)];
  auto logical = static_cast<size_t>(position / kPageTokens);
  HEARTH_CHECK(logical < pages.size() && pages[logical] >= 0, "KV group {}: no page for position {}", op.kv_group,
               position);
  return pages[logical];
}

// One query row over all keys that it sees.
void attend(std::span<const float> q, const SequenceRows& sequence, int64_t position, const AttentionOp& op,
            const StepState& step, std::span<float> out) {
  const KvGroup& group = step.graph.kv_groups[static_cast<size_t>(op.kv_group)];
  const KvStore& kv = step.kv[static_cast<size_t>(op.kv_group)];
  auto head_dim = static_cast<size_t>(group.head_dim);
  int64_t first = group.window > 0 ? std::max<int64_t>(0, position - group.window + 1) : 0;
  std::vector<double> p(static_cast<size_t>(position - first + 1));
  std::vector<double> sum(head_dim);
  for (int64_t h = 0; h < op.heads; ++h) {
    std::span<const float> query = q.subspan(static_cast<size_t>(h) * head_dim, head_dim);
    size_t kv_begin = static_cast<size_t>(h / (op.heads / group.kv_heads)) * head_dim;
    double sink = op.sinks ? step.weights[op.sinks][static_cast<size_t>(h)] : -INFINITY;
    double largest = sink;
    for (int64_t j = first; j <= position; ++j) {
      auto key = kv.key(op.kv_layer, page_of(sequence, op, j), j % kPageTokens).subspan(kv_begin, head_dim);
      double score = 0;
      for (size_t d = 0; d < head_dim; ++d) score += static_cast<double>(query[d]) * key[d];
      score *= op.scale;
      if (op.soft_cap > 0) score = op.soft_cap * std::tanh(score / op.soft_cap);
      p[static_cast<size_t>(j - first)] = score;
      largest = std::max(largest, score);
    }
    double total = std::exp(sink - largest);
    std::ranges::fill(sum, 0.0);
    for (int64_t j = first; j <= position; ++j) {
      double weight = std::exp(p[static_cast<size_t>(j - first)] - largest);
      auto value = kv.value(op.kv_layer, page_of(sequence, op, j), j % kPageTokens).subspan(kv_begin, head_dim);
      total += weight;
      for (size_t d = 0; d < head_dim; ++d) sum[d] += weight * value[d];
    }
    for (size_t d = 0; d < head_dim; ++d) {
      out[static_cast<size_t>(h) * head_dim + d] = static_cast<float>(sum[d] / total);
    }
  }
}

}  // namespace

void run(const AttentionOp& op, StepState& step) {
  Matrix q = step.value(op.q), k = step.value(op.k), v = step.value(op.v), out = step.value(op.out);
  KvStore& kv = step.kv[static_cast<size_t>(op.kv_group)];
  for (const SequenceRows& sequence : step.sequences) {
    for (int64_t i = 0; i < sequence.rows; ++i) {
      int64_t row = sequence.first_row + i, position = sequence.position + i;
      std::vector<float> key = prepare(k.row(row), op.k_norm, op, position, step);
      kv.write(op.kv_layer, page_of(sequence, op, position), position % kPageTokens, key, v.row(row));
    }
    for (int64_t i = 0; i < sequence.rows; ++i) {
      int64_t row = sequence.first_row + i, position = sequence.position + i;
      attend(prepare(q.row(row), op.q_norm, op, position, step), sequence, position, op, step, out.row(row));
    }
  }
}

}  // namespace hearth::reference
