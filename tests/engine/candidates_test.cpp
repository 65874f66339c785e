// Tokens drawn by what a device found of the logits are those that all logits would give.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <random>

#include "engine/engine.h"
#include "engine/sampler.h"
#include "fake_device.h"
#include "support/candidates.h"
#include "text/grammar/grammar.h"

namespace hearth {
namespace {

using testing::FoundRow;
using Tokens = std::vector<int32_t>;
constexpr float kInfinity = std::numeric_limits<float>::infinity();

class Random {
 public:
  explicit Random(uint32_t seed) : rng_(seed) {}
  bool one_in(uint32_t n) { return rng_() % n == 0; }
  int32_t below(int64_t n) { return static_cast<int32_t>(rng_() % static_cast<uint32_t>(n)); }
  float between(float low, float high) { return std::uniform_real_distribution<float>(low, high)(rng_); }
  template <class T>
  T among(std::initializer_list<T> values) {
    return values.begin()[rng_() % values.size()];
  }

  std::vector<float> logits(int64_t vocab) {
    const float deviation = among({0.0f, 0.3f, 2.0f, 6.0f, 1e4f});
    const bool few_values = one_in(3);
    std::normal_distribution<float> normal(0, deviation);
    std::vector<float> logits(static_cast<size_t>(vocab));
    for (float& logit : logits) {
      logit = deviation > 0 ? normal(rng_) : 1.5f;
      if (few_values) logit = std::round(logit);
    }
    for (int i = below(4); i > 0; --i) logits[static_cast<size_t>(below(vocab))] += between(0, 15);
    return logits;
  }

  SamplingOptions options(int64_t vocab) {
    SamplingOptions o{.seed = rng_()};
    for (int i = one_in(3) ? below(12) : 0; i > 0; --i) {
      o.logit_bias.emplace_back(below(vocab), among({-kInfinity, between(-100, 100), between(-3, 3)}));
    }
    if (one_in(3)) o.repetition_penalty = between(0.5f, 2);
    if (one_in(3)) o.presence_penalty = between(-2, 2);
    if (one_in(3)) o.frequency_penalty = between(-2, 2);
    o.penalty_last_n = among({64, -1, 10, 0});
    if (one_in(4)) o.dry_multiplier = between(0, 3);
    if (one_in(2)) o.top_k = among({1, 2, 20, 40, 63, 64, 65, 100, 5000});
    if (one_in(8)) o.typical_p = between(0, 1);
    if (one_in(2)) o.top_p = among({0.0f, 0.5f, 0.9f, 0.95f, 0.99f, 0.9999999f});
    if (one_in(2)) o.min_p = among({0.01f, 0.05f, 0.5f, 1.0f});
    if (one_in(8)) o.xtc_probability = 0.5f;
    if (!one_in(5)) o.temperature = among({1e-30f, 0.1f, 0.7f, 1.0f, 3.0f, 1e30f});
    return o;
  }

  Tokens history(int64_t vocab) {
    Tokens history(static_cast<size_t>(below(300)));
    const int64_t distinct = among({int64_t{3}, int64_t{100}, vocab});
    for (int32_t& token : history) token = below(std::min(distinct, vocab));
    return history;
  }

