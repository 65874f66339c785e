// Draws the next token from logits as SamplingOptions says.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/result.h"
#include "engine/philox.h"
#include "hearth/engine.h"
#include "hearth/sampling.h"

namespace hearth {

// Fails with kUsage; the message names the field, its value and the range.
Result<void> check_sampling(const SamplingOptions& options, int64_t vocab_size);

// Holds scratch memory only: the same logits, options, history and position give the same token, whatever came before.
// Nothing is allocated per token once the scratch has grown.
class Sampler {
 public:
  explicit Sampler(int64_t vocab_size);

  // Draws the token at `position`; `history` are the tokens before it, prompt included. `logits` [vocab_size] are
  // changed and put back. Fails with kInternal when a logit is not finite, and with kUsage when the options leave no
  // token. logit_bias of -infinity is no failure.
  Result<int32_t> draw(std::span<float> logits, const SamplingOptions& options, std::span<const int32_t> history,
                       int64_t position);
  // The same among the tokens whose bit is set in `allowed`, with random numbers of its own: when draw() gave a token
  // that is not allowed, the two together draw from the distribution of those that are. `logits` are finite.
  Result<int32_t> draw_allowed(std::span<const float> logits, std::span<const uint64_t> allowed,
                               const SamplingOptions& options, std::span<const int32_t> history, int64_t position);

  // Log-probabilities under the plain logits, before any option: `token` first, then the `top` best in order.
  void logprobs(std::span<const float> logits, int32_t token, int32_t top, std::vector<TokenLogprob>& out);

 private:
  struct Candidate {
    float logit = 0;
    int32_t token = 0;
    float p = 0;  // among the candidates that are left; valid after normalize()
  };
  struct Change {
    int32_t token = 0;
    float logit = 0;  // as it was
  };

  int32_t choose(std::span<float> logits, const SamplingOptions& options, std::span<const int32_t> history,
                 int64_t position, RandomStream stream);  // -1: no token is possible
  void set(std::span<float> logits, int32_t token, float value);
  void apply_bias(std::span<float> logits, const SamplingOptions& options);
  void apply_penalties(std::span<float> logits, const SamplingOptions& options, std::span<const int32_t> history);
  void apply_dry(std::span<float> logits, const SamplingOptions& options, std::span<const int32_t> history);

  // The filters work on candidates_; all but top_k need normalize() first. Those that leave the order of logits intact
  // say so.
  void fill(std::span<const float> logits);
  void fill_top_k(std::span<const float> logits, int64_t k);  // in order
  void sort();
  void normalize();
  void typical(float p);  // not in order
  void top_p(float p);    // in order
  void min_p(float p);
  void xtc(const SamplingOptions& options, int64_t position);  // in order
  int32_t pick(float temperature, uint64_t seed, int64_t position, RandomStream stream);

  int64_t vocab_size_;
  std::vector<Change> changes_;
  std::vector<Candidate> candidates_;
  bool sorted_ = false;            // candidates_ by falling logit, ties by rising token
  std::vector<int32_t> counts_;    // [vocab_size]: occurrences, zero between calls
  std::vector<int32_t> matches_;   // [history]: Z array
  std::vector<int32_t> longest_;   // [vocab_size]: DRY, zero between calls
  std::vector<int32_t> touched_;   // tokens with a count or a length
  std::vector<float> deviations_;  // typical
  std::vector<int32_t> order_;     // typical
  std::vector<Candidate> kept_;    // typical
  std::vector<float> masked_;      // draw_allowed
};

// False when a value is NaN or infinite.
bool all_finite(std::span<const float> values);

}  // namespace hearth
