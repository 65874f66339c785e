#include "engine/sampler.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <random>

#include "engine/philox.h"

namespace hearth {
namespace {

using Tokens = std::vector<int32_t>;
constexpr float kInfinity = std::numeric_limits<float>::infinity();

// Logits whose softmax is `p`.
std::vector<float> logits_of(const std::vector<double>& p) {
  std::vector<float> logits;
  for (double x : p) logits.push_back(static_cast<float>(std::log(x)) + 3);
  return logits;
}

std::vector<double> softmax(const std::vector<float>& logits, double temperature = 1) {
  std::vector<double> p;
  double sum = 0;
  for (float logit : logits) sum += p.emplace_back(std::exp(logit / temperature));
  for (double& x : p) x /= sum;
  return p;
}

LogitChanges changes_of(Sampler& sampler, const SamplingOptions& options, const Tokens& history) {
  LogitChanges changes;
  sampler.find_changes(options, history, changes);
  return changes;
}

int32_t draw(std::vector<float> logits, const SamplingOptions& options, const Tokens& history = {},
             int64_t position = 0) {
  Sampler sampler(static_cast<int64_t>(logits.size()));
  const std::vector<float> before = logits;
  auto token = sampler.draw(logits, options, changes_of(sampler, options, history), position);
  EXPECT_TRUE(token) << (token ? "" : token.error().message);
  EXPECT_EQ(logits, before);  // put back
  return *token;
}

constexpr int kDraws = 40000;

// How often each token comes, over many positions.
std::vector<double> frequencies(std::vector<float> logits, const SamplingOptions& options, const Tokens& history = {}) {
  Sampler sampler(static_cast<int64_t>(logits.size()));
  const LogitChanges changes = changes_of(sampler, options, history);
  std::vector<double> counts(logits.size());
  for (int64_t position = 0; position < kDraws; ++position) {
    counts[static_cast<size_t>(*sampler.draw(logits, options, changes, position))] += 1.0 / kDraws;
  }
  return counts;
}

// Within five standard deviations; what has no probability never comes.
void expect_distribution(const std::vector<double>& got, std::vector<double> wanted) {
  ASSERT_EQ(got.size(), wanted.size());
  double sum = 0;
  for (double p : wanted) sum += p;
  for (size_t i = 0; i < got.size(); ++i) {
    const double p = wanted[i] / sum;
    EXPECT_NEAR(got[i], p, 1e-9 + 5 * std::sqrt(p * (1 - p) / kDraws)) << "token " << i;
  }
}

const std::vector<double> kP = {0.05, 0.4, 0.1, 0.02, 0.25, 0.15, 0.03};
SamplingOptions warm() { return {.temperature = 1}; }

TEST(Philox, KnownAnswers) {
  // From the known-answer tests of the authors' library (Random123), philox4x32 with 10 rounds.
  EXPECT_EQ(philox4x32({0, 0, 0, 0}, {0, 0}),
            (std::array<uint32_t, 4>{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}));
  EXPECT_EQ(philox4x32({0xffffffff, 0xffffffff, 0xffffffff, 0xffffffff}, {0xffffffff, 0xffffffff}),
            (std::array<uint32_t, 4>{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}));
  EXPECT_EQ(philox4x32({0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344}, {0xa4093822, 0x299f31d0}),
            (std::array<uint32_t, 4>{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}));
}

TEST(Philox, UniformIsUniformAndDependsOnEverything) {
  double sum = 0;
  int low = 0;
  for (int64_t i = 0; i < 100000; ++i) {
    const double u = uniform(7, i, RandomStream::kToken);
    ASSERT_GE(u, 0);
    ASSERT_LT(u, 1);
    sum += u;
    low += u < 0.125;
  }
  EXPECT_NEAR(sum / 100000, 0.5, 0.005);
  EXPECT_NEAR(low / 100000.0, 0.125, 0.006);
  const double u = uniform(7, 9, RandomStream::kToken);
  EXPECT_NE(u, uniform(8, 9, RandomStream::kToken));
  EXPECT_NE(u, uniform(7 + (uint64_t{1} << 40), 9, RandomStream::kToken));
  EXPECT_NE(u, uniform(7, 10, RandomStream::kToken));
  EXPECT_NE(u, uniform(7, 9 + (int64_t{1} << 40), RandomStream::kToken));
  EXPECT_NE(u, uniform(7, 9, RandomStream::kXtc));
}

TEST(Sampler, GreedyTakesTheLargestAndOfEqualsTheFirst) {
  for (size_t size : {1, 2, 15, 16, 17, 31, 33, 100, 1000}) {
    std::mt19937 random(static_cast<uint32_t>(size));
    for (int round = 0; round < 50; ++round) {
      std::vector<float> logits(size);
      for (float& logit : logits) logit = static_cast<float>(static_cast<int>(random() % 30)) - 40;
      const auto best = static_cast<int32_t>(std::ranges::max_element(logits) - logits.begin());
      EXPECT_EQ(draw(logits, {}), best);
      // Filters do not change the best.
      EXPECT_EQ(draw(logits, {.top_k = 1000, .typical_p = 0.1f, .top_p = 0.5f, .xtc_probability = 1}), best);
    }
  }
}

TEST(Sampler, TemperatureOneIsTheModelsDistribution) { expect_distribution(frequencies(logits_of(kP), warm()), kP); }

TEST(Sampler, TemperatureFlattensAndSharpens) {
  for (float temperature : {0.5f, 2.0f}) {
    expect_distribution(frequencies(logits_of(kP), {.temperature = temperature}),
                        softmax(logits_of(kP), static_cast<double>(temperature)));
  }
  EXPECT_EQ(draw(logits_of(kP), {.temperature = 1e-30f}), 1);
}

TEST(Sampler, SeedAndPositionDecideTheDraw) {
  std::vector<float> logits(500, 0.0f);
  SamplingOptions options = warm();
  options.seed = 42;
  Sampler used(500);
  for (int64_t position = 0; position < 50; ++position) {
    const int32_t token = draw(logits, options, {}, position);
    EXPECT_EQ(*used.draw(logits, options, {}, position), token);  // whatever was drawn before
  }
  int same_seed = 0;
  int same_position = 0;
  SamplingOptions other = options;
  other.seed = 43;
  for (int64_t position = 0; position < 50; ++position) {
    same_position += draw(logits, options, {}, position) == draw(logits, other, {}, position);
    same_seed += draw(logits, options, {}, position) == draw(logits, options, {}, position + 50);
  }
  EXPECT_LT(same_seed, 5);
  EXPECT_LT(same_position, 5);
}

// A draw, and another one if that is not allowed: together the distribution of the allowed tokens.
TEST(Sampler, DrawingAgainAmongTheAllowedIsFair) {
  const uint64_t allowed = 0b01101;
  const std::vector<double> p = {0.1, 0.4, 0.15, 0.05, 0.3};
  std::vector<float> logits = logits_of(p);
  Sampler sampler(5);
  std::vector<double> counts(5);
  for (int64_t position = 0; position < kDraws; ++position) {
    int32_t token = *sampler.draw(logits, warm(), {}, position);
    if ((allowed >> token & 1) == 0)
      token = *sampler.draw_allowed(logits, std::span(&allowed, 1), warm(), {}, position);
    counts[static_cast<size_t>(token)] += 1.0 / kDraws;
  }
  expect_distribution(counts, {0.1, 0, 0.15, 0.05, 0});
  const uint64_t none = 0;
  EXPECT_FALSE(sampler.draw_allowed(logits, std::span(&none, 1), warm(), {}, 0));
}

TEST(Sampler, LogitBiasIsAdded) {
  const std::vector<float> logits = {1, 2, 3};
  EXPECT_EQ(draw(logits, {.logit_bias = {{0, 2.5f}}}), 0);
  EXPECT_EQ(draw(logits, {.logit_bias = {{2, -1.5f}}}), 1);
  EXPECT_EQ(draw(logits, {.logit_bias = {{0, 1.5f}, {0, 1.0f}}}), 0);  // both count
  EXPECT_EQ(draw(logits, {.logit_bias = {{2, -kInfinity}}}), 1);
  SamplingOptions options = warm();
  options.logit_bias = {{1, -kInfinity}, {0, 1.0f}};
  std::vector<float> biased = logits_of(kP);
  biased[0] += 1;
  std::vector<double> wanted = softmax(biased);
  wanted[1] = 0;
  expect_distribution(frequencies(logits_of(kP), options), wanted);
}

TEST(Sampler, ForbiddingEverythingIsAnError) {
  std::vector<float> logits = {1, 2};
  Sampler sampler(2);
  for (float temperature : {0.0f, 1.0f}) {
    const SamplingOptions options{.logit_bias = {{0, -kInfinity}, {1, -kInfinity}}, .temperature = temperature};
    auto token = sampler.draw(logits, options, changes_of(sampler, options, {}), 5);
    ASSERT_FALSE(token);
    EXPECT_EQ(token.error().code, ErrorCode::kUsage);
    EXPECT_EQ(logits, (std::vector<float>{1, 2}));
  }
}

TEST(Sampler, LogitsThatAreNotFiniteAreAnError) {
  for (float bad : {kInfinity, -kInfinity, std::numeric_limits<float>::quiet_NaN()}) {
    for (size_t at : {0, 15, 16, 20, 39}) {
      for (float temperature : {0.0f, 1.0f}) {
        std::vector<float> logits(40, 1.0f);
        logits[at] = bad;
        Sampler sampler(40);
        auto token = sampler.draw(logits, {.temperature = temperature}, {}, 3);
        ASSERT_FALSE(token);
        EXPECT_EQ(token.error().code, ErrorCode::kInternal);
      }
    }
  }
}

TEST(Sampler, RepetitionPenaltyDividesPositiveAndMultipliesNegative) {
  const Tokens history = {0, 0, 2};
  EXPECT_EQ(draw({3, 2, -1}, {.repetition_penalty = 1.4f}, history), 0);  // 3 / 1.4 > 2
  EXPECT_EQ(draw({3, 2, -1}, {.repetition_penalty = 1.6f}, history), 1);  // once, however often it occurred
  EXPECT_EQ(draw({-9, -3, -2}, {.repetition_penalty = 1.4f}, history), 2);
  EXPECT_EQ(draw({-9, -3, -2}, {.repetition_penalty = 1.6f}, history), 1);
  EXPECT_EQ(draw({3, 2, -1}, {.repetition_penalty = 0.6f}, {1}), 1);  // below one it attracts
}

TEST(Sampler, PresencePenaltyCountsOnceFrequencyPenaltyEachTime) {
  const Tokens history = {0, 0, 0, 1};
  EXPECT_EQ(draw({3, 2, 0}, {.presence_penalty = 1.5f}, history), 0);
  EXPECT_EQ(draw({3, 2, 0}, {.presence_penalty = 3.5f}, history), 2);
  EXPECT_EQ(draw({3, 2, 0}, {.frequency_penalty = 0.4f}, history), 0);  // 1.8 against 1.6
  EXPECT_EQ(draw({3, 2, 0}, {.frequency_penalty = 0.6f}, history), 1);  // 1.2 against 1.4
  EXPECT_EQ(draw({3, 2, 0}, {.frequency_penalty = -2.0f}, {1}), 1);
}

TEST(Sampler, PenaltiesLookAtTheLastTokensOnly) {
  Tokens history(100, 2);
  history[100 - 64] = 0;
  EXPECT_EQ(draw({3, 2, 0}, {.presence_penalty = 2}, history), 1);  // the default is 64
  history[100 - 64] = 2;
  history[100 - 65] = 0;
  EXPECT_EQ(draw({3, 2, 0}, {.presence_penalty = 2}, history), 0);
  EXPECT_EQ(draw({3, 2, 0}, {.presence_penalty = 2, .penalty_last_n = -1}, history), 1);
  EXPECT_EQ(draw({3, 2, 0}, {.presence_penalty = 2, .penalty_last_n = 65}, history), 1);
  EXPECT_EQ(draw({3, 2, 0}, {.presence_penalty = 2, .penalty_last_n = 0}, history), 0);
}

// The length of the longest repetition that each next token would extend, the slow and obvious way.
std::map<int32_t, int64_t> repetitions(const Tokens& history, int64_t most) {
  std::map<int32_t, int64_t> longest;
  const auto n = static_cast<int64_t>(history.size());
  for (int64_t end = 1; end < n; ++end) {
    int64_t length = 0;
    while (length < end && length < most &&
           history[static_cast<size_t>(end - 1 - length)] == history[static_cast<size_t>(n - 1 - length)]) {
      ++length;
    }
    int64_t& l = longest[history[static_cast<size_t>(end)]];
    l = std::max(l, length);
  }
  return longest;
}

// The penalty of each token, found by raising its logit until it wins.
float dry_penalty(const SamplingOptions& options, const Tokens& history, int32_t token) {
  std::vector<float> logits(6, 0.0f);
  logits[5] = 100;  // never in the histories
  float low = 0;
  float high = 1000;
  for (int i = 0; i < 40; ++i) {
    const float middle = (low + high) / 2;
    logits[static_cast<size_t>(token)] = 100 + middle;
    (draw(logits, options, history) == token ? high : low) = middle;
  }
  return low;
}

TEST(Sampler, DryPenalizesTheTokenThatWouldExtendARepetition) {
  std::mt19937 random(3);
  for (int round = 0; round < 30; ++round) {
    Tokens history;
    for (int i = 0; i < 40; ++i) history.push_back(static_cast<int32_t>(random() % (round % 2 ? 2 : 4)));
    const SamplingOptions options{.dry_multiplier = 0.8f, .dry_base = 1.5f, .dry_allowed_length = 3};
    const auto longest = repetitions(history, 40);
    for (int32_t token = 0; token < 4; ++token) {
      const int64_t length = longest.contains(token) ? longest.at(token) : 0;
      const double wanted = length < 3 ? 0 : 0.8 * std::pow(1.5, static_cast<double>(length - 3));
      EXPECT_NEAR(dry_penalty(options, history, token), std::min(wanted, 1000.0), 1e-3 * (1 + wanted));
    }
  }
}

TEST(Sampler, DryRangeAndBreakers) {
  const Tokens history = {1, 2, 3, 4, 0, 0, 1, 2, 3};  // 4 would extend "1 2 3"
  const SamplingOptions options{.dry_multiplier = 1, .dry_base = 2, .dry_allowed_length = 2};
  EXPECT_NEAR(dry_penalty(options, history, 4), 2, 1e-3);
  SamplingOptions changed = options;
  changed.dry_multiplier = 0;
  EXPECT_NEAR(dry_penalty(changed, history, 4), 0, 1e-3);
  changed = options;
  changed.dry_allowed_length = 4;
  EXPECT_NEAR(dry_penalty(changed, history, 4), 0, 1e-3);
  changed = options;
  changed.dry_last_n = 7;  // cuts the first "1 2" off: "3" alone is allowed
  EXPECT_NEAR(dry_penalty(changed, history, 4), 0, 1e-3);
  changed.dry_last_n = 8;
  EXPECT_NEAR(dry_penalty(changed, history, 4), 1, 1e-3);
  changed = options;
  changed.dry_breakers = {{1}};  // only "2 3" counts
  EXPECT_NEAR(dry_penalty(changed, history, 4), 1, 1e-3);
  changed.dry_breakers = {{4, 4}, {1, 2}};
  EXPECT_NEAR(dry_penalty(changed, history, 4), 0, 1e-3);
  changed.dry_breakers = {{2, 1}};
  EXPECT_NEAR(dry_penalty(changed, history, 4), 2, 1e-3);
}

TEST(Sampler, TopKKeepsTheBest) {
  for (int32_t k : {1, 2, 3, 6}) {
    SamplingOptions options = warm();
    options.top_k = k;
    std::vector<double> sorted = kP;
    std::ranges::sort(sorted, std::greater());
    std::vector<double> wanted = kP;
    for (double& p : wanted) p = p >= sorted[static_cast<size_t>(k - 1)] ? p : 0;
    expect_distribution(frequencies(logits_of(kP), options), wanted);
  }
  SamplingOptions all = warm();
  all.top_k = 100;
  expect_distribution(frequencies(logits_of(kP), all), kP);
}

TEST(Sampler, TopKOfEqualsKeepsTheFirst) {
  SamplingOptions options = warm();
  options.top_k = 2;
  expect_distribution(frequencies({1, 1, 1, 1}, options), {1, 1, 0, 0});
}

TEST(Sampler, TopPKeepsTheBestUntilTheirSumIsThere) {
  SamplingOptions options = warm();
  options.top_p = 0.6f;  // 0.4 + 0.25
  expect_distribution(frequencies(logits_of(kP), options), {0, 0.4, 0, 0, 0.25, 0, 0});
  options.top_p = 0.7f;
  expect_distribution(frequencies(logits_of(kP), options), {0, 0.4, 0, 0, 0.25, 0.15, 0});
  options.top_p = 0;  // at least one
  expect_distribution(frequencies(logits_of(kP), options), {0, 1, 0, 0, 0, 0, 0});
}

TEST(Sampler, TopPOfALargeVocabularyIsExact) {
  std::mt19937 random(5);
  std::normal_distribution<float> normal(0, 2.5f);
  for (float p : {0.1f, 0.5f, 0.9f, 0.99f, 0.9999f}) {
    std::vector<float> logits(400);
    for (float& logit : logits) logit = normal(random);
    const std::vector<double> probabilities = softmax(logits);
    std::vector<int32_t> order(logits.size());
    for (size_t i = 0; i < order.size(); ++i) order[i] = static_cast<int32_t>(i);
    std::ranges::sort(order, [&](int32_t a, int32_t b) {
      return probabilities[static_cast<size_t>(a)] > probabilities[static_cast<size_t>(b)];
    });
    double sum = 0;
    size_t kept = 0;
    while (sum < static_cast<double>(p)) sum += probabilities[static_cast<size_t>(order[kept++])];
    // A huge temperature draws all that are left alike: the set shows.
    std::vector<bool> seen(logits.size());
    Sampler sampler(400);
    size_t distinct = 0;
    for (int64_t position = 0; position < 3000; ++position) {
      const auto token = static_cast<size_t>(*sampler.draw(logits, {.top_p = p, .temperature = 1e6f}, {}, position));
      distinct += !seen[token];
      seen[token] = true;
    }
    for (size_t i = kept + 1; i < order.size(); ++i) ASSERT_FALSE(seen[static_cast<size_t>(order[i])]) << p;
    EXPECT_GE(static_cast<double>(distinct) + 1, 0.99 * static_cast<double>(kept)) << p;
  }
}

TEST(Sampler, MinPDropsWhatIsFarBelowTheBest) {
  SamplingOptions options = warm();
  options.min_p = 0.3f;  // of 0.4: 0.12
  expect_distribution(frequencies(logits_of(kP), options), {0, 0.4, 0, 0, 0.25, 0.15, 0});
  options.min_p = 1;
  expect_distribution(frequencies(logits_of(kP), options), {0, 1, 0, 0, 0, 0, 0});
}

TEST(Sampler, TypicalKeepsWhatIsAsSurprisingAsUsual) {
  // Entropy 1.596: surprises 3.00, 0.92, 2.30, 3.91, 1.39, 1.90, 3.51; nearest first: 4, 5, 1, 2 ...
  SamplingOptions options = warm();
  options.typical_p = 0.2f;
  expect_distribution(frequencies(logits_of(kP), options), {0, 0, 0, 0, 0.25, 0, 0});
  options.typical_p = 0.3f;
  expect_distribution(frequencies(logits_of(kP), options), {0, 0, 0, 0, 0.25, 0.15, 0});
  options.typical_p = 0.5f;
  expect_distribution(frequencies(logits_of(kP), options), {0, 0.4, 0, 0, 0.25, 0.15, 0});
  options.typical_p = 0.85f;
  expect_distribution(frequencies(logits_of(kP), options), {0, 0.4, 0.1, 0, 0.25, 0.15, 0});
}

TEST(Sampler, XtcExcludesAllButTheLastTopChoice) {
  SamplingOptions options = warm();
  options.xtc_probability = 1;
  options.xtc_threshold = 0.12f;  // 0.4, 0.25 and 0.15 are above: 0.15 stays
  expect_distribution(frequencies(logits_of(kP), options), {0.05, 0, 0.1, 0.02, 0, 0.15, 0.03});
  options.xtc_threshold = 0.3f;  // one alone is no choice
  expect_distribution(frequencies(logits_of(kP), options), kP);
  options.xtc_threshold = 0.12f;
  options.xtc_probability = 0.25f;  // a mixture of both
  std::vector<double> wanted = {0.05, 0, 0.1, 0.02, 0, 0.15, 0.03};
  for (size_t i = 0; i < wanted.size(); ++i) wanted[i] = 0.25 * wanted[i] / 0.35 + 0.75 * kP[i];
  expect_distribution(frequencies(logits_of(kP), options), wanted);
  options.xtc_probability = 1;
  options.xtc_threshold = 0;  // everything is a top choice, but not what the bias forbids
  options.logit_bias = {{3, -std::numeric_limits<float>::infinity()}};
  EXPECT_EQ(frequencies(logits_of(kP), options)[3], 0);
}

TEST(Sampler, FiltersWorkOnWhatTheOnesBeforeLeft) {
  SamplingOptions options = warm();
  options.top_k = 3;      // 0.4, 0.25, 0.15
  options.top_p = 0.75f;  // of 0.8: 0.4 + 0.25 is 0.81 of it
  expect_distribution(frequencies(logits_of(kP), options), {0, 0.4, 0, 0, 0.25, 0, 0});
}

TEST(Sampler, FiltersComeBeforeTheTemperature) {
  SamplingOptions options{.top_p = 0.6f, .temperature = 100};
  expect_distribution(frequencies(logits_of(kP), options), {0, std::pow(0.4, 0.01), 0, 0, std::pow(0.25, 0.01), 0, 0});
  options = {.min_p = 0.3f, .temperature = 100};
  expect_distribution(frequencies(logits_of(kP), options),
                      {0, std::pow(0.4, 0.01), 0, 0, std::pow(0.25, 0.01), std::pow(0.15, 0.01), 0});
}

TEST(Sampler, PenaltiesComeBeforeTheFilters) {
  SamplingOptions options = warm();
  options.top_k = 1;
  options.presence_penalty = 10;
  expect_distribution(frequencies(logits_of(kP), options, {1}), {0, 0, 0, 0, 1, 0, 0});
}

TEST(Sampler, ChecksItsOptions) {
  const auto message = [](const SamplingOptions& options) {
    auto result = check_sampling(options, 10);
    return result ? std::string() : result.error().message;
  };
  EXPECT_EQ(message({}), "");
  EXPECT_EQ(message({.top_k = 1 << 20, .temperature = 100}), "");
  const float nan = std::numeric_limits<float>::quiet_NaN();
  EXPECT_EQ(message({.temperature = -1}), "temperature is -1; it must be from 0 to 1e+30");
  EXPECT_EQ(message({.temperature = nan}), "temperature is nan; it must be from 0 to 1e+30");
  EXPECT_EQ(message({.top_p = -0.5f}), "top_p is -0.5; it must be from 0 to 1");
  EXPECT_EQ(message({.top_k = -1}), "top_k is -1; it must be from 0 to 1e+09");
  EXPECT_EQ(message({.presence_penalty = kInfinity}), "presence_penalty is inf; it must be from -1e+30 to 1e+30");
  EXPECT_NE(message({.repetition_penalty = 0}), "");
  EXPECT_NE(message({.frequency_penalty = nan}), "");
  EXPECT_NE(message({.penalty_last_n = -2}), "");
  EXPECT_NE(message({.dry_multiplier = -1}), "");
  EXPECT_NE(message({.dry_base = 0.5f}), "");
  EXPECT_NE(message({.dry_allowed_length = 0}), "");
  EXPECT_NE(message({.dry_last_n = -2}), "");
  EXPECT_NE(message({.dry_breakers = {{}}}), "");
  EXPECT_NE(message({.typical_p = 2}), "");
  EXPECT_NE(message({.min_p = nan}), "");
  EXPECT_NE(message({.xtc_probability = 2}), "");
  EXPECT_NE(message({.xtc_threshold = -1}), "");
  EXPECT_EQ(message({.logit_bias = {{10, 1.0f}}}), "logit_bias names token 10; the model's tokens are 0 to 9");
  EXPECT_NE(message({.logit_bias = {{-1, 1.0f}}}), "");
  EXPECT_NE(message({.logit_bias = {{1, nan}}}), "");
  EXPECT_NE(message({.logit_bias = {{1, kInfinity}}}), "");
  EXPECT_EQ(message({.logit_bias = {{1, -kInfinity}}}), "");
}

// The most extreme options that are allowed give some token and never a fault.
TEST(Sampler, ExtremeOptionsAreHarmless) {
  std::mt19937 random(11);
  const float extremes[] = {0, 1e-6f, 1, 1e30f};
  const auto pick = [&](float low, float high) { return std::clamp(extremes[random() % 4], low, high); };
  const auto sign = [&] { return random() % 2 ? 1.0f : -1.0f; };
  for (int round = 0; round < 3000; ++round) {
    std::vector<float> logits(20);
    for (float& logit : logits) logit = sign() * pick(0, 1e6f);
    SamplingOptions options{.logit_bias = {{3, sign() * pick(0, 1e30f)}, {4, -kInfinity}},
                            .repetition_penalty = pick(1e-6f, 1e30f),
                            .presence_penalty = sign() * pick(0, 1e30f),
                            .frequency_penalty = sign() * pick(0, 1e30f),
                            .penalty_last_n = -1,
                            .dry_multiplier = pick(0, 1e30f),
                            .dry_base = pick(1, 1e30f),
                            .dry_allowed_length = 1,
                            .top_k = static_cast<int32_t>(random() % 25),
                            .typical_p = pick(0, 1),
                            .top_p = pick(0, 1),
                            .min_p = pick(0, 1),
                            .xtc_probability = pick(0, 1),
                            .xtc_threshold = pick(0, 1),
                            .temperature = pick(0, 1e30f),
                            .seed = random()};
    ASSERT_TRUE(check_sampling(options, 20));
    Tokens history;
    for (int i = 0; i < 30; ++i) history.push_back(static_cast<int32_t>(random() % 3));
    const int32_t token = draw(logits, options, history, round);
    ASSERT_GE(token, 0);
    ASSERT_LT(token, 20);
    ASSERT_NE(token, 4);
  }
}

}  // namespace
}  // namespace hearth
