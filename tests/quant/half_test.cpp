#include "quant/half.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <random>

namespace hearth {
namespace {

// The value of a finite f16 from the definition, in double.
double f16_value(uint16_t h) {
  int exponent = (h >> 10) & 31, mantissa = h & 1023;
  double magnitude = exponent ? std::ldexp(1024 + mantissa, exponent - 25) : std::ldexp(mantissa, -24);
  return h & 0x8000 ? -magnitude : magnitude;
}

TEST(Half, AllF16ConvertExactlyAndBack) {
  for (uint32_t bits = 0; bits < 65536; ++bits) {
    auto h = static_cast<uint16_t>(bits);
    float f = f16_to_f32(h);
    bool is_nan = (h & 0x7fff) > 0x7c00;
    ASSERT_EQ(std::isnan(f), is_nan) << bits;
    if (is_nan) {
      ASSERT_EQ(f32_to_f16(f), h | 0x200) << bits;
      continue;
    }
    if ((h & 0x7fff) == 0x7c00) {
      ASSERT_TRUE(std::isinf(f)) << bits;
    } else {
      ASSERT_EQ(static_cast<double>(f), f16_value(h)) << bits;
    }
    ASSERT_EQ(std::signbit(f), (h & 0x8000) != 0) << bits;
    ASSERT_EQ(f32_to_f16(f), h) << bits;
  }
}

// Between two neighbours: the midpoint goes to the even one, a hair to either side to the nearer one.
TEST(Half, F16RoundsToNearestEven) {
  for (uint16_t h = 0; h < 0x7bff; ++h) {
    float low = f16_to_f32(h), high = f16_to_f32(static_cast<uint16_t>(h + 1));
    float middle = low + (high - low) * 0.5f;  // exact: one more bit
    uint16_t even = h & 1 ? static_cast<uint16_t>(h + 1) : h;
    ASSERT_EQ(f32_to_f16(middle), even) << h;
    ASSERT_EQ(f32_to_f16(std::nextafter(middle, 0.0f)), h) << h;
    ASSERT_EQ(f32_to_f16(std::nextafter(middle, INFINITY)), h + 1) << h;
    ASSERT_EQ(f32_to_f16(-middle), even | 0x8000) << h;
  }
  EXPECT_EQ(f32_to_f16(65519.996f), 0x7bff);
  EXPECT_EQ(f32_to_f16(65520.0f), 0x7c00);
  EXPECT_EQ(f32_to_f16(INFINITY), 0x7c00);
  EXPECT_EQ(f32_to_f16(-1e30f), 0xfc00);
}

TEST(Half, Bf16RoundsToNearestEven) {
  for (uint32_t bits = 0; bits < 65536; ++bits) {
    auto b = static_cast<uint16_t>(bits);
    float f = bf16_to_f32(b);
    ASSERT_EQ(std::bit_cast<uint32_t>(f), bits << 16);
    ASSERT_EQ(f32_to_bf16(f), std::isnan(f) ? b | 0x40 : b) << bits;
    if ((b & 0x7fff) >= 0x7f80) continue;
    uint32_t middle = bits << 16 | 0x8000;
    ASSERT_EQ(f32_to_bf16(std::bit_cast<float>(middle)), (b & 1) ? b + 1 : b) << bits;
    ASSERT_EQ(f32_to_bf16(std::bit_cast<float>(middle - 1)), b) << bits;
    ASSERT_EQ(f32_to_bf16(std::bit_cast<float>(middle + 1)), b + 1) << bits;
  }
}

}  // namespace
}  // namespace hearth
