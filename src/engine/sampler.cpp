#include "engine/sampler.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <utility>

#include "base/check.h"

namespace hearth {
namespace {

constexpr float kNever = -std::numeric_limits<float>::infinity();
constexpr size_t kLanes = 16;
// Sets of up to so many candidates are sorted before they are summed: the result depends on the set alone.
constexpr size_t kFew = 1024;
static_assert(kCandidates + kMaxWantedLogits <= static_cast<int64_t>(kFew));
// Of sums that a device made, beside ours over all logits, which rounds its exponentials too.
constexpr double kSumError = kCandidateSumError + 1e-5;
// Of sums of the same few exponentials, scaled before or after.
constexpr double kScaleError = 1e-6;

// The largest value; the first of equals. Values may be -infinity, but not NaN.
size_t index_of_largest(std::span<const float> values) {
  float most[kLanes];
  std::ranges::fill(most, kNever);
  const size_t blocks = values.size() / kLanes * kLanes;
  for (size_t i = 0; i < blocks; i += kLanes) {
    for (size_t lane = 0; lane < kLanes; ++lane) {
      most[lane] = values[i + lane] > most[lane] ? values[i + lane] : most[lane];
    }
  }
  float largest = *std::ranges::max_element(most);
  for (size_t i = blocks; i < values.size(); ++i) largest = std::max(largest, values[i]);
  return static_cast<size_t>(std::ranges::find(values, largest) - values.begin());
}

Error not_finite(int64_t position) {
  return fail(ErrorCode::kInternal,
              "draw the token at position {}: the model's logits are not finite; the file may be damaged, or another "
              "device or KV type may compute it right",
              position);
}

bool xtc_applies(const SamplingOptions& options, int64_t position) {
  return options.xtc_probability > 0 && uniform(options.seed, position, RandomStream::kXtc) < options.xtc_probability;
}

// p_i >= p * p_max, without a softmax.
float least_logit(float most, float p) { return most + std::log(p); }

struct Range {
  const char* field;
  double value;
  double least;
  double most;
};

}  // namespace

// A product with zero is NaN exactly when a value is not finite. Sixteen independent sums, so that it vectorizes.
bool all_finite(std::span<const float> values) {
  float sums[kLanes] = {};
  const size_t blocks = values.size() / kLanes * kLanes;
  for (size_t i = 0; i < blocks; i += kLanes) {
    for (size_t lane = 0; lane < kLanes; ++lane) sums[lane] += values[i + lane] * 0.0f;
  }
  for (size_t i = blocks; i < values.size(); ++i) sums[0] += values[i] * 0.0f;
  return std::ranges::all_of(sums, [](float sum) { return sum == 0; });
}

Result<void> check_sampling(const SamplingOptions& options, int64_t vocab_size) {
  // Far from overflow: biases and penalties add up to finite numbers.
  constexpr double kMost = 1e30f;
  const Range ranges[] = {
      {"repetition_penalty", options.repetition_penalty, 1e-6f, kMost},
      {"presence_penalty", options.presence_penalty, -kMost, kMost},
      {"frequency_penalty", options.frequency_penalty, -kMost, kMost},
      {"penalty_last_n", static_cast<double>(options.penalty_last_n), -1, kMaxSamplingCount},
      {"dry_multiplier", options.dry_multiplier, 0, kMost},
      {"dry_base", options.dry_base, 1, kMost},
      {"dry_allowed_length", static_cast<double>(options.dry_allowed_length), 1, kMaxSamplingCount},
      {"dry_last_n", static_cast<double>(options.dry_last_n), -1, kMaxSamplingCount},
      {"top_k", static_cast<double>(options.top_k), 0, kMaxSamplingCount},
      {"typical_p", options.typical_p, 0, 1},
      {"top_p", options.top_p, 0, 1},
      {"min_p", options.min_p, 0, 1},
      {"xtc_probability", options.xtc_probability, 0, 1},
      {"xtc_threshold", options.xtc_threshold, 0, 1},
      {"temperature", options.temperature, 0, kMost},
  };
  for (const Range& range : ranges) {
    if (range.value >= range.least && range.value <= range.most) continue;  // false for NaN
    return fail(ErrorCode::kUsage, "{} is {:g}; it must be from {:g} to {:g}", range.field, range.value, range.least,
                range.most);
  }
  for (const auto& [token, bias] : options.logit_bias) {
    if (token < 0 || token >= vocab_size) {
      return fail(ErrorCode::kUsage, "logit_bias names token {}; the model's tokens are 0 to {}", token,
                  vocab_size - 1);
    }
    if (!(std::abs(bias) <= kMost) && bias != kNever) {
      return fail(ErrorCode::kUsage, "logit_bias of token {} is {}; it must be finite or -infinity", token, bias);
    }
  }
  for (const auto& breaker : options.dry_breakers) {
    if (breaker.empty()) return fail(ErrorCode::kUsage, "dry_breakers has an empty sequence; each needs a token");
  }
  return {};
}

Sampler::Sampler(int64_t vocab_size)
    : vocab_size_(vocab_size), counts_(static_cast<size_t>(vocab_size)), longest_(static_cast<size_t>(vocab_size)) {}

void Sampler::find_changes(const SamplingOptions& options, std::span<const int32_t> history, LogitChanges& changes) {
  changes.list.clear();
  for (const auto& [token, bias] : options.logit_bias) changes.list.push_back({.token = token, .added = bias});
  find_penalties(options, history, changes);
  find_dry(options, history, changes);
  changes.tokens.clear();
  for (const LogitChanges::Change& change : changes.list) changes.tokens.push_back(change.token);
  std::ranges::sort(changes.tokens);
  const auto repeated = std::ranges::unique(changes.tokens);
  changes.tokens.erase(repeated.begin(), repeated.end());
}

void Sampler::find_penalties(const SamplingOptions& options, std::span<const int32_t> history, LogitChanges& changes) {
  if (options.repetition_penalty == 1 && options.presence_penalty == 0 && options.frequency_penalty == 0) return;
  if (options.penalty_last_n >= 0) {
    history = history.last(std::min(history.size(), static_cast<size_t>(options.penalty_last_n)));
  }
  touched_.clear();
  for (int32_t token : history) {
    if (counts_[static_cast<size_t>(token)]++ == 0) touched_.push_back(token);
  }
  for (int32_t token : touched_) {
    const auto count = static_cast<float>(std::exchange(counts_[static_cast<size_t>(token)], 0));
    changes.list.push_back({.token = token,
                            .divisor = options.repetition_penalty,
                            .added = -(options.presence_penalty + options.frequency_penalty * count)});
  }
}

// For every earlier place where the last n tokens stand too, the token that followed there would extend a repetition of
// length n. The lengths are the Z array of the reversed history.
void Sampler::find_dry(const SamplingOptions& options, std::span<const int32_t> history, LogitChanges& changes) {
  if (options.dry_multiplier == 0) return;
  if (options.dry_last_n >= 0) {
    history = history.last(std::min(history.size(), static_cast<size_t>(options.dry_last_n)));
  }
  const auto n = static_cast<int64_t>(history.size());
  // A repetition does not reach back over the last breaker.
  int64_t most = n;
  for (const auto& breaker : options.dry_breakers) {
    const auto found = std::ranges::find_end(history, breaker);
    if (!found.empty()) most = std::min<int64_t>(most, history.end() - found.end());
  }
  if (most < options.dry_allowed_length) return;

  const auto reversed = [&](int64_t i) { return history[static_cast<size_t>(n - 1 - i)]; };
  matches_.assign(static_cast<size_t>(n), 0);
  touched_.clear();
  int64_t begin = 0;  // the match [begin, end) that reaches farthest
  int64_t end = 0;
  for (int64_t i = 1; i < n; ++i) {
    int64_t length = i < end ? std::min<int64_t>(end - i, matches_[static_cast<size_t>(i - begin)]) : 0;
    while (i + length < n && reversed(length) == reversed(i + length)) ++length;
    matches_[static_cast<size_t>(i)] = static_cast<int32_t>(length);
    if (i + length > end) {
      begin = i;
      end = i + length;
    }
    const auto repeated = static_cast<int32_t>(std::min(length, most));
    if (repeated < options.dry_allowed_length) continue;
    const int32_t next = reversed(i - 1);
    int32_t& longest = longest_[static_cast<size_t>(next)];
    if (longest == 0) touched_.push_back(next);
    longest = std::max(longest, repeated);
  }
  for (int32_t token : touched_) {
    int32_t& longest = longest_[static_cast<size_t>(token)];
    const float penalty =
        options.dry_multiplier * std::pow(options.dry_base, static_cast<float>(longest - options.dry_allowed_length));
    // The power may overflow; a token that must not come is as good.
    changes.list.push_back({.token = token, .added = -penalty});
    longest = 0;
  }
}

Result<int32_t> Sampler::draw(std::span<float> logits, const SamplingOptions& options, const LogitChanges& changes,
                              int64_t position) {
  HEARTH_CHECK(static_cast<int64_t>(logits.size()) == vocab_size_, "{} logits, vocabulary {}", logits.size(),
               vocab_size_);
  if (!all_finite(logits)) return not_finite(position);
  const int32_t token = choose(logits, options, changes, position, RandomStream::kToken);
  if (token < 0) {
    return fail(ErrorCode::kUsage, "draw the token at position {}: logit_bias forbids every token; allow at least one",
                position);
  }
  return token;
}

Result<int32_t> Sampler::draw_allowed(std::span<const float> logits, std::span<const uint64_t> allowed,
                                      const SamplingOptions& options, const LogitChanges& changes, int64_t position) {
  masked_.assign(logits.size(), kNever);
  for (size_t w = 0; w < allowed.size(); ++w) {
    for (uint64_t word = allowed[w]; word != 0; word &= word - 1) {
      const size_t token = 64 * w + static_cast<size_t>(std::countr_zero(word));
      if (token < logits.size()) masked_[token] = logits[token];
    }
  }
  const int32_t token = choose(masked_, options, changes, position, RandomStream::kAllowedToken);
  if (token < 0) {
    return fail(ErrorCode::kUsage,
                "draw the token at position {}: logit_bias forbids every token that the grammar allows", position);
  }
  return token;
}

int32_t Sampler::choose(std::span<float> logits, const SamplingOptions& options, const LogitChanges& changes,
                        int64_t position, RandomStream stream) {
  replaced_.clear();
  for (const LogitChanges::Change& change : changes.list) {
    float& logit = logits[static_cast<size_t>(change.token)];
    replaced_.push_back(logit);
    logit = change(logit);
  }
  const auto best = static_cast<int32_t>(index_of_largest(logits));
  const bool possible = logits[static_cast<size_t>(best)] > kNever;
  int32_t token = best;
  if (possible && options.temperature > 0) {
    if (options.top_k > 0 && options.top_k < vocab_size_) {
      fill_top_k(logits, options.top_k);
    } else {
      fill(logits);
    }
    if (options.typical_p < 1) typical(options.typical_p);
    if (options.top_p < 1) top_p(options.top_p);
    if (options.min_p > 0) min_p(options.min_p);
    if (xtc_applies(options, position)) xtc(options);
    token = pick(options, position, stream);
  }
  for (size_t i = replaced_.size(); i-- > 0;) logits[static_cast<size_t>(changes.list[i].token)] = replaced_[i];
  return possible ? token : -1;
}

// ---- by candidates ----

Result<std::optional<int32_t>> Sampler::draw(const Candidates& found, const SamplingOptions& options,
                                             const LogitChanges& changes, int64_t position) {
  if (!found.finite) return not_finite(position);
  return choose(found, {}, options, changes, position, RandomStream::kToken);
}

std::optional<int32_t> Sampler::draw_allowed(const Candidates& found, std::span<const uint64_t> allowed,
                                             const SamplingOptions& options, const LogitChanges& changes,
                                             int64_t position) {
  return choose(found, allowed, options, changes, position, RandomStream::kAllowedToken);
}

// The logits that are known are those of `found` and of the changed tokens. All others are plain and come after the
// last one of `found`: what comes before that, among the known, is exactly the beginning of all candidates in order. Of
// the rest only the sum of exponentials is known, within bounds.
std::optional<int32_t> Sampler::choose(const Candidates& found, std::span<const uint64_t> allowed,
                                       const SamplingOptions& options, const LogitChanges& changes, int64_t position,
                                       RandomStream stream) {
  if (found.wanted.size() != changes.tokens.size()) return std::nullopt;
  const auto index_of = [&](int32_t token) {
    return static_cast<size_t>(std::ranges::lower_bound(changes.tokens, token) - changes.tokens.begin());
  };
  changed_.assign(found.wanted.begin(), found.wanted.end());
  for (const LogitChanges::Change& change : changes.list) {
    float& logit = changed_[index_of(change.token)];
    logit = change(logit);
  }
  const bool all_known = static_cast<int64_t>(found.tokens.size()) == vocab_size_;
  candidates_.clear();
  const auto add = [&](float logit, int32_t token) {
    const auto t = static_cast<size_t>(token);
    const bool is_allowed = allowed.empty() || (t / 64 < allowed.size() && (allowed[t / 64] >> t % 64 & 1) != 0);
    if (is_allowed && logit > kNever) candidates_.push_back({.logit = logit, .token = token});
  };
  // The plain exponentials of what is known, as the sums of `found` count them.
  double known = 0, known_tempered = 0;
  const float plain_most = found.logits.front();
  const float temperature = options.temperature > 0 ? options.temperature : 1;
  const auto count = [&](float logit) {
    known += std::exp(logit - plain_most);
    known_tempered += std::exp((logit - plain_most) / temperature);
  };
  for (size_t i = 0; i < found.tokens.size(); ++i) {
    if (std::ranges::binary_search(changes.tokens, found.tokens[i])) continue;
    add(found.logits[i], found.tokens[i]);
    count(found.logits[i]);
  }
  for (size_t i = 0; i < changed_.size(); ++i) {
    add(changed_[i], changes.tokens[i]);
    count(found.wanted[i]);
  }
  sorted_ = false;
  sort();
  const Candidate last{.logit = found.logits.back(), .token = found.tokens.back()};
  size_t exact = 0;
  while (exact < candidates_.size() && (all_known || !better(last, candidates_[exact]))) ++exact;
  if (exact == 0) return std::nullopt;
  const float most = candidates_.front().logit;
  if (options.temperature == 0) return candidates_.front().token;

  const bool has_top_k = options.top_k > 0 && options.top_k < vocab_size_;
  // Makes p the exponentials of candidates and gives bounds for their sum over all that there are. `sum` and
  // `of_known`: of plain exponentials, over the row and over what is known of it.
  const auto weigh = [&](float divisor, double sum, double of_known) -> Bounds {
    double of_exact = 0, total = 0;
    for (size_t i = 0; i < candidates_.size(); ++i) {
      Candidate& c = candidates_[i];
      c.p = std::exp((c.logit - most) / divisor);
      total += c.p;
      if (i < exact) of_exact += c.p;
    }
    if (all_known) return {total, total};
    const double scale = std::exp((static_cast<double>(plain_most) - most) / divisor);
    const double least = std::max(0.0, sum * (1 - kSumError) - of_known) * scale;
    const double greatest = std::max(0.0, sum * (1 + kSumError) - of_known) * scale;
    // What top-k leaves and what is allowed, beyond what is exact, is not known.
    return {has_top_k ? of_exact : allowed.empty() ? total + least : total, total + greatest};
  };
  if (has_top_k && (all_known || options.top_k <= static_cast<int64_t>(exact))) {
    candidates_.resize(std::min(candidates_.size(), static_cast<size_t>(options.top_k)));
    if (options.typical_p < 1) typical(options.typical_p);
    if (options.top_p < 1) top_p(options.top_p);
  } else if (options.typical_p < 1) {
    return std::nullopt;
  } else if (options.top_p < 1) {
    const Bounds total = weigh(1, found.sum, known);
    const auto kept = count_until({options.top_p * total.least, options.top_p * total.most}, exact);
    if (!kept) return std::nullopt;
    candidates_.resize(*kept);
  } else if (options.min_p > 0) {
    if (!all_known && last.logit >= least_logit(most, options.min_p)) return std::nullopt;
    candidates_.resize(exact);
  } else {
    if (xtc_applies(options, position)) return std::nullopt;
    const Bounds total = weigh(options.temperature, found.tempered_sum, known_tempered);
    const double part = uniform(options.seed, position, stream);
    const auto walked = count_until({part * total.least, part * total.most}, exact);
    if (!walked) return std::nullopt;
    return candidates_[*walked - 1].token;
  }
  if (options.min_p > 0) min_p(options.min_p);
  if (xtc_applies(options, position)) xtc(options);
  return pick(options, position, stream);
}

std::optional<size_t> Sampler::count_until(Bounds mass, size_t exact) const {
  double sum = 0;
  for (size_t i = 0; i < exact; ++i) {
    sum += candidates_[i].p;
    if (sum * (1 + kScaleError) < mass.least) continue;
    if (sum * (1 - kScaleError) > mass.most) return i + 1;
    break;  // it may be here or later; or the bounds are no numbers
  }
  return std::nullopt;
}

bool Sampler::logprobs(const Candidates& found, const LogitChanges& changes, int32_t token, int32_t top,
                       std::vector<TokenLogprob>& out) const {
  const auto count = static_cast<int64_t>(found.tokens.size());
  if (top > count && count < vocab_size_) return false;
  const float log_sum = found.logits.front() + std::log(found.sum);
  out.clear();
  out.reserve(static_cast<size_t>(top) + 1);
  const auto among = std::ranges::find(found.tokens, token);
  const auto wanted = std::ranges::lower_bound(changes.tokens, token);
  if (among != found.tokens.end()) {
    out.push_back({token, found.logits[static_cast<size_t>(among - found.tokens.begin())] - log_sum});
  } else if (wanted != changes.tokens.end() && *wanted == token && found.wanted.size() == changes.tokens.size()) {
    out.push_back({token, found.wanted[static_cast<size_t>(wanted - changes.tokens.begin())] - log_sum});
  } else {
    return false;
  }
  for (size_t i = 0; i < static_cast<size_t>(std::min<int64_t>(top, count)); ++i) {
    out.push_back({found.tokens[i], found.logits[i] - log_sum});
  }
  return true;
}

void Sampler::fill(std::span<const float> logits) {
  candidates_.resize(logits.size());
  for (size_t i = 0; i < logits.size(); ++i) candidates_[i] = {.logit = logits[i], .token = static_cast<int32_t>(i)};
  sorted_ = false;
}

// A heap of the k best with the worst on top: nearly every logit of a large vocabulary fails the first comparison.
void Sampler::fill_top_k(std::span<const float> logits, int64_t k) {
  candidates_.clear();
  for (size_t i = 0; i < logits.size(); ++i) {
    const Candidate candidate{.logit = logits[i], .token = static_cast<int32_t>(i)};
    if (static_cast<int64_t>(candidates_.size()) < k) {
      candidates_.push_back(candidate);
      std::ranges::push_heap(candidates_, better);
    } else if (candidate.logit > candidates_.front().logit) {
      std::ranges::pop_heap(candidates_, better);
      candidates_.back() = candidate;
      std::ranges::push_heap(candidates_, better);
    }
  }
  std::ranges::sort_heap(candidates_, better);
  sorted_ = true;
}

void Sampler::sort() {
  if (sorted_) return;
  std::ranges::sort(candidates_, better);
  sorted_ = true;
}

void Sampler::normalize() {
  float most = kNever;
  for (const Candidate& c : candidates_) most = std::max(most, c.logit);
  double sum = 0;
  for (Candidate& c : candidates_) {
    c.p = std::exp(c.logit - most);
    sum += c.p;
  }
  const auto scale = static_cast<float>(1 / sum);
  for (Candidate& c : candidates_) c.p *= scale;
}

// Keeps the tokens whose surprise -log p is nearest to the entropy, until their probabilities sum to p.
// Meister et al., "Locally typical sampling" (TACL 2023).
void Sampler::typical(float p) {
  normalize();
  double entropy = 0;
  for (const Candidate& c : candidates_) {
    if (c.p > 0) entropy -= static_cast<double>(c.p) * std::log(static_cast<double>(c.p));
  }
  // Only the tokens below a rising bound are sorted: of a large vocabulary that is a small part.
  deviations_.resize(candidates_.size());
  for (size_t i = 0; i < candidates_.size(); ++i) {
    deviations_[i] = static_cast<float>(std::abs(-std::log(static_cast<double>(candidates_[i].p)) - entropy));
  }
  float bound = 0.25f;
  for (; bound < 256; bound *= 2) {
    double sum = 0;
    for (size_t i = 0; i < candidates_.size(); ++i) sum += deviations_[i] <= bound ? candidates_[i].p : 0;
    if (sum >= p + 1e-4) break;  // below, the sum runs in another order: leave room for rounding
  }
  order_.clear();
  for (size_t i = 0; i < candidates_.size(); ++i) {
    if (deviations_[i] <= bound || bound >= 256) order_.push_back(static_cast<int32_t>(i));
  }
  std::ranges::sort(order_, [&](int32_t a, int32_t b) {
    const float da = deviations_[static_cast<size_t>(a)];
    const float db = deviations_[static_cast<size_t>(b)];
    if (da != db) return da < db;
    return candidates_[static_cast<size_t>(a)].token < candidates_[static_cast<size_t>(b)].token;
  });
  kept_.clear();
  double sum = 0;
  for (int32_t i : order_) {
    kept_.push_back(candidates_[static_cast<size_t>(i)]);
    sum += kept_.back().p;
    if (sum >= p) break;
  }
  candidates_.swap(kept_);
  sorted_ = false;
}

// Before a sort of which only the first candidates matter, those whose p sum to `mass` of `total`: of a large
// vocabulary keeps only what is above a falling threshold.
void Sampler::drop_beyond(double mass, double total) {
  if (sorted_ || candidates_.size() <= kFew) return;
  float most = 0;
  for (const Candidate& c : candidates_) most = std::max(most, c.p);
  for (float threshold = most / 64; threshold > 0; threshold /= 64) {
    double sum = 0;
    for (const Candidate& c : candidates_) sum += c.p >= threshold ? c.p : 0;
    // In the order of the sort, the sum is another: leave room for rounding.
    if (sum < mass + 1e-4 * total) continue;
    std::erase_if(candidates_, [&](const Candidate& c) { return c.p < threshold; });
    return;
  }
}

// Keeps the most probable tokens until their probabilities sum to p; at least one.
void Sampler::top_p(float p) {
  normalize();
  drop_beyond(p, 1);
  sort();
  double sum = 0;
  size_t count = 0;
  while (count < candidates_.size()) {
    sum += candidates_[count++].p;
    if (sum >= p) break;
  }
  candidates_.resize(count);
}

void Sampler::min_p(float p) {
  float most = kNever;
  for (const Candidate& c : candidates_) most = std::max(most, c.logit);
  const float least = least_logit(most, p);
  std::erase_if(candidates_, [&](const Candidate& c) { return c.logit < least; });
}

void Sampler::xtc(const SamplingOptions& options) {
  sort();
  normalize();
  size_t above = 0;
  // What the bias forbids has p = 0 and is no choice, whatever the threshold.
  while (above < candidates_.size() && candidates_[above].p > 0 && candidates_[above].p >= options.xtc_threshold) {
    ++above;
  }
  if (above > 1) candidates_.erase(candidates_.begin(), candidates_.begin() + static_cast<int64_t>(above - 1));
}

// Walks from the best candidate on: most draws end among the first few.
int32_t Sampler::pick(const SamplingOptions& options, int64_t position, RandomStream stream) {
  if (candidates_.size() <= kFew) sort();
  float most = kNever;
  for (const Candidate& c : candidates_) most = std::max(most, c.logit);
  double sum = 0;
  for (Candidate& c : candidates_) {
    c.p = std::exp((c.logit - most) / options.temperature);
    sum += c.p;
  }
  double left = uniform(options.seed, position, stream) * sum;
  drop_beyond(left, sum);
  sort();
  const Candidate* last = nullptr;
  for (const Candidate& c : candidates_) {
    if (c.p <= 0) continue;
    last = &c;
    left -= c.p;
    if (left < 0) break;
  }
  return last->token;  // the best candidate has p = 1
}

void Sampler::logprobs(std::span<const float> logits, int32_t token, int32_t top, std::vector<TokenLogprob>& out) {
  const float most = logits[index_of_largest(logits)];
  double sum = 0;
  for (float logit : logits) sum += std::exp(logit - most);
  const float log_sum = most + static_cast<float>(std::log(sum));
  out.clear();
  out.reserve(static_cast<size_t>(top) + 1);
  out.push_back({token, logits[static_cast<size_t>(token)] - log_sum});
  if (top == 0) return;
  fill_top_k(logits, top);
  for (const Candidate& c : candidates_) out.push_back({c.token, c.logit - log_sum});
}

}  // namespace hearth
