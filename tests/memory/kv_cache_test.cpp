#include "memory/kv_cache.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <random>

namespace hearth {
namespace {

using Tokens = std::vector<int32_t>;

Tokens counting(int32_t from, int64_t count) {
  Tokens tokens(static_cast<size_t>(count));
  std::iota(tokens.begin(), tokens.end(), from);
  return tokens;
}

TEST(KvCache, ReusesWholePagesUpToTheLimit) {
  const KvGroupPages groups[] = {{.pages = 8}};
  KvCache cache(groups, 4, true);
  PageTable a = cache.make_table(32);
  const Tokens tokens = counting(0, 14);
  ASSERT_TRUE(cache.extend(a, 14));
  cache.insert(tokens, 4, a);
  const std::vector<int32_t> pages = a.pages[0];
  cache.release(a);
  EXPECT_EQ(cache.stats().cached, 3);  // the half page is not kept
  EXPECT_EQ(cache.stats().in_use, 0);

  PageTable b = cache.make_table(32);
  EXPECT_EQ(cache.adopt_prefix(tokens, 11, 4, b), 8);
  EXPECT_EQ(b.pages[0], (std::vector<int32_t>{pages[0], pages[1]}));
  PageTable c = cache.make_table(32);
  EXPECT_EQ(cache.adopt_prefix(tokens, 14, 8, c), 8);  // grid of two pages
  PageTable d = cache.make_table(32);
  Tokens other = tokens;
  other[5] = 99;
  EXPECT_EQ(cache.adopt_prefix(other, 14, 4, d), 4);
  const PageTable* tables[] = {&b, &c, &d};
  cache.check(tables);
  for (PageTable* table : {&b, &c, &d}) cache.release(*table);
  cache.check({});
}

TEST(KvCache, TakesBackTheOldestFirst) {
  const KvGroupPages groups[] = {{.pages = 6}};
  KvCache cache(groups, 2, true);
  for (int32_t first : {0, 100, 200}) {
    PageTable table = cache.make_table(4);
    ASSERT_TRUE(cache.extend(table, 4));
    cache.insert(counting(first, 4), 2, table);
    cache.release(table);
  }
  PageTable touched = cache.make_table(4);
  EXPECT_EQ(cache.adopt_prefix(counting(0, 4), 4, 2, touched), 4);
  cache.release(touched);
  PageTable table = cache.make_table(6);
  ASSERT_TRUE(cache.extend(table, 6));  // three pages: all of 100.. and the end of 200..
  PageTable probe = cache.make_table(4);
  EXPECT_EQ(cache.adopt_prefix(counting(100, 4), 4, 2, probe), 0);
  EXPECT_EQ(cache.adopt_prefix(counting(200, 4), 4, 2, probe), 2);
  cache.release(probe);
  EXPECT_EQ(cache.adopt_prefix(counting(0, 4), 4, 2, probe), 4);
  cache.release(probe);
  cache.release(table);
  cache.check({});
}

TEST(KvCache, ManySmallRequestsLeaveAConversationAlone) {
  const KvGroupPages groups[] = {{.pages = 256}};
  KvCache cache(groups, 4, true);
  const auto compute = [&](const Tokens& tokens) {
    const auto count = static_cast<int64_t>(tokens.size());
    PageTable table = cache.make_table(count);
    const int64_t cached = cache.adopt_prefix(tokens, count - 1, 4, table);
    EXPECT_TRUE(cache.extend(table, count));
    cache.insert(tokens, 4, table);
    cache.release(table);
    return cached;
  };
  // One long prompt and one short conversation (less than an eighth of the pages) of three turns, then a thousand
  // requests that come once. All begin with the same page, as with a system prompt.
  const auto prompt = [](int32_t from, int64_t count) {
    Tokens tokens = counting(0, 4), rest = counting(from, count);
    tokens.insert(tokens.end(), rest.begin(), rest.end());
    return tokens;
  };
  EXPECT_EQ(compute(prompt(1000, 480)), 0);
  EXPECT_EQ(compute(prompt(2000, 16)), 4);
  EXPECT_EQ(compute(prompt(2000, 24)), 20);
  EXPECT_EQ(compute(prompt(2000, 32)), 28);
  for (int32_t i = 0; i < 1000; ++i) EXPECT_EQ(compute(prompt(10'000 + 100 * i, 20)), 4);
  EXPECT_EQ(compute(prompt(1000, 488)), 484);
  EXPECT_EQ(compute(prompt(2000, 40)), 36);
}

TEST(KvCache, NeverTakesPagesInUse) {
  const KvGroupPages groups[] = {{.pages = 4}};
  KvCache cache(groups, 2, true);
  PageTable a = cache.make_table(8);
  ASSERT_TRUE(cache.extend(a, 4));
  cache.insert(counting(0, 4), 2, a);
  PageTable b = cache.make_table(8);
  EXPECT_TRUE(cache.extend(b, 4));
  EXPECT_FALSE(cache.extend(b, 6));
  EXPECT_EQ(cache.available(0), 0);
  cache.release(a);
  EXPECT_EQ(cache.available(0), 2);
  EXPECT_TRUE(cache.extend(b, 6));
  cache.release(b);
  cache.check({});
}

TEST(KvCache, ACopyOfACachedPageIsReplacedByIt) {
  const KvGroupPages groups[] = {{.pages = 4}};
  KvCache cache(groups, 2, true);
  PageTable a = cache.make_table(4);
  PageTable b = cache.make_table(4);
  ASSERT_TRUE(cache.extend(a, 4));
  ASSERT_TRUE(cache.extend(b, 4));
  cache.insert(counting(0, 4), 2, a);
  cache.insert(counting(0, 4), 2, b);
  EXPECT_EQ(a.pages, b.pages);
  EXPECT_EQ(cache.available(0), 2);
  const PageTable* tables[] = {&a, &b};
  cache.check(tables);
}

TEST(KvCache, WindowGivesPagesBackAndPrefixesNeedOnlyTheWindow) {
  const KvGroupPages groups[] = {{.pages = 20}, {.pages = 20, .window = 5}};
  KvCache cache(groups, 4, true);
  PageTable a = cache.make_table(40);
  ASSERT_TRUE(cache.extend(a, 32));
  cache.drop_behind(a, 31);  // sees 27..31: pages 6 and 7
  EXPECT_EQ(std::ranges::count(a.pages[1], -1), 6);
  EXPECT_EQ(std::ranges::count(a.pages[0], -1), 0);
  cache.drop_behind(a, 32);  // sees 28..32
  EXPECT_EQ(std::ranges::count(a.pages[1], -1), 7);
  const Tokens tokens = counting(0, 32);
  cache.insert(tokens, 4, a);
  cache.release(a);
  cache.check({});

  PageTable b = cache.make_table(40);
  EXPECT_EQ(cache.adopt_prefix(tokens, 32, 4, b), 32);
  EXPECT_EQ(std::ranges::count(b.pages[1], -1), 7);
  EXPECT_EQ(std::ranges::count(b.pages[0], -1), 0);
  cache.release(b);
  PageTable c = cache.make_table(40);
  EXPECT_EQ(cache.adopt_prefix(tokens, 31, 4, c), 0);  // position 28 sees 24..27, which was given back
  cache.release(c);
  cache.check({});
}

TEST(KvCache, NeedsOfAWindowDoNotGrow) {
  const KvGroupPages groups[] = {{.pages = 100}, {.pages = 100, .window = 32}};
  const KvCache cache(groups, 16, true);
  EXPECT_EQ(cache.pages_needed(0, 1000, 16), 63);
  EXPECT_EQ(cache.pages_needed(1, 1000, 16), 4);
  EXPECT_EQ(cache.pages_needed(1, 17, 16), 2);
}

TEST(KvCache, ClearKeepsWhatIsInUse) {
  const KvGroupPages groups[] = {{.pages = 8}};
  KvCache cache(groups, 2, true);
  PageTable a = cache.make_table(8);
  ASSERT_TRUE(cache.extend(a, 8));
  cache.insert(counting(0, 8), 2, a);
  cache.truncate(a, 3);
  cache.clear();
  EXPECT_EQ(cache.stats().cached, 0);
  EXPECT_EQ(cache.stats().in_use, 2);
  PageTable b = cache.make_table(8);
  EXPECT_EQ(cache.adopt_prefix(counting(0, 8), 8, 2, b), 4);
  const PageTable* tables[] = {&a, &b};
  cache.check(tables);
}

TEST(KvCache, SwitchedOffKeepsNothing) {
  const KvGroupPages groups[] = {{.pages = 8}};
  KvCache cache(groups, 2, false);
  PageTable a = cache.make_table(8);
  ASSERT_TRUE(cache.extend(a, 8));
  cache.insert(counting(0, 8), 2, a);
  cache.release(a);
  EXPECT_EQ(cache.stats().cached, 0);
  EXPECT_EQ(cache.adopt_prefix(counting(0, 8), 8, 2, a), 0);
}

// Sequences come, grow, share, are cut and go, in two groups of which one slides; everything is recounted.
TEST(KvCache, RandomUseKeepsTheBooks) {
  std::mt19937 random(7);
  const KvGroupPages groups[] = {{.pages = 40}, {.pages = 24, .window = 11}};
  KvCache cache(groups, 4, true);
  struct Live {
    Tokens tokens;
    int64_t computed = 0;
    PageTable table;
  };
  std::vector<Live> live;
  int64_t reused = 0;
  for (int i = 0; i < 30000; ++i) {
    const auto action = random() % 10;
    if (action == 0 && live.size() < 4) {
      Live sequence{.table = cache.make_table(100)};
      for (int64_t t = 0; t < 100; ++t) sequence.tokens.push_back(static_cast<int32_t>(random() % 20 == 0));
      const int64_t limit = static_cast<int64_t>(random() % 100);
      sequence.computed = cache.adopt_prefix(sequence.tokens, limit, 4, sequence.table);
      ASSERT_LE(sequence.computed, limit);
      reused += sequence.computed;
      live.push_back(std::move(sequence));
    } else if (action == 1 && !live.empty()) {
      Live& sequence = live[random() % live.size()];
      cache.insert(std::span(sequence.tokens).first(static_cast<size_t>(sequence.computed)), 4, sequence.table);
      if (random() % 2) {
        cache.release(sequence.table);
        std::swap(sequence, live.back());
        live.pop_back();
      }
    } else if (action == 2 && random() % 50 == 0) {
      cache.clear();
    } else if (!live.empty()) {
      Live& sequence = live[random() % live.size()];
      const int64_t rows = std::min<int64_t>(1 + static_cast<int64_t>(random() % 9), 100 - sequence.computed);
      cache.drop_behind(sequence.table, sequence.computed);
      if (cache.extend(sequence.table, sequence.computed + rows)) {
        sequence.computed += rows;
      } else {
        cache.truncate(sequence.table, sequence.computed);
      }
    }
    std::vector<const PageTable*> tables;
    for (const Live& sequence : live) tables.push_back(&sequence.table);
    cache.check(tables);
    const KvCacheStats stats = cache.stats();
    ASSERT_EQ(stats.total, 64);
    ASSERT_LE(stats.in_use + stats.cached, 64);
  }
  EXPECT_GT(reused, 1000);
}

}  // namespace
}  // namespace hearth
