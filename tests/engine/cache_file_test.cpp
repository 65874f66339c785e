#include "engine/cache_file.h"

#include <gtest/gtest.h>

#include <unistd.h>

#include <cstdio>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "engine_runs.h"

namespace hearth {
namespace {

class CacheFile : public testing::Test {
 protected:
  void SetUp() override { path_ = testing::TempDir() + "cache_file_test." + std::to_string(getpid()); }
  void TearDown() override { std::filesystem::remove(path_); }

  static std::unique_ptr<Engine> start(const FakeModel& model) {
    auto engine = make_engine(model.engine_model(), {.prefill_rows = 32}, nullptr);
    EXPECT_TRUE(engine) << (engine ? "" : engine.error().message);
    return std::move(engine).value();
  }
  // Tokens of the prompt that were found in the cache; the answer must be right.
  static int64_t cached(const FakeModel& model, Engine& engine, const Tokens& tokens) {
    auto generation = engine.submit({.prompt = tokens, .max_tokens = 3, .ignore_end = true});
    EXPECT_TRUE(generation);
    const Collected result = collect(*generation);
    EXPECT_EQ(result.tokens, model.expected(tokens, 3));
    return result.done->usage.cached_tokens;
  }
  std::string content() const {
    std::ifstream in(path_, std::ios::binary);
    std::ostringstream out;
    out << in.rdbuf();
    return out.str();
  }
  void write(const std::string& bytes) const { std::ofstream(path_, std::ios::binary) << bytes; }

  std::string path_;
};

TEST_F(CacheFile, WhatWasSavedIsThereInTheNextEngine) {
  const FakeOptions options{.groups = {{.layers = 1, .kv_heads = 1, .head_dim = 1},
                                       {.layers = 1, .kv_heads = 1, .head_dim = 1, .window = 40}},
                            .pages = {64, 64}};
  const FakeModel model(options);
  Tokens first = random_prompt(1, 100), second = first;
  second.resize(50);
  for (int32_t token : random_prompt(2, 60)) second.push_back(token);
  int64_t saved = 0;
  {
    auto engine = start(model);
    cached(model, *engine, first);
    cached(model, *engine, second);
    auto tokens = engine->save_cache(path_);
    ASSERT_TRUE(tokens) << tokens.error().message;
    saved = *tokens;
  }
  const FakeModel fresh(options);
  auto engine = start(fresh);
  auto restored = engine->restore_cache(path_);
  ASSERT_TRUE(restored) << restored.error().message;
  EXPECT_EQ(*restored, saved);
  EXPECT_EQ(*engine->restore_cache(path_), 0);  // it is all there
  EXPECT_GT(engine->stats().pages_cached, 0);
  EXPECT_EQ(cached(fresh, *engine, first), 96);
  EXPECT_EQ(cached(fresh, *engine, second), 96);
}

TEST_F(CacheFile, WhatHasNoRoomIsLeftOut) {
  const FakeModel model;
  {
    auto engine = start(model);
    for (uint32_t seed = 0; seed < 5; ++seed) cached(model, *engine, random_prompt(seed, 160));
    ASSERT_TRUE(engine->save_cache(path_));
  }
  const FakeModel small({.pages = {24}, .sequence_tokens = 200});
  auto engine = start(small);
  auto restored = engine->restore_cache(path_);
  ASSERT_TRUE(restored) << restored.error().message;
  EXPECT_EQ(*restored, 24 * 16);
  EXPECT_GE(cached(small, *engine, random_prompt(4, 160)), 144);  // the latest
}

TEST_F(CacheFile, PagesInHostMemoryAreSavedAndRestored) {
  const FakeOptions options{.pages = {24}, .host_pages = 60, .sequence_tokens = 200};
  {
    const FakeModel model(options);
    auto engine = start(model);
    for (uint32_t seed = 0; seed < 5; ++seed) cached(model, *engine, random_prompt(seed, 160));
    EXPECT_GE(engine->stats().host_pages_cached, 50 - 24);
    EXPECT_EQ(*engine->save_cache(path_), 50 * 16);
  }
  FakeModel fresh(options);
  {
    auto engine = start(fresh);
    EXPECT_EQ(*engine->restore_cache(path_), 50 * 16);
    EXPECT_EQ(engine->stats().host_pages_cached, 50 - 24);
    for (uint32_t seed = 0; seed < 5; ++seed) EXPECT_EQ(cached(fresh, *engine, random_prompt(seed, 160)), 144);
  }
  auto engine = start(fresh);
  fresh.fail_copy_after(5);
  EXPECT_FALSE(engine->restore_cache(path_));
  EXPECT_EQ(engine->stats().pages_cached, 5);
  for (uint32_t seed = 0; seed < 5; ++seed) cached(fresh, *engine, random_prompt(seed, 160));
}

TEST_F(CacheFile, OnlyItsOwnModelTakesIt) {
  const FakeModel model;
  auto engine = start(model);
  cached(model, *engine, random_prompt(1, 100));
  ASSERT_TRUE(engine->save_cache(path_));
  EngineModel other = model.engine_model();
  other.identity = "another";
  engine.reset();
  engine = *make_engine(other, {}, nullptr);
  auto restored = engine->restore_cache(path_);
  ASSERT_FALSE(restored);
  EXPECT_EQ(restored.error().code, ErrorCode::kInvalidInput);
  EXPECT_NE(restored.error().message.find("another model"), std::string::npos);
  EXPECT_EQ(engine->restore_cache(path_ + ".no").error().code, ErrorCode::kNotFound);
  write("hello");
  EXPECT_NE(engine->restore_cache(path_).error().message.find("no cache file"), std::string::npos);
  EXPECT_FALSE(engine->save_cache("/no/such/folder/file"));
}

// Whatever is changed or cut off: an error or nothing that would change an answer.
TEST_F(CacheFile, NothingElseIsOverwritten) {
  const FakeModel model;
  auto engine = start(model);
  cached(model, *engine, random_prompt(1, 100));
  write("my only copy");
  const auto saved = engine->save_cache(path_);
  ASSERT_FALSE(saved);
  EXPECT_EQ(saved.error().code, ErrorCode::kInvalidInput);
  EXPECT_EQ(content(), "my only copy");
  write("");
  EXPECT_TRUE(engine->save_cache(path_));
  EXPECT_TRUE(engine->save_cache(path_));  // its own
}

TEST_F(CacheFile, DamageIsNoticed) {
  const FakeModel model;
  const Tokens tokens = random_prompt(1, 100);
  {
    auto engine = start(model);
    cached(model, *engine, tokens);
    ASSERT_TRUE(engine->save_cache(path_));
  }
  const std::string good = content();
  std::mt19937 random(1);
  for (int round = 0; round < 400; ++round) {
    std::string bad = good;
    if (round % 2) {
      bad.resize(random() % bad.size());
    } else {
      bad[random() % bad.size()] ^= static_cast<char>(1 + random() % 255);
    }
    write(bad);
    const FakeModel fresh;
    auto engine = start(fresh);
    auto restored = engine->restore_cache(path_);
    EXPECT_FALSE(restored) << round;
    cached(fresh, *engine, tokens);
  }
}

}  // namespace
}  // namespace hearth
