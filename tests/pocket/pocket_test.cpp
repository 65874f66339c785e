// The models in the box against the logits that transformers computed from their weights (tests/data/pocket).
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <fstream>
#include <nlohmann/json.hpp>

#include "base/check.h"
#include "files/gguf.h"
#include "graph/passes.h"
#include "models/family.h"
#include "support/logits.h"
#include "support/runner.h"
#include "text/tokenizer.h"
#include "text/vocab.h"

namespace hearth::testing {
namespace {

const std::string kModels = HEARTH_TEST_DATA "/../../models/";

// The texts and what transformers computes for them from the weights of the shipped file.
std::vector<nlohmann::json> read_cases(const std::string& name) {
  std::ifstream file(HEARTH_TEST_DATA "/pocket/" + name + ".json");
  auto cases = nlohmann::json::parse(file)["shipped"]["cases"].get<std::vector<nlohmann::json>>();
  HEARTH_CHECK(cases.size() == 3, "{} texts in the fixture of {}", cases.size(), name);
  return cases;
}

// The f32 values of a base64 text without line breaks.
std::vector<float> floats_of(const std::string& base64) {
  std::array<uint8_t, 256> values{};
  const std::string alphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  for (size_t i = 0; i < alphabet.size(); ++i) values[static_cast<uint8_t>(alphabet[i])] = static_cast<uint8_t>(i);
  std::string bytes;
  uint32_t bits = 0;
  int filled = 0;
  for (char c : base64) {
    if (c == '=') break;
    bits = bits << 6 | values[static_cast<uint8_t>(c)];
    filled += 6;
    if (filled >= 8) bytes += static_cast<char>(bits >> (filled -= 8) & 0xFF);
  }
  std::vector<float> floats(bytes.size() / sizeof(float));
  std::memcpy(floats.data(), bytes.data(), floats.size() * sizeof(float));
  return floats;
}

double divergence(std::span<const float> expected, std::span<const float> got) {
  std::vector<double> p = log_softmax(expected), q = log_softmax(got);
  double kl = 0;
  for (size_t i = 0; i < p.size(); ++i) kl += std::exp(p[i]) * (p[i] - q[i]);
  return kl;
}

// Largest KL(transformers || device) over the recorded positions.
double worst_divergence(Backend& backend, const std::string& name, KvType kv_type, PlanKind kind) {
  auto catalog = open_gguf(kModels + name + ".gguf");
  HEARTH_CHECK(catalog, "{}", catalog.error().message);
  auto model = build_graph(*catalog);
  HEARTH_CHECK(model, "{}", model.error().message);
  auto ok = run_passes(model->graph, {});
  HEARTH_CHECK(ok, "{}", ok.error().message);
  Runner runner(backend, model->graph, {.kv_type = kv_type, .pages = 17});
  auto width = static_cast<size_t>(runner.vocab());
  double worst = 0;
  for (const nlohmann::json& text : read_cases(name)) {
    int sequence = runner.add_sequence();
    std::vector<float> logits = runner.append(sequence, text["ids"].get<std::vector<int32_t>>(), kind, 8);
    std::vector<float> expected = floats_of(text["logits"].get<std::string>());
    auto positions = text["positions"].get<std::vector<size_t>>();
    EXPECT_EQ(expected.size(), positions.size() * width);
    for (size_t i = 0; i < positions.size(); ++i) {
      double kl = divergence(std::span(std::as_const(expected)).subspan(i * width, width),
                             std::span(std::as_const(logits)).subspan(positions[i] * width, width));
      EXPECT_TRUE(std::isfinite(kl)) << name << " position " << positions[i];
      worst = std::max(worst, kl);
    }
    runner.remove_sequence(sequence);
  }
  return worst;
}

TEST(Pocket, TokenizerGivesTheRecordedIds) {
  for (const std::string name : {"pocket-dense", "pocket"}) {
    auto catalog = open_gguf(kModels + name + ".gguf");
    ASSERT_TRUE(catalog) << catalog.error().message;
    auto vocab = read_vocab(catalog->metadata());
    ASSERT_TRUE(vocab) << vocab.error().message;
    auto tokenizer = Tokenizer::create(std::move(*vocab));
    ASSERT_TRUE(tokenizer) << tokenizer.error().message;
    for (const nlohmann::json& text : read_cases(name)) {
      EXPECT_EQ((*tokenizer)->encode(text["text"].get<std::string>(), {.parse_special = true}),
                text["ids"].get<std::vector<int32_t>>());
    }
  }
}

TEST(Pocket, DenseLogits) {
  for (const TestDevice& device : test_devices()) {
    auto backend = make_test_backend(device);
    if (!backend) continue;
    bool exact = device.name == "reference";
    for (PlanKind kind : {PlanKind::kPrefill, PlanKind::kDecode}) {
      double worst = worst_divergence(*backend, "pocket-dense", exact ? KvType::kF32 : KvType::kF16, kind);
      EXPECT_LT(worst, exact ? 1e-5 : 1e-3) << device.label();
      fmt::print("{}: largest KL {:.2e}\n", device.label(), worst);
    }
  }
}

}  // namespace
}  // namespace hearth::testing
