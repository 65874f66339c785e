#include "plan/plan.h"

#include <gtest/gtest.h>

#include <random>

#include "graph/passes.h"
#include "support/runner.h"
#include "support/tiny_file.h"

namespace hearth::testing {
namespace {

TEST(Bucket, IsTheSmallestThatFits) {
  struct {
    PlanKind kind;
    int64_t rows, bucket;
  } cases[] = {{PlanKind::kDecode, 1, 1},      {PlanKind::kDecode, 2, 2},      {PlanKind::kDecode, 3, 4},
               {PlanKind::kDecode, 33, 64},    {PlanKind::kDecode, 64, 64},    {PlanKind::kPrefill, 1, 128},
               {PlanKind::kPrefill, 128, 128}, {PlanKind::kPrefill, 129, 512}, {PlanKind::kPrefill, 2048, 2048}};
  for (auto [kind, rows, bucket] : cases) EXPECT_EQ(bucket_for(kind, rows), (Bucket{kind, bucket})) << rows;
  EXPECT_DEATH(bucket_for(PlanKind::kDecode, 65), "no bucket");
  EXPECT_DEATH(bucket_for(PlanKind::kPrefill, 0), "no bucket");
}

// Executes a plan in thought: every 64 bytes of the arena know which value wrote them last, and every read must find
// its own.
void expect_sound(const Graph& graph, const Plan& plan) {
  constexpr size_t kUnit = 64;
  ASSERT_EQ(plan.arena_bytes.size(), 1u);
  ASSERT_EQ(plan.lanes.size(), 1u);
  ASSERT_EQ(plan.lanes[0].steps.size(), graph.nodes.size());
  std::vector<int32_t> owner(plan.arena_bytes[0] / kUnit + 1, -1);
  auto units = [&](ValueId id) {
    const Slot& slot = plan.slot(id);
    const Value& value = graph.value(id);
    int64_t rows = value.rows == RowKind::kToken ? plan.bucket.rows : plan.logit_rows;
    EXPECT_GE(slot.size_bytes, static_cast<size_t>(rows * value.cols) * sizeof(float)) << value.name;
    EXPECT_EQ(slot.offset_bytes % kUnit, 0u);
    EXPECT_LE(slot.offset_bytes + slot.size_bytes, plan.arena_bytes[0]);
    return std::span(owner).subspan(slot.offset_bytes / kUnit, (slot.size_bytes + kUnit - 1) / kUnit);
  };
  auto expect_own = [&](ValueId id, const std::string& reader) {
    for (int32_t o : units(id)) ASSERT_EQ(o, id.index) << reader << " reads " << graph.value(id).name;
  };
  for (const Step& step : plan.lanes[0].steps) {
    const Node& node = graph.nodes[static_cast<size_t>(step.node)];
    for_each_input(node.op, [&](ValueId id) { expect_own(id, node.name); });
    for_each_output(node.op, [&](ValueId id) {
      for (int32_t& o : units(id)) o = id.index;
    });
    // An op may read its inputs while it writes.
    for_each_input(node.op, [&](ValueId id) { expect_own(id, node.name); });
    for_each_output(node.op, [&](ValueId id) { expect_own(id, node.name); });
  }
  expect_own(graph.logits, "the caller");
  if (graph.hidden) expect_own(graph.hidden->value, "the caller");
}

TEST(Plan, SlotsOfModelsAreSound) {
  for (const char* architecture : {"llama", "qwen3"}) {
    TinyModel tiny = make_tiny_model({.architecture = architecture, .layers = 3});
    for (bool fused : {false, true}) {
      Graph graph = tiny.model.graph;
      std::vector<std::string> disabled;
      if (!fused) disabled.emplace_back("all");
      ASSERT_TRUE(run_passes(graph, disabled));
      for (Bucket bucket :
           {Bucket{PlanKind::kDecode, 1}, Bucket{PlanKind::kDecode, 64}, Bucket{PlanKind::kPrefill, 128}}) {
        expect_sound(graph, make_single_lane_plan(graph, bucket));
      }
    }
  }
}

// Random graphs of sums: values of several widths, read once or often, soon or much later, or never.
TEST(Plan, SlotsOfRandomGraphsAreSound) {
  std::mt19937 rng(7);
  for (int round = 0; round < 200; ++round) {
    Graph graph;
    std::vector<std::vector<ValueId>> of_width(4);
    auto value = [&](size_t width, RowKind rows) {
      ValueId id{static_cast<int32_t>(graph.values.size())};
      graph.values.push_back(
          {.name = "v" + std::to_string(id.index), .rows = rows, .cols = 5 + 37 * static_cast<int64_t>(width)});
      return id;
    };
    for (size_t width = 0; width < 4; ++width) {
      of_width[width].push_back(value(width, RowKind::kToken));
      graph.nodes.push_back({.name = "embed", .op = EmbedOp{.out = of_width[width].back()}});
    }
    auto nodes = 5 + rng() % 40;
    for (size_t n = 0; n < nodes; ++n) {
      size_t width = rng() % 4;
      std::vector<ValueId>& values = of_width[width];
      auto pick = [&] { return rng() % 2 ? values.back() : values[rng() % values.size()]; };
      AddOp op{.a = pick(), .b = pick(), .out = value(width, RowKind::kToken)};
      values.push_back(op.out);
      graph.nodes.push_back({.name = "add" + std::to_string(n), .op = op});
    }
    graph.logits = value(2, RowKind::kLogit);
    graph.nodes.push_back(
        {.name = "gather", .op = GatherRowsOp{.x = of_width[2][rng() % of_width[2].size()], .out = graph.logits}});
    auto rows = static_cast<int64_t>(1 + rng() % 100);
    expect_sound(graph, make_single_lane_plan(graph, {PlanKind::kPrefill, rows}));
  }
}

TEST(Plan, ArenaDoesNotGrowWithLayers) {
  TinyModel two = make_tiny_model({.layers = 2}), eight = make_tiny_model({.layers = 8});
  Bucket bucket{PlanKind::kPrefill, 128};
  EXPECT_EQ(make_single_lane_plan(two.model.graph, bucket).arena_bytes,
            make_single_lane_plan(eight.model.graph, bucket).arena_bytes);
}

TEST(Plan, HiddenStatesTakeNoMemoryWhereTheNormIsFolded) {
  Graph graph = make_tiny_model({}).model.graph;
  ASSERT_TRUE(run_passes(graph, {}));
  ASSERT_TRUE(graph.hidden);
  Graph without = graph;
  without.hidden.reset();
  for (Bucket bucket : {Bucket{PlanKind::kDecode, 1}, Bucket{PlanKind::kPrefill, 128}}) {
    EXPECT_EQ(make_single_lane_plan(graph, bucket).arena_bytes, make_single_lane_plan(without, bucket).arena_bytes);
  }
}

TEST(Plan, LogitRowsAreBounded) {
  TinyModel tiny = make_tiny_model({});
  EXPECT_EQ(make_single_lane_plan(tiny.model.graph, {PlanKind::kDecode, 4}).logit_rows, 4);
  EXPECT_EQ(make_single_lane_plan(tiny.model.graph, {PlanKind::kPrefill, 512}).logit_rows, kMaxLogitRows);
}

// A plan of two lanes joined by events, as GPU plans will be; the reference runs any plan.
TEST(Plan, LanesWaitForEvents) {
  TinyModel tiny = make_tiny_model({});
  const Graph& graph = tiny.model.graph;
  auto backend = make_test_backend({.name = "reference"});
  auto model = backend->load(graph, {.kv_type = KvType::kF32, .kv_pages = {4}});
  ASSERT_TRUE(model);
  auto logits_of = [&](const Plan& plan) -> Result<std::vector<float>> {
    HEARTH_ASSIGN(auto executable, (*model)->record(plan));
    int32_t tokens[] = {5, 6, 7}, pages[] = {2}, rows[] = {0, 1, 2};
    StepSequence sequences[] = {{.first_row = 0, .rows = 3, .position = 0, .pages = {pages}}};
    HEARTH_TRY(executable->launch({.tokens = tokens, .sequences = sequences, .logit_rows = rows}));
    HEARTH_TRY(executable->wait());
    std::vector<float> logits(static_cast<size_t>(3 * graph.value(graph.logits).cols));
    HEARTH_TRY(executable->read_logits(0, logits));
    return logits;
  };
  Plan plan = make_single_lane_plan(graph, {PlanKind::kDecode, 4});
  auto expected = logits_of(plan);
  ASSERT_TRUE(expected);

  // The second half moves to another lane, listed first, and waits for the first.
  std::vector<Step> steps = plan.lanes[0].steps;
  auto half = steps.begin() + static_cast<int64_t>(steps.size() / 2);
  plan.lanes = {{.kind = LaneKind::kHost, .steps = {half, steps.end()}}, {.steps = {steps.begin(), half}}};
  plan.events = 1;
  plan.lanes[0].steps.front().waits = {0};
  plan.lanes[1].steps.back().signals = 0;
  auto two_lanes = logits_of(plan);
  ASSERT_TRUE(two_lanes);
  EXPECT_EQ(*two_lanes, *expected);

  plan.lanes[1].steps.back().signals = -1;
  auto stuck = logits_of(plan);
  ASSERT_FALSE(stuck);
  EXPECT_EQ(stuck.error().code, ErrorCode::kInternal);
}

}  // namespace
}  // namespace hearth::testing
