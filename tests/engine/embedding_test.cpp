// Embeddings of prompts: of the right hidden states, whatever else runs and whatever is cached.
#include "engine/embedding.h"

#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <numeric>
#include <random>

#include "engine_runs.h"
#include "hearth/model.h"
#include "support/tiny_file.h"

namespace hearth {
namespace {

using Vector = std::vector<float>;

Request embedding_of(Tokens prompt) { return {.prompt = std::move(prompt), .max_tokens = 0, .embedding = true}; }

void expect_near(const Vector& got, const Vector& expected, const std::string& what) {
  ASSERT_EQ(got.size(), expected.size()) << what;
  for (size_t i = 0; i < got.size(); ++i) EXPECT_NEAR(got[i], expected[i], 1e-5) << what << ", " << i;
}

constexpr Pooling kPoolings[] = {Pooling::kLast, Pooling::kMean};

TEST(Embedding, IsOfTheHiddenStatesThatTheModelPools) {
  for (Pooling pooling : kPoolings) {
    for (bool deterministic : {false, true}) {
      for (int64_t rows : {1, 7, 64, 512}) {
        const FakeModel model({.pooling = pooling});
        auto engine = start(model, {.prefill_rows = rows, .deterministic = deterministic});
        for (int64_t length : {1, 2, 16, 17, 64, 65, 200}) {
          const Tokens prompt = random_prompt(static_cast<uint32_t>(length), length);
          const Collected all = run(*engine, embedding_of(prompt));
          expect_near(all.embedding, model.expected_embedding(prompt), fmt::format("{} tokens, {} rows", length, rows));
          EXPECT_NEAR(std::inner_product(all.embedding.begin(), all.embedding.end(), all.embedding.begin(), 0.0), 1,
                      1e-6);
          EXPECT_TRUE(all.tokens.empty());
          ASSERT_TRUE(all.done);
          EXPECT_EQ(all.done->reason, FinishReason::kLength);
          EXPECT_EQ(all.done->usage.prompt_tokens, length);
          EXPECT_EQ(all.done->usage.generated_tokens, 0);
          EXPECT_GT(all.done->usage.prefill_seconds, 0);
        }
      }
    }
  }
}

TEST(Embedding, OfTheLastTokenSharesTheCacheWithAnswers) {
  const FakeModel model;
  auto engine = start(model);
  const Tokens prompt = random_prompt(1, 100);
  run(*engine, greedy(prompt, 10));
  const Collected warm = run(*engine, embedding_of(prompt));
  EXPECT_EQ(warm.done->usage.cached_tokens, 96);
  expect_near(warm.embedding, model.expected_embedding(prompt), "after an answer");
  Tokens longer = prompt;
  for (int32_t token : random_prompt(2, 100)) longer.push_back(token);
  expect_near(run(*engine, embedding_of(longer)).embedding, model.expected_embedding(longer), "longer");
  const Collected answer = run(*engine, greedy(longer, 10));
  EXPECT_EQ(answer.done->usage.cached_tokens, 192);
  EXPECT_EQ(answer.tokens, model.expected(longer, 10));
}

TEST(Embedding, OfAllTokensTakesNoneFromTheCache) {
  const FakeModel model({.pooling = Pooling::kMean});
  auto engine = start(model);
  const Tokens prompt = random_prompt(1, 100);
  run(*engine, greedy(prompt, 10));
  for (int round = 0; round < 2; ++round) {
    const Collected all = run(*engine, embedding_of(prompt));
    EXPECT_EQ(all.done->usage.cached_tokens, 0);
    EXPECT_EQ(all.done->usage.miss, CacheMiss::kUnused);
    expect_near(all.embedding, model.expected_embedding(prompt), "mean");
  }
}

TEST(Embedding, ChangesNoAnswerAndNoAnswerChangesIt) {
  for (Pooling pooling : kPoolings) {
    for (bool deterministic : {false, true}) {
      const FakeModel model({.pages = {400}, .pooling = pooling, .own_thread = true});
      auto engine = start(model, {.prefill_rows = 50, .deterministic = deterministic});
      std::vector<Generation> answers, embeddings;
      for (uint32_t i = 0; i < 5; ++i) answers.push_back(*engine->submit(greedy(random_prompt(i, 10 + 20 * i), 120)));
      for (uint32_t i = 0; i < 9; ++i) {
        embeddings.push_back(*engine->submit(embedding_of(random_prompt(i, 5 + 40 * i))));  // some begin like answers
      }
      for (uint32_t i = 0; i < 9; ++i) {
        const Tokens prompt = random_prompt(i, 5 + 40 * i);
        expect_near(collect(embeddings[i]).embedding, model.expected_embedding(prompt), fmt::format("embedding {}", i));
      }
      for (uint32_t i = 0; i < 5; ++i) {
        EXPECT_EQ(collect(answers[i]).tokens, model.expected(random_prompt(i, 10 + 20 * i), 120)) << i;
      }
      EXPECT_GT(model.most_sequences(), deterministic ? 1 : 5);
    }
  }
}

// A prompt that gave way is read again from its beginning; no hidden state counts twice.
TEST(Embedding, SurvivesPreemption) {
  int64_t again = 0;
  for (Pooling pooling : kPoolings) {
    for (uint32_t round = 0; round < 8; ++round) {
      const FakeModel model({.pages = {24}, .sequence_tokens = 24 * 16, .pooling = pooling});
      auto engine = start(model, {.prefill_rows = 16, .prefix_cache = false});
      std::vector<Generation> answers;
      for (uint32_t i = 0; i < 4; ++i) answers.push_back(*engine->submit(greedy(random_prompt(i, 33 + round), 60)));
      const Tokens prompt = random_prompt(9, 170);
      const Collected all = run(*engine, embedding_of(prompt));
      expect_near(all.embedding, model.expected_embedding(prompt), fmt::format("round {}", round));
      again += pooling == Pooling::kMean ? all.done->usage.computed_tokens - 170 : 0;
      for (uint32_t i = 0; i < 4; ++i) {
        EXPECT_EQ(collect(answers[i]).tokens, model.expected(random_prompt(i, 33 + round), 60));
      }
    }
  }
  EXPECT_GT(again, 0);
}

// As any prompt is: in chunks that become small where rows are slow.
TEST(Embedding, OfALongPromptLeavesNoGapInTheAnswersOfOthers) {
  for (Pooling pooling : kPoolings) {
    const FakeModel model({.step_seconds = 1e-3, .row_seconds = 4e-3, .key_seconds = 40e-6, .pooling = pooling});
    auto engine = start(model);
    auto answer = engine->submit(greedy(random_prompt(1, 20), 400));
    ASSERT_TRUE(std::holds_alternative<PromptProgress>(*answer->next()));
    EXPECT_FALSE(run(*engine, embedding_of(random_prompt(3, 40))).embedding.empty());
    const Tokens prompt = random_prompt(2, 300);
    expect_near(run(*engine, embedding_of(prompt)).embedding, model.expected_embedding(prompt), "long");
    answer->cancel();
    EXPECT_GT(collect(*answer).tokens.size(), 5u);  // it went on all the time
    EXPECT_LT(model.longest_step_seconds(), 0.5);
  }
}

TEST(Embedding, OfAShortPromptDoesNotWaitForALongOne) {
  const FakeModel model({.step_seconds = 0.002});
  auto engine = start(model, {.prefill_rows = 16});
  auto longer = engine->submit(embedding_of(random_prompt(1, 480)));
  ASSERT_TRUE(std::holds_alternative<PromptProgress>(*longer->next()));
  EXPECT_EQ(run(*engine, greedy(random_prompt(2, 40), 1)).tokens, model.expected(random_prompt(2, 40), 1));
  EXPECT_FALSE(run(*engine, embedding_of(random_prompt(3, 40))).embedding.empty());
  int64_t done = 0;  // of the long prompt so far
  while (auto event = longer->next_within(0)) done = std::get<PromptProgress>(*event).done;
  EXPECT_LT(done, 400);
  expect_near(collect(*longer).embedding, model.expected_embedding(random_prompt(1, 480)), "long");
}

TEST(Embedding, CanBeCancelled) {
  for (Pooling pooling : kPoolings) {
    const FakeModel model({.step_seconds = 0.005, .pooling = pooling});
    auto engine = start(model, {.prefill_rows = 16});
    auto generation = engine->submit(embedding_of(random_prompt(1, 480)));
    ASSERT_TRUE(std::holds_alternative<PromptProgress>(*generation->next()));
    generation->cancel();
    const Collected rest = collect(*generation);
    EXPECT_EQ(rest.done->reason, FinishReason::kCancelled);
    EXPECT_TRUE(rest.embedding.empty());
    EXPECT_LT(model.rows_computed(), 100);
  }
}

TEST(Embedding, OfNoNumbersIsAnErrorAndNothingThatItMayHaveReadIsKept) {
  for (Pooling pooling : kPoolings) {
    const FakeModel model({.pooling = pooling});
    auto engine = start(model);
    Tokens prompt = random_prompt(2, 70);
    prompt[40] = kPoison;
    const Tokens beginning(prompt.begin(), prompt.begin() + 40);
    run(*engine, greedy(beginning, 1));
    EXPECT_EQ(run(*engine, greedy(beginning, 1)).done->usage.cached_tokens, 32);
    const Collected bad = run(*engine, embedding_of(prompt));
    ASSERT_TRUE(bad.error);
    EXPECT_EQ(bad.error->code, ErrorCode::kInternal);
    EXPECT_TRUE(bad.embedding.empty());
    EXPECT_EQ(run(*engine, greedy(beginning, 1)).done->usage.cached_tokens, 0);
  }
}

TEST(Embedding, IsRefusedWhereThereIsNone) {
  const auto code = [](const FakeOptions& options, Request request) {
    const FakeModel model(options);
    auto result = start(model)->submit(std::move(request));
    EXPECT_FALSE(result);
    return result.error().code;
  };
  Request request = embedding_of({1, 2, 3});
  EXPECT_EQ(code({.hidden = false}, request), ErrorCode::kUnsupported);
  EXPECT_EQ(code({.pooling = static_cast<Pooling>(2)}, request), ErrorCode::kUnsupported);
  EXPECT_EQ(code({.pooling = static_cast<Pooling>(4)}, request), ErrorCode::kUnsupported);
  request.prompt_logits = true;
  EXPECT_EQ(code({}, request), ErrorCode::kUsage);
  request.prompt_logits = false;
  request.max_tokens = 1;
  EXPECT_EQ(code({}, request), ErrorCode::kUsage);
  request.max_tokens = -1;
  EXPECT_EQ(code({}, request), ErrorCode::kUsage);
  request = embedding_of(Tokens(513, 1));
  EXPECT_EQ(code({}, request), ErrorCode::kUsage);
  // All of the context may be text.
  const FakeModel model;
  EXPECT_FALSE(run(*start(model), embedding_of(Tokens(512, 1))).embedding.empty());
}

// ---- files ----

TEST(Embedding, IsPooledAsTheFileSays) {
  const auto embed = [](std::optional<uint64_t> pooling, Tokens prompt) -> Result<Vector> {
    testing::TinyFile file = testing::tiny_file({});
    if (pooling) file.set("llama.pooling_type", *pooling);
    const testing::TempFile place;
    file.write(place.path());
    HEARTH_ASSIGN(auto model, Model::open(place.path(), {.kv_type = "f32"}));
    EXPECT_EQ(model->info().embedding_width, 64);
    EXPECT_EQ(model->info().makes_embeddings, pooling.has_value());
    HEARTH_ASSIGN(auto engine, Engine::create(model, {}));
    HEARTH_ASSIGN(Generation generation, engine->submit(embedding_of(std::move(prompt))));
    return collect(generation).embedding;
  };
  const Tokens prompt = {5, 90, 17, 4, 200, 3, 77};
  const Result<Vector> last = embed(3, prompt), mean = embed(1, prompt), unsaid = embed({}, prompt),
                       none = embed(0, prompt);
  ASSERT_TRUE(last && mean && unsaid && none);
  EXPECT_EQ(*unsaid, *last);
  EXPECT_EQ(*none, *last);
  // The mean of one is the last.
  EXPECT_NE(*mean, *last);
  const Result<Vector> last_of_one = embed(3, {5}), mean_of_one = embed(1, {5});
  ASSERT_TRUE(last_of_one && mean_of_one);
  EXPECT_EQ(*mean_of_one, *last_of_one);
  for (uint64_t pooling : {2, 4, 9}) {
    const Result<Vector> other = embed(pooling, prompt);
    ASSERT_FALSE(other);
    EXPECT_EQ(other.error().code, ErrorCode::kUnsupported);
    EXPECT_NE(other.error().message.find(fmt::format("pooling_type is {};", pooling)), std::string::npos);
  }
}

TEST(Embedding, OfTextsThatMeanTheSameAreNear) {
  const std::string path = HEARTH_SHARED_DATA "/models/SmolLM2-135M-Instruct.Q4_1.gguf";
  if (!std::filesystem::exists(path)) GTEST_SKIP() << path << " is not here";
  auto model = Model::open(path, {.context_tokens = 1024});
  ASSERT_TRUE(model);
  auto engine = Engine::create(*model, {});
  ASSERT_TRUE(engine);
  const auto embed = [&](const char* text) {
    return run(**engine, embedding_of(*(*model)->text().tokenize(text, true, true))).embedding;
  };
  const auto cosine = [](const Vector& a, const Vector& b) {
    return std::inner_product(a.begin(), a.end(), b.begin(), 0.0);
  };
  const Vector cat = embed("The cat sleeps on the sofa."), kitten = embed("A kitten is sleeping on the couch."),
               bond = embed("The central bank raised its interest rates."),
               bank = embed("Interest rates were raised by the central bank.");
  EXPECT_GT(cosine(cat, kitten), cosine(cat, bond) + 0.02);
  EXPECT_GT(cosine(bond, bank), cosine(cat, bank) + 0.02);
}

}  // namespace
}  // namespace hearth
