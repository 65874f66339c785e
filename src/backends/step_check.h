// Whether a step is one that a plan can run. Devices call it before they touch anything: a step that is not ends in an
// error that nothing has happened for.
#pragma once

#include <cstdint>
#include <vector>

#include "backends/backend.h"

namespace hearth {

// What the steps of a loaded model may name.
struct StepLimits {
  int64_t tokens = 0;             // rows of the smallest embedding table
  int64_t logits = 0;             // in a row
  std::vector<int64_t> kv_pages;  // of each KV group
};
StepLimits step_limits(const Graph& graph, const std::vector<int64_t>& kv_pages);

// kUsage: a token outside of the vocabulary. kInternal, a bug of the caller: rows or logit rows beyond those of the
// plan, sequences that do not cover the rows in order, pages that lack or do not exist, impossible requests for
// candidates.
Result<void> check_step(const StepBatch& batch, const StepLimits& limits, Bucket bucket, int64_t logit_rows);

// A value [logit rows, cols] that a step leaves behind, in the memory of its device.
struct StepOutput {
  const float* rows = nullptr;
  int64_t cols = 0;  // 0: the graph does not have it
};
// kInternal: `count` floats from row `first` on are not whole rows of a value [rows, cols] that a step has left.
Result<void> check_read(size_t count, int64_t first, int64_t rows, int64_t cols);

}  // namespace hearth
