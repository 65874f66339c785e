// Q5_K: Q4_K with a fifth code bit in a separate mask.
#pragma once

#include <span>

#include "quant/format.h"
#include "quant/formats/six_bit.h"
#include "quant/half.h"

namespace hearth {

struct Q5_K {
  static constexpr FormatId kId = FormatId::kQ5_K;
  static constexpr FormatInfo kInfo{"Q5_K", 13, 256, 176, CanonicalGroup::kAffine32};
  struct Block {
    LeHalf d;            // factor of the scales
    LeHalf dmin;         // factor of the minimums
    uint8_t scales[12];  // see six_bit.h
    uint8_t qh[32];      // byte l, bit j: code bit 4 of element 32j + l
    uint8_t qs[128];     // byte 32p + l: low nibble element 64p + l, high nibble element 64p + 32 + l
  };
  static_assert(sizeof(Block) == kInfo.block_bytes);

  static int code(const Block& b, int i) {
    uint8_t byte = b.qs[32 * (i >> 6) + (i & 31)];
    return (i & 32 ? byte >> 4 : byte & 15) | ((b.qh[i & 31] >> (i >> 5)) & 1) << 4;
  }

  // y = d * scale * q - dmin * minimum
  static void decode(const Block& b, std::span<float, 256> out) {
    float d = b.d.get(), dmin = b.dmin.get();
    for (int i = 0; i < 256; ++i) {
      float scale = d * static_cast<float>(six_bit_scale(b.scales, i >> 5));
      float min = dmin * static_cast<float>(six_bit_min(b.scales, i >> 5));
      out[i] = scale * static_cast<float>(code(b, i)) - min;
    }
  }
};

}  // namespace hearth
