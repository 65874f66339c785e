#include "backends/step_check.h"

#include <algorithm>
#include <limits>

#include "base/result.h"

namespace hearth {

StepLimits step_limits(const Graph& graph, const std::vector<int64_t>& kv_pages) {
  StepLimits limits{
      .tokens = std::numeric_limits<int32_t>::max(), .logits = graph.value(graph.logits).cols, .kv_pages = kv_pages};
  for (const Node& node : graph.nodes) {
    if (const auto* embed = std::get_if<EmbedOp>(&node.op)) {
      limits.tokens = std::min(limits.tokens, graph.weight(embed->table).rows);
    }
  }
  return limits;
}

Result<void> check_step(const StepBatch& batch, const StepLimits& limits, Bucket bucket, int64_t logit_rows) {
  const auto rows = static_cast<int64_t>(batch.tokens.size()), logits = static_cast<int64_t>(batch.logit_rows.size());
  if (rows < 1 || rows > bucket.rows || logits > logit_rows) {
    return fail(ErrorCode::kInternal, "step of {} rows and {} logit rows in a plan for {} and {}", rows, logits,
                bucket.rows, logit_rows);
  }
  for (int32_t token : batch.tokens) {
    if (token < 0 || token >= limits.tokens) {
      return fail(ErrorCode::kUsage, "token {} is outside the vocabulary of {}", token, limits.tokens);
    }
  }
  int64_t next = 0;
  for (size_t s = 0; s < batch.sequences.size(); ++s) {
    const StepSequence& sequence = batch.sequences[s];
    if (sequence.first_row != next || sequence.rows < 1 || next + sequence.rows > rows || sequence.position < 0 ||
        sequence.pages.size() != limits.kv_pages.size()) {
      return fail(ErrorCode::kInternal, "step: sequence {} has rows [{}, +{}) where row {} of {} was due", s,
                  sequence.first_row, sequence.rows, next, rows);
    }
    const int64_t last_page = (sequence.position + sequence.rows - 1) / kPageTokens;
    for (size_t g = 0; g < sequence.pages.size(); ++g) {
      if (static_cast<int64_t>(sequence.pages[g].size()) <= last_page) {
        return fail(ErrorCode::kInternal, "step: sequence {} needs {} pages and has {}", s, last_page + 1,
                    sequence.pages[g].size());
      }
      for (int32_t page : sequence.pages[g]) {  // -1: behind the window
        if (page < -1 || page >= limits.kv_pages[g]) {
          return fail(ErrorCode::kInternal, "step: page {} of {} in KV group {}", page, limits.kv_pages[g], g);
        }
      }
    }
    next += sequence.rows;
  }
  if (next != rows) return fail(ErrorCode::kInternal, "step: sequences cover {} of {} rows", next, rows);
  for (int32_t row : batch.logit_rows) {
    if (row < 0 || row >= rows) return fail(ErrorCode::kInternal, "step: logit row {} of {}", row, rows);
  }
  if (!batch.requests.empty() && batch.requests.size() != batch.logit_rows.size()) {
    return fail(ErrorCode::kInternal, "step: {} requests for {} logit rows", batch.requests.size(), logits);
  }
  for (const CandidateRequest& request : batch.requests) {
    if (!(request.temperature > 0) || request.tokens.size() > static_cast<size_t>(kMaxWantedLogits)) {
      return fail(ErrorCode::kInternal, "step: temperature {}, and logits of {} tokens are wanted; at most {} can be",
                  request.temperature, request.tokens.size(), kMaxWantedLogits);
    }
    for (int32_t token : request.tokens) {
      if (token < 0 || token >= limits.logits) {
        return fail(ErrorCode::kInternal, "step: logit {} of {} is wanted", token, limits.logits);
      }
    }
  }
  return {};
}

Result<void> check_read(size_t count, int64_t first, int64_t rows, int64_t cols) {
  const auto width = static_cast<size_t>(cols);
  if (first >= 0 && first <= rows && cols > 0 && count % width == 0 &&
      count / width <= static_cast<size_t>(rows - first)) {
    return {};
  }
  return fail(ErrorCode::kInternal, "reading rows: {} floats from row {} on asked for, the step has [{}, {}]", count,
              first, rows, cols);
}

}  // namespace hearth
