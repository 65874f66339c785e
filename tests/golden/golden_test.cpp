// Every checkpoint of tests/data/golden on every device against the logits of transformers.
#include <gtest/gtest.h>

#include <algorithm>

#include "engine/embedding.h"
#include "fixtures.h"
#include "quant/format.h"
#include "support/runner.h"

namespace hearth::testing {
namespace {

// Single precision alone costs up to 1e-5; the least visible mistake makes 5e-2.
constexpr double kBound = 2e-4;
constexpr double kSameBound = 1e-4;  // of one device with itself, whatever the steps

// The matrix that makes logits, decoded, with its bias.
class Head {
 public:
  explicit Head(const Graph& graph) {
    const auto& op = std::get<LinearOp>(graph.nodes.back().op);
    const Weight& matrix = graph.weight(op.parts[0].weight);
    for (int64_t row = 0; row < matrix.rows; ++row) matrix_.push_back(decoded(matrix, row));
    if (op.parts[0].bias) bias_ = decoded(graph.weight(op.parts[0].bias), 0);
  }

  void add_logits(std::span<const double> x, std::vector<float>& logits) const {
    for (size_t row = 0; row < matrix_.size(); ++row) {
      double sum = bias_.empty() ? 0 : bias_[row];
      for (size_t i = 0; i < x.size(); ++i) sum += matrix_[row][i] * x[i];
      logits.push_back(static_cast<float>(sum));
    }
  }

 private:
  static std::vector<float> decoded(const Weight& weight, int64_t row) {
    std::vector<float> values(static_cast<size_t>(weight.cols));
    const TensorEntry& tensor = *weight.tensor;
    decode_row(tensor.format, tensor.bytes.data() + static_cast<size_t>(row) * row_bytes(tensor.format, weight.cols),
               values);
    return values;
  }

  std::vector<std::vector<float>> matrix_;  // [vocab][width]
  std::vector<float> bias_;                 // [vocab], or none
};

struct Case {
  std::string fixture;
  TestDevice device;
};

std::vector<Case> cases() {
  std::vector<Case> all;
  for (const std::string& name : fixture_names()) {
    for (const TestDevice& device : test_devices()) all.push_back({name, device});
  }
  return all;
}

class GoldenTest : public ::testing::TestWithParam<Case> {
 protected:
  void SetUp() override {
    backend_ = make_test_backend(GetParam().device);
    if (!backend_) GTEST_SKIP() << "this machine cannot run " << GetParam().device.label();
    fixture_ = load_fixture(GetParam().fixture);
    if (!fixture_) GTEST_SKIP() << "no family of this version runs " << GetParam().fixture;
  }

  Graph graph(std::vector<std::string> disabled_passes = {}) {
    Graph graph = fixture_->model.graph;
    auto ok = run_passes(graph, disabled_passes);
    EXPECT_TRUE(ok) << ok.error().message;
    return graph;
  }

  // Worst deviation over all sequences when each is appended in steps of `chunk` rows.
  double worst(const Graph& graph, PlanKind kind, int64_t chunk, const RunnerOptions& options = {}) {
    Runner runner(*backend_, graph, options);
    double worst = 0;
    for (size_t s = 0; s < fixture_->golden.sequences.size(); ++s) {
      std::vector<float> logits = runner.append(runner.add_sequence(), fixture_->golden.sequences[s], kind, chunk);
      worst = std::max(worst, deviation(logits, fixture_->golden.logits[s]));
    }
    return worst;
  }

