// Draws the next token from logits as SamplingOptions says.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "backends/backend.h"
#include "base/result.h"
#include "engine/philox.h"
#include "hearth/engine.h"
#include "hearth/sampling.h"

namespace hearth {

// Fails with kUsage; the message names the field, its value and the range.
Result<void> check_sampling(const SamplingOptions& options, int64_t vocab_size);

// What bias and penalties do to logits, whatever those are.
struct LogitChanges {
  struct Change {
    int32_t token = 0;
    float divisor = 1;  // of a logit > 0; others are multiplied by it
    float added = 0;    // after that
    float operator()(float logit) const { return (logit > 0 ? logit / divisor : logit * divisor) + added; }
  };
  std::vector<Change> list;     // in the order in which they apply; a token may have several
  std::vector<int32_t> tokens;  // that are in it: ascending, each once
};

// Holds scratch memory only: the same logits, options, changes and position give the same token, whatever came before.
// Nothing is allocated per token once the scratch has grown.
class Sampler {
 public:
  explicit Sampler(int64_t vocab_size);

  // The changes that the options make to logits of the token behind `history`, all tokens before it, prompt included.
  void find_changes(const SamplingOptions& options, std::span<const int32_t> history, LogitChanges& changes);

  // Draws the token at `position`. `logits` [vocab_size] are changed and put back. Fails with kInternal when a logit is
  // not finite, and with kUsage when the options leave no token. logit_bias of -infinity is no failure.
  Result<int32_t> draw(std::span<float> logits, const SamplingOptions& options, const LogitChanges& changes,
                       int64_t position);
  // The same among the tokens whose bit is set in `allowed`, with random numbers of its own: when draw() gave a token
  // that is not allowed, the two together draw from the distribution of those that are. `logits` are finite.
  Result<int32_t> draw_allowed(std::span<const float> logits, std::span<const uint64_t> allowed,
                               const SamplingOptions& options, const LogitChanges& changes, int64_t position);

  // Log-probabilities under the plain logits, before any option: `token` first, then the `top` best in order.
  void logprobs(std::span<const float> logits, int32_t token, int32_t top, std::vector<TokenLogprob>& out);

  // The same by what a device found of the logits, asked for changes.tokens and the temperature of the options, if that
  // is not 0. Each gives what it would give by the logits themselves (log-probabilities up to kCandidateSumError), or
  // nothing, when it takes more of them to tell.
  Result<std::optional<int32_t>> draw(const Candidates& found, const SamplingOptions& options,
                                      const LogitChanges& changes, int64_t position);
  std::optional<int32_t> draw_allowed(const Candidates& found, std::span<const uint64_t> allowed,
                                      const SamplingOptions& options, const LogitChanges& changes, int64_t position);
  bool logprobs(const Candidates& found, const LogitChanges& changes, int32_t token, int32_t top,
                std::vector<TokenLogprob>& out) const;

 private:
  struct Candidate {
    float logit = 0;
    int32_t token = 0;
    float p = 0;  // among the candidates that are left; valid after normalize()
  };
  // A sum that is known to lie between two numbers.
  struct Bounds {
    double least = 0;
    double most = 0;
  };
  static bool better(const Candidate& a, const Candidate& b) {
    return a.logit > b.logit || (a.logit == b.logit && a.token < b.token);
  }

  void find_penalties(const SamplingOptions& options, std::span<const int32_t> history, LogitChanges& changes);
  void find_dry(const SamplingOptions& options, std::span<const int32_t> history, LogitChanges& changes);

  int32_t choose(std::span<float> logits, const SamplingOptions& options, const LogitChanges& changes, int64_t position,
                 RandomStream stream);  // -1: no token is possible
  // `allowed` empty: all tokens are. Nothing: it takes more logits to tell.
  std::optional<int32_t> choose(const Candidates& found, std::span<const uint64_t> allowed,
                                const SamplingOptions& options, const LogitChanges& changes, int64_t position,
                                RandomStream stream);
  // How many of the first `exact` candidates it takes until their p sum to a mass that is known within bounds.
  std::optional<size_t> count_until(Bounds mass, size_t exact) const;

  // The filters work on candidates_; all but top_k need normalize() first. Those that leave the order of logits intact
  // say so.
  void fill(std::span<const float> logits);
  void fill_top_k(std::span<const float> logits, int64_t k);  // in order
  void sort();
  void normalize();
  void drop_beyond(double mass, double total);
  void typical(float p);  // not in order
  void top_p(float p);    // in order
  void min_p(float p);
  void xtc(const SamplingOptions& options);  // in order
  int32_t pick(const SamplingOptions& options, int64_t position, RandomStream stream);

  int64_t vocab_size_;
  std::vector<float> replaced_;  // logits before their changes
  std::vector<Candidate> candidates_;
  bool sorted_ = false;            // candidates_ as better() says
  std::vector<int32_t> counts_;    // [vocab_size]: occurrences, zero between calls
  std::vector<int32_t> matches_;   // [history]: Z array
  std::vector<int32_t> longest_;   // [vocab_size]: DRY, zero between calls
  std::vector<int32_t> touched_;   // tokens with a count or a length
  std::vector<float> deviations_;  // typical
  std::vector<int32_t> order_;     // typical
  std::vector<Candidate> kept_;    // typical
  std::vector<float> masked_;      // draw_allowed
  std::vector<float> changed_;     // logits of LogitChanges::tokens
};

// False when a value is NaN or infinite.
bool all_finite(std::span<const float> values);

}  // namespace hearth
