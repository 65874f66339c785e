// Q4_1: 32 weights, 4-bit codes, one f16 scale and one f16 minimum.
#pragma once

#include <span>

#include "quant/format.h"
#include "quant/half.h"

namespace hearth {

struct Q4_1 {
  static constexpr FormatId kId = FormatId::kQ4_1;
  static constexpr FormatInfo kInfo{"Q4_1", 3, 32, 20, CanonicalGroup::kAffine32};
  struct Block {
    LeHalf d;
    LeHalf m;
    uint8_t qs[16];  // low nibble: element j, high nibble: element j + 16
  };
  static_assert(sizeof(Block) == kInfo.block_bytes);

  // y = d * q + m
  static void decode(const Block& b, std::span<float, 32> out) {
    float d = b.d.get(), m = b.m.get();
    for (int j = 0; j < 16; ++j) {
      out[j] = d * static_cast<float>(b.qs[j] & 15) + m;
      out[j + 16] = d * static_cast<float>(b.qs[j] >> 4) + m;
    }
  }
};

}  // namespace hearth
