// verify() must refuse every kind of broken graph.
#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "graph/passes.h"
#include "support/tiny_file.h"

namespace hearth::testing {
namespace {

// The first node with an op of type T.
template <class T>
T& first(Graph& graph) {
  for (Node& node : graph.nodes) {
    if (T* op = std::get_if<T>(&node.op)) return *op;
  }
  std::abort();
}

Value& value(Graph& graph, ValueId id) { return graph.values[static_cast<size_t>(id.index)]; }

struct Break {
  const char* name;
  void (*make)(Graph&);
  const char* message;
};

constexpr Break kBreaks[] = {
    {"reads before it is written", [](Graph& g) { g.nodes.erase(g.nodes.begin()); }, "unwritten"},
    {"order", [](Graph& g) { std::swap(g.nodes[1], g.nodes[2]); }, "unwritten"},
    {"reads no value", [](Graph& g) { first<RmsNormOp>(g).x = {}; }, "unwritten"},
    {"reads a value out of range", [](Graph& g) { first<RmsNormOp>(g).x = {100000}; }, "unwritten"},
    {"written twice", [](Graph& g) { g.nodes.insert(g.nodes.begin(), g.nodes[0]); }, "twice"},
    {"writes no value", [](Graph& g) { first<EmbedOp>(g).out = {}; }, "out of range"},
    {"writes out of range", [](Graph& g) { first<EmbedOp>(g).out = {100000}; }, "out of range"},
    {"logits unwritten", [](Graph& g) { g.nodes.pop_back(); }, "logits"},
    {"logits unset", [](Graph& g) { g.logits = {}; }, "logits"},
    {"logits of token rows", [](Graph& g) { g.logits = first<EmbedOp>(g).out; }, "logits"},
    {"hidden states unwritten", [](Graph& g) { g.hidden->value = {100000}; }, "hidden states"},
    {"hidden states of token rows", [](Graph& g) { g.hidden->value = first<EmbedOp>(g).out; }, "hidden states"},
    {"hidden states without a norm", [](Graph& g) { g.hidden->norm.weight = {}; }, "hidden states"},
    {"hidden states, norm out of range", [](Graph& g) { g.hidden->norm.weight = {9999}; }, "hidden states"},
    {"hidden states without epsilon", [](Graph& g) { g.hidden->norm.eps = 0; }, "hidden states"},
    {"hidden states, a matrix for a norm", [](Graph& g) { g.hidden->norm.weight = first<EmbedOp>(g).table; },
     "hidden states"},
    {"hidden states of another width", [](Graph& g) { g.hidden->value = g.logits; }, "hidden states"},
    {"embed without table", [](Graph& g) { first<EmbedOp>(g).table = {}; }, "weight -1"},
    {"embed width", [](Graph& g) { value(g, first<EmbedOp>(g).out).cols = 63; }, "needs"},
    {"embed into logit rows", [](Graph& g) { value(g, first<EmbedOp>(g).out).rows = RowKind::kLogit; }, "logit rows"},
    {"norm without weight", [](Graph& g) { first<RmsNormOp>(g).norm.weight = {}; }, "weight -1"},
    {"norm weight out of range", [](Graph& g) { first<RmsNormOp>(g).norm.weight = {9999}; }, "weight 9999"},
    {"norm without epsilon", [](Graph& g) { first<RmsNormOp>(g).norm.eps = 0; }, "epsilon"},
    {"norm width", [](Graph& g) { g.weights[static_cast<size_t>(first<RmsNormOp>(g).norm.weight.index)].cols = 60; },
     "divide"},
    {"norm changes the width", [](Graph& g) { value(g, first<RmsNormOp>(g).out).cols = 128; }, "columns"},
    {"linear without parts", [](Graph& g) { first<LinearOp>(g).parts.clear(); }, "no parts"},
    {"linear width", [](Graph& g) { value(g, first<LinearOp>(g).parts[0].out).cols = 65; }, "needs [65, 64]"},
    {"linear weight", [](Graph& g) { first<LinearOp>(g).parts[0].weight = {}; }, "weight -1"},
    {"bias width", [](Graph& g) { first<LinearOp>(g).parts[0].bias = first<EmbedOp>(g).table; }, "needs [1, 64]"},
    {"residual and two parts",
     [](Graph& g) {
       auto& linear = first<LinearOp>(g);
       linear.residual = first<EmbedOp>(g).out;
       linear.parts.push_back(linear.parts[0]);
       linear.parts[1].out = {static_cast<int32_t>(g.values.size())};
       g.values.push_back(value(g, linear.parts[0].out));
     },
     "residual"},
    {"residual width",
     [](Graph& g) {
       for (Node& node : g.nodes) {
         auto* linear = std::get_if<LinearOp>(&node.op);
         if (linear && node.name == "blk.0.ffn_gate") linear->residual = first<EmbedOp>(g).out;
       }
     },
     "columns"},
    {"glu of one part", [](Graph& g) { first<LinearOp>(g).glu = Activation::kSilu; }, "gate and an up"},
    {"folded norm of heads",
     [](Graph& g) { first<LinearOp>(g).norm = Norm{.weight = first<RmsNormOp>(g).norm.weight, .eps = 0}; }, "epsilon"},
    {"rope out of range", [](Graph& g) { first<RopeOp>(g).rope = 7; }, "rope 7"},
    {"rope of an odd number of dims", [](Graph& g) { g.ropes[0].dims = 15; }, "15 dims"},
    {"rope wider than a head", [](Graph& g) { g.ropes[0].dims = 32, g.ropes[0].frequency.resize(16); }, "32 dims"},
    {"rope without frequencies", [](Graph& g) { g.ropes[0].frequency.pop_back(); }, "7 frequencies"},
    {"rope head width", [](Graph& g) { first<RopeOp>(g).head_dim = 24; }, "24"},
    {"rope without head width", [](Graph& g) { first<RopeOp>(g).head_dim = 0; }, "head width 0"},
    {"attention KV group", [](Graph& g) { first<AttentionOp>(g).kv_group = 1; }, "KV group"},
    {"attention KV layer", [](Graph& g) { first<AttentionOp>(g).kv_layer = 2; }, "KV layer 2"},
    {"attention heads", [](Graph& g) { first<AttentionOp>(g).heads = 3; }, "3 heads"},
    {"attention without KV heads", [](Graph& g) { g.kv_groups[0].kv_heads = 0; }, "KV heads"},
    {"attention without scale", [](Graph& g) { first<AttentionOp>(g).scale = 0; }, "scale"},
    {"attention soft cap", [](Graph& g) { first<AttentionOp>(g).soft_cap = -1; }, "soft cap"},
    {"attention sinks", [](Graph& g) { first<AttentionOp>(g).sinks = first<RmsNormOp>(g).norm.weight; },
     "needs [1, 4]"},
    {"attention head width", [](Graph& g) { g.kv_groups[0].head_dim = 8; }, "columns"},
    {"attention key width", [](Graph& g) { first<AttentionOp>(g).k = first<AttentionOp>(g).q; }, "columns"},
    {"attention head norm",
     [](Graph& g) { first<AttentionOp>(g).q_norm = Norm{.weight = first<EmbedOp>(g).table, .eps = 1}; }, "needs [1,"},
    {"attention rope", [](Graph& g) { first<AttentionOp>(g).rope = 3; }, "rope 3"},
    {"glu widths", [](Graph& g) { first<GluOp>(g).up = first<EmbedOp>(g).out; }, "columns"},
    {"add widths", [](Graph& g) { first<AddOp>(g).b = first<AttentionOp>(g).k; }, "columns"},
    {"gather changes the width", [](Graph& g) { value(g, first<GatherRowsOp>(g).out).cols = 3; }, "width"},
    {"gathers into token rows", [](Graph& g) { value(g, first<GatherRowsOp>(g).out).rows = RowKind::kToken; },
     "gathers"},
};

TEST(Verify, RefusesEveryBrokenGraph) {
  TinyModel tiny = make_tiny_model({.architecture = "qwen3"});
  ASSERT_TRUE(verify(tiny.model.graph));
  for (const Break& b : kBreaks) {
    Graph graph = tiny.model.graph;
    b.make(graph);
    auto ok = verify(graph);
    ASSERT_FALSE(ok) << b.name;
    EXPECT_EQ(ok.error().code, ErrorCode::kInternal);
    EXPECT_NE(ok.error().message.find(b.message), std::string::npos) << b.name << ": " << ok.error().message;
  }
}

// Whatever the passes fold: each weight is read, and as what it is.
TEST(Graph, EveryWeightHasItsUse) {
  for (const char* architecture : {"llama", "qwen2", "qwen3"}) {
    for (bool tied : {false, true}) {
      TinyModel tiny = make_tiny_model({.architecture = architecture, .tied = tied});
      Graph& graph = tiny.model.graph;
      for (bool passes : {false, true}) {
        if (passes) {
          ASSERT_TRUE(run_passes(graph, {}));
        }
        std::vector<std::set<WeightUse>> uses(graph.weights.size());
        for (const Node& node : graph.nodes) {
          for_each_weight(node.op,
                          [&](WeightId id, WeightUse use) { uses[static_cast<size_t>(id.index)].insert(use); });
        }
        for (size_t i = 0; i < uses.size(); ++i) {
          const TensorEntry& tensor = *graph.weights[i].tensor;
          std::set<WeightUse> expected = {tensor.shape.size() == 1 ? WeightUse::kVector : WeightUse::kMatrix};
          if (tensor.name == "token_embd.weight") {
            expected = {WeightUse::kGathered};
            if (tied) expected.insert(WeightUse::kMatrix);
          }
          EXPECT_EQ(uses[i], expected) << architecture << " " << tensor.name;
        }
      }
    }
  }
}

}  // namespace
}  // namespace hearth::testing
