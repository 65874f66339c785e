// How the next token is drawn.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

namespace hearth {

inline constexpr int32_t kMaxSamplingCount = 1'000'000'000;  // of every number of tokens below

// Applied in the order of the fields: bias, penalties, DRY, then temperature-free filters (top-k, typical, top-p,
// min-p, XTC), each on the probabilities that the ones before left, then temperature, then the draw. A field's default
// switches it off.
struct SamplingOptions {
  std::vector<std::pair<int32_t, float>> logit_bias;  // token, added to its logit; -infinity forbids it

  float repetition_penalty = 1.0f;  // logits > 0 are divided by it, others multiplied (CTRL)
  float presence_penalty = 0.0f;    // subtracted once from tokens that occurred
  float frequency_penalty = 0.0f;   // subtracted once per occurrence
  int32_t penalty_last_n = 64;      // how many of the last tokens count; -1: all

  float dry_multiplier = 0.0f;  // DRY: penalty = multiplier * base^(length of the repeated sequence - allowed_length)
  float dry_base = 1.75f;
  int32_t dry_allowed_length = 2;
  int32_t dry_last_n = -1;
  std::vector<std::vector<int32_t>> dry_breakers;  // sequences that a repetition does not cross

  int32_t top_k = 0;
  float typical_p = 1.0f;
  float top_p = 1.0f;
  float min_p = 0.0f;
  // Exclude top choices: with this probability, all but the least probable token of those above the threshold go.
  float xtc_probability = 0.0f;
  float xtc_threshold = 0.1f;

  // 0: greedy, the largest logit after bias and penalties, whatever the filters say; ties go to the smaller id.
  float temperature = 0.0f;
  uint64_t seed = 0;  // the random stream is counter-based: it depends on (seed, position) alone
};

}  // namespace hearth
