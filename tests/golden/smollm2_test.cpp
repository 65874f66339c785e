// SmolLM2-135M-Instruct in Q4_1 (576 wide, tied) against logits and greedy continuations that another program computed
// in f64 from the dequantized weights. Skipped where the files are not there.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "base/check.h"
#include "files/gguf.h"
#include "graph/passes.h"
#include "models/family.h"
#include "support/logits.h"
#include "support/runner.h"

namespace hearth::testing {
namespace {

const std::string kBase = HEARTH_SHARED_DATA "/models/SmolLM2-135M-Instruct";

nlohmann::json read_json(const std::string& suffix) {
  std::ifstream file(kBase + suffix);
  return nlohmann::json::parse(file);
}

struct Loaded {
  Catalog catalog;
  ModelGraph model;
};

Loaded load_smollm2() {
  auto catalog = open_gguf(kBase + ".Q4_1.gguf");
  HEARTH_CHECK(catalog, "{}", catalog.error().message);
  auto model = build_graph(*catalog);
  HEARTH_CHECK(model, "{}", model.error().message);
  auto ok = run_passes(model->graph, {});
  HEARTH_CHECK(ok, "{}", ok.error().message);
  return {.catalog = std::move(*catalog), .model = std::move(*model)};
}

int32_t argmax(std::span<const float> row) { return static_cast<int32_t>(std::ranges::max_element(row) - row.begin()); }

class SmolLM2 : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!std::filesystem::exists(kBase + ".Q4_1.gguf")) GTEST_SKIP() << kBase << ".Q4_1.gguf is not there";
  }

  // Logits of the 256 recorded positions.
  static std::vector<float> logits_of(const TestDevice& name, KvType kv_type, PlanKind kind, int64_t chunk) {
    auto backend = make_test_backend(name);
    Loaded loaded = load_smollm2();
    Runner runner(*backend, loaded.model.graph, {.kv_type = kv_type, .pages = 17});
    return runner.append(runner.add_sequence(), read_json(".logits.json")["ids"].get<std::vector<int32_t>>(), kind,
                         chunk);
  }
  static const std::vector<float>& reference_logits() {
    static const std::vector<float> kLogits = logits_of({.name = "reference"}, KvType::kF32, PlanKind::kPrefill, 64);
    return kLogits;
  }

  // For each greedy continuation, the tokens that the device finds best at its 32 positions when it is fed the
  // recorded ones: equal to what it would generate up to the first difference.
  static std::vector<std::vector<int32_t>> greedy_of(const TestDevice& name, KvType kv_type, bool by_decode) {
    auto backend = make_test_backend(name);
    Loaded loaded = load_smollm2();
    Runner runner(*backend, loaded.model.graph, {.kv_type = kv_type, .pages = 100});
    auto width = static_cast<size_t>(runner.vocab());
    nlohmann::json prompts = read_json(".greedy.json");
    std::vector<std::vector<int32_t>> found(prompts.size());
    std::vector<std::vector<int32_t>> fed(prompts.size());
    std::vector<int> ids;
    for (size_t p = 0; p < prompts.size(); ++p) {
      auto prompt = prompts[p]["prompt_ids"].get<std::vector<int32_t>>();
      auto greedy = prompts[p]["greedy"].get<std::vector<int32_t>>();
      fed[p] = {prompt.back()};
      fed[p].insert(fed[p].end(), greedy.begin(), greedy.end() - 1);
      prompt.pop_back();
      ids.push_back(runner.add_sequence());
      Runner::Part part{.sequence = ids[p], .tokens = prompt};
      runner.step({&part, 1}, PlanKind::kPrefill, WantLogits::kLast);
    }
    if (by_decode) {  // one token of every sequence in each step
      for (size_t i = 0; i < 32; ++i) {
        std::vector<Runner::Part> parts;
        for (size_t p = 0; p < fed.size(); ++p) {
          parts.push_back({.sequence = ids[p], .tokens = std::span(fed[p]).subspan(i, 1)});
        }
        std::vector<float> logits = runner.step(parts, PlanKind::kDecode);
        for (size_t p = 0; p < fed.size(); ++p) found[p].push_back(argmax(std::span(logits).subspan(p * width, width)));
      }
    } else {
      for (size_t p = 0; p < fed.size(); ++p) {
        std::vector<float> logits = runner.append(ids[p], fed[p], PlanKind::kPrefill, 64);
        for (size_t i = 0; i < 32; ++i) found[p].push_back(argmax(std::span(logits).subspan(i * width, width)));
      }
    }
    return found;
  }

  static std::vector<TestDevice> cpus() {
    std::vector<TestDevice> found;
    for (const TestDevice& device : test_devices()) {
      if (device.name == "cpu" && device.isa != "portable" && make_test_backend(device)) found.push_back(device);
    }
    return found;
  }
};

struct Divergence {
  double mean_kl = 0, p99_kl = 0, top1 = 0;
};

// KL(expected || got) of each position and how often both find the same token best.
Divergence diverge(std::vector<double> kl, int64_t same) {
  Divergence d;
  for (double v : kl) d.mean_kl += v / static_cast<double>(kl.size());
  std::ranges::sort(kl);
  d.p99_kl = kl[kl.size() * 99 / 100];
  d.top1 = static_cast<double>(same) / static_cast<double>(kl.size());
  return d;
}

