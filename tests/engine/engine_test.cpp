#include "engine/engine.h"

#include <gtest/gtest.h>

#include <unistd.h>
#include <limits>

#include <algorithm>
#include <chrono>
#include <fstream>
#include <future>
#include <random>
#include <thread>

#include "engine_runs.h"

namespace hearth {
namespace {

TEST(Engine, GeneratesWhatTheModelSays) {
  const FakeModel model;
  auto engine = start(model);
  for (int64_t length : {1, 2, 15, 16, 17, 63, 64, 65, 200}) {
    const Tokens prompt = random_prompt(static_cast<uint32_t>(length), length);
    const Collected all = run(*engine, greedy(prompt, 40));
    EXPECT_EQ(all.tokens, model.expected(prompt, 40)) << length;
    ASSERT_TRUE(all.done);
    EXPECT_EQ(all.done->reason, FinishReason::kLength);
    EXPECT_EQ(all.done->usage.prompt_tokens, length);
    EXPECT_EQ(all.done->usage.generated_tokens, 40);
    EXPECT_EQ(all.progress.back().done, length);
    EXPECT_EQ(all.progress.back().total, length);
  }
}

TEST(Engine, ChunksOfAnySizeGiveTheSame) {
  const Tokens prompt = random_prompt(3, 150);
  for (int64_t rows : {1, 7, 16, 64, 65, 100, 512}) {
    const FakeModel model;
    auto engine = start(model, {.prefill_rows = rows});
    EXPECT_EQ(run(*engine, greedy(prompt, 8)).tokens, model.expected(prompt, 8)) << rows;
    EXPECT_LE(model.largest_step(), rows);
    EXPECT_EQ(model.rows_computed(), 150 + 7);
  }
}

TEST(Engine, AFixedNumberOfStepsHasAllSequencesInIt) {
  const FakeModel model({.pages = {1000}, .own_thread = true});
  auto engine = start(model);
  std::vector<Generation> generations;
  std::vector<Tokens> prompts;
  for (uint32_t i = 0; i < 16; ++i) {
    prompts.push_back(random_prompt(i, 1 + 13 * i));
    generations.push_back(*engine->submit(greedy(prompts.back(), 100)));
  }
  for (size_t i = 0; i < 16; ++i) EXPECT_EQ(collect(generations[i]).tokens, model.expected(prompts[i], 100)) << i;
  EXPECT_GE(model.most_sequences(), 12);
  EXPECT_LT(settled(*engine).steps, 300);  // one after the other they would take 1600
}

TEST(Engine, ReusesThePrefixAndGivesTheSame) {
  const FakeModel model;
  auto engine = start(model);
  const Tokens prompt = random_prompt(1, 100);
  const Collected cold = run(*engine, greedy(prompt, 30));
  EXPECT_EQ(cold.done->usage.cached_tokens, 0);
  const Collected warm = run(*engine, greedy(prompt, 30));
  EXPECT_EQ(warm.done->usage.cached_tokens, 96);
  EXPECT_EQ(warm.tokens, cold.tokens);

  // The next turn finds the answer too; its last token was never computed.
  Tokens next = prompt;
  next.insert(next.end(), cold.tokens.begin(), cold.tokens.end());
  for (int32_t token : {5, 6, 7}) next.push_back(token);
  const Collected turn = run(*engine, greedy(next, 30));
  EXPECT_EQ(turn.done->usage.cached_tokens, 128);
  EXPECT_EQ(turn.tokens, model.expected(next, 30));

  // An edit in the middle keeps what is before it.
  next[70] ^= 1;
  const Collected edited = run(*engine, greedy(next, 30));
  EXPECT_EQ(edited.done->usage.cached_tokens, 64);
  EXPECT_EQ(edited.tokens, model.expected(next, 30));

  // Exactly whole pages: the last token is computed again, it has the logits.
  const Tokens whole(next.begin(), next.begin() + 64);
  const Collected again = run(*engine, greedy(whole, 5));
  EXPECT_EQ(again.done->usage.cached_tokens, 48);
  EXPECT_EQ(again.tokens, model.expected(whole, 5));
}

TEST(Engine, PrefixCacheCanBeSwitchedOffAndCleared) {
  const FakeModel model;
  const Tokens prompt = random_prompt(1, 100);
  {
    auto engine = start(model, {.prefix_cache = false});
    run(*engine, greedy(prompt, 3));
    EXPECT_EQ(run(*engine, greedy(prompt, 3)).done->usage.cached_tokens, 0);
    EXPECT_EQ(settled(*engine).pages_cached, 0);
  }
  auto engine = start(model);
  run(*engine, greedy(prompt, 3));
  EXPECT_EQ(settled(*engine).pages_cached, 6);
  ASSERT_TRUE(engine->clear_cache());
  EXPECT_EQ(settled(*engine).pages_cached, 0);
  EXPECT_EQ(run(*engine, greedy(prompt, 3)).done->usage.cached_tokens, 0);
}

TEST(Engine, APromptIsSharedWhileItsFirstUserStillRuns) {
  const FakeModel model({.step_seconds = 0.002});
  auto engine = start(model);
  const Tokens prompt = random_prompt(1, 100);
  auto first = engine->submit(greedy(prompt, 200));
  while (!std::holds_alternative<TokenEvent>(*first->next())) {
  }
  EXPECT_EQ(run(*engine, greedy(prompt, 5)).done->usage.cached_tokens, 96);
  first->cancel();
  EXPECT_EQ(collect(*first).done->reason, FinishReason::kCancelled);
}

TEST(Engine, WhatIsReadOfAPromptIsSharedWhileTheRestIsRead) {
  const FakeModel model({.pages = {1000}, .sequence_tokens = 2000, .step_seconds = 0.002, .own_thread = true});
  auto engine = start(model, {.prefill_rows = 40});
  const Tokens prompt = random_prompt(1, 1200);
  auto first = engine->submit(greedy(prompt, 4));
  for (int64_t computed = 0; computed < 400;) {
    const std::optional<Event> event = first->next();
    if (const auto* progress = std::get_if<PromptProgress>(&*event)) computed = progress->done;
  }
  Tokens other(prompt.begin(), prompt.begin() + 390);
  other.insert(other.end(), {1, 2, 3, 4});
  const Collected all = run(*engine, greedy(other, 4));
  EXPECT_EQ(all.tokens, model.expected(other, 4));
  EXPECT_EQ(all.done->usage.cached_tokens, 384);
  first->cancel();
}

TEST(Engine, IdenticalPromptsThatOverlapAreReadOnce) {
  for (const bool deterministic : {false, true}) {
    const FakeModel model({.pages = {1000}, .sequence_tokens = 2000, .step_seconds = 0.002, .own_thread = true});
    auto engine = start(model, {.prefill_rows = 40, .deterministic = deterministic});
    const int64_t grid = deterministic ? kPrefillGrid : kPageTokens;
    const Tokens prompt = random_prompt(1, 1200);
    std::vector<Generation> generations;
    for (int i = 0; i < 2; ++i) generations.push_back(*engine->submit(greedy(prompt, 4)));
    while (!std::holds_alternative<PromptProgress>(*generations[0].next())) {
    }
    for (int i = 0; i < 4; ++i) generations.push_back(*engine->submit(greedy(prompt, 4)));  // in the middle of it
    generations[0].cancel();  // whoever was first leaves; what it had computed is there for the others
    int64_t computed = 0;
    for (size_t i = 0; i < generations.size(); ++i) {
      const Collected all = collect(generations[i]);
      ASSERT_TRUE(all.done);
      const Usage& usage = all.done->usage;
      computed += usage.computed_tokens;
      if (i == 0) continue;
      EXPECT_EQ(all.tokens, model.expected(prompt, 4));
      EXPECT_EQ(usage.cached_tokens + usage.computed_tokens, 1200);
    }
    EXPECT_LE(computed, 1200 + 6 * grid);
  }
}

// Prompts that begin like any that was read before, or like an answer to it, some of them at the same time.
TEST(Engine, ComputesNoMoreThanIsNew) {
  std::mt19937 random(7);
  const auto below = [&](size_t n) { return static_cast<int64_t>(random() % n); };
  const FakeModel model({.pages = {20'000}, .sequence_tokens = 4000, .own_thread = true});
  auto engine = start(model, {.prefill_rows = 100});
  std::vector<Tokens> processed;
  for (uint32_t round = 0; round < 60; ++round) {
    std::vector<Tokens> prompts;
    std::vector<Generation> generations;
    for (int64_t i = 0; i < 1 + below(4); ++i) {
      Tokens prompt;
      if (!processed.empty()) {
        const Tokens& base = processed[static_cast<size_t>(below(processed.size()))];
        prompt.assign(base.begin(), base.begin() + below(base.size() + 1));
      }
      const Tokens more = random_prompt(1000 * round + static_cast<uint32_t>(i), 1 + below(120));
      prompt.insert(prompt.end(), more.begin(), more.end());
      prompts.push_back(std::move(prompt));
      generations.push_back(*engine->submit(greedy(prompts.back(), 1 + below(30))));
    }
    const size_t before = processed.size();
    for (size_t i = 0; i < prompts.size(); ++i) {
      const Collected all = collect(generations[i]);
      ASSERT_TRUE(all.done);
      int64_t longest = 0;
      for (size_t p = 0; p < before; ++p) {
        longest =
            std::max<int64_t>(longest, std::ranges::mismatch(processed[p], prompts[i]).in1 - processed[p].begin());
      }
      EXPECT_LE(all.done->usage.computed_tokens, std::ssize(prompts[i]) - longest + 16) << round;
      EXPECT_EQ(all.done->usage.cached_tokens + all.done->usage.computed_tokens, std::ssize(prompts[i]));
      Tokens whole = prompts[i];  // without the last token: nobody computed it
      whole.insert(whole.end(), all.tokens.begin(), all.tokens.end() - 1);
      processed.push_back(std::move(whole));
    }
  }
}

TEST(Engine, SaysWhyAPromptWasNotCached) {
  const FakeModel model({.pages = {40}});
  const Tokens prompt = random_prompt(1, 200);
  {
    auto engine = start(model, {.prefix_cache = false});
    EXPECT_EQ(run(*engine, greedy(prompt, 1)).done->usage.miss, CacheMiss::kUnused);
  }
  auto engine = start(model);
  const auto miss = [&](const Tokens& tokens) {
    const Usage usage = run(*engine, greedy(tokens, 1)).done->usage;
    return std::pair(usage.miss, usage.miss_position);
  };
  EXPECT_EQ(miss(prompt), std::pair(CacheMiss::kNew, int64_t{0}));
  EXPECT_EQ(miss(prompt), std::pair(CacheMiss::kNone, int64_t{192}));
  Tokens longer = prompt;
  for (int i = 0; i < 50; ++i) longer.push_back(3);
  EXPECT_EQ(miss(longer), std::pair(CacheMiss::kLonger, int64_t{192}));
  Tokens changed = prompt;
  changed[100] ^= 1;
  EXPECT_EQ(miss(changed), std::pair(CacheMiss::kChanged, int64_t{100}));
  run(*engine, greedy(random_prompt(2, 500), 1));  // takes all but a few pages
  EXPECT_EQ(miss(longer).first, CacheMiss::kEvicted);
  ASSERT_TRUE(engine->clear_cache());
  EXPECT_EQ(miss(longer).first, CacheMiss::kCleared);
  Request scored = greedy(prompt, 1);
  scored.prompt_logits = true;
  EXPECT_EQ(run(*engine, std::move(scored)).done->usage.miss, CacheMiss::kUnused);
}

TEST(Engine, WindowsAndSeveralGroups) {
  const FakeModel model({.groups = {{.layers = 1, .kv_heads = 1, .head_dim = 1},
                                    {.layers = 1, .kv_heads = 1, .head_dim = 1, .window = 37},
                                    {.layers = 1, .kv_heads = 1, .head_dim = 1, .window = 1}},
                         .pages = {64, 24, 20}});
  auto engine = start(model, {.prefill_rows = 100});
  for (int round = 0; round < 2; ++round) {
    for (int64_t length : {1, 36, 37, 38, 90, 250}) {
      const Tokens prompt = random_prompt(static_cast<uint32_t>(length), length);
      const Collected all = run(*engine, greedy(prompt, 50));
      EXPECT_EQ(all.tokens, model.expected(prompt, 50)) << length;
    }
  }
  EXPECT_EQ(settled(*engine).pages_in_use, 0);
}

TEST(Engine, WindowedPrefixesAreReused) {
  const FakeModel model({.groups = {{.layers = 1, .kv_heads = 1, .head_dim = 1, .window = 20}}, .pages = {16}});
  auto engine = start(model, {.prefill_rows = 64});
  Tokens tokens = random_prompt(1, 30);
  for (int turn = 0; turn < 8; ++turn) {
    const Collected all = run(*engine, greedy(tokens, 40));
    EXPECT_EQ(all.tokens, model.expected(tokens, 40));
    EXPECT_EQ(all.done->usage.cached_tokens, turn == 0 ? 0 : (30 + 50 * turn - 11) / 16 * 16) << turn;
    tokens.insert(tokens.end(), all.tokens.begin(), all.tokens.end());
    for (int32_t i = 0; i < 10; ++i) tokens.push_back(i + turn);
  }
}

TEST(Engine, WaitsAndPreemptsWhenPagesRunOut) {
  for (bool deterministic : {false, true}) {
    for (bool prefix_cache : {false, true}) {
      const FakeModel model({.pages = {24}, .sequence_tokens = 24 * 16});
      auto engine = start(model, {.deterministic = deterministic, .prefix_cache = prefix_cache});
      std::vector<Generation> generations;
      std::vector<Tokens> prompts;
      for (uint32_t i = 0; i < 8; ++i) {
        prompts.push_back(random_prompt(i, 40));
        generations.push_back(*engine->submit(greedy(prompts.back(), 120)));
      }
      for (size_t i = 0; i < 8; ++i) {
        const Collected all = collect(generations[i]);
        EXPECT_EQ(all.tokens, model.expected(prompts[i], 120)) << i;
        EXPECT_EQ(all.done->usage.generated_tokens, 120);
      }
      // Eight times 159 tokens is the least: more were computed, because some had to begin again.
      EXPECT_GT(model.rows_computed(), 8 * 159);
      EXPECT_EQ(settled(*engine).pages_in_use, 0);
    }
  }
}

// The next turn of a conversation: its prompt, the answer, and something new.
Tokens next_turn(Tokens prompt, const Tokens& answer, uint32_t seed, int64_t more) {
  prompt.insert(prompt.end(), answer.begin(), answer.end());
  const Tokens said = random_prompt(seed, more);
  prompt.insert(prompt.end(), said.begin(), said.end());
  return prompt;
}

TEST(Engine, ConversationsThatTakeTurnsComeBackFromHostMemory) {
  const FakeOptions with{.pages = {28}, .host_pages = 60, .sequence_tokens = 28 * 16};
  FakeOptions without = with;
  without.host_pages = 0;
  for (const bool host : {false, true}) {
    const FakeModel model(host ? with : without);
    auto engine = start(model, {.prefill_rows = 64});
    Tokens prompts[] = {random_prompt(1, 300), random_prompt(2, 290), random_prompt(3, 310)};
    int64_t returned = 0, cached = 0;
    for (uint32_t turn = 0; turn < 4; ++turn) {
      for (Tokens& prompt : prompts) {
        const Collected all = run(*engine, greedy(prompt, 8));
        ASSERT_TRUE(all.done);
        EXPECT_EQ(all.tokens, model.expected(prompt, 8));
        const Usage& usage = all.done->usage;
        if (host && turn > 0) {
          EXPECT_EQ(usage.cached_tokens, (std::ssize(prompt) - 20 - 1) / 16 * 16);
          EXPECT_EQ(usage.miss, CacheMiss::kLonger);
        }
        EXPECT_LE(usage.returned_tokens, usage.cached_tokens);
        cached += usage.cached_tokens;
        returned += usage.returned_tokens;
        prompt = next_turn(std::move(prompt), all.tokens, turn, 20);
      }
    }
    const EngineStats stats = settled(*engine);
    EXPECT_EQ(returned > 0, host);
    if (!host) EXPECT_LT(cached, 9 * 150);
    EXPECT_EQ(stats.pages_in_use, 0);
    EXPECT_EQ(stats.host_pages_total, host ? 60 : 0);
    EXPECT_EQ(stats.host_pages_cached > 28, host);
    EXPECT_EQ(stats.host_bytes_cached, static_cast<size_t>(stats.host_pages_cached) * 16 * 12);
    ASSERT_TRUE(engine->clear_cache());
    EXPECT_EQ(engine->stats().host_pages_cached, 0);
    EXPECT_EQ(engine->stats().host_bytes_cached, 0u);
    EXPECT_EQ(run(*engine, greedy(prompts[0], 2)).done->usage.cached_tokens, 0);
  }
}

// With windows, all that is asked at once, and copies that fail now and then: answers are right.
TEST(Engine, HostMemoryChangesNoAnswer) {
  for (const bool deterministic : {false, true}) {
    for (const int64_t host_pages : {1, 10, 300}) {
      FakeModel model({.groups = {{.layers = 1, .kv_heads = 1, .head_dim = 1},
                                  {.layers = 1, .kv_heads = 1, .head_dim = 1, .window = 40}},
                       .pages = {70, 70},
                       .host_pages = host_pages,
                       .sequence_tokens = 800});
      auto engine = start(model, {.prefill_rows = 100, .deterministic = deterministic});
      std::mt19937 random(static_cast<uint32_t>(host_pages));
      int64_t returned = 0;
      std::vector<Tokens> prompts;
      for (uint32_t i = 0; i < 6; ++i) prompts.push_back(random_prompt(i % 4, 270 + 10 * i));
      for (uint32_t round = 0; round < 12; ++round) {
        if (random() % 2) model.fail_copy_after(random() % 40);
        std::vector<Generation> generations;
        for (const Tokens& prompt : prompts) generations.push_back(*engine->submit(greedy(prompt, 20)));
        for (size_t i = 0; i < prompts.size(); ++i) {
          const Collected all = collect(generations[i]);
          ASSERT_TRUE(all.done);
          EXPECT_EQ(all.tokens, model.expected(prompts[i], 20));
          returned += all.done->usage.returned_tokens;
          if (prompts[i].size() < 700) prompts[i] = next_turn(std::move(prompts[i]), all.tokens, round, 11);
        }
      }
      const EngineStats stats = settled(*engine);
      EXPECT_EQ(stats.pages_in_use, 0);
      if (host_pages == 300) EXPECT_GT(returned, 1000);
    }
  }
}

TEST(Engine, PreemptedSequencesComeBackFromHostMemory) {
  int64_t computed[2];
  for (const bool host : {false, true}) {
    const FakeModel model({.pages = {24}, .host_pages = host ? 100 : 0, .sequence_tokens = 24 * 16});
    auto engine = start(model);
    std::vector<Generation> generations;
    std::vector<Tokens> prompts;
    for (uint32_t i = 0; i < 8; ++i) {
      prompts.push_back(random_prompt(i, 40));
      generations.push_back(*engine->submit(greedy(prompts.back(), 120)));
    }
    int64_t returned = 0;
    for (size_t i = 0; i < 8; ++i) {
      const Collected all = collect(generations[i]);
      EXPECT_EQ(all.tokens, model.expected(prompts[i], 120)) << i;
      returned += all.done->usage.returned_tokens;
    }
    EXPECT_EQ(returned > 0, host);
    EXPECT_EQ(settled(*engine).pages_in_use, 0);
    computed[host] = model.rows_computed() - 8 * 159;  // again
  }
  // What is not a whole page is computed again, at most 16 tokens for each time that one gave way.
  EXPECT_GT(computed[0], 2 * computed[1]);
}

// What lies in host memory takes as much room as what is computed: whoever has it waits for that, and loses nothing.
TEST(Engine, NoPrefixIsCutBecauseOthersStillRun) {
  const FakeModel model({.pages = {28}, .host_pages = 60, .sequence_tokens = 28 * 16, .step_seconds = 0.001});
  auto engine = start(model, {.prefill_rows = 64});
  const Tokens prompt = random_prompt(1, 330);
  run(*engine, greedy(prompt, 2));
  auto other = engine->submit(greedy(random_prompt(2, 150), 100));
  while (!std::holds_alternative<TokenEvent>(*other->next())) {
  }
  const int64_t before = model.rows_computed();
  const Collected all = run(*engine, greedy(prompt, 2));
  EXPECT_EQ(all.tokens, model.expected(prompt, 2));
  EXPECT_EQ(all.done->usage.cached_tokens, 320);
  EXPECT_GT(all.done->usage.returned_tokens, 0);
  collect(*other);
  EXPECT_LE(model.rows_computed() - before, 99 + 11);
}

TEST(Engine, WhatIsPoisonedIsForgottenInHostMemoryToo) {
  const FakeModel model({.pages = {20}, .host_pages = 40, .sequence_tokens = 320});
  auto engine = start(model);
  run(*engine, greedy(random_prompt(1, 200), 2));
  run(*engine, greedy(random_prompt(2, 200), 2));
  EXPECT_GT(settled(*engine).host_pages_cached, 0);
  Tokens poisoned = random_prompt(3, 70);
  poisoned[40] = kPoison;
  EXPECT_TRUE(run(*engine, greedy(poisoned, 10)).error);
  const EngineStats stats = settled(*engine);
  EXPECT_EQ(stats.host_pages_cached, 0);
  EXPECT_EQ(stats.pages_cached, 0);
}

TEST(Engine, DeterministicIsEqualWhateverElseRuns) {
  // Kernels differ: only what was computed in the same way is equal.
  const FakeOptions fake{.pages = {120}, .sequence_tokens = 1200, .kernels_differ = true};
  std::vector<Tokens> prompts;
  for (uint32_t i = 0; i < 16; ++i) {
    Tokens prompt = random_prompt(i % 3, 20 + 37 * i);  // some share their beginning
    prompts.push_back(std::move(prompt));
  }
  std::vector<Tokens> alone;
  for (const Tokens& prompt : prompts) {
    const FakeModel model(fake);
    auto engine = start(model, {.deterministic = true});
    alone.push_back(run(*engine, greedy(prompt, 60)).tokens);
  }
  const FakeModel model(fake);
  auto engine = start(model, {.deterministic = true});
  int64_t cached = 0;
  for (int round = 0; round < 2; ++round) {
    std::vector<Generation> generations;
    for (const Tokens& prompt : prompts) generations.push_back(*engine->submit(greedy(prompt, 60)));
    for (size_t i = 0; i < 16; ++i) {
      const Collected all = collect(generations[i]);
      EXPECT_EQ(all.tokens, alone[i]) << i;
      cached += all.done->usage.cached_tokens;
      EXPECT_EQ(all.done->usage.cached_tokens % kPrefillGrid, 0);
    }
  }
  EXPECT_GT(cached, 0);
  EXPECT_LE(model.largest_step(), kPrefillGrid);
  // An answer is prefilled on the next turn: the result is that of a cold start.
  Tokens next = prompts[12];
  next.insert(next.end(), alone[12].begin(), alone[12].end());
  next.insert(next.end(), prompts[12].begin(), prompts[12].end());
  const FakeModel cold_model(fake);
  auto cold = start(cold_model, {.deterministic = true});
  EXPECT_EQ(run(*engine, greedy(next, 60)).tokens, run(*cold, greedy(next, 60)).tokens);
}

TEST(Engine, TheSameSeedDrawsTheSameWhateverElseRuns) {
  const FakeModel model({.pages = {200}});
  auto engine = start(model);
  const auto request = [&](uint32_t i) {
    Request r = greedy(random_prompt(i, 30), 50);
    r.sampling.temperature = 1.5f;
    r.sampling.seed = i;
    return r;
  };
  std::vector<Tokens> alone;
  for (uint32_t i = 0; i < 6; ++i) alone.push_back(run(*engine, request(i)).tokens);
  EXPECT_NE(alone[0], alone[1]);
  std::vector<Generation> generations;
  for (uint32_t i = 0; i < 6; ++i) generations.push_back(*engine->submit(request(i)));
  for (size_t i = 0; i < 6; ++i) EXPECT_EQ(collect(generations[i]).tokens, alone[i]);
}

// ---- ends ----

TEST(Engine, EndsAtTheModelsEndUnlessToldNotTo) {
  const FakeModel model;
  auto engine = start(model);
  // A prompt after which the end token comes soon.
  for (uint32_t seed = 0;; ++seed) {
    const Tokens prompt = random_prompt(seed, 20);
    const Tokens all = model.expected(prompt, 30);
    const auto end = std::ranges::find(all, kEndToken);
    if (end == all.end() || end - all.begin() < 3) continue;
    Request request = greedy(prompt, 30);
    EXPECT_EQ(run(*engine, request).tokens, all);
    request.ignore_end = false;
    const Collected ended = run(*engine, request);
    EXPECT_EQ(ended.tokens, Tokens(all.begin(), end));
    EXPECT_EQ(ended.done->reason, FinishReason::kEnd);
    EXPECT_EQ(ended.done->usage.generated_tokens, end - all.begin() + 1);
    return;
  }
}

TEST(Engine, StopsAtTokensStringsAndLength) {
  const FakeModel model;
  auto engine = start(model);
  const Tokens prompt = random_prompt(12, 20);
  const auto letters = [](const Tokens& prompt, int64_t tokens) {
    Request request = greedy(prompt, tokens);
    request.sampling.logit_bias = {{kHalfToken, -100.0f}};
    return request;
  };
  const Collected all = run(*engine, letters(prompt, 40));
  ASSERT_EQ(all.text.size(), 40u);  // each token is a letter

  Request request = letters(prompt, 40);
  request.stop_tokens = {all.tokens[9]};
  Collected stopped = run(*engine, request);
  const auto first = std::ranges::find(all.tokens, all.tokens[9]) - all.tokens.begin();
  EXPECT_EQ(stopped.tokens.size(), static_cast<size_t>(first));
  EXPECT_EQ(stopped.done->reason, FinishReason::kStopToken);

  request = letters(prompt, 40);
  request.stop_strings = {"no such text", all.text.substr(10, 3)};
  stopped = run(*engine, request);
  EXPECT_EQ(stopped.text, all.text.substr(0, all.text.find(request.stop_strings[1])));
  EXPECT_EQ(stopped.done->reason, FinishReason::kStopString);
  EXPECT_EQ(stopped.tokens, Tokens(all.tokens.begin(), all.tokens.begin() + 13));
  EXPECT_EQ(stopped.done->usage.generated_tokens, 13);

  // Found with the last token that is allowed.
  request.max_tokens = 13;
  stopped = run(*engine, request);
  EXPECT_EQ(stopped.done->reason, FinishReason::kStopString);
  EXPECT_EQ(stopped.text, all.text.substr(0, 10));

  // Held back at the end, because it might have become a stop string.
  request.max_tokens = 12;
  stopped = run(*engine, request);
  EXPECT_EQ(stopped.done->reason, FinishReason::kLength);
  EXPECT_EQ(stopped.text, all.text.substr(0, 12));
  EXPECT_EQ(stopped.done->text, all.text.substr(10, 2));

  // The row that was computed too much left nothing behind.
  EXPECT_EQ(run(*engine, letters(prompt, 40)).tokens, all.tokens);
  EXPECT_EQ(settled(*engine).pages_in_use, 0);
}

TEST(Engine, SaysWhenTheContextIsFull) {
  const FakeModel model({.pages = {6}, .sequence_tokens = 90});
  auto engine = start(model);
  const Tokens prompt = random_prompt(1, 50);
  const Collected all = run(*engine, greedy(prompt, -1));
  EXPECT_EQ(all.done->reason, FinishReason::kContextFull);
  EXPECT_EQ(all.tokens, model.expected(prompt, 40));
  EXPECT_EQ(run(*engine, greedy(random_prompt(2, 89), -1)).tokens.size(), 1u);
  EXPECT_EQ(run(*engine, greedy(random_prompt(2, 90), 0)).tokens.size(), 0u);
}

TEST(Engine, TextIsValidUtf8WhateverComes) {
  const FakeModel model;
  auto engine = start(model);
  Request request = greedy(random_prompt(1, 5), 3);
  request.sampling.logit_bias = {{kHalfToken, 100.0f}};
  const Collected all = run(*engine, request);
  EXPECT_EQ(all.tokens, Tokens(3, kHalfToken));
  EXPECT_EQ(all.events[0].text, "");
  EXPECT_EQ(all.text, "\xEF\xBF\xBD\xEF\xBF\xBD\xEF\xBF\xBD");
}

TEST(Engine, MaxTokensZeroOnlyReadsThePrompt) {
  const FakeModel model;
  auto engine = start(model);
  const Collected all = run(*engine, greedy(random_prompt(1, 70), 0));
  EXPECT_EQ(all.tokens.size(), 0u);
  EXPECT_EQ(all.done->reason, FinishReason::kLength);
  EXPECT_GT(all.done->usage.prefill_seconds, 0);
  EXPECT_EQ(run(*engine, greedy(random_prompt(1, 70), 0)).done->usage.cached_tokens, 64);
}

// ---- logits and log-probabilities ----

TEST(Engine, GivesTheLogitsOfEveryPromptPosition) {
  for (bool deterministic : {false, true}) {
    const FakeModel model;
    auto engine = start(model, {.deterministic = deterministic});
    const Tokens prompt = random_prompt(5, 300);
    for (int round = 0; round < 2; ++round) {  // never from the cache
      Request request = greedy(prompt, 0);
      request.prompt_logits = true;
      auto other = engine->submit(greedy(random_prompt(6, 20), 60));
      const Collected all = run(*engine, request);
      ASSERT_EQ(all.prompt_logits_rows, 300);
      for (size_t i = 0; i < 300; ++i) {
        const auto row = all.prompt_logits.begin() + static_cast<int64_t>(i) * 61;
        ASSERT_EQ(std::vector<float>(row, row + 61),
                  model.expected_logits(Tokens(prompt.begin(), prompt.begin() + static_cast<int64_t>(i) + 1)));
      }
      EXPECT_EQ(collect(*other).tokens, model.expected(random_prompt(6, 20), 60));
    }
  }
}

TEST(Engine, AReaderThatIsSlowHoldsItsLogitsUpAndNothingElse) {
  const FakeModel model;
  auto engine = start(model);
  Request request = greedy(random_prompt(5, 500), 0);
  request.prompt_logits = true;
  auto slow = engine->submit(request);
  run(*engine, greedy(random_prompt(6, 20), 20));
  std::this_thread::sleep_for(std::chrono::milliseconds(20));
  EXPECT_LE(model.rows_computed(), 20 + 20 + 3 * 64);
  EXPECT_EQ(collect(*slow).prompt_logits_rows, 500);
}

TEST(Engine, LogprobsAreThoseOfThePlainModel) {
  const FakeModel model;
  auto engine = start(model);
  const Tokens prompt = random_prompt(5, 20);
  Request request = greedy(prompt, 4);
  request.top_logprobs = 3;
  request.sampling.logit_bias = {{7, 50.0f}};
  const Collected all = run(*engine, request);
  EXPECT_EQ(all.tokens, Tokens(4, 7));
  std::vector<float> logits = model.expected_logits(prompt);
  double sum = 0;
  for (float logit : logits) sum += std::exp(logit);
  const auto& got = all.events[0].logprobs;
  ASSERT_EQ(got.size(), 4u);
  EXPECT_EQ(got[0].token, 7);
  EXPECT_NEAR(got[0].logprob, logits[7] - std::log(sum), 1e-4);
  for (size_t i = 1; i <= 3; ++i) {
    const auto best = std::ranges::max_element(logits);
    EXPECT_EQ(got[i].token, best - logits.begin());
    EXPECT_NEAR(got[i].logprob, *best - std::log(sum), 1e-4);
    *best = -100;
  }
  request.top_logprobs = -1;
  EXPECT_TRUE(run(*engine, request).events[0].logprobs.empty());
}

// ---- failures ----

TEST(Engine, LogitsThatAreNoNumbersFailTheRequestOnly) {
  const FakeModel model;
  auto engine = start(model);
  auto healthy = engine->submit(greedy(random_prompt(1, 20), 50));
  Tokens poisoned = random_prompt(2, 70);
  poisoned[40] = kPoison;
  const Collected bad = run(*engine, greedy(poisoned, 10));
  ASSERT_TRUE(bad.error);
  EXPECT_EQ(bad.error->code, ErrorCode::kInternal);
  EXPECT_NE(bad.error->message.find("position 70"), std::string::npos) << bad.error->message;
  EXPECT_EQ(collect(*healthy).tokens, model.expected(random_prompt(1, 20), 50));
  const EngineStats stats = settled(*engine);
  EXPECT_EQ(stats.pages_in_use, 0);
  // Nothing of it was kept.
  Tokens begins_alike(poisoned.begin(), poisoned.begin() + 64);
  begins_alike[40] = 1;
  EXPECT_EQ(run(*engine, greedy(begins_alike, 5)).done->usage.cached_tokens, 0);
}

TEST(Engine, ADeviceErrorFailsTheStepAndTheEngineLivesOn) {
  FakeModel model;
  auto engine = start(model);
  const Tokens prompt = random_prompt(1, 20);
  model.fail_next_launch(ErrorCode::kIo);
  Collected all = run(*engine, greedy(prompt, 5));
  ASSERT_TRUE(all.error);
  EXPECT_EQ(all.error->code, ErrorCode::kIo);
  EXPECT_EQ(all.error->message, "run a step of 20 rows: the device did not start");
  model.fail_next_wait(ErrorCode::kInternal);
  all = run(*engine, greedy(prompt, 5));
  ASSERT_TRUE(all.error);
  EXPECT_EQ(all.error->message, "run a step of 20 rows: the device fell off the bus");
  EXPECT_EQ(run(*engine, greedy(prompt, 5)).tokens, model.expected(prompt, 5));
  EXPECT_EQ(settled(*engine).pages_in_use, 0);
}

TEST(Engine, PlansThatDoNotFitMakeChunksSmaller) {
  FakeModel model;
  model.limit_recorded_rows(128);
  auto engine = start(model, {.prefill_rows = 512});
  const Tokens prompt = random_prompt(1, 500);
  EXPECT_EQ(run(*engine, greedy(prompt, 5)).tokens, model.expected(prompt, 5));
  EXPECT_EQ(model.largest_step(), 128);
}

TEST(Engine, RefusesImpossibleRequests) {
  const FakeModel model({.sequence_tokens = 100});
  auto engine = start(model);
  const auto message = [&](Request request) {
    auto result = engine->submit(std::move(request));
    EXPECT_FALSE(result);
    EXPECT_EQ(result.error().code, ErrorCode::kUsage);
    return result.error().message;
  };
  const Request fine = greedy({1, 2}, 5);
  Request r = fine;
  r.prompt = {};
  EXPECT_EQ(message(r), "the prompt is empty; it must have at least one token");
  r.prompt = Tokens(100, 1);
  EXPECT_EQ(
      message(r),
      "the prompt has 100 tokens, but the context takes 99; a shorter prompt would work, or a larger context (-c) "
      "if the model was trained for one");
  r.prompt = {1, 61};
  EXPECT_EQ(message(r), "the prompt has token 61; the model's tokens are 0 to 60");
  r.prompt = {-1};
  EXPECT_NE(message(r).find("token -1"), std::string::npos);
  r = fine;
  r.max_tokens = -2;
  EXPECT_NE(message(r).find("max_tokens is -2"), std::string::npos);
  r.max_tokens = std::numeric_limits<int64_t>::max();  // as much as fits, not an overflow
  auto all = engine->submit(std::move(r));
  ASSERT_TRUE(all);
  while (auto event = all->next()) {
    if (auto* done = std::get_if<Done>(&*event)) {
      EXPECT_EQ(done->reason, FinishReason::kContextFull);
    }
  }
  r = fine;
  r.top_logprobs = 1001;
  EXPECT_NE(message(r).find("top_logprobs"), std::string::npos);
  r = fine;
  r.stop_strings = {""};
  message(r);
  r = fine;
  r.sampling.top_p = 1.5f;
  EXPECT_EQ(message(r), "top_p is 1.5; it must be from 0 to 1");
}

TEST(Engine, RefusesImpossibleOptions) {
  const FakeModel model;
  for (const EngineOptions& options :
       {EngineOptions{.max_sequences = 0}, EngineOptions{.max_sequences = 65}, EngineOptions{.prefill_rows = 0},
        EngineOptions{.prefill_rows = 2049}, EngineOptions{.stall_seconds = 0}}) {
    auto engine = make_engine(model.engine_model(), options, nullptr);
    ASSERT_FALSE(engine);
    EXPECT_EQ(engine.error().code, ErrorCode::kUsage);
  }
}

// ---- memory ----

int64_t resident_bytes() {
  std::ifstream statm("/proc/self/statm");
  int64_t total = 0;
  int64_t resident = 0;
  statm >> total >> resident;
  return resident * sysconf(_SC_PAGESIZE);
}

TEST(Engine, FiveHundredTurnsDoNotGrow) {
#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
  GTEST_SKIP() << "sanitizers keep memory of their own";
#endif
  const FakeModel model({.pages = {64}, .sequence_tokens = 1024});
  auto engine = start(model);
  std::mt19937 random(1);
  int64_t settled_bytes = 0;
  Tokens conversation;
  for (int turn = 0; turn < 500; ++turn) {
    if (conversation.size() > 700) conversation.clear();
    const Tokens more = random_prompt(random(), 20 + random() % 80);
    conversation.insert(conversation.end(), more.begin(), more.end());
    Request request = greedy(conversation, 1 + static_cast<int64_t>(random() % 60));
    request.sampling = {.top_k = 20, .temperature = 1, .seed = random()};
    request.stop_strings = {"abc"};
    const Collected all = run(*engine, request);
    conversation.insert(conversation.end(), all.tokens.begin(), all.tokens.end());
    if (turn == 100) settled_bytes = resident_bytes();
  }
  EXPECT_LT(resident_bytes() - settled_bytes, 1 << 20);
}

TEST(Engine, AShortPromptDoesNotWaitForALongOne) {
  const FakeModel model({.step_seconds = 0.002});
  auto engine = start(model, {.prefill_rows = 16});
  auto longer = engine->submit(greedy(random_prompt(1, 480), 1));
  ASSERT_TRUE(std::holds_alternative<PromptProgress>(*longer->next()));
  Generation shorter = *engine->submit(greedy(random_prompt(2, 40), 1));
  EXPECT_EQ(collect(shorter).tokens, model.expected(random_prompt(2, 40), 1));
  int64_t done = 0;  // of the long prompt so far
  while (auto event = longer->next_within(0)) done = std::get<PromptProgress>(*event).done;
  EXPECT_LT(done, 240);
  EXPECT_EQ(collect(*longer).tokens, model.expected(random_prompt(1, 480), 1));
}

// Keys take most of the time of a deep row: chunks get as small as the answers of others want them to be. So does the
// first chunk of a prompt that goes on deep in a cached one, whatever was read before it.
TEST(Engine, ALongPromptLeavesNoGapInTheAnswersOfOthers) {
  const FakeModel model({.step_seconds = 1e-3, .row_seconds = 4e-3, .key_seconds = 40e-6});
  auto engine = start(model);
  auto answer = engine->submit(greedy(random_prompt(1, 20), 400));
  ASSERT_TRUE(std::holds_alternative<PromptProgress>(*answer->next()));
  Tokens prompt = random_prompt(2, 300);
  EXPECT_TRUE(run(*engine, greedy(prompt, 1)).done);
  EXPECT_TRUE(run(*engine, greedy(random_prompt(3, 40), 1)).done);
  for (const int32_t token : random_prompt(4, 40)) prompt.push_back(token);
  EXPECT_EQ(run(*engine, greedy(prompt, 1)).done->usage.cached_tokens, 288);
  answer->cancel();
  EXPECT_EQ(collect(*answer).done->reason, FinishReason::kCancelled);  // it went on all the time
  EXPECT_GT(model.longest_step_seconds(), 0.25);
  EXPECT_LT(model.longest_step_seconds(), 0.5);
}

// Answers keep a share of their speed while a prompt is read, and the prompt the rest of the time.
TEST(Engine, ALongPromptLeavesAnswersTheirShare) {
  const FakeModel model({.pages = {200}, .sequence_tokens = 2000, .step_seconds = 4e-3, .row_seconds = 1e-3});
  auto engine = start(model);
  auto answer = engine->submit(greedy(random_prompt(1, 20), 1900));
  for (int i = 0; i < 5; ++i) ASSERT_TRUE(answer->next());
  const double before = model.decode_step_seconds();
  const Collected prompt = run(*engine, greedy(random_prompt(2, 1500), 1));
  ASSERT_TRUE(prompt.done);
  const double share = (model.decode_step_seconds() - before) / prompt.done->usage.prefill_seconds;
  EXPECT_GT(share, kDecodeShare * 0.7);
  EXPECT_LT(share, kDecodeShare * 1.2);
  answer->cancel();
  EXPECT_EQ(collect(*answer).done->reason, FinishReason::kCancelled);
}

// Chunks that no answer waited for are not charged to those that follow.
TEST(Engine, AChunkAloneOwesNothing) {
  const FakeModel model({.pages = {200}, .sequence_tokens = 2000, .step_seconds = 4e-3, .row_seconds = 1e-3});
  auto engine = start(model);
  Generation longer = *engine->submit(greedy(random_prompt(1, 1200), 1));
  Generation shorter = *engine->submit(greedy(random_prompt(2, 400), 400));
  std::optional<Event> event = shorter.next();
  while (event && !std::holds_alternative<TokenEvent>(*event)) event = shorter.next();
  while (longer.next_within(0)) {
  }
  const double before = model.decode_step_seconds();
  EXPECT_TRUE(longer.next());
  EXPECT_LT(model.decode_step_seconds() - before, 0.05);  // 0.4 s of a chunk would owe 0.17 s of answers
  EXPECT_TRUE(collect(longer).done);
  shorter.cancel();
}

// Nobody waits long for the end of a chunk of a slow model.
TEST(Engine, AChunkAloneHasALimit) {
  const FakeModel model({.row_seconds = 8e-3});
  auto engine = start(model);
  EXPECT_TRUE(run(*engine, greedy(random_prompt(1, 20), 1)).done);
  EXPECT_TRUE(run(*engine, greedy(random_prompt(2, 400), 1)).done);
  EXPECT_LT(model.longest_step_seconds(), kLoneStepSeconds * 1.1);
  EXPECT_GE(model.largest_step(), 128);
}

// Many answers beside it do not make a small chunk tell how fast large ones are.
TEST(Engine, ASmallChunkBesideManyAnswersDoesNotCutUpTheNextPrompt) {
  const FakeModel model({.pages = {400}, .step_seconds = 0.05});
  auto engine = start(model, {.max_sequences = 32});
  std::vector<Generation> answers;
  for (uint32_t i = 0; i < 16; ++i) answers.push_back(*engine->submit(greedy(random_prompt(i, 40), 200)));
  for (Generation& answer : answers) {
    while (!std::holds_alternative<TokenEvent>(*answer.next())) {
    }
  }
  EXPECT_TRUE(run(*engine, greedy(random_prompt(20, 3), 1)).done);
  EXPECT_TRUE(run(*engine, greedy(random_prompt(21, 150), 1)).done);
  EXPECT_EQ(model.largest_step(), 150 + 16);
}

// A decode plan reads all keys again for each row: where they are many, the last rows of a prompt run in a prefill
// plan.
TEST(Engine, FewRowsDeepInAPromptRunInAPrefillPlan) {
  const FakeModel model({.pages = {700}, .sequence_tokens = 9000});
  auto engine = start(model);
  Tokens prompt = random_prompt(1, 8192);
  EXPECT_TRUE(run(*engine, greedy(prompt, 1)).done);
  for (const int32_t token : random_prompt(2, 14)) prompt.push_back(token);
  EXPECT_EQ(run(*engine, greedy(prompt, 1)).done->usage.computed_tokens, 14);
  EXPECT_EQ(model.largest_decode_step(), 0);
  EXPECT_TRUE(run(*engine, greedy(random_prompt(3, 14), 1)).done);
  EXPECT_EQ(model.largest_decode_step(), 14);
}

// ---- cancelling ----

TEST(Engine, CancelTakesEffectWithinAStep) {
  const FakeModel model({.step_seconds = 0.005});
  auto engine = start(model);
  auto generation = engine->submit(greedy(random_prompt(1, 20), 400));
  for (int tokens = 0; tokens < 5;) tokens += std::holds_alternative<TokenEvent>(*generation->next());
  generation->cancel();
  const Collected rest = collect(*generation);
  EXPECT_EQ(rest.done->reason, FinishReason::kCancelled);
  EXPECT_LE(rest.tokens.size(), 3u);
  EXPECT_EQ(settled(*engine).pages_in_use, 0);
}

TEST(Engine, ARequestThatNobodyReadsIsCancelled) {
  const FakeModel model({.step_seconds = 0.002});
  auto engine = start(model, {.max_sequences = 1});
  {
    auto dropped = engine->submit(greedy(random_prompt(1, 20), 400));
    auto queued = engine->submit(greedy(random_prompt(2, 20), 400));
  }
  EXPECT_EQ(run(*engine, greedy(random_prompt(3, 5), 2)).tokens.size(), 2u);
  EXPECT_LT(settled(*engine).steps, 30);
}

TEST(Engine, EndingTheEngineEndsItsRequests) {
  const FakeModel model({.step_seconds = 0.002});
  auto engine = start(model, {.max_sequences = 1});
  auto running = engine->submit(greedy(random_prompt(1, 20), 400));
  auto queued = engine->submit(greedy(random_prompt(2, 20), 400));
  engine.reset();
  EXPECT_EQ(collect(*running).done->reason, FinishReason::kCancelled);
  EXPECT_EQ(collect(*queued).done->reason, FinishReason::kCancelled);
  running->cancel();
}

TEST(Engine, NextWithinGivesUpInTime) {
  const FakeModel model({.step_seconds = 0.05});
  auto engine = start(model);
  auto generation = engine->submit(greedy(random_prompt(1, 20), 2));
  EXPECT_FALSE(generation->next_within(0.001));
  EXPECT_FALSE(generation->next_within(0));
  EXPECT_FALSE(generation->next_within(-1));
  EXPECT_FALSE(generation->next_within(std::numeric_limits<double>::quiet_NaN()));
  EXPECT_FALSE(generation->finished());
  EXPECT_TRUE(generation->next_within(1e300));
  EXPECT_TRUE(collect(*generation).done);
}

// The first step shows how fast steps are; from then on the engine stalls after `seconds`.
std::unique_ptr<Engine> start_impatient(const FakeModel& model, double seconds) {
  auto engine = start(model, {.max_sequences = 1, .prefill_rows = 32, .stall_seconds = seconds});
  run(*engine, greedy(random_prompt(1, 20), 2));
  return engine;
}

TEST(Engine, AStallEndsWhatWaitsAndTheEngineGoesOnAfterIt) {
  FakeModel model;
  auto engine = start_impatient(model, 0.2);
  model.hang();
  auto running = engine->submit(greedy(random_prompt(2, 20), 5));
  EXPECT_FALSE(running->next_within(0.05));
  EXPECT_FALSE(engine->stats().stalled);
  auto queued = engine->submit(greedy(random_prompt(3, 20), 5));
  auto clearing = std::async(std::launch::async, [&] { return engine->clear_cache(); });
  for (Generation* waits : {&*running, &*queued}) {
    const Collected all = collect(*waits);
    ASSERT_TRUE(all.error);
    EXPECT_EQ(all.error->code, ErrorCode::kStalled);
    EXPECT_FALSE(waits->next());
  }
  EXPECT_EQ(clearing.get().error().code, ErrorCode::kStalled);
  const EngineStats stats = engine->stats();
  EXPECT_TRUE(stats.stalled);
  EXPECT_GT(stats.quiet_seconds, 0.2);
  EXPECT_EQ(stats.task, std::string_view("run a step"));
  EXPECT_EQ(engine->submit(greedy(random_prompt(4, 20), 5)).error().code, ErrorCode::kStalled);
  EXPECT_EQ(engine->save_cache("/dev/null").error().code, ErrorCode::kStalled);

  const int64_t rows = model.rows_computed();
  model.release();
  while (engine->stats().stalled) std::this_thread::yield();
  const Tokens prompt = random_prompt(5, 20);
  EXPECT_EQ(run(*engine, greedy(prompt, 5)).tokens, model.expected(prompt, 5));
  EXPECT_EQ(model.rows_computed() - rows, 20 + 4);  // and nothing more of those that were given up
  EXPECT_EQ(settled(*engine).pages_in_use, 0);
  // Nobody waited any longer for the cache to be cleared.
  EXPECT_EQ(run(*engine, greedy(random_prompt(1, 20), 2)).done->usage.cached_tokens, 16);
}

TEST(Engine, WaitingForWorkIsNoStall) {
  FakeModel model({.step_seconds = 0.01});
  auto engine = start_impatient(model, 0.1);
  std::this_thread::sleep_for(std::chrono::milliseconds(250));
  EXPECT_EQ(engine->stats().quiet_seconds, 0);
  auto generation = engine->submit(greedy(random_prompt(2, 20), 5));
  ASSERT_TRUE(generation);
  EXPECT_FALSE(engine->stats().stalled);
  EXPECT_TRUE(collect(*generation).done);
  // Nor is waiting for a reader.
  Request request = greedy(random_prompt(3, 400), 1);
  request.prompt_logits = true;
  auto slow = engine->submit(std::move(request));
  ASSERT_TRUE(slow);
  std::this_thread::sleep_for(std::chrono::milliseconds(250));
  EXPECT_FALSE(engine->stats().stalled);
  EXPECT_EQ(collect(*slow).prompt_logits_rows, 400);
}

// A processor that takes this long for a row is slow, not stalled, when a chunk of many takes longer than the limit.
TEST(Engine, LongStepsOfASlowDeviceAreNoStall) {
  const FakeModel model({.row_seconds = 0.01});
  auto engine = start_impatient(model, 0.1);
  EXPECT_TRUE(run(*engine, greedy(random_prompt(2, 32), 1)).done);
  EXPECT_GT(model.longest_step_seconds(), 0.3);
}

TEST(Engine, ALongSaveIsNoStall) {
  const FakeModel model({.page_seconds = 0.03});
  auto engine = start_impatient(model, 0.1);
  run(*engine, greedy(random_prompt(2, 320), 1));
  const std::string path = testing::TempDir() + "engine_test." + std::to_string(getpid());
  auto saved = engine->save_cache(path);
  ASSERT_TRUE(saved) << saved.error().message;
  EXPECT_GE(*saved, 320);
  std::remove(path.c_str());
}

TEST(Engine, PlansAreRecordedBeforeTheFirstRequest) {
  FakeModel model;
  auto engine = start(model);
  model.limit_recorded_rows(0);
  for (int64_t length : {1, 20, 64, 100, 400}) {
    EXPECT_TRUE(run(*engine, greedy(random_prompt(1, length), 2)).done) << length;
  }
}

// Several threads submit, read some and go away at random, while pages are scarce; whatever is read to its end is
// right.
TEST(Engine, RandomCancelsLeaveNoPageInUse) {
  for (bool deterministic : {false, true}) {
    const FakeModel model({.pages = {40}, .sequence_tokens = 300, .own_thread = true});
    auto engine = start(model, {.max_sequences = 6, .prefill_rows = 64, .deterministic = deterministic});
    std::atomic<int> completed{0};
    std::vector<std::thread> threads;
    for (uint32_t t = 0; t < 4; ++t) {
      threads.emplace_back([&, t] {
        std::mt19937 random(t);
        for (int i = 0; i < 60; ++i) {
          const Tokens prompt = random_prompt(random() % 4, 1 + random() % 150);
          const int64_t tokens = 1 + random() % 100;
          auto generation = engine->submit(greedy(prompt, tokens));
          switch (random() % 4) {
            case 0:
              break;  // dropped at once
            case 1: {
              for (uint32_t n = random() % 20; n > 0 && generation->next_within(0.01);) --n;
              break;  // dropped in the middle
            }
            case 2: {
              std::thread other([&] { generation->cancel(); });
              const Collected all = collect(*generation);
              other.join();
              EXPECT_TRUE(all.done);
              break;
            }
            default:
              EXPECT_EQ(collect(*generation).tokens, model.expected(prompt, tokens));
              ++completed;
          }
        }
      });
    }
    for (auto& thread : threads) thread.join();
    const EngineStats stats = settled(*engine);
    EXPECT_EQ(stats.pages_in_use, 0);
    EXPECT_EQ(stats.active_sequences, 0);
    EXPECT_EQ(stats.queued_requests, 0);
    EXPECT_LE(stats.pages_cached, 40);
    EXPECT_GT(completed, 20);
    ASSERT_TRUE(engine->clear_cache());
    EXPECT_EQ(engine->stats().pages_cached, 0);
  }
}

}  // namespace
}  // namespace hearth
