// Everything that the ops of one step read and write: values in the arenas, weights, KV pages, and copies of what the
// caller passed to launch().
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "backends/backend.h"
#include "backends/reference/kv_store.h"
#include "backends/reference/weights.h"

namespace hearth::reference {

// A row-major matrix in an arena; its rows are those that the step has, not those that the bucket has room for.
struct Matrix {
  float* data = nullptr;
  int64_t rows = 0;
  int64_t cols = 0;

  std::span<float> row(int64_t r) const { return {data + r * cols, static_cast<size_t>(cols)}; }
};

struct SequenceRows {
  int64_t first_row = 0;
  int64_t rows = 0;
  int64_t position = 0;
  std::vector<std::vector<int32_t>> pages;  // [kv group][logical page]
};

struct StepState {
  const Graph& graph;
  const Plan& plan;
  const Weights& weights;
  std::span<KvStore> kv;  // by KV group
  int64_t threads = 1;

  std::vector<std::vector<std::byte>> arenas;
  std::vector<int32_t> tokens;          // [rows]
  std::vector<int64_t> positions;       // [rows]
  std::vector<SequenceRows> sequences;  // cover all rows
  std::vector<int32_t> logit_rows;

  Matrix value(ValueId id);
};

// ops/*.cpp: the meaning of each op is in graph/graph.h.
void run(const EmbedOp& op, StepState& step);
void run(const RmsNormOp& op, StepState& step);
void run(const LinearOp& op, StepState& step);
void run(const RopeOp& op, StepState& step);
void run(const AttentionOp& op, StepState& step);
void run(const GluOp& op, StepState& step);
void run(const AddOp& op, StepState& step);
void run(const GatherRowsOp& op, StepState& step);

// Parts that several ops need. `x` and `out` may be the same.
void rms_norm(std::span<const float> x, std::span<const float> weight, float eps, std::span<float> out);
// Rotates one head at `position`; entries past rope.dims are copied.
void rotate(const Rope& rope, int64_t position, std::span<const float> x, std::span<float> out);
float activate(Activation activation, float x);

}  // namespace hearth::reference
