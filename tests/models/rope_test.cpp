// Rotation frequencies against values of published models.
#include "models/rope.h"

#include <gtest/gtest.h>

#include <cmath>
#include <numbers>

#include "files/gguf.h"
#include "support/tiny_file.h"

namespace hearth::testing {
namespace {

Rope rope_of(const TinyFile& file) {
  TempFile temp;
  file.write(temp.path());
  auto catalog = open_gguf(temp.path());
  EXPECT_TRUE(catalog) << catalog.error().message;
  auto model = build_graph(*catalog);
  EXPECT_TRUE(model) << model.error().message;
  return model->graph.ropes[0];
}

TEST(Rope, PlainFrequencies) {
  std::vector<double> f = rope_frequencies(128, 1e6, {}, 1);
  ASSERT_EQ(f.size(), 64u);
  EXPECT_DOUBLE_EQ(f[0], 1);
  EXPECT_NEAR(f[32], 1e-3, 1e-15);
  EXPECT_NEAR(f[63], std::pow(1e6, -126.0 / 128), 1e-18);
}

TEST(Rope, LinearScalingDividesAll) {
  std::vector<double> plain = rope_frequencies(64, 1e4, {}, 1), scaled = rope_frequencies(64, 1e4, {}, 4);
  for (size_t j = 0; j < plain.size(); ++j) EXPECT_DOUBLE_EQ(scaled[j], plain[j] / 4);
  TinyFile file = tiny_file({});
  file.set("llama.rope.scaling.type", "linear");
  file.set("llama.rope.scaling.factor", 4.0);
  EXPECT_NEAR(rope_of(file).frequency[3], std::pow(1e4, -6.0 / 16) / 4, 1e-12);
  file.set("llama.rope.scaling.type", "none");
  EXPECT_NEAR(rope_of(file).frequency[3], std::pow(1e4, -6.0 / 16), 1e-12);
}

// First pair that moves and first pair that is divided by the whole factor.
struct Ramp {
  size_t low, high;
};

Ramp ramp_of(int64_t dims, double base, double original, double factor) {
  std::vector<double> plain = rope_frequencies(dims, base, {}, 1), yarn = plain;
  apply_yarn(yarn, base, {.factor = factor, .original_context = original});
  Ramp ramp{plain.size(), plain.size()};
  for (size_t j = plain.size(); j-- > 0;) {
    double ratio = plain[j] / yarn[j];
    if (std::abs(ratio - factor) < 1e-9) ramp.high = j;
    if (ratio > 1 + 1e-9) ramp.low = j - 1;  // the ramp is zero at its low end
    if (j > 0) {
      EXPECT_LE(plain[j - 1] / yarn[j - 1], ratio + 1e-12);
    }
  }
  return ramp;
}

TEST(Rope, YarnRampsOfPublishedModels) {
  Ramp qwen = ramp_of(128, 1e6, 32768, 4);
  EXPECT_EQ(qwen.low, 23u);
  EXPECT_EQ(qwen.high, 40u);
  Ramp deepseek_v3 = ramp_of(64, 1e4, 4096, 40);
  EXPECT_EQ(deepseek_v3.low, 10u);
  EXPECT_EQ(deepseek_v3.high, 23u);
  Ramp gpt_oss = ramp_of(64, 150000, 4096, 32);
  EXPECT_EQ(gpt_oss.low, 8u);
  EXPECT_EQ(gpt_oss.high, 18u);
}

TEST(Rope, YarnMagnitude) {
  TinyFile file = tiny_file({.architecture = "qwen2", .heads = 2, .kv_heads = 1, .head_dim = 128});
  file.set("qwen2.rope.freq_base", 1e6);
  file.set("qwen2.rope.scaling.type", "yarn");
  file.set("qwen2.rope.scaling.factor", 4.0);
  file.set("qwen2.rope.scaling.original_context_length", int64_t{32768});
  Rope rope = rope_of(file);
  EXPECT_NEAR(rope.magnitude, 1.13863, 1e-5);
  EXPECT_NEAR(rope.frequency[23], std::pow(1e6, -46.0 / 128), 1e-12);
  EXPECT_NEAR(rope.frequency[40], std::pow(1e6, -80.0 / 128) / 4, 1e-12);
  file.set("qwen2.rope.scaling.attn_factor", 0.5);
  EXPECT_NEAR(rope_of(file).magnitude, 1.13863 / 2, 1e-5);
}

// ff = 1 for short waves, f for long ones, a blend between; original context 8192, low 1, high 4.
std::vector<float> llama3_factors(int64_t dims, double factor) {
  std::vector<float> factors;
  for (int64_t j = 0; j < dims / 2; ++j) {
    double wave = 2 * std::numbers::pi * std::pow(5e5, 2.0 * static_cast<double>(j) / static_cast<double>(dims));
    double t = std::clamp((8192 / wave - 1) / 3, 0.0, 1.0);
    factors.push_back(static_cast<float>(1 / ((1 - t) / factor + t)));
  }
  return factors;
}

TEST(Rope, Llama3FactorsDivideTheFrequencies) {
  std::vector<float> factors = llama3_factors(128, 8);
  for (size_t j = 0; j < 29; ++j) EXPECT_EQ(factors[j], 1.0f);
  const double blend[] = {1.2075, 1.5534, 2.0263, 2.6945, 3.6843, 5.2573};
  for (size_t j = 0; j < 6; ++j) EXPECT_NEAR(factors[29 + j], blend[j], 1e-4);
  for (size_t j = 35; j < 64; ++j) EXPECT_EQ(factors[j], 8.0f);

  TinyFile file = tiny_file({.heads = 2, .kv_heads = 1, .head_dim = 128});
  file.set("llama.rope.freq_base", 5e5);
  file.tensors.push_back({.name = "rope_freqs.weight", .shape = {64}, .values = factors});
  Rope rope = rope_of(file);
  for (size_t j = 0; j < 64; ++j) {
    EXPECT_NEAR(rope.frequency[j] * factors[j] / std::pow(5e5, -2.0 * static_cast<double>(j) / 128), 1, 1e-12) << j;
  }
  EXPECT_EQ(rope.magnitude, 1.0f);
}

}  // namespace
}  // namespace hearth::testing
