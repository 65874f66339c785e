// Q8_0: 32 weights, signed 8-bit codes, one f16 scale.
#pragma once

#include <span>

#include "quant/format.h"
#include "quant/half.h"

namespace hearth {

struct Q8_0 {
  static constexpr FormatId kId = FormatId::kQ8_0;
  static constexpr FormatInfo kInfo{"Q8_0", 8, 32, 34, CanonicalGroup::kAffine32};
  struct Block {
    LeHalf d;
    int8_t qs[32];
  };
  static_assert(sizeof(Block) == kInfo.block_bytes);

  // y = d * q
  static void decode(const Block& b, std::span<float, 32> out) {
    float d = b.d.get();
    for (int i = 0; i < 32; ++i) out[i] = d * static_cast<float>(b.qs[i]);
  }
};

}  // namespace hearth
