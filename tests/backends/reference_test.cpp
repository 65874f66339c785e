// The reference backend takes away what a caller might wrongly count on, and the registry knows every device.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <random>

#include "support/graph_maker.h"
#include "support/runner.h"
#include "support/tiny_file.h"

namespace hearth::testing {
namespace {

TEST(Registry, UnknownDeviceListsTheNames) {
  auto backend = make_backend("tpu", {});
  ASSERT_FALSE(backend);
  EXPECT_EQ(backend.error().code, ErrorCode::kUsage);
  for (const char* name : {"tpu", "cpu", "reference", "cuda", "vulkan"}) {
    EXPECT_NE(backend.error().message.find(name), std::string::npos) << name;
  }
}

TEST(Registry, AbsentDevicesSayWhatWorks) {
  for (const char* name : {"cuda", "vulkan"}) {
    auto backend = make_backend(name, {});
    if (backend) continue;  // built in
    EXPECT_EQ(backend.error().code, ErrorCode::kNotFound);
    EXPECT_NE(backend.error().message.find("--device cpu"), std::string::npos);
  }
}

TEST(Registry, UnknownInstructionSetIsAnError) {
  auto backend = make_backend("cpu", {.isa = "mmx"});
  ASSERT_FALSE(backend);
  EXPECT_NE(backend.error().message.find("mmx"), std::string::npos);
}

class Reference : public ::testing::Test {
 protected:
  void load(KvType type = KvType::kF32) {
    auto model = backend_->load(tiny_.model.graph, {.kv_type = type, .kv_pages = {6}});
    ASSERT_TRUE(model) << model.error().message;
    executable_ = nullptr;
    model_ = std::move(*model);
    plan_ = make_single_lane_plan(tiny_.model.graph, {PlanKind::kDecode, 32});
    auto executable = model_->record(plan_);
    ASSERT_TRUE(executable);
    executable_ = std::move(*executable);
  }
  Result<void> launch(std::vector<int32_t> tokens, int32_t position, std::vector<int32_t> pages) {
    int32_t rows[] = {static_cast<int32_t>(tokens.size()) - 1};
    StepSequence sequences[] = {
        {.first_row = 0, .rows = static_cast<int32_t>(tokens.size()), .position = position, .pages = {pages}}};
    return executable_->launch({.tokens = tokens, .sequences = sequences, .logit_rows = rows});
  }
  std::vector<float> run(std::vector<int32_t> tokens, int32_t position, std::vector<int32_t> pages) {
    EXPECT_TRUE(launch(std::move(tokens), position, std::move(pages)));
    EXPECT_TRUE(executable_->wait());
    std::vector<float> logits(300, 0);
    EXPECT_TRUE(executable_->read_logits(0, logits));
    return logits;
  }
  static bool all_finite(const std::vector<float>& values) {
    return std::ranges::all_of(values, [](float v) { return std::isfinite(v); });
  }

