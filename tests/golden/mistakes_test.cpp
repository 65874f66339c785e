// The golden logits must tell every deliberately wrong model from the right one.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <deque>

#include "fixtures.h"
#include "support/runner.h"

namespace hearth::testing {
namespace {

constexpr double kVisible = 1e-2;

void replace_input(Op& op, ValueId from, ValueId to) {
  auto swap_in = [&](ValueId& id) {
    if (id == from) id = to;
  };
  std::visit(
      [&](auto& o) {
        if constexpr (requires { o.x; }) swap_in(o.x);
        if constexpr (requires { o.residual; }) swap_in(o.residual);
        if constexpr (requires { o.q; }) swap_in(o.q), swap_in(o.k), swap_in(o.v);
        if constexpr (requires { o.gate; }) swap_in(o.gate), swap_in(o.up);
        if constexpr (requires { o.a; }) swap_in(o.a), swap_in(o.b);
      },
      op);
}

// A graph to be broken, with room for weights of its own.
struct Broken {
  Graph graph;
  std::deque<std::vector<float>> data;
  std::deque<TensorEntry> tensors;

  const KvGroup& group() const { return graph.kv_groups[0]; }

  template <class T>
  T* find(std::string_view name) {
    auto it = std::ranges::find(graph.nodes, name, &Node::name);
    return it == graph.nodes.end() ? nullptr : std::get_if<T>(&it->op);
  }

  // Calls f(name, op) for each T; true when there is one and f says true for each.
  template <class T, class F>
  bool each(F&& f) {
    bool any = false, all = true;
    for (Node& node : graph.nodes) {
      if (T* op = std::get_if<T>(&node.op)) any = true, all = f(node.name, *op) && all;
    }
    return any && all;
  }

