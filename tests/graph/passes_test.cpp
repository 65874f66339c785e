// Passes must not change results, must fold what they promise and must refuse what would be wrong.
#include "graph/passes.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>

#include "support/graph_maker.h"
#include "support/logits.h"
#include "support/runner.h"
#include "support/tiny_file.h"

namespace hearth::testing {
namespace {

std::vector<std::string> all_but(std::string_view name) {
  std::vector<std::string> others;
  for (const Pass& pass : all_passes()) {
    if (pass.name != name) others.emplace_back(pass.name);
  }
  return others;
}

Graph passed(const Graph& graph, const std::vector<std::string>& disabled) {
  Graph copy = graph;
  auto ok = run_passes(copy, disabled);
  EXPECT_TRUE(ok) << ok.error().message;
  return copy;
}

std::vector<float> logits(const Graph& graph, std::span<const int32_t> tokens) {
  auto backend = make_test_backend({.name = "reference"});
  Runner runner(*backend, graph, {.pages = 8});
  return runner.append(runner.add_sequence(), tokens, PlanKind::kPrefill, 128);
}

TEST(Passes, NeverChangeLogits) {
  std::vector<int32_t> tokens(37);
  std::mt19937 rng(3);
  for (int32_t& token : tokens) token = static_cast<int32_t>(rng() % 250);
  for (const TinyModelOptions& options :
       {TinyModelOptions{}, TinyModelOptions{.architecture = "qwen2", .tied = true},
        TinyModelOptions{.architecture = "qwen3", .head_dim = 32}, TinyModelOptions{.window = 9}}) {
    TinyModel tiny = make_tiny_model(options);
    std::vector<float> plain = logits(passed(tiny.model.graph, {"all"}), tokens);
    EXPECT_LT(deviation(logits(passed(tiny.model.graph, {}), tokens), plain), 1e-5);
    for (const Pass& pass : all_passes()) {
      EXPECT_LT(deviation(logits(passed(tiny.model.graph, {std::string(pass.name)}), tokens), plain), 1e-5);
      EXPECT_LT(deviation(logits(passed(tiny.model.graph, all_but(pass.name)), tokens), plain), 1e-5);
    }
  }
}

TEST(Passes, FoldWhatTheyPromise) {
  TinyModel llama = make_tiny_model({}), qwen3 = make_tiny_model({.architecture = "qwen3"});
  auto nodes = [](const TinyModel& tiny, const std::vector<std::string>& disabled) {
    return passed(tiny.model.graph, disabled).nodes.size();
  };
  // Two layers of 15 nodes (17 with head norms), and four around them.
  EXPECT_EQ(nodes(llama, {"all"}), 34u);
  EXPECT_EQ(nodes(qwen3, {"all"}), 38u);
  // qkv, attention, output, gate and up, down; embed, gather, head.
  EXPECT_EQ(nodes(llama, {}), 13u);
  EXPECT_EQ(nodes(qwen3, {}), 13u);
  EXPECT_EQ(nodes(llama, all_but("merge_linears")), 28u);
  EXPECT_EQ(nodes(llama, all_but("fold_norm")), 33u);  // only the head is alone in reading its norm
  EXPECT_EQ(nodes(llama, all_but("fold_glu")), 34u);   // needs merged gate and up
  EXPECT_EQ(nodes(llama, all_but("fold_residual")), 30u);
  EXPECT_EQ(nodes(llama, all_but("fold_rope")), 30u);
  EXPECT_EQ(nodes(qwen3, all_but("fold_rope")), 30u);
}

TEST(Passes, UnknownNameIsAnError) {
  TinyModel tiny = make_tiny_model({});
  std::vector<std::string> names = {"fold_rope", "fold_everything"};
  auto ok = run_passes(tiny.model.graph, names);
  ASSERT_FALSE(ok);
  EXPECT_EQ(ok.error().code, ErrorCode::kUsage);
  EXPECT_NE(ok.error().message.find("fold_everything"), std::string::npos);
  EXPECT_NE(ok.error().message.find("merge_linears"), std::string::npos);
}

// A maker with a few weights that fit x [16] to itself.
class Refusals : public ::testing::Test {
 protected:
  Refusals() {
    std::mt19937 rng(5);
    std::normal_distribution<float> normal(0, 0.3f);
    auto random = [&](int64_t count) {
      std::vector<float> values(static_cast<size_t>(count));
      for (float& v : values) v = normal(rng);
      return values;
    };
    table_ = m_.weight("table", 32, 16, random(32 * 16));
    a_ = m_.weight("a", 16, 16, random(256));
    b_ = m_.weight("b", 16, 16, random(256));
    wide_norm_ = m_.weight("norm", 1, 16, random(16));
    head_norm_ = m_.weight("head_norm", 1, 8, random(8));
    x_ = m_.embed("x", table_);
    m_.graph.kv_groups.push_back({.layers = 1, .kv_heads = 2, .head_dim = 8});
    m_.graph.ropes.assign(2, {.dims = 8, .frequency = {1, 0.5, 0.25, 0.125}});
    m_.graph.ropes[1].magnitude = 2;
  }

