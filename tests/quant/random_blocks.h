// Random weights and random block bytes for tests of formats.
#pragma once

#include <cmath>
#include <cstddef>
#include <cstring>
#include <random>
#include <vector>

#include "quant/format.h"

namespace hearth {

// Any bytes: every code, every scale pattern (infinities and NaN included) occurs.
inline std::vector<std::byte> random_bytes(size_t size_bytes, std::mt19937& rng) {
  std::vector<std::byte> bytes(size_bytes);
  for (std::byte& b : bytes) b = static_cast<std::byte>(rng() & 255);
  return bytes;
}

inline std::vector<float> random_weights(int64_t n, std::mt19937& rng) {
  std::normal_distribution<float> normal(0.0f, 0.04f);
  std::vector<float> weights(static_cast<size_t>(n));
  for (float& w : weights) w = normal(rng);
  return weights;
}

// Equal bits, or both NaN.
inline bool same_value(float a, float b) {
  if (std::isnan(a) || std::isnan(b)) return std::isnan(a) && std::isnan(b);
  return std::memcmp(&a, &b, sizeof(float)) == 0;
}

}  // namespace hearth