  // The F32 weight becomes element(row, column) of what it was.
  template <class F>
  void rearrange(WeightId id, F&& element) {
    Weight& weight = graph.weights[static_cast<size_t>(id.index)];
    const auto* old = reinterpret_cast<const float*>(weight.tensor->bytes.data());
    std::vector<float>& values = data.emplace_back();
    for (int64_t r = 0; r < weight.rows; ++r) {
      for (int64_t c = 0; c < weight.cols; ++c) values.push_back(old[element(r, c)]);
    }
    TensorEntry& tensor = tensors.emplace_back(*weight.tensor);
    tensor.bytes = std::as_bytes(std::span(values));
    weight.tensor = &tensor;
  }
};

// ---- mistakes: each breaks the graph and says whether it applies to it ----

bool scale_theta(Broken& b, double factor) {
  for (Rope& rope : b.graph.ropes) {
    for (size_t j = 0; j < rope.frequency.size(); ++j) {
      rope.frequency[j] *= std::pow(factor, -2.0 * static_cast<double>(j) / static_cast<double>(rope.dims));
    }
  }
  return true;
}

bool set_eps(Broken& b, float factor, float added) {
  return b.each<RmsNormOp>([&](auto&, RmsNormOp& op) { return op.norm.eps = op.norm.eps * factor + added, true; });
}

bool scale_scores(Broken& b, float factor) {
  return b.each<AttentionOp>([&](auto&, AttentionOp& op) { return op.scale *= factor, true; });
}

bool set_window(Broken& b, int64_t window) {
  for (KvGroup& group : b.graph.kv_groups) group.window = window;
  return true;
}

bool drop_bias(Broken& b, std::string_view suffix) {
  bool dropped = false;
  b.each<LinearOp>([&](const std::string& name, LinearOp& op) {
    if (name.ends_with(suffix) && op.parts[0].bias) op.parts[0].bias = {}, dropped = true;
    return true;
  });
  return dropped;
}

// All frequencies as if there were no llama3 or YaRN scaling; neither touches the fastest pairs.
bool ignore_rope_scaling(Broken& b) {
  bool scaled = false;
  for (Rope& rope : b.graph.ropes) {
    for (size_t j = 0; j < rope.frequency.size(); ++j) {
      double plain = std::pow(rope.frequency[1], static_cast<double>(j));
      scaled |= std::abs(plain / rope.frequency[j] - 1) > 1e-4;
      rope.frequency[j] = plain;
    }
  }
  return scaled;
}

bool flip_pairing(Broken& b) {
  for (Rope& rope : b.graph.ropes) {
    rope.pairing = rope.pairing == RopePairing::kHalf ? RopePairing::kInterleaved : RopePairing::kHalf;
  }
  return true;
}

bool set_magnitude(Broken& b, double power) {
  bool applies = false;
  for (Rope& rope : b.graph.ropes) {
    applies |= rope.magnitude != 1.0f;
    rope.magnitude = static_cast<float>(std::pow(rope.magnitude, power));
  }
  return applies;
}

// Query head h reads KV head h mod kv_heads instead of h / (heads / kv_heads): heads change places in attn_q and in
// attn_output.
bool stride_heads(Broken& b) {
  int64_t kv_heads = b.group().kv_heads, d = b.group().head_dim;
  if (kv_heads == 1) return false;
  return b.each<AttentionOp>([&](const std::string& name, AttentionOp& op) {
    std::string layer = name.substr(0, name.rfind('.') + 1);
    int64_t sharing = op.heads / kv_heads;
    auto moved = [&](int64_t i) { return (i / d / sharing + kv_heads * (i / d % sharing)) * d + i % d; };
    auto* q = b.find<LinearOp>(layer + "attn_q");
    auto* output = b.find<LinearOp>(layer + "attn_output");
    int64_t width = b.graph.weight(q->parts[0].weight).cols;
    b.rearrange(q->parts[0].weight, [&](int64_t r, int64_t c) { return moved(r) * width + c; });
    if (q->parts[0].bias) b.rearrange(q->parts[0].bias, [&](int64_t, int64_t c) { return moved(c); });
    b.rearrange(output->parts[0].weight, [&](int64_t r, int64_t c) { return r * op.heads * d + moved(c); });
    return sharing > 1;
  });
}

// Whoever reads the result of the norm reads its input.
bool skip_norms(Broken& b, std::string_view suffix) {
  bool skipped = false;
  for (const Node& norm : std::vector<Node>(b.graph.nodes)) {
    const auto* op = std::get_if<RmsNormOp>(&norm.op);
    if (!op || !norm.name.ends_with(suffix)) continue;
    skipped = true;
    for (Node& node : b.graph.nodes) replace_input(node.op, op->out, op->x);
  }
  return skipped;
}

bool swap_norm_weights(Broken& b, std::string_view first, std::string_view second) {
  bool swapped = false;
  b.each<RmsNormOp>([&](const std::string& name, RmsNormOp& op) {
    if (!name.ends_with(first)) return true;
    auto* other = b.find<RmsNormOp>(name.substr(0, name.size() - first.size()).append(second));
    if (other) std::swap(op.norm.weight, other->norm.weight), swapped = true;
    return true;
  });
  return swapped;
}

// x + f(norm(x)) becomes norm(x) + f(norm(x)).
bool norm_in_residual(Broken& b) {
  return b.each<AddOp>([&](const std::string& name, AddOp& op) {
    std::string block = name.substr(0, name.size() - std::string_view("residual").size());
    op.a = b.find<RmsNormOp>(block + "norm")->out;
    return true;
  });
}

// x + f(norm(x)) becomes norm(x + f(x)).
bool post_norm(Broken& b) {
  for (size_t n = 0; n < b.graph.nodes.size(); ++n) {
    auto* add = std::get_if<AddOp>(&b.graph.nodes[n].op);
    if (!add) continue;
    std::string name = b.graph.nodes[n].name;
    auto at = std::ranges::find(b.graph.nodes, name.substr(0, name.size() - 8) + "norm", &Node::name);
    auto norm = std::get<RmsNormOp>(at->op);
    for (Node& node : b.graph.nodes) replace_input(node.op, norm.out, norm.x);
    for (Node& node : b.graph.nodes) replace_input(node.op, add->out, norm.out);
    norm.x = add->out;
    at->op = norm;
    std::rotate(at, at + 1, b.graph.nodes.begin() + static_cast<int64_t>(n) + 1);
  }
  return true;
}

// norm, then rotation becomes rotation, then norm.
bool norm_heads_after_rope(Broken& b) {
  bool any = false;
  for (size_t n = 0; n < b.graph.nodes.size(); ++n) {
    auto* rope = std::get_if<RopeOp>(&b.graph.nodes[n].op);
    if (!rope) continue;
    auto norm = std::ranges::find_if(b.graph.nodes, [&](const Node& node) {
      const auto* op = std::get_if<RmsNormOp>(&node.op);
      return op && op->out == rope->x;
    });
    if (norm == b.graph.nodes.end()) continue;
    auto& norm_op = std::get<RmsNormOp>(norm->op);
    ValueId projected = norm_op.x, normed = norm_op.out, rotated = rope->out;
    for (Node& node : b.graph.nodes) replace_input(node.op, rotated, normed);
    rope->x = projected;
    norm_op.x = rotated;
    std::swap(*norm, b.graph.nodes[n]);
    any = true;
  }
  return any;
}

bool swap_gate_and_up(Broken& b) {
  return b.each<GluOp>([](auto&, GluOp& op) { return std::swap(op.gate, op.up), true; });
}

bool tie_output(Broken& b) {
  auto& head = b.find<LinearOp>("output")->parts[0].weight;
  WeightId table = b.find<EmbedOp>("token_embd")->table;
  return std::exchange(head, table) != table;
}

struct Mistake {
  const char* name;
  bool (*make)(Broken&);
};

constexpr Mistake kMistakes[] = {
    {"theta_10_percent", [](Broken& b) { return scale_theta(b, 1.1); }},
    {"theta_double", [](Broken& b) { return scale_theta(b, 2); }},
    {"eps_double", [](Broken& b) { return set_eps(b, 2, 0); }},
    {"eps_1e-6", [](Broken& b) { return set_eps(b, 0, 1e-6f); }},
    {"scale_10_percent", [](Broken& b) { return scale_scores(b, 1.1f); }},
    {"scale_linear", [](Broken& b) { return scale_scores(b, 1 / std::sqrt(static_cast<float>(b.group().head_dim))); }},
    {"scale_one", [](Broken& b) { return scale_scores(b, std::sqrt(static_cast<float>(b.group().head_dim))); }},
    {"window_invented", [](Broken& b) { return b.group().window == 0 && set_window(b, 16); }},
    {"window_none", [](Broken& b) { return b.group().window > 0 && set_window(b, 0); }},
    {"window_one_more", [](Broken& b) { return b.group().window > 0 && set_window(b, b.group().window + 1); }},
    {"window_one_less", [](Broken& b) { return b.group().window > 0 && set_window(b, b.group().window - 1); }},
    {"head_mapping_strided", stride_heads},
    {"rope_pairing", flip_pairing},
    {"rope_scaling_ignored", ignore_rope_scaling},
    {"rope_magnitude_missing", [](Broken& b) { return set_magnitude(b, 0); }},
    {"rope_magnitude_once", [](Broken& b) { return set_magnitude(b, 0.5); }},
    {"rope_magnitude_twice", [](Broken& b) { return set_magnitude(b, 2); }},
    {"bias_attn_q", [](Broken& b) { return drop_bias(b, "attn_q"); }},
    {"bias_attn_k", [](Broken& b) { return drop_bias(b, "attn_k"); }},
    {"bias_attn_v", [](Broken& b) { return drop_bias(b, "attn_v"); }},
    {"bias_attn_output", [](Broken& b) { return drop_bias(b, "attn_output"); }},
    {"bias_ffn_gate", [](Broken& b) { return drop_bias(b, "ffn_gate"); }},
    {"bias_ffn_up", [](Broken& b) { return drop_bias(b, "ffn_up"); }},
    {"bias_ffn_down", [](Broken& b) { return drop_bias(b, "ffn_down"); }},
    {"norm_swapped", [](Broken& b) { return swap_norm_weights(b, "attn_norm", "ffn_norm"); }},
    {"norm_in_residual", norm_in_residual},
    {"norm_post", post_norm},
    {"norm_attn_missing", [](Broken& b) { return skip_norms(b, "attn_norm"); }},
    {"norm_ffn_missing", [](Broken& b) { return skip_norms(b, "ffn_norm"); }},
    {"norm_final_missing", [](Broken& b) { return skip_norms(b, "output_norm"); }},
    {"head_norm_q_missing", [](Broken& b) { return skip_norms(b, "attn_q_norm"); }},
    {"head_norm_k_missing", [](Broken& b) { return skip_norms(b, "attn_k_norm"); }},
    {"head_norms_swapped", [](Broken& b) { return swap_norm_weights(b, "attn_q_norm", "attn_k_norm"); }},
    {"head_norm_after_rope", norm_heads_after_rope},
    {"glu_swapped", swap_gate_and_up},
    {"output_tied", tie_output},
};

class MistakesTest : public ::testing::TestWithParam<std::string> {
 protected:
  void SetUp() override {
    fixture_ = load_fixture(GetParam());
    if (!fixture_) GTEST_SKIP() << "no family of this version runs " << GetParam();
    backend_ = make_test_backend({.name = "reference"});
  }

