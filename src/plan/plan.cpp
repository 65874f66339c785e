#include "plan/plan.h"

#include <algorithm>

#include "base/check.h"
#include "base/checked_math.h"

namespace hearth {

Bucket bucket_for(PlanKind kind, int64_t rows) {
  std::span<const int64_t> sizes = kind == PlanKind::kDecode ? std::span<const int64_t>(kDecodeRows) : kPrefillRows;
  auto it = std::ranges::find_if(sizes, [&](int64_t size) { return size >= rows; });
  HEARTH_CHECK(rows > 0 && it != sizes.end(), "no bucket for {} rows", rows);
  return {kind, *it};
}

namespace {

// First and last node at which a value is alive.
struct Lifetime {
  int32_t first = -1;
  int32_t last = -1;
};

std::vector<Lifetime> lifetimes(const Graph& graph) {
  std::vector<Lifetime> alive(graph.values.size());
  for (int32_t n = 0; n < static_cast<int32_t>(graph.nodes.size()); ++n) {
    auto touch = [&](ValueId id) {
      Lifetime& life = alive[static_cast<size_t>(id.index)];
      if (life.first < 0) life.first = n;
      life.last = n;
    };
    for_each_input(graph.nodes[static_cast<size_t>(n)].op, touch);
    for_each_output(graph.nodes[static_cast<size_t>(n)].op, touch);
  }
  // These are read after the last node.
  const auto end = static_cast<int32_t>(graph.nodes.size());
  alive[static_cast<size_t>(graph.logits.index)].last = end;
  if (graph.hidden) alive[static_cast<size_t>(graph.hidden->value.index)].last = end;
  return alive;
}

// First fit: the lowest offset at which `size` bytes collide with no slot of a value that is alive at the same time.
size_t find_offset(const std::vector<Lifetime>& alive, const std::vector<Slot>& slots, size_t value, size_t size) {
  std::vector<std::pair<size_t, size_t>> taken;  // [begin, end)
  for (size_t other = 0; other < slots.size(); ++other) {
    if (slots[other].size_bytes == 0) continue;
    if (alive[other].last < alive[value].first || alive[value].last < alive[other].first) continue;
    taken.emplace_back(slots[other].offset_bytes, slots[other].offset_bytes + slots[other].size_bytes);
  }
  std::ranges::sort(taken);
  size_t offset = 0;
  for (auto [begin, end] : taken) {
    if (offset + size <= begin) break;
    offset = std::max(offset, end);
  }
  return offset;
}

}  // namespace

Plan make_single_lane_plan(const Graph& graph, Bucket bucket) {
  constexpr size_t kAlign = 64;
  Plan plan{.graph = &graph, .bucket = bucket, .logit_rows = std::min(bucket.rows, kMaxLogitRows)};
  std::vector<Lifetime> alive = lifetimes(graph);
  plan.slots.resize(graph.values.size());
  size_t arena_bytes = 0;
  for (size_t v = 0; v < graph.values.size(); ++v) {
    if (alive[v].first < 0) continue;  // folded away by a pass
    int64_t rows = graph.values[v].rows == RowKind::kToken ? bucket.rows : plan.logit_rows;
    size_t size = round_up(static_cast<size_t>(rows * graph.values[v].cols) * sizeof(float), kAlign);
    plan.slots[v] = {.arena = 0, .offset_bytes = find_offset(alive, plan.slots, v, size), .size_bytes = size};
    arena_bytes = std::max(arena_bytes, plan.slots[v].offset_bytes + size);
  }
  plan.arena_bytes = {arena_bytes};
  Lane lane{.kind = LaneKind::kCompute};
  for (int32_t n = 0; n < static_cast<int32_t>(graph.nodes.size()); ++n) lane.steps.push_back({.node = n});
  plan.lanes.push_back(std::move(lane));
  return plan;
}

}  // namespace hearth