  TinyModel tiny_ = make_tiny_model({});
  std::unique_ptr<Backend> backend_ = *make_reference_backend({});
  std::unique_ptr<DeviceModel> model_;
  Plan plan_;
  std::unique_ptr<Executable> executable_;
};

TEST_F(Reference, LogitsAreReadableOnlyAfterWait) {
  load();
  std::vector<float> logits(300);
  EXPECT_DEATH(static_cast<void>(executable_->read_logits(0, logits)), "before wait");
  EXPECT_DEATH(static_cast<void>(executable_->wait()), "without launch");
  EXPECT_DEATH(
      {
        static_cast<void>(launch({1}, 0, {0}));
        static_cast<void>(executable_->read_logits(0, logits));
      },
      "before wait");
  EXPECT_DEATH(
      {
        static_cast<void>(launch({1}, 0, {0}));
        static_cast<void>(launch({1}, 0, {0}));
      },
      "waited for");
}

// Some steps are found wrong only while they run, on the other thread.
TEST_F(Reference, WrongStepsAbort) {
  load();
  auto step = [&](std::vector<int32_t> tokens, int32_t position, std::vector<int32_t> pages) {
    static_cast<void>(launch(std::move(tokens), position, std::move(pages)));
    static_cast<void>(executable_->wait());
  };
  EXPECT_DEATH(step({1}, 0, {-1}), "no page");
  EXPECT_DEATH(step({1}, 16, {0}), "no page");
  EXPECT_DEATH(step({1}, 0, {6}), "page 6 of 6");
  EXPECT_DEATH(step({300}, 0, {0}), "token 300 of 300");
  EXPECT_DEATH(step(std::vector<int32_t>(33, 1), 0, {0, 1, 2}), "33 rows");
}

TEST_F(Reference, WhatWasNotWrittenIsNan) {
  load();
  EXPECT_TRUE(all_finite(run({1, 2, 3}, 0, {4})));
  EXPECT_FALSE(all_finite(run({1}, 1, {2}))) << "position 0 of page 2 was never written";
  EXPECT_TRUE(all_finite(run({4}, 3, {4})));
  EXPECT_TRUE(all_finite(run({4, 5}, 1, {4})));
  EXPECT_FALSE(all_finite(run({4}, 4, {4}))) << "position 3 was rolled back";
}

// The formula as it is written, in f64: its exponentials fit without a maximum.
TEST(ReferenceAttention, IsItsFormula) {
  constexpr int64_t kHeads = 4, kKvHeads = 2, kHeadDim = 6, kTokens = 40;
  const float sinks[kHeads] = {3, 5, -60, 60};
  std::mt19937 rng(1);
  std::normal_distribution<float> normal(0, 2);
  auto random = [&](int64_t heads) {
    std::vector<float> values(static_cast<size_t>(kTokens * heads * kHeadDim));
    for (float& v : values) v = normal(rng);
    return values;
  };
  const std::vector<float> q = random(kHeads), k = random(kKvHeads), v = random(kKvHeads);
  std::vector<int32_t> tokens(kTokens);
  std::iota(tokens.begin(), tokens.end(), 0);
  for (int64_t window : {0, 7}) {
    for (float soft_cap : {0.0f, 3.0f}) {
      for (bool has_sinks : {false, true}) {
        GraphMaker m;
        m.graph.kv_groups.push_back({.layers = 1, .kv_heads = kKvHeads, .head_dim = kHeadDim, .window = window});
        AttentionOp op{.q = m.embed("q", m.weight("q", kTokens, kHeads * kHeadDim, q)),
                       .k = m.embed("k", m.weight("k", kTokens, kKvHeads * kHeadDim, k)),
                       .v = m.embed("v", m.weight("v", kTokens, kKvHeads * kHeadDim, v)),
                       .heads = kHeads,
                       .scale = 0.7f,
                       .soft_cap = soft_cap};
        if (has_sinks) op.sinks = m.weight("sinks", 1, kHeads, sinks);
        m.finish(m.attention("attention", op));
        ASSERT_TRUE(verify(m.graph));
        auto backend = *make_reference_backend({});
        Runner runner(*backend, m.graph);
        const std::vector<float> got = runner.append(runner.add_sequence(), tokens, PlanKind::kPrefill, 16);
        for (int64_t i = 0; i < kTokens; ++i) {
          for (int64_t h = 0; h < kHeads; ++h) {
            auto entry = [&](const std::vector<float>& x, int64_t heads, int64_t token, int64_t head, int64_t d) {
              return static_cast<double>(x[static_cast<size_t>((token * heads + head) * kHeadDim + d)]);
            };
            double total = has_sinks ? std::exp(sinks[h]) : 0, sum[kHeadDim] = {};
            for (int64_t j = window > 0 ? std::max<int64_t>(0, i - window + 1) : 0; j <= i; ++j) {
              double score = 0;
              for (int64_t d = 0; d < kHeadDim; ++d)
                score += entry(q, kHeads, i, h, d) * entry(k, kKvHeads, j, h / 2, d);
              score *= 0.7f;
              if (soft_cap > 0) score = soft_cap * std::tanh(score / soft_cap);
              total += std::exp(score);
              for (int64_t d = 0; d < kHeadDim; ++d) sum[d] += std::exp(score) * entry(v, kKvHeads, j, h / 2, d);
            }
            for (int64_t d = 0; d < kHeadDim; ++d) {
              ASSERT_NEAR(entry(got, kHeads, i, h, d), sum[d] / total, 2e-6)
                  << "window " << window << " cap " << soft_cap << " sinks " << has_sinks << " row " << i << " head "
                  << h;
            }
          }
        }
      }
    }
  }
}

TEST_F(Reference, CacheTypesRound) {
  for (auto [type, least, most] : {std::tuple{KvType::kF16, 1e-6, 5e-3}, {KvType::kQ8, 1e-4, 1e-1}}) {
    if (type == KvType::kQ8) tiny_ = make_tiny_model({.head_dim = 32});
    load(KvType::kF32);
    std::vector<float> exact = run({1, 2, 3, 4}, 0, {0});
    load(type);
    std::vector<float> rounded = run({1, 2, 3, 4}, 0, {0});
    double worst = 0;
    for (size_t i = 0; i < exact.size(); ++i)
      worst = std::max(worst, std::abs(static_cast<double>(exact[i]) - rounded[i]));
    EXPECT_GT(worst, least);
    EXPECT_LT(worst, most);
  }
  tiny_ = make_tiny_model({});  // heads of 16 do not fit blocks of 32
  auto model = backend_->load(tiny_.model.graph, {.kv_type = KvType::kQ8, .kv_pages = {6}});
  ASSERT_FALSE(model);
  EXPECT_EQ(model.error().code, ErrorCode::kUnsupported);
}

}  // namespace
}  // namespace hearth::testing
