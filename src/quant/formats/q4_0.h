// Q4_0: 32 weights, 4-bit codes around 8, one f16 scale.
#pragma once

#include <span>

#include "quant/format.h"
#include "quant/half.h"

namespace hearth {

struct Q4_0 {
  static constexpr FormatId kId = FormatId::kQ4_0;
  static constexpr FormatInfo kInfo{"Q4_0", 2, 32, 18, CanonicalGroup::kAffine32};
  struct Block {
    LeHalf d;
    uint8_t qs[16];  // low nibble: element j, high nibble: element j + 16
  };
  static_assert(sizeof(Block) == kInfo.block_bytes);

  // y = d * (q - 8)
  static void decode(const Block& b, std::span<float, 32> out) {
    float d = b.d.get();
    for (int j = 0; j < 16; ++j) {
      out[j] = d * static_cast<float>((b.qs[j] & 15) - 8);
      out[j + 16] = d * static_cast<float>((b.qs[j] >> 4) - 8);
    }
  }
};

}  // namespace hearth
