#include "memory/kv_cache.h"

#include <gtest/gtest.h>

#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <numeric>
#include <random>
#include <set>

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

// What pages hold, by group and page, on the device and in the host's memory alike.
class Contents final : public PageMover {
 public:
  explicit Contents(std::span<const KvGroupPages> groups) {
    for (const KvGroupPages& group : groups) {
      device_pages_.push_back(group.pages);
      pages_.emplace_back(static_cast<size_t>(group.pages + group.host_pages));
    }
  }

  bool to_host(std::span<const PageMove> moves) override {
    to_host_pages += std::ssize(moves);
    return copy(moves, true);
  }
  bool to_device(std::span<const PageMove> moves) override {
    to_device_pages += std::ssize(moves);
    return copy(moves, false);
  }
  uint64_t& at(int64_t group, int32_t page) { return pages_[static_cast<size_t>(group)].at(static_cast<size_t>(page)); }
  bool in_host(int64_t group, int32_t page) const { return page >= device_pages_[static_cast<size_t>(group)]; }

  int64_t calls_before_failure = -1;
  int64_t to_host_pages = 0;
  int64_t to_device_pages = 0;

 private:
  bool copy(std::span<const PageMove> moves, bool out) {
    EXPECT_FALSE(moves.empty());
    const bool fails = calls_before_failure-- == 0;
    for (const PageMove& move : moves) {
      EXPECT_FALSE(in_host(move.group, move.device_page));
      EXPECT_TRUE(in_host(move.group, move.host_page));
      uint64_t& target = at(move.group, out ? move.host_page : move.device_page);
      target = fails ? 0xBAD : at(move.group, out ? move.device_page : move.host_page);
    }
    return !fails;
  }

  std::vector<int64_t> device_pages_;
  std::vector<std::vector<uint64_t>> pages_;
};

// What the page behind these tokens of a group must hold.
uint64_t content_of(int64_t group, std::span<const int32_t> tokens) {
  uint64_t hash = 0x9e3779b97f4a7c15u + static_cast<uint64_t>(group);
  for (int32_t token : tokens) hash = (hash ^ static_cast<uint32_t>(token)) * 0x100000001b3u;
  return hash;
}

// A cache with host memory and what is in its pages.
class HostTier : public testing::Test {
 protected:
  static constexpr int64_t kPage = 4;

  void make(std::vector<KvGroupPages> groups) {
    groups_ = std::move(groups);
    contents_ = std::make_unique<Contents>(groups_);
    cache_ = std::make_unique<KvCache>(groups_, kPage, true, contents_.get());
  }
  PageTable table() const { return cache_->make_table(400); }
  int64_t adopt(const Tokens& tokens, PageTable& table) {
    const int64_t adopted = cache_->adopt_prefix(tokens, std::ssize(tokens), kPage, table);
    expect_content(tokens, adopted, table);
    return adopted;
  }
  // Computes the tokens behind the first `from`.
  void compute(const Tokens& tokens, int64_t from, PageTable& table) {
    ASSERT_TRUE(cache_->extend(table, std::ssize(tokens)));
    write(tokens, from, std::ssize(tokens), table);
  }
  void write(const Tokens& tokens, int64_t from, int64_t to, const PageTable& table) {
    for (int64_t i = from / kPage; i < to / kPage; ++i) {
      for (int64_t g = 0; g < cache_->groups(); ++g) {
        const int32_t page = table.pages[static_cast<size_t>(g)][static_cast<size_t>(i)];
        if (page >= 0) contents_->at(g, page) = content_of(g, beginning(tokens, i + 1));
      }
    }
  }
  void expect_content(const Tokens& tokens, int64_t computed, const PageTable& table) {
    for (int64_t i = 0; i < computed / kPage; ++i) {
      for (int64_t g = 0; g < cache_->groups(); ++g) {
        const int32_t page = table.pages[static_cast<size_t>(g)][static_cast<size_t>(i)];
        if (page < 0) continue;
        ASSERT_FALSE(contents_->in_host(g, page));
        ASSERT_EQ(contents_->at(g, page), content_of(g, beginning(tokens, i + 1))) << "group " << g << " page " << i;
      }
    }
  }
  static std::span<const int32_t> beginning(const Tokens& tokens, int64_t pages) {
    return std::span(tokens).first(static_cast<size_t>(pages * kPage));
  }
  // A request from its beginning to its end; returns what was cached of it.
  int64_t run(const Tokens& tokens) {
    PageTable t = table();
    const int64_t adopted = adopt(tokens, t);
    compute(tokens, adopted, t);
    cache_->insert(tokens, kPage, t);
    cache_->release(t);
    cache_->check({});
    return adopted;
  }
  // What the tree holds, by group: the content that each page must have, which it is checked to have.
  std::vector<std::set<uint64_t>> held() {
    std::vector<std::set<uint64_t>> held(groups_.size());
    for (PrefixTree::Node node : cache_->nodes()) {
      Tokens tokens;
      for (auto n = node; n != PrefixTree::kRoot; n = cache_->tree().parent(n)) {
        const auto part = cache_->tree().tokens(n);
        tokens.insert(tokens.begin(), part.begin(), part.end());
      }
      for (int64_t g = 0; g < cache_->groups(); ++g) {
        const int32_t page = cache_->tree().pages(node)[static_cast<size_t>(g)];
        if (page < 0) continue;
        const uint64_t content = content_of(g, tokens);
        EXPECT_EQ(contents_->at(g, page), content) << "group " << g << " page " << page;
        held[static_cast<size_t>(g)].insert(content);
      }
    }
    return held;
  }

