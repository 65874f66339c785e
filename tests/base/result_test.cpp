#include "base/result.h"

#include <gtest/gtest.h>

#include <memory>

#include "base/checked_math.h"

namespace hearth {
namespace {

Result<int> half(int x) {
  if (x % 2) return fail(ErrorCode::kInvalidInput, "half of {}", x);
  return x / 2;
}

Result<int> quarter(int x) {
  HEARTH_ASSIGN(int h, half(x));
  HEARTH_ASSIGN(int q, half(h));
  return q;
}

Result<void> check(int x) {
  HEARTH_TRY(half(x));
  return {};
}

TEST(Result, PassesValuesAndErrorsUp) {
  EXPECT_EQ(*quarter(8), 2);
  auto bad = quarter(6);
  ASSERT_FALSE(bad);
  EXPECT_EQ(bad.error().message, "half of 3");
  EXPECT_EQ(bad.error().code, ErrorCode::kInvalidInput);
  EXPECT_TRUE(check(2));
  EXPECT_FALSE(check(3));
}

TEST(Result, HoldsMoveOnlyValues) {
  Result<std::unique_ptr<int>> r(std::make_unique<int>(5));
  std::unique_ptr<int> p = std::move(r).value();
  EXPECT_EQ(*p, 5);
}

TEST(Result, ContextGoesInFront) {
  EXPECT_EQ(fail(ErrorCode::kIo, "x").with_context("load a.gguf").message, "load a.gguf: x");
}

TEST(CheckedMath, ReportsOverflow) {
  EXPECT_EQ(checked_mul<uint64_t>(1ull << 32, 1ull << 31), 1ull << 63);
  EXPECT_FALSE(checked_mul<uint64_t>(1ull << 32, 1ull << 32));
  EXPECT_FALSE(checked_mul<int64_t>(int64_t{1} << 62, 4));
  EXPECT_FALSE(checked_add<uint64_t>(~0ull, 1));
  EXPECT_FALSE(checked_align_up<uint64_t>(~0ull, 32));
  EXPECT_EQ(checked_align_up<uint64_t>(33, 32), 64u);
  EXPECT_EQ(round_up(7, 3), 9);
}

}  // namespace
}  // namespace hearth
