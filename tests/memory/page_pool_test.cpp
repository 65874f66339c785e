#include "memory/page_pool.h"

#include <gtest/gtest.h>

#include <random>

namespace hearth {
namespace {

TEST(PagePool, HandsOutEveryPageOnce) {
  PagePool pool(3);
  std::vector<bool> seen(3);
  for (int i = 0; i < 3; ++i) {
    auto page = pool.allocate();
    ASSERT_TRUE(page);
    EXPECT_FALSE(seen[static_cast<size_t>(*page)]);
    seen[static_cast<size_t>(*page)] = true;
  }
  EXPECT_FALSE(pool.allocate());
  EXPECT_EQ(pool.in_use(), 3);
  pool.unuse(1);
  EXPECT_EQ(pool.allocate(), 1);
}

TEST(PagePool, APageIsFreeOnlyWhenNobodyHoldsIt) {
  PagePool pool(1);
  const int32_t page = *pool.allocate();
  pool.cache(page);
  pool.use(page);
  EXPECT_EQ(pool.in_use(), 1);
  EXPECT_EQ(pool.cached(), 0);
  pool.unuse(page);
  pool.unuse(page);
  EXPECT_EQ(pool.in_use(), 0);
  EXPECT_EQ(pool.cached(), 1);
  EXPECT_FALSE(pool.allocate());
  pool.use(page);
  pool.uncache(page);
  EXPECT_EQ(pool.free(), 0);
  pool.unuse(page);
  EXPECT_EQ(pool.free(), 1);
  pool.check();
}

TEST(PagePool, CountsStayRightUnderRandomUse) {
  std::mt19937 random(1);
  PagePool pool(40);
  std::vector<int32_t> held;
  std::vector<int32_t> cached;
  for (int i = 0; i < 20000; ++i) {
    switch (random() % 5) {
      case 0:
        if (auto page = pool.allocate()) held.push_back(*page);
        break;
      case 1:
        if (!held.empty()) {
          std::swap(held[random() % held.size()], held.back());
          pool.unuse(held.back());
          held.pop_back();
        }
        break;
      case 2:
        if (!held.empty()) {
          const int32_t page = held[random() % held.size()];
          if (!pool.is_cached(page)) {
            pool.cache(page);
            cached.push_back(page);
          }
        }
        break;
      case 3:
        if (!cached.empty()) {
          std::swap(cached[random() % cached.size()], cached.back());
          pool.uncache(cached.back());
          cached.pop_back();
        }
        break;
      default:
        if (!cached.empty()) {
          const int32_t page = cached[random() % cached.size()];
          pool.use(page);
          held.push_back(page);
        }
    }
    pool.check();
  }
}

TEST(PagePoolDeathTest, GivingBackTwiceIsABug) {
  PagePool pool(2);
  const int32_t page = *pool.allocate();
  pool.unuse(page);
  EXPECT_DEATH(pool.unuse(page), "not in use");
  EXPECT_DEATH(pool.use(page), "is free");
  EXPECT_DEATH(pool.uncache(page), "not cached");
}

}  // namespace
}  // namespace hearth
