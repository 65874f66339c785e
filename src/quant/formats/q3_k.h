// Q3_K: 256 weights, 3-bit codes around 4 (two bits packed, the third in a mask); signed 6-bit scale per 16, f16
// factor.
#pragma once

#include <span>

#include "quant/format.h"
#include "quant/half.h"

namespace hearth {

struct Q3_K {
  static constexpr FormatId kId = FormatId::kQ3_K;
  static constexpr FormatInfo kInfo{"Q3_K", 11, 256, 110, CanonicalGroup::kAffine16};
  struct Block {
    uint8_t hmask[32];   // byte l, bit 4h + j: code bit 2 of element 128h + 32j + l
    uint8_t qs[64];      // byte 32h + l, bits 2j and 2j + 1: code bits 0, 1 of element 128h + 32j + l
    uint8_t scales[12];  // sixteen 6-bit scales, see scale()
    LeHalf d;
  };
  static_assert(sizeof(Block) == kInfo.block_bytes);

  // Scale of 16-group k, -32 .. 31: four low bits in the nibbles of bytes 0..7, two high bits in bytes 8..11.
  static int scale(const Block& b, int k) {
    int low = k < 8 ? b.scales[k] & 15 : b.scales[k - 8] >> 4;
    int high = (b.scales[8 + (k & 3)] >> (2 * (k >> 2))) & 3;
    return (low | high << 4) - 32;
  }
  static int code(const Block& b, int i) {
    int h = i >> 7, j = (i & 127) >> 5, l = i & 31;
    return ((b.qs[32 * h + l] >> (2 * j)) & 3) | ((b.hmask[l] >> (4 * h + j)) & 1) << 2;
  }

  // y = d * scale * (q - 4)
  static void decode(const Block& b, std::span<float, 256> out) {
    float d = b.d.get();
    for (int i = 0; i < 256; ++i) {
      out[i] = d * static_cast<float>(scale(b, i >> 4)) * static_cast<float>(code(b, i) - 4);
    }
  }
};

}  // namespace hearth
