#include "memory/budget.h"

#include <gtest/gtest.h>

namespace hearth {
namespace {

constexpr size_t kMiB = 1 << 20;

BudgetRequest request(size_t available_mib) {
  return {.weights_bytes = 1000 * kMiB,
          .workspace_bytes = 100 * kMiB,
          .kv_bytes = [](int64_t tokens) { return static_cast<size_t>(tokens) * kMiB / 16; },
          .small_kv_bytes = [](int64_t tokens) { return static_cast<size_t>(tokens) * kMiB / 32; },
          .trained_context = 131072,
          .available_bytes = available_mib * kMiB};
}

TEST(Budget, AutomaticContextIsTheSmallestOfThree) {
  EXPECT_EQ(plan_budget(request(100000))->context_tokens, kDefaultContextTokens);
  BudgetRequest small = request(100000);
  small.trained_context = 2000;
  EXPECT_EQ(plan_budget(small)->context_tokens, 2000);
  small.trained_context = 1001;
  EXPECT_EQ(plan_budget(small)->context_tokens, 1008);
  auto half = plan_budget(request(1100 + 1024));
  EXPECT_EQ(half->context_tokens, 8192);  // 512 of 1024 MiB
  EXPECT_EQ(half->kv_bytes, 512 * kMiB);
  EXPECT_EQ(half->need_bytes, 1612 * kMiB);
}

TEST(Budget, TheLeastContextMayTakeAllThatIsLeft) {
  EXPECT_EQ(plan_budget(request(1100 + 128))->context_tokens, kLeastContextTokens);
  EXPECT_FALSE(plan_budget(request(1100 + 127)));
}

TEST(Budget, AnExplicitContextIsTakenOrRefused) {
  BudgetRequest r = request(1100 + 1024);
  r.context_tokens = 16384;
  EXPECT_EQ(plan_budget(r)->context_tokens, 16384);
  r.context_tokens = 16385;
  auto refused = plan_budget(r);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, ErrorCode::kOutOfMemory);
  EXPECT_EQ(refused.error().message,
            "the model needs 2.1 GiB (weights 1000 MiB, KV for 16400 tokens 1.0 GiB, workspace 100 MiB), but 2.1 GiB "
            "are available; --kv-type q8 or -c 16384 would fit");
}

TEST(Budget, AdviceIsOnlyWhatFits) {
  BudgetRequest r = request(1100 + 100);
  r.context_tokens = 16384;
  EXPECT_TRUE(plan_budget(r).error().message.ends_with("; -c 1600 would fit"));
  r.available_bytes = (1100 + 8) * kMiB;
  EXPECT_TRUE(plan_budget(r).error().message.ends_with("; --kv-type q8 -c 256 would fit"));
  r.limited = true;
  r.available_bytes = 900 * kMiB;
  const std::string message = plan_budget(r).error().message;
  EXPECT_NE(message.find("900 MiB are available (the limit of this control group); a smaller model"), std::string::npos)
      << message;
}

TEST(Budget, TheCacheInTheSameMemoryCounts) {
  BudgetRequest r = request(1100 + 1024 + 500);
  r.cache_bytes = 500 * kMiB;
  EXPECT_EQ(plan_budget(r)->context_tokens, 8192);
  r.available_bytes = 2000 * kMiB;
  r.cache_bytes = 5000 * kMiB;
  const std::string message = plan_budget(r).error().message;
  EXPECT_NE(message.find("workspace 100 MiB, prefix cache 4.9 GiB), but 2.0 GiB are available; a smaller --cache-ram "
                         "would fit"),
            std::string::npos)
      << message;
}

TEST(Budget, TheDeviceWhoseMemoryItIsIsNamed) {
  BudgetRequest r = request(900);
  r.device = "cuda:1";
  auto refused = plan_budget(r);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().message,
            "the model needs 1.2 GiB (weights 1000 MiB, KV for 2048 tokens 128 MiB, workspace 100 MiB), but 900 MiB of "
            "cuda:1 are available; a smaller model or a smaller quantization of this one would fit; --device cpu would "
            "use the processor instead");
}

TEST(Budget, HostMemoryForTheCacheIsAQuarterUnlessTheUserSays) {
  const HostMemory small{.available_bytes = 1000 * kMiB, .limited = true}, large{.available_bytes = 100'000 * kMiB};
  EXPECT_EQ(*plan_host_cache(std::nullopt, small), 250 * kMiB);
  EXPECT_EQ(*plan_host_cache(std::nullopt, large), kDefaultHostCacheBytes);
  EXPECT_EQ(*plan_host_cache(0, large), 0u);
  EXPECT_EQ(*plan_host_cache(1000 * kMiB, small), 1000 * kMiB);
  const auto refused = plan_host_cache(1001 * kMiB, small);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, ErrorCode::kOutOfMemory);
  EXPECT_EQ(
      refused.error().message,
      "the prefix cache shall have 1001 MiB of host memory, but 1000 MiB are available (the limit of this control "
      "group); a smaller --cache-ram would fit");
}

}  // namespace
}  // namespace hearth