  // Number of nodes after the one pass; results must not change.
  size_t nodes_after(void (*pass)(Graph&)) {
    expect_ok(verify(m_.graph));
    Graph changed = m_.graph;
    pass(changed);
    expect_ok(verify(changed));
    std::vector<int32_t> tokens = {3, 1, 4, 1, 5, 9, 2, 6};
    EXPECT_LT(deviation(logits(changed, tokens), logits(m_.graph, tokens)), 1e-6);
    return changed.nodes.size();
  }
  void expect_ok(Result<void> ok) { ASSERT_TRUE(ok) << ok.error().message; }

  GraphMaker m_;
  WeightId table_, a_, b_, wide_norm_, head_norm_;
  ValueId x_;
};

TEST_F(Refusals, MergeKeepsDifferentInputsApart) {
  ValueId y = m_.linear("l.a", x_, a_);
  m_.finish(m_.sum("sum", m_.linear("l.b", y, b_), m_.linear("l.c", x_, b_)));
  EXPECT_EQ(nodes_after(merge_linears), m_.graph.nodes.size() - 1);  // a and c read x, b does not
}

TEST_F(Refusals, NormThatSomeoneElseReads) {
  ValueId normed = m_.rms_norm("norm", x_, wide_norm_);
  m_.finish(m_.sum("sum", m_.linear("linear", normed, a_), normed));
  EXPECT_EQ(nodes_after(fold_norm), m_.graph.nodes.size());
}

TEST_F(Refusals, NormOfHeads) {
  m_.finish(m_.linear("linear", m_.rms_norm("norm", x_, head_norm_), a_));
  EXPECT_EQ(nodes_after(fold_norm), m_.graph.nodes.size());
}

TEST_F(Refusals, NormOfANorm) {
  ValueId twice = m_.rms_norm("second", m_.rms_norm("first", x_, wide_norm_), wide_norm_);
  m_.finish(m_.linear("linear", twice, a_));
  EXPECT_EQ(nodes_after(fold_norm), m_.graph.nodes.size() - 1);  // only the second
}

TEST_F(Refusals, GluOfSeparateLinears) {
  m_.finish(m_.glu("glu", m_.linear("gate", x_, a_), m_.linear("up", x_, b_)));
  EXPECT_EQ(nodes_after(fold_glu), m_.graph.nodes.size());
}

TEST_F(Refusals, GluOfMergedLinears) {
  ValueId gate = m_.linear("l.gate", x_, a_), up = m_.linear("l.up", x_, b_);
  m_.finish(m_.glu("glu", up, gate, Activation::kGeluTanh));  // named the wrong way round: the pass must turn them
  merge_linears(m_.graph);
  EXPECT_EQ(nodes_after(fold_glu), m_.graph.nodes.size() - 1);
}

TEST_F(Refusals, GluWhoseGateSomeoneElseReads) {
  ValueId gate = m_.linear("l.gate", x_, a_), up = m_.linear("l.up", x_, b_);
  m_.finish(m_.sum("sum", m_.glu("glu", gate, up), gate));
  merge_linears(m_.graph);
  EXPECT_EQ(nodes_after(fold_glu), m_.graph.nodes.size());
}

TEST_F(Refusals, GluOfThreeParts) {
  ValueId gate = m_.linear("l.gate", x_, a_), up = m_.linear("l.up", x_, b_), third = m_.linear("l.third", x_, a_);
  m_.finish(m_.sum("sum", m_.glu("glu", gate, up), third));
  merge_linears(m_.graph);
  EXPECT_EQ(nodes_after(fold_glu), m_.graph.nodes.size());
}

TEST_F(Refusals, ResidualOnEitherSide) {
  ValueId left = m_.sum("left", x_, m_.linear("first", x_, a_));
  m_.finish(m_.sum("right", m_.linear("second", left, b_), left));
  EXPECT_EQ(nodes_after(fold_residual), m_.graph.nodes.size() - 2);
}

TEST_F(Refusals, ResidualWrittenLater) {
  ValueId product = m_.linear("linear", x_, a_);
  m_.finish(m_.sum("sum", product, m_.rms_norm("later", x_, wide_norm_)));
  EXPECT_EQ(nodes_after(fold_residual), m_.graph.nodes.size());
}

TEST_F(Refusals, ProductThatLeavesTheGraph) {
  m_.finish(x_);
  const ValueId rows = m_.graph.logits;
  const ValueId hidden = m_.linear("linear", rows, a_);
  m_.graph.hidden = HiddenState{.value = hidden, .norm = {.weight = wide_norm_, .eps = 1e-5f}};
  m_.graph.logits = m_.sum("sum", hidden, rows);
  EXPECT_EQ(nodes_after(fold_residual), m_.graph.nodes.size());
}

TEST_F(Refusals, ProductThatSomeoneElseReads) {
  ValueId product = m_.linear("linear", x_, a_);
  m_.finish(m_.sum("twice", m_.sum("sum", x_, product), product));
  EXPECT_EQ(nodes_after(fold_residual), m_.graph.nodes.size());
}

TEST_F(Refusals, SumOfAProductWithItself) {
  ValueId product = m_.linear("linear", x_, a_);
  m_.finish(m_.sum("double", product, product));
  EXPECT_EQ(nodes_after(fold_residual), m_.graph.nodes.size());
}

TEST_F(Refusals, SumOfTwoProductsFoldsOne) {
  ValueId first = m_.linear("first", x_, a_), second = m_.linear("second", x_, b_);
  m_.finish(m_.sum("sum", first, second));
  EXPECT_EQ(nodes_after(fold_residual), m_.graph.nodes.size() - 1);
}

TEST_F(Refusals, ResidualOfMergedLinears) {
  ValueId first = m_.linear("l.first", x_, a_), second = m_.linear("l.second", x_, b_);
  m_.finish(m_.sum("sum", m_.sum("inner", x_, first), second));
  merge_linears(m_.graph);
  EXPECT_EQ(nodes_after(fold_residual), m_.graph.nodes.size());
}

TEST_F(Refusals, RopeFoldsWithNormsOfHeads) {
  ValueId q = m_.rope("rope_q", m_.rms_norm("norm_q", m_.linear("q", x_, a_), head_norm_), 8, 0);
  ValueId k = m_.rope("rope_k", m_.linear("k", x_, b_), 8, 0);
  m_.finish(m_.attention("attention", {.q = q, .k = k, .v = x_, .heads = 2, .scale = 0.3f}));
  EXPECT_EQ(nodes_after(fold_rope), m_.graph.nodes.size() - 3);
}

TEST_F(Refusals, RopesThatDiffer) {
  ValueId q = m_.rope("rope_q", x_, 8, 0), k = m_.rope("rope_k", x_, 8, 1);
  m_.finish(m_.attention("attention", {.q = q, .k = k, .v = x_, .heads = 2, .scale = 0.3f}));
  EXPECT_EQ(nodes_after(fold_rope), m_.graph.nodes.size());
}

TEST_F(Refusals, RopeOfOtherHeads) {
  m_.graph.ropes.assign(1, {.dims = 8, .frequency = {1, 0.5, 0.25, 0.125}});
  ValueId q = m_.rope("rope_q", x_, 16, 0), k = m_.rope("rope_k", x_, 16, 0);
  m_.finish(m_.attention("attention", {.q = q, .k = k, .v = x_, .heads = 2, .scale = 0.3f}));
  EXPECT_EQ(nodes_after(fold_rope), m_.graph.nodes.size());
}

TEST_F(Refusals, RotatedValueThatSomeoneElseReads) {
  ValueId q = m_.rope("rope_q", x_, 8, 0), k = m_.rope("rope_k", x_, 8, 0);
  m_.finish(m_.attention("attention", {.q = q, .k = k, .v = k, .heads = 2, .scale = 0.3f}));
  EXPECT_EQ(nodes_after(fold_rope), m_.graph.nodes.size());
}

TEST_F(Refusals, NormOfWholeRowsBeforeRope) {
  ValueId q = m_.rope("rope_q", m_.rms_norm("norm_q", x_, wide_norm_), 8, 0), k = m_.rope("rope_k", x_, 8, 0);
  m_.finish(m_.attention("attention", {.q = q, .k = k, .v = x_, .heads = 2, .scale = 0.3f}));
  EXPECT_EQ(nodes_after(fold_rope), m_.graph.nodes.size() - 2);  // the rotations, not the norm
}

}  // namespace
}  // namespace hearth::testing