  std::vector<KvGroupPages> groups_;
  std::unique_ptr<Contents> contents_;
  std::unique_ptr<KvCache> cache_;
};

TEST_F(HostTier, WhatTheDeviceHasNoRoomForComesBack) {
  make({{.pages = 6, .host_pages = 20}});
  const Tokens a = counting(0, 20), b = counting(100, 20), c = counting(200, 20);
  EXPECT_EQ(run(a), 0);
  EXPECT_EQ(run(b), 0);
  EXPECT_EQ(contents_->to_host_pages, 4);  // no more than b needed
  EXPECT_EQ(cache_->stats().host_cached, 4);
  EXPECT_EQ(cache_->host_cached(0), 4);
  EXPECT_EQ(cache_->stats().host_total, 20);
  EXPECT_EQ(run(c), 0);
  for (int round = 0; round < 3; ++round) {
    for (const Tokens& tokens : {a, b, c}) EXPECT_EQ(run(tokens), 20);
  }
  EXPECT_EQ(cache_->explain_miss(a, 20, kPage).reason, CacheMiss::kNone);
  EXPECT_GE(cache_->returned_tokens(), 8 * 16);
  EXPECT_EQ(cache_->returned_tokens(), contents_->to_device_pages * kPage);
  cache_->clear();
  cache_->check({});
  EXPECT_EQ(cache_->stats().host_cached, 0);
  EXPECT_EQ(cache_->stats().cached, 0);
  EXPECT_EQ(cache_->explain_miss(a, 20, kPage).reason, CacheMiss::kCleared);
  EXPECT_EQ(run(a), 0);
}

TEST_F(HostTier, TheFirstToGoInBothPlacesIsLost) {
  make({{.pages = 16, .host_pages = 4}});
  const Tokens kept = counting(0, 16);
  run(kept);
  EXPECT_EQ(run(kept), 16);  // from now on worth keeping
  PageTable all = table();
  ASSERT_TRUE(cache_->extend(all, 64));  // everything gives way
  cache_->release(all);
  EXPECT_EQ(cache_->stats().host_cached, 4);
  // What comes once does not push it out, how much it may be; it goes itself.
  for (int32_t i = 1; i < 40; ++i) run(counting(1000 * i, 4));
  EXPECT_EQ(contents_->to_host_pages, 4);
  // Something else that is worth keeping and newer does.
  const Tokens other = counting(500, 64);
  run(other);
  ASSERT_TRUE(cache_->extend(all, 16));  // four pages of it
  cache_->release(all);
  EXPECT_EQ(run(other), 64);
  PageTable t = table();
  EXPECT_EQ(adopt(kept, t), 0);
  EXPECT_EQ(cache_->explain_miss(kept, 16, kPage).reason, CacheMiss::kEvicted);
}

TEST_F(HostTier, WhatComesBackDoesNotPushItselfOut) {
  make({{.pages = 4, .host_pages = 4}});
  const Tokens a = counting(0, 16), b = counting(100, 16);
  run(a);
  run(b);
  EXPECT_EQ(cache_->stats().host_cached, 4);
  EXPECT_EQ(run(a), 16);  // the pages of b find no place
  EXPECT_EQ(run(b), 0);
}

TEST_F(HostTier, WhatComesBackDoesNotGiveWayToWhatItsWindowLeftBehind) {
  make({{.pages = 20, .host_pages = 20}, {.pages = 4, .window = 5, .host_pages = 1}});
  const Tokens a = counting(0, 16);
  run(a);
  PageTable live = table();
  ASSERT_TRUE(cache_->extend(live, 4));  // the last page of the window moves out
  EXPECT_EQ(cache_->host_cached(1), 1);
  PageTable t = table();
  EXPECT_EQ(adopt(a, t), 16);  // in the place of one that nobody sees, for which the host has no room
  const PageTable* tables[] = {&live, &t};
  cache_->check(tables);
  held();
}