void expect_close(const Divergence& d, const std::string& what) {
  fmt::print("{}: mean KL {:.2e}, p99 {:.2e}, top-1 {:.1f} %\n", what, d.mean_kl, d.p99_kl, 100 * d.top1);
  EXPECT_LT(d.mean_kl, 1e-3) << what;
  EXPECT_LT(d.p99_kl, 5e-3) << what;
  EXPECT_GE(d.top1, 0.98) << what;
}

TEST_F(SmolLM2, ReferenceLogProbabilities_slow) {
  nlohmann::json recorded = read_json(".logits.json");
  const std::vector<float>& logits = reference_logits();
  size_t rows = recorded["rows"].size(), width = logits.size() / rows;
  ASSERT_EQ(rows, 256u);
  double worst = 0;
  for (size_t r = 0; r < rows; ++r) {
    std::vector<double> p = log_softmax(std::span(logits).subspan(r * width, width));
    for (const auto& [token, logprob] : recorded["rows"][r]["top"].get<std::vector<std::pair<size_t, double>>>()) {
      worst = std::max(worst, std::abs(p[token] - logprob));
    }
  }
  fmt::print("reference: worst log-probability off by {:.2e}\n", worst);
  EXPECT_LT(worst, 1e-3);
}

TEST_F(SmolLM2, ReferenceGreedy_slow) {
  auto found = greedy_of({.name = "reference"}, KvType::kF32, false);
  nlohmann::json prompts = read_json(".greedy.json");
  for (size_t p = 0; p < found.size(); ++p) {
    for (size_t i = 0; i < 32; ++i) {
      if (prompts[p]["gap"][i] <= 1e-3) continue;
      EXPECT_EQ(found[p][i], prompts[p]["greedy"][i]) << "prompt " << p << " token " << i;
    }
  }
}

TEST_F(SmolLM2, CpuAgainstTheReference_slow) {
  for (const TestDevice& device : cpus()) {
    for (auto [kind, chunk] : {std::pair{PlanKind::kPrefill, 64}, {PlanKind::kDecode, 16}}) {
      std::vector<float> logits = logits_of(device, KvType::kF16, kind, chunk);
      const std::vector<float>& expected = reference_logits();
      size_t rows = 256, width = logits.size() / rows;
      int64_t same = 0;
      for (size_t r = 0; r < rows; ++r) {
        same += argmax(std::span(expected).subspan(r * width, width)) ==
                argmax(std::span(std::as_const(logits)).subspan(r * width, width));
      }
      expect_close(diverge(row_divergences(expected, logits, width), same),
                   fmt::format("{} {} plans", device.label(), kind == PlanKind::kDecode ? "decode" : "prefill"));
    }
  }
}

// The same from the recorded 64 best of each position, everything else taken together: a lower bound of the divergence
// that needs no run of the reference.
TEST_F(SmolLM2, CpuAgainstTheRecordedBest) {
  nlohmann::json recorded = read_json(".logits.json");
  for (const TestDevice& device : cpus()) {
    for (auto [kind, chunk] : {std::pair{PlanKind::kPrefill, 64}, {PlanKind::kDecode, 16}}) {
      std::vector<float> logits = logits_of(device, KvType::kF16, kind, chunk);
      size_t rows = recorded["rows"].size(), width = logits.size() / rows;
      std::vector<double> kl(rows, 0.0);
      int64_t same = 0;
      for (size_t r = 0; r < rows; ++r) {
        auto row = std::span(std::as_const(logits)).subspan(r * width, width);
        std::vector<double> q = log_softmax(row);
        double rest_p = 1, rest_q = 1;
        auto top = recorded["rows"][r]["top"].get<std::vector<std::pair<size_t, double>>>();
        for (auto [token, logprob] : top) {
          kl[r] += std::exp(logprob) * (logprob - q[token]);
          rest_p -= std::exp(logprob), rest_q -= std::exp(q[token]);
        }
        if (rest_p > 1e-9 && rest_q > 1e-9) kl[r] += rest_p * std::log(rest_p / rest_q);
        same += argmax(row) == static_cast<int32_t>(top[0].first);
      }
      expect_close(diverge(kl, same), fmt::format("{} {} plans, 64 best", device.label(),
                                                  kind == PlanKind::kDecode ? "decode" : "prefill"));
    }
  }
}

TEST_F(SmolLM2, CpuGreedy) {
  nlohmann::json prompts = read_json(".greedy.json");
  for (const TestDevice& device : cpus()) {
    auto found = greedy_of(device, KvType::kF16, true);
    for (size_t p = 0; p < found.size(); ++p) {
      auto greedy = prompts[p]["greedy"].get<std::vector<int32_t>>();
      auto at = static_cast<size_t>(std::ranges::mismatch(found[p], greedy).in1 - found[p].begin());
      if (at < greedy.size()) {
        fmt::print("{}: prompt {} differs at token {}, gap {}\n", device.label(), p, at, prompts[p]["gap"][at].dump());
        EXPECT_LE(prompts[p]["gap"][at], 0.1) << "prompt " << p << " token " << at;
      }
    }
  }
}

}  // namespace
}  // namespace hearth::testing
