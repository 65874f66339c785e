// f16 and bf16 bit patterns and their exact conversions, and the unaligned little-endian fields that blocks are made
// of.
#pragma once

#include <bit>
#include <cstdint>

namespace hearth {

// IEEE binary16 -> binary32; exact, subnormals count, a NaN keeps its payload and gets its quiet bit set.
constexpr float f16_to_f32(uint16_t h) {
  uint32_t sign = static_cast<uint32_t>(h & 0x8000u) << 16;
  uint32_t exponent = (h >> 10) & 31u;
  uint32_t mantissa = h & 0x3ffu;
  if (exponent == 0) {  // zero or subnormal: mantissa * 2^-24
    float magnitude = static_cast<float>(mantissa) * 0x1p-24f;
    return std::bit_cast<float>(std::bit_cast<uint32_t>(magnitude) | sign);
  }
  if (exponent == 31) {  // infinity or NaN
    uint32_t quiet = mantissa ? 0x400000u : 0u;
    return std::bit_cast<float>(sign | 0x7f800000u | (mantissa << 13) | quiet);
  }
  return std::bit_cast<float>(sign | ((exponent + 112u) << 23) | (mantissa << 13));
}

// binary32 -> binary16, round to nearest even; overflow gives infinity, a NaN stays a (quiet) NaN.
constexpr uint16_t f32_to_f16(float value) {
  uint32_t bits = std::bit_cast<uint32_t>(value);
  auto sign = static_cast<uint16_t>((bits >> 16) & 0x8000u);
  uint32_t magnitude = bits & 0x7fffffffu;
  if (magnitude > 0x7f800000u) return static_cast<uint16_t>(sign | 0x7e00u | ((magnitude >> 13) & 0x3ffu));
  if (magnitude >= 0x477ff000u) return static_cast<uint16_t>(sign | 0x7c00u);  // >= 65520 rounds to infinity
  if (magnitude < 0x38800000u) {                                               // below 2^-14: subnormal result
    uint32_t exponent = magnitude >> 23;
    if (exponent < 102) return sign;  // below 2^-25: rounds to zero
    uint32_t mantissa = (magnitude & 0x7fffffu) | 0x800000u;
    uint32_t shift = 126u - exponent;  // the result counts units of 2^-24
    uint32_t result = mantissa >> shift;
    uint32_t rest = mantissa & ((1u << shift) - 1u);
    uint32_t half = 1u << (shift - 1u);
    if (rest > half || (rest == half && (result & 1u))) ++result;
    return static_cast<uint16_t>(sign | result);
  }
  uint32_t rounded = magnitude + 0xfffu + ((magnitude >> 13) & 1u);
  return static_cast<uint16_t>(sign | ((rounded - 0x38000000u) >> 13));
}

// bfloat16 -> binary32: the stored bits are the upper half.
constexpr float bf16_to_f32(uint16_t b) { return std::bit_cast<float>(static_cast<uint32_t>(b) << 16); }

// binary32 -> bfloat16, round to nearest even; a NaN keeps its sign and gets its quiet bit set.
constexpr uint16_t f32_to_bf16(float value) {
  uint32_t bits = std::bit_cast<uint32_t>(value);
  if ((bits & 0x7fffffffu) > 0x7f800000u) return static_cast<uint16_t>((bits >> 16) | 0x40u);
  return static_cast<uint16_t>((bits + 0x7fffu + ((bits >> 16) & 1u)) >> 16);
}

// Fields of blocks. Blocks lie at any address, so every field has alignment 1 and is little-endian.
struct LeU16 {
  uint8_t byte[2];
  constexpr uint16_t get() const { return static_cast<uint16_t>(byte[0] | (byte[1] << 8)); }
  constexpr void set(uint16_t v) {
    byte[0] = static_cast<uint8_t>(v);
    byte[1] = static_cast<uint8_t>(v >> 8);
  }
};

struct LeU32 {
  uint8_t byte[4];
  constexpr uint32_t get() const {
    return static_cast<uint32_t>(byte[0]) | static_cast<uint32_t>(byte[1]) << 8 | static_cast<uint32_t>(byte[2]) << 16 |
           static_cast<uint32_t>(byte[3]) << 24;
  }
  constexpr void set(uint32_t v) {
    for (int i = 0; i < 4; ++i) byte[i] = static_cast<uint8_t>(v >> (8 * i));
  }
};

// A binary16 field of a block.
struct LeHalf {
  LeU16 bits;
  constexpr float get() const { return f16_to_f32(bits.get()); }
  constexpr void set(float v) { bits.set(f32_to_f16(v)); }
};

}  // namespace hearth