TEST_F(HostTier, APrefixEndsWhereLiveSequencesLeaveNoRoom) {
  make({{.pages = 8, .host_pages = 8}});
  const Tokens a = counting(0, 24);
  run(a);
  PageTable live = table();
  ASSERT_TRUE(cache_->extend(live, 20));  // five pages: three of a are in the host's memory now
  EXPECT_EQ(cache_->shared_pages(a, 24, kPage), std::vector<int64_t>{0});
  PageTable t = table();
  EXPECT_EQ(adopt(a, t), 12);
  EXPECT_EQ(cache_->shared_pages(a, 24, kPage), std::vector<int64_t>{3});
  PageTable second = table();
  EXPECT_EQ(adopt(a, second), 12);
  const PageTable* tables[] = {&live, &t, &second};
  cache_->check(tables);
  cache_->release(second);
  cache_->release(t);
  cache_->truncate(live, 4);
  EXPECT_EQ(adopt(a, t), 24);
  EXPECT_EQ(cache_->stats().host_cached, 0);
}

TEST_F(HostTier, AComputedPageReplacesItsCopyInTheHost) {
  make({{.pages = 8, .host_pages = 8}});
  const Tokens a = counting(0, 16);
  PageTable t = table();
  compute(a, 0, t);
  PageTable second = table();
  compute(a, 0, second);
  cache_->insert(a, kPage, second);
  cache_->release(second);
  PageTable all = table();
  ASSERT_TRUE(cache_->extend(all, 16));
  EXPECT_EQ(cache_->stats().host_cached, 4);
  cache_->insert(a, kPage, t);
  EXPECT_EQ(cache_->stats().host_cached, 0);
  EXPECT_EQ(contents_->to_device_pages, 0);
  const PageTable* tables[] = {&t, &all};
  cache_->check(tables);
  held();
}

TEST_F(HostTier, ACopyThatFailsLosesItsPagesOnly) {
  for (int64_t fails = 0; fails < 12; ++fails) {
    make({{.pages = 12, .host_pages = 20}, {.pages = 12, .window = 9, .host_pages = 20}});
    contents_->calls_before_failure = fails;
    const Tokens a = counting(0, 40), b = counting(100, 40);
    for (int round = 0; round < 3; ++round) {
      for (const Tokens& tokens : {a, b}) {
        run(tokens);
        held();
      }
    }
    contents_->calls_before_failure = -1;
    run(a);
    run(b);
    EXPECT_EQ(run(a), 40) << fails;
    EXPECT_EQ(run(b), 40) << fails;
  }
}

TEST_F(HostTier, RestoresIntoTheHostWhatTheDeviceHasNoRoomFor) {
  make({{.pages = 2, .host_pages = 2}});
  const Tokens a = counting(0, 20);
  auto node = PrefixTree::kRoot;
  for (int64_t i = 0; i < 4; ++i) {
    node = cache_->restore(node, std::span(a).subspan(static_cast<size_t>(i * kPage), kPage), true, {true});
    ASSERT_NE(node, PrefixTree::kNone);
    contents_->at(0, cache_->tree().pages(node)[0]) = content_of(0, beginning(a, i + 1));
  }
  EXPECT_EQ(cache_->restore(node, std::span(a).subspan(16, kPage), true, {true}), PrefixTree::kNone);
  EXPECT_EQ(cache_->stats().host_cached, 2);
  held();
  cache_->forget(node);
  cache_->check({});
  EXPECT_EQ(cache_->stats().host_cached, 1);
  EXPECT_EQ(cache_->cached_prefix(a, 20, kPage), 12);
}

