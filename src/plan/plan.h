// The graph lowered for devices, a placement and a row bucket: lanes of steps joined by events, values in slots of
// arenas. A plan is made once per bucket, recorded by a backend and replayed for every step; nothing in it depends on
// lengths, positions or page tables.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "graph/graph.h"

namespace hearth {

// Decode buckets use kernels that read each weight once for few rows; prefill buckets use tiled products.
enum class PlanKind { kDecode, kPrefill };

struct Bucket {
  PlanKind kind = PlanKind::kDecode;
  int64_t rows = 1;  // most rows a step of this plan can carry
  bool operator==(const Bucket&) const = default;
};

inline constexpr int64_t kDecodeRows[] = {1, 2, 4, 8, 16, 32, 64};
inline constexpr int64_t kPrefillRows[] = {128, 512, 2048};

// Decoding rows beside each other in deterministic mode, at most.
inline constexpr int64_t kDeterministicDecodeRows = 8;

// The most logit rows of one step.
inline constexpr int64_t kMaxLogitRows = 64;

// The smallest bucket of that kind that takes `rows` rows.
Bucket bucket_for(PlanKind kind, int64_t rows);

// Where a value lives: [offset_bytes, offset_bytes + size_bytes) of the arena. Offsets are 64-byte aligned.
struct Slot {
  int32_t arena = 0;
  size_t offset_bytes = 0;
  size_t size_bytes = 0;
};

enum class LaneKind {
  kCompute,  // a device's compute stream, or the CPU pool when the CPU is the device
  kCopy,     // a copy engine
  kHost,     // the CPU pool beside a GPU
};

// One node of the graph on one lane. It starts when all its events are there, and raises its own when done.
struct Step {
  int32_t node = 0;
  std::vector<int32_t> waits;  // events of other lanes
  int32_t signals = -1;        // event, or -1
};

struct Lane {
  LaneKind kind = LaneKind::kCompute;
  std::vector<Step> steps;  // run in order
};

struct Plan {
  const Graph* graph = nullptr;
  Bucket bucket;
  int64_t logit_rows = 0;           // capacity for RowKind::kLogit values
  std::vector<size_t> arena_bytes;  // size of each arena
  std::vector<Slot> slots;          // by ValueId
  std::vector<Lane> lanes;
  int32_t events = 0;
  // Among plans of up to kDeterministicDecodeRows rows of a kind, a row has the same bits whatever the number of rows.
  bool deterministic = false;

  const Slot& slot(ValueId id) const { return slots[static_cast<size_t>(id.index)]; }
};

// A plan with every step on one compute lane and all values in arena 0; slots of values that are never alive together
// overlap. The graph must outlive the plan.
Plan make_single_lane_plan(const Graph& graph, Bucket bucket);

}  // namespace hearth
