// Comparing logits, and the recorded ones of tests/data/golden.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace hearth::testing {

// max |got - expected| / RMS(expected) over all elements; infinite when `got` has a value that is not finite.
double deviation(std::span<const float> got, std::span<const float> expected);

struct Golden {
  int64_t vocab = 0;
  std::vector<std::vector<int32_t>> sequences;
  std::vector<std::vector<float>> logits;  // of each sequence: [tokens, vocab]
};
// Reads NAME.bin (layout in tests/data/golden/README.md); aborts when it is damaged.
Golden read_golden(const std::string& path);

// Log-probabilities of one row of logits, in double.
std::vector<double> log_softmax(std::span<const float> logits);

// KL(expected || got) in nats of each row of logits, `width` to a row.
std::vector<double> row_divergences(std::span<const float> expected, std::span<const float> got, size_t width);

}  // namespace hearth::testing