  std::unique_ptr<Backend> backend_;
  std::optional<Fixture> fixture_;
};

TEST_P(GoldenTest, PrefillOfWholeSequences) { EXPECT_LT(worst(graph(), PlanKind::kPrefill, 128), kBound); }

TEST_P(GoldenTest, PrefillInOddChunks) {
  for (int64_t chunk : {7, 16, 17, 33}) EXPECT_LT(worst(graph(), PlanKind::kPrefill, chunk), kBound) << chunk;
}

TEST_P(GoldenTest, DecodeTokenByToken) { EXPECT_LT(worst(graph(), PlanKind::kDecode, 1), kBound); }

TEST_P(GoldenTest, SeveralRowsInDecodePlans) {
  for (int64_t chunk : {2, 5, 20}) EXPECT_LT(worst(graph(), PlanKind::kDecode, chunk), kBound) << chunk;
}

TEST_P(GoldenTest, EveryPassSwitchedOff) {
  EXPECT_LT(worst(graph({"all"}), PlanKind::kPrefill, 128), kBound);
  EXPECT_LT(worst(graph({"all"}), PlanKind::kDecode, 1), kBound);
  for (const Pass& pass : all_passes()) {
    EXPECT_LT(worst(graph({std::string(pass.name)}), PlanKind::kPrefill, 128), kBound) << pass.name;
  }
}

TEST_P(GoldenTest, BothWeightLayouts) {
  for (WeightLayout layout : {WeightLayout::kNative, WeightLayout::kPlanar}) {
    EXPECT_LT(worst(graph(), PlanKind::kPrefill, 128, {.layout = layout}), kBound);
    EXPECT_LT(worst(graph(), PlanKind::kDecode, 1, {.layout = layout}), kBound);
  }
}

// The head makes the golden logits of the norm of each hidden state, whether passes have folded the norm into it or
// not.
TEST_P(GoldenTest, HiddenStatesAreThoseOfTheLogits) {
  for (const std::vector<std::string>& disabled : {std::vector<std::string>{}, {"all"}}) {
    const Graph g = graph(disabled);
    ASSERT_TRUE(g.hidden);
    const auto width = static_cast<size_t>(g.value(g.hidden->value).cols);
    const Head head(g);
    const Embedder embedder(*g.hidden, g);
    Runner runner(*backend_, g);
    for (size_t s = 0; s < fixture_->golden.sequences.size(); ++s) {
      for (auto [kind, chunk] : {std::pair{PlanKind::kPrefill, 128}, {PlanKind::kDecode, 1}, {PlanKind::kDecode, 20}}) {
        const std::vector<float> states =
            runner.append(runner.add_sequence(), fixture_->golden.sequences[s], kind, chunk, Output::kHidden);
        std::vector<float> logits;
        for (size_t row = 0; row < states.size(); row += width) {
          std::vector<double> normed(width);
          embedder.add(std::span(states).subspan(row, width), normed);
          head.add_logits(normed, logits);
        }
        EXPECT_LT(deviation(logits, fixture_->golden.logits[s]), kBound) << s;
      }
    }
  }
}

TEST_P(GoldenTest, PrefillEqualsDecode) {
  Graph g = graph();
  Runner runner(*backend_, g);
  for (const std::vector<int32_t>& tokens : fixture_->golden.sequences) {
    std::vector<float> prefill = runner.append(runner.add_sequence(), tokens, PlanKind::kPrefill, 128);
    std::vector<float> decode = runner.append(runner.add_sequence(), tokens, PlanKind::kDecode, 1);
    EXPECT_LT(deviation(decode, prefill), kSameBound);
  }
}

// All sequences in every step, each at its own position, while there are tokens left.
TEST_P(GoldenTest, SequencesTogetherInOneStep) {
  Graph g = graph();
  Runner runner(*backend_, g);
  const Golden& golden = fixture_->golden;
  std::vector<int> ids;
  for (size_t s = 0; s < golden.sequences.size(); ++s) ids.push_back(runner.add_sequence());
  for (int64_t at = 0, chunk = 1;; at += chunk, chunk = chunk % 5 + 1) {
    std::vector<Runner::Part> parts;
    std::vector<float> expected;
    for (size_t s = 0; s < ids.size(); ++s) {
      auto tokens = std::span(golden.sequences[s]);
      if (static_cast<size_t>(at) >= tokens.size()) continue;
      auto count = std::min(static_cast<size_t>(chunk), tokens.size() - static_cast<size_t>(at));
      parts.push_back({.sequence = ids[s], .tokens = tokens.subspan(static_cast<size_t>(at), count)});
      auto first = golden.logits[s].begin() + at * golden.vocab;
      expected.insert(expected.end(), first, first + static_cast<int64_t>(count) * golden.vocab);
    }
    if (parts.empty()) break;
    EXPECT_LT(deviation(runner.step(parts, PlanKind::kDecode), expected), kBound) << "from position " << at;
  }
}

// A rolled-back row must leave nothing behind.
TEST_P(GoldenTest, RewindAndGoOn) {
  Graph g = graph();
  if (g.kv_groups[0].window > 0) GTEST_SKIP() << "pages behind the window are gone";
  Runner runner(*backend_, g);
  const std::vector<int32_t>& tokens = fixture_->golden.sequences[0];
  int id = runner.add_sequence();
  runner.append(id, tokens, PlanKind::kPrefill, 128);
  for (int64_t keep : {39, 32, 5}) {
    runner.rewind(id, keep);
    std::vector<int32_t> other(9, 3);
    runner.append(id, other, PlanKind::kDecode, 3);
    runner.rewind(id, keep);
    auto rest = std::span(tokens).subspan(static_cast<size_t>(keep));
    auto expected = std::span(fixture_->golden.logits[0]).subspan(static_cast<size_t>(keep * runner.vocab()));
    EXPECT_LT(deviation(runner.append(id, rest, PlanKind::kPrefill, 128), expected), kBound) << keep;
  }
}

INSTANTIATE_TEST_SUITE_P(All, GoldenTest, ::testing::ValuesIn(cases()), [](const auto& info) {
  std::string name = info.param.fixture + "_" + info.param.device.label();
  std::ranges::replace(name, '-', '_');
  return name;
});

}  // namespace
}  // namespace hearth::testing
