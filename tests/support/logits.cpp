#include "support/logits.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <fstream>
#include <iterator>
#include <limits>

#include "base/check.h"

namespace hearth::testing {

double deviation(std::span<const float> got, std::span<const float> expected) {
  HEARTH_CHECK(got.size() == expected.size() && !got.empty(), "{} logits for {}", got.size(), expected.size());
  double worst = 0, squares = 0;
  for (size_t i = 0; i < got.size(); ++i) {
    if (!std::isfinite(got[i])) return std::numeric_limits<double>::infinity();
    worst = std::max(worst, std::abs(static_cast<double>(got[i]) - expected[i]));
    squares += static_cast<double>(expected[i]) * expected[i];
  }
  return worst / std::sqrt(squares / static_cast<double>(got.size()));
}

Golden read_golden(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::vector<char> bytes{std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
  HEARTH_CHECK(bytes.size() > 16 && std::memcmp(bytes.data(), "HGLD", 4) == 0, "{} is not a file of logits", path);
  size_t at = 4;
  auto take = [&] {
    uint32_t word = 0;
    HEARTH_CHECK(at + 4 <= bytes.size(), "{} is too short", path);
    std::memcpy(&word, bytes.data() + at, 4);
    at += 4;
    return word;
  };
  HEARTH_CHECK(take() == 1, "{} has an unknown version", path);
  Golden golden{.vocab = take()};
  golden.sequences.resize(take());
  for (auto& sequence : golden.sequences) {
    sequence.resize(take());
    for (int32_t& token : sequence) token = static_cast<int32_t>(take());
  }
  for (const auto& sequence : golden.sequences) {
    auto& logits = golden.logits.emplace_back(sequence.size() * static_cast<size_t>(golden.vocab));
    HEARTH_CHECK(at + logits.size() * 4 <= bytes.size(), "{} is too short", path);
    std::memcpy(logits.data(), bytes.data() + at, logits.size() * 4);
    at += logits.size() * 4;
  }
  return golden;
}

std::vector<double> log_softmax(std::span<const float> logits) {
  double largest = *std::ranges::max_element(logits), sum = 0;
  for (float v : logits) sum += std::exp(v - largest);
  std::vector<double> out(logits.size());
  for (size_t i = 0; i < logits.size(); ++i) out[i] = logits[i] - largest - std::log(sum);
  return out;
}

std::vector<double> row_divergences(std::span<const float> expected, std::span<const float> got, size_t width) {
  HEARTH_CHECK(expected.size() == got.size() && got.size() % width == 0, "{} and {}", expected.size(), got.size());
  std::vector<double> kl(got.size() / width, 0.0);
  for (size_t r = 0; r < kl.size(); ++r) {
    std::vector<double> p = log_softmax(expected.subspan(r * width, width)),
                        q = log_softmax(got.subspan(r * width, width));
    for (size_t t = 0; t < width; ++t) kl[r] += std::exp(p[t]) * (p[t] - q[t]);
  }
  return kl;
}

}  // namespace hearth::testing
