// Q5_0: 32 weights, 5-bit codes around 16 (four bits in nibbles, the fifth in a bit mask), one f16 scale.
#pragma once

#include <span>

#include "quant/format.h"
#include "quant/half.h"

namespace hearth {

struct Q5_0 {
  static constexpr FormatId kId = FormatId::kQ5_0;
  static constexpr FormatInfo kInfo{"Q5_0", 6, 32, 22, CanonicalGroup::kAffine32};
  struct Block {
    LeHalf d;
    LeU32 qh;        // bit i: code bit 4 of element i
    uint8_t qs[16];  // low nibble: element j, high nibble: element j + 16
  };
  static_assert(sizeof(Block) == kInfo.block_bytes);

  // y = d * (q - 16)
  static void decode(const Block& b, std::span<float, 32> out) {
    float d = b.d.get();
    uint32_t qh = b.qh.get();
    for (int j = 0; j < 16; ++j) {
      int low = (b.qs[j] & 15) | static_cast<int>((qh >> j) & 1u) << 4;
      int high = (b.qs[j] >> 4) | static_cast<int>((qh >> (j + 16)) & 1u) << 4;
      out[j] = d * static_cast<float>(low - 16);
      out[j + 16] = d * static_cast<float>(high - 16);
    }
  }
};

}  // namespace hearth