// Sequences come, grow, share, are cut and go, in two groups of which one slides, with room in the host's memory for
// nothing, a little or everything. Everything is recounted, what pages hold is what their tokens say, and nothing is
// lost for which there is room.
TEST_F(HostTier, RandomUseKeepsBooksAndContents) {
  for (const int64_t host_pages : {0, 1, 7, 2000}) {
    for (const bool copies_fail : {false, true}) {
      SCOPED_TRACE(fmt::format("{} host pages, copies fail: {}", host_pages, copies_fail));
      std::mt19937 random(7);
      make({{.pages = 40, .host_pages = host_pages}, {.pages = 24, .window = 11, .host_pages = host_pages}});
      std::vector<Tokens> texts(60);
      for (Tokens& text : texts) {
        for (int64_t t = 0; t < 100; ++t) text.push_back(static_cast<int32_t>(random() % 20 == 0));
      }
      struct Live {
        Tokens tokens;
        int64_t computed = 0;
        PageTable table;
      };
      std::vector<Live> live;
      const bool loses_nothing = host_pages == 2000 && !copies_fail;
      std::vector<std::set<uint64_t>> known(2);
      // How long a prefix could be by what is known, and whether there is room for it whatever is where.
      const auto expected = [&](const Tokens& tokens, int64_t limit) {
        int64_t longest = 0;
        bool room = true;
        for (int64_t pages = 1; pages <= limit / kPage; ++pages) {
          bool there = true;
          for (int64_t g = 0; g < 2; ++g) {
            const int64_t first = g == 0 ? 0 : std::max<int64_t>(0, pages * kPage - 11 + 1) / kPage;
            for (int64_t i = first; i < pages; ++i) {
              there &= known[static_cast<size_t>(g)].contains(content_of(g, beginning(tokens, i + 1)));
            }
          }
          if (there) longest = pages;
        }
        room = longest <= cache_->available(0) && std::min<int64_t>(longest, 4) <= cache_->available(1);
        return std::pair(longest * kPage, room);
      };
      int64_t reused = 0, with_room = 0;
      for (int i = 0; i < 6000 && !HasFailure(); ++i) {
        const auto action = random() % 10;
        contents_->calls_before_failure = copies_fail && random() % 20 == 0 ? 0 : -1;
        if (action == 0 && live.size() < 4) {
          Live sequence{.tokens = texts[random() % texts.size()], .table = cache_->make_table(100)};
          const int64_t limit = static_cast<int64_t>(random() % 100);
          const auto [longest, room] = expected(sequence.tokens, limit);
          sequence.computed = cache_->adopt_prefix(sequence.tokens, limit, kPage, sequence.table);
          ASSERT_LE(sequence.computed, limit);
          if (loses_nothing) {
            ASSERT_LE(sequence.computed, longest);
            if (room) ASSERT_EQ(sequence.computed, longest);
            with_room += room && longest > 0;
          }
          reused += sequence.computed;
          live.push_back(std::move(sequence));
        } else if (action == 1 && !live.empty()) {
          Live& sequence = live[random() % live.size()];
          const auto done = std::span(sequence.tokens).first(static_cast<size_t>(sequence.computed));
          for (int64_t page = 0; page < sequence.computed / kPage; ++page) {
            for (int64_t g = 0; g < 2; ++g) {
              if (sequence.table.pages[static_cast<size_t>(g)][static_cast<size_t>(page)] < 0) continue;
              known[static_cast<size_t>(g)].insert(content_of(g, beginning(sequence.tokens, page + 1)));
            }
          }
          cache_->insert(done, kPage, sequence.table);
          if (random() % 2) {
            cache_->release(sequence.table);
            std::swap(sequence, live.back());
            live.pop_back();
          }
        } else if (action == 2 && random() % 50 == 0) {
          cache_->clear();
          ASSERT_EQ(cache_->stats().host_cached, 0);
          known = held();
        } else if (!live.empty()) {
          Live& sequence = live[random() % live.size()];
          const int64_t rows = std::min<int64_t>(1 + static_cast<int64_t>(random() % 9), 100 - sequence.computed);
          cache_->drop_behind(sequence.table, sequence.computed);
          if (cache_->extend(sequence.table, sequence.computed + rows)) {
            write(sequence.tokens, sequence.computed, sequence.computed + rows, sequence.table);
            sequence.computed += rows;
          } else {
            cache_->truncate(sequence.table, sequence.computed);
          }
        }
        std::vector<const PageTable*> tables;
        for (const Live& sequence : live) {
          tables.push_back(&sequence.table);
          expect_content(sequence.tokens, sequence.computed, sequence.table);
        }
        cache_->check(tables);
        const std::vector<std::set<uint64_t>> now = held();
        if (loses_nothing) ASSERT_EQ(now, known);
        const KvCacheStats stats = cache_->stats();
        ASSERT_EQ(stats.total, 64);
        ASSERT_LE(stats.in_use + stats.cached, 64);
        ASSERT_LE(stats.host_cached, 2 * host_pages);
      }
      EXPECT_GT(reused, 1000);
      if (loses_nothing) EXPECT_GT(with_room, 100);
      EXPECT_EQ(contents_->to_device_pages > 10, host_pages > 1) << contents_->to_device_pages;
    }
  }
}

}  // namespace
}  // namespace hearth