 private:
  std::mt19937 rng_;
};

// The candidates as a device may give them: sums anywhere within their error.
FoundRow find(const std::vector<float>& logits, const SamplingOptions& options, const LogitChanges& changes,
              Random& random) {
  FoundRow row = testing::find_candidates(
      logits, {.temperature = options.temperature > 0 ? options.temperature : 1, .tokens = changes.tokens});
  for (double* sum : {&row.sum, &row.tempered_sum}) {
    *sum *= 1 + random.among({-0.99, 0.0, 0.99}) * kCandidateSumError;
  }
  return row;
}

TEST(Candidates, DrawWhatAllLogitsWould) {
  for (int64_t vocab : {1, 2, 63, 64, 65, 100, 1000, 5000}) {
    Random random(static_cast<uint32_t>(vocab));
    Sampler sampler(vocab), by_candidates(vocab);
    int decided = 0, decided_again = 0;
    const int rounds = vocab <= 100 ? 3000 : 1500;
    for (int round = 0; round < rounds; ++round) {
      std::vector<float> logits = random.logits(vocab);
      const SamplingOptions options = random.options(vocab);
      ASSERT_TRUE(check_sampling(options, vocab));
      LogitChanges changes;
      sampler.find_changes(options, random.history(vocab), changes);
      const FoundRow found = find(logits, options, changes, random);

      const Result<int32_t> wanted = sampler.draw(logits, options, changes, round);
      const auto got = by_candidates.draw(found.view(), options, changes, round);
      ASSERT_TRUE(got);
      if (*got) {
        ASSERT_TRUE(wanted) << wanted.error().message;
        ASSERT_EQ(**got, *wanted) << "round " << round << " of vocabulary " << vocab;
        ++decided;
      }

      std::vector<uint64_t> allowed(static_cast<size_t>(vocab + 63) / 64);
      const uint32_t rare = random.among({1u, 2u, 50u});
      for (int32_t token = 0; token < vocab; ++token) {
        if (random.one_in(rare)) allowed[static_cast<size_t>(token) / 64] |= uint64_t{1} << (token % 64);
      }
      const Result<int32_t> wanted_again = sampler.draw_allowed(logits, allowed, options, changes, round);
      const auto got_again = by_candidates.draw_allowed(found.view(), allowed, options, changes, round);
      if (got_again) {
        ASSERT_TRUE(wanted_again) << wanted_again.error().message;
        ASSERT_EQ(*got_again, *wanted_again) << "round " << round << " of vocabulary " << vocab;
        ++decided_again;
      }
    }
    EXPECT_GT(decided, rounds / 3) << vocab;
    EXPECT_GT(decided_again, rounds / 6) << vocab;
  }
}

// Logits like those of a language model and options as people set them: all logits are hardly ever needed.
TEST(Candidates, AreNearlyAlwaysEnough) {
  constexpr int64_t kVocab = 30000;
  Random random(5);
  Sampler sampler(kVocab);
  const std::pair<SamplingOptions, double> cases[] = {
      {{}, 1},
      {{.top_k = 40, .top_p = 0.95f, .min_p = 0.05f, .temperature = 0.8f}, 1},
      {{.repetition_penalty = 1.1f, .top_k = 40, .temperature = 0.8f}, 1},
      {{.logit_bias = {{3, -kInfinity}, {7, 2.0f}}, .min_p = 0.05f, .temperature = 1}, 0.99},
      {{.presence_penalty = 1.5f, .penalty_last_n = 200, .top_p = 0.9f, .temperature = 0.7f}, 0.95},
      {{.dry_multiplier = 0.8f, .min_p = 0.02f, .temperature = 1}, 0.99},
      {{.temperature = 1}, 0.9},
  };
  for (const auto& [options, least] : cases) {
    int decided = 0;
    constexpr int kRounds = 300;
    for (int round = 0; round < kRounds; ++round) {
      // Mass falls off as 1 / rank^2.
      std::vector<float> logits(kVocab);
      for (size_t i = 0; i < logits.size(); ++i) {
        logits[i] = -2 * std::log(static_cast<float>((i * 7919 + static_cast<size_t>(round)) % kVocab + 1));
        logits[i] += random.between(0, 0.5f);
      }
      LogitChanges changes;
      sampler.find_changes(options, random.history(kVocab), changes);
      const FoundRow found = find(logits, options, changes, random);
      const auto token = sampler.draw(found.view(), options, changes, round);
      ASSERT_TRUE(token);
      if (!*token) continue;
      ++decided;
      ASSERT_EQ(**token, *sampler.draw(logits, options, changes, round));
    }
    EXPECT_GE(decided, least * kRounds) << "top_k " << options.top_k << " top_p " << options.top_p << " min_p "
                                        << options.min_p << " temperature " << options.temperature;
  }
}

TEST(Candidates, LogitsThatAreNotFiniteAreAnError) {
  for (float bad : {kInfinity, -kInfinity, std::numeric_limits<float>::quiet_NaN()}) {
    std::vector<float> logits(100, 1.0f);
    logits[70] = bad;
    Sampler sampler(100);
    const FoundRow found = testing::find_candidates(logits, {});
    const auto token = sampler.draw(found.view(), {}, {}, 3);
    ASSERT_FALSE(token);
    EXPECT_EQ(token.error().message, sampler.draw(logits, {}, {}, 3).error().message);
  }
}

TEST(Candidates, LogprobsAreThoseOfAllLogits) {
  Random random(2);
  for (int64_t vocab : {1, 50, 64, 65, 1000}) {
    Sampler sampler(vocab);
    for (int round = 0; round < 200; ++round) {
      const std::vector<float> logits = random.logits(vocab);
      LogitChanges changes;
      sampler.find_changes({.presence_penalty = 1}, random.history(vocab), changes);
      const FoundRow found = find(logits, {}, changes, random);
      const int32_t token = random.below(vocab), top = random.among({0, 1, 5, 64, 65, 1000});
      std::vector<TokenLogprob> wanted, got;
      sampler.logprobs(logits, token, top, wanted);
      const bool known = std::ranges::find(found.tokens, token) != found.tokens.end() ||
                         std::ranges::find(changes.tokens, token) != changes.tokens.end();
      ASSERT_EQ(sampler.logprobs(found.view(), changes, token, top, got), known && (top <= 64 || vocab <= 64));
      if (!known || (top > 64 && vocab > 64)) continue;
      ASSERT_EQ(got.size(), wanted.size());
      for (size_t i = 0; i < got.size(); ++i) {
        ASSERT_EQ(got[i].token, wanted[i].token);
        ASSERT_NEAR(got[i].logprob, wanted[i].logprob, 1e-4 + 1e-6 * std::abs(wanted[i].logprob));
      }
    }
  }
}

// ---- in the engine ----

std::unique_ptr<Engine> start(const FakeModel& model) {
  auto engine = make_engine(model.engine_model(), {}, nullptr);
  EXPECT_TRUE(engine) << (engine ? "" : engine.error().message);
  return std::move(engine).value();
}

FakeOptions device(bool candidates) {
  return {.vocab_size = 300, .pages = {400}, .candidates = candidates, .own_thread = true};
}

Tokens random_prompt(Random& random, int64_t tokens) {
  Tokens prompt;
  for (int64_t i = 0; i < tokens; ++i) prompt.push_back(random.below(58));
  return prompt;
}

std::shared_ptr<const Grammar> grammar_of(const FakeModel& model, const std::string& gbnf) {
  const Text& text = *model.engine_model().text;
  std::vector<std::string> bytes;
  for (int32_t t = 0; t < text.vocab_size(); ++t) bytes.push_back(text.piece(t, true));
  const auto tokens = std::make_shared<const grammar::TokenTrie>(std::move(bytes), Tokens{kEndToken});
  auto grammar = compile_grammar({.kind = GrammarSource::Kind::kGbnf, .text = gbnf}, "", tokens);
  EXPECT_TRUE(grammar) << (grammar ? "" : grammar.error().message);
  return grammar ? *grammar : nullptr;
}

// Requests of all kinds, together on a device with candidates and on one without.
TEST(EngineCandidates, GiveTheSameAnswers) {
  const FakeModel model(device(true)), plain(device(false));
  auto engine = start(model), plain_engine = start(plain);
  std::vector<Generation> generations, plain_generations;
  for (uint32_t seed = 0; seed < 60; ++seed) {
    Random random(seed);
    Request request{.prompt = random_prompt(random, 1 + random.below(60)), .max_tokens = random.below(40)};
    if (seed % 3) request.sampling = random.options(300);
    if (seed % 4 == 1) request.top_logprobs = random.among({0, 5, 100});
    request.prompt_logits = seed % 7 == 2;
    Request same = request;
    if (seed % 5 == 3) {
      request.constraint.grammar = grammar_of(model, "root ::= ([a-m] [N-Z]){3,9}");
      same.constraint.grammar = grammar_of(plain, "root ::= ([a-m] [N-Z]){3,9}");
    }
    generations.push_back(*engine->submit(std::move(request)));
    plain_generations.push_back(*plain_engine->submit(std::move(same)));
  }
  for (size_t i = 0; i < generations.size(); ++i) {
    const Collected got = collect(generations[i]), want = collect(plain_generations[i]);
    ASSERT_EQ(got.tokens, want.tokens) << i;
    EXPECT_EQ(got.text, want.text) << i;
    EXPECT_EQ(got.prompt_logits, want.prompt_logits) << i;
    ASSERT_EQ(got.done.has_value(), want.done.has_value()) << i;
    if (got.done) {
      EXPECT_EQ(got.done->reason, want.done->reason) << i;
    } else {
      EXPECT_EQ(got.error->message, want.error->message) << i;
    }
    for (size_t t = 0; t < got.events.size(); ++t) {
      ASSERT_EQ(got.events[t].logprobs.size(), want.events[t].logprobs.size()) << i;
      for (size_t j = 0; j < got.events[t].logprobs.size(); ++j) {
        EXPECT_EQ(got.events[t].logprobs[j].token, want.events[t].logprobs[j].token) << i;
        EXPECT_NEAR(got.events[t].logprobs[j].logprob, want.events[t].logprobs[j].logprob, 1e-4) << i;
      }
    }
  }
  EXPECT_LT(model.logit_rows_read(), plain.logit_rows_read() * 2 / 3);
}

TEST(EngineCandidates, NoLogitsAreReadForCommonRequests) {
  const FakeModel model(device(true));
  auto engine = start(model);
  Random random(1);
  const Tokens prompt = random_prompt(random, 100);
  auto run = [&](const SamplingOptions& sampling, int32_t top_logprobs) {
    Request request{.prompt = prompt, .max_tokens = 50, .ignore_end = true};
    request.sampling = sampling;
    request.top_logprobs = top_logprobs;
    auto generation = engine->submit(std::move(request));
    EXPECT_TRUE(generation);
    return collect(*generation);
  };
  EXPECT_EQ(run({}, -1).tokens, model.expected(prompt, 50));
  EXPECT_EQ(run({}, 20).tokens, model.expected(prompt, 50));
  run({.repetition_penalty = 1.1f, .top_k = 40, .top_p = 0.95f, .min_p = 0.05f, .temperature = 0.8f}, 5);
  EXPECT_EQ(model.logit_rows_read(), 0);
}

TEST(EngineCandidates, ManyChangesAreNoRequest) {
  const FakeModel model({.vocab_size = 1000, .candidates = true});
  auto engine = start(model);
  Request request{.prompt = {1, 2, 3}, .max_tokens = 5, .ignore_end = true};
  for (int32_t token = 0; token < 300; ++token) request.sampling.logit_bias.emplace_back(token, -kInfinity);
  auto generation = engine->submit(request);
  const Collected all = collect(*generation);
  ASSERT_EQ(all.tokens.size(), 5u);
  for (int32_t token : all.tokens) EXPECT_GE(token, 300);
  EXPECT_EQ(model.logit_rows_read(), 5);
}

TEST(EngineCandidates, LogitsThatAreNotFiniteEndTheSequence) {
  const FakeModel model(device(true));
  auto engine = start(model);
  for (int64_t tokens : {0, 4}) {
    auto generation = engine->submit({.prompt = {1, kPoison, 2}, .max_tokens = tokens});
    const Collected all = collect(*generation);
    ASSERT_TRUE(all.error);
    EXPECT_EQ(all.error->code, ErrorCode::kInternal);
  }
  EXPECT_EQ(model.logit_rows_read(), 0);
}

}  // namespace
}  // namespace hearth
