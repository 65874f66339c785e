// The packing of eight six-bit scales and eight six-bit minimums into twelve bytes that Q4_K and Q5_K share.
#pragma once

#include <cstdint>

namespace hearth {

// Groups 0..3: scale j in the low six bits of byte j, minimum in those of byte 4 + j. Groups 4..7: four low bits in the
// nibbles of byte 4 + j (low: scale, high: minimum), two high bits on top of bytes j - 4 and j.
constexpr int six_bit_scale(const uint8_t (&s)[12], int j) {
  return j < 4 ? s[j] & 63 : (s[j + 4] & 15) | (s[j - 4] >> 6) << 4;
}
constexpr int six_bit_min(const uint8_t (&s)[12], int j) {
  return j < 4 ? s[j + 4] & 63 : (s[j + 4] >> 4) | (s[j] >> 6) << 4;
}

constexpr void pack_six_bit(const uint8_t (&scale)[8], const uint8_t (&min)[8], uint8_t (&s)[12]) {
  for (int j = 0; j < 4; ++j) {
    s[j] = static_cast<uint8_t>((scale[j] & 63) | (scale[j + 4] >> 4) << 6);
    s[j + 4] = static_cast<uint8_t>((min[j] & 63) | (min[j + 4] >> 4) << 6);
    s[j + 8] = static_cast<uint8_t>((scale[j + 4] & 15) | (min[j + 4] & 15) << 4);
  }
}

}  // namespace hearth
