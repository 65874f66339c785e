// Q2_K: 256 weights, 2-bit codes; 4-bit scale and minimum per 16, f16 factors for both.
#pragma once

#include <span>

#include "quant/format.h"
#include "quant/half.h"

namespace hearth {

struct Q2_K {
  static constexpr FormatId kId = FormatId::kQ2_K;
  static constexpr FormatInfo kInfo{"Q2_K", 10, 256, 84, CanonicalGroup::kAffine16};
  struct Block {
    uint8_t scales[16];  // per 16 elements; low nibble: scale, high nibble: minimum
    uint8_t qs[64];      // byte 32h + l, bits 2j and 2j + 1: element 128h + 32j + l
    LeHalf d;            // factor of the scales
    LeHalf dmin;         // factor of the minimums
  };
  static_assert(sizeof(Block) == kInfo.block_bytes);

  static int code(const Block& b, int i) { return (b.qs[32 * (i >> 7) + (i & 31)] >> (2 * ((i & 127) >> 5))) & 3; }

  // y = d * scale * q - dmin * minimum
  static void decode(const Block& b, std::span<float, 256> out) {
    float d = b.d.get(), dmin = b.dmin.get();
    for (int i = 0; i < 256; ++i) {
      uint8_t s = b.scales[i >> 4];
      out[i] = d * static_cast<float>(s & 15) * static_cast<float>(code(b, i)) - dmin * static_cast<float>(s >> 4);
    }
  }
};

}  // namespace hearth