  std::span<const int32_t> tokens() const { return fixture_->golden.sequences[0]; }
  std::span<const float> golden() const { return fixture_->golden.logits[0]; }

  std::optional<Fixture> fixture_;
  std::unique_ptr<Backend> backend_;
};

TEST_P(MistakesTest, EveryWrongGraphShows) {
  int applied = 0;
  for (const Mistake& mistake : kMistakes) {
    SCOPED_TRACE(mistake.name);
    Broken broken{.graph = fixture_->model.graph};
    if (!mistake.make(broken)) continue;
    ++applied;
    auto ok = run_passes(broken.graph, {});
    ASSERT_TRUE(ok) << ok.error().message;
    Runner runner(*backend_, broken.graph);
    EXPECT_GT(deviation(runner.append(runner.add_sequence(), tokens(), PlanKind::kPrefill, 128), golden()), kVisible);
  }
  EXPECT_GE(applied, 16);
}

// What a graph cannot say: positions, and which keys a step sees. The last row is decoded where it does not belong.
TEST_P(MistakesTest, WrongPositionsShow) {
  Graph graph = fixture_->model.graph;
  auto ok = run_passes(graph, {});
  ASSERT_TRUE(ok) << ok.error().message;
  Runner runner(*backend_, graph);
  auto last = tokens().last(1), last_two = tokens().last(2);
  auto before_last = tokens().first(tokens().size() - 1);
  auto expected = golden().last(static_cast<size_t>(runner.vocab()));
  auto decode_after = [&](std::span<const int32_t> prompt, int64_t rewound, std::span<const int32_t> rest) {
    int id = runner.add_sequence();
    if (!prompt.empty()) runner.append(id, prompt, PlanKind::kPrefill, 128);
    runner.rewind(id, runner.length(id) - rewound);
    std::vector<float> logits = runner.append(id, rest, PlanKind::kDecode, 64);
    return deviation(std::span(logits).last(expected.size()), expected);
  };
  EXPECT_LT(decode_after(before_last, 0, last), 2e-4);
  EXPECT_GT(decode_after(before_last, 1, last), kVisible) << "one position too low: its predecessor is gone";
  EXPECT_GT(decode_after(tokens(), 0, last), kVisible) << "one position too high: it sees itself twice";
  EXPECT_GT(decode_after({}, 0, last_two), kVisible) << "the prompt is not seen";
}

INSTANTIATE_TEST_SUITE_P(All, MistakesTest, ::testing::ValuesIn(fixture_names()), [](const auto& info) {
  std::string name = info.param;
  std::ranges::replace(name, '-', '_');
  return name;
});

}  // namespace
}  // namespace hearth::testing
