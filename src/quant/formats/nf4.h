// NF4: 64 weights, 4-bit indices into quantiles of the normal distribution, one f16 scale (the largest magnitude).
//
// GGUF has no such type. Hearth writes and reads it as tensor type 0x34464e, the letters "NF4", which no other program
// knows. Codes lie as in CHR0 containers (low nibble first; bitsandbytes has the high nibble first), but each group's
// scale precedes its codes.
#pragma once

#include <span>

#include "quant/format.h"
#include "quant/formats/codebooks.h"
#include "quant/half.h"

namespace hearth {

struct NF4 {
  static constexpr FormatId kId = FormatId::kNF4;
  static constexpr FormatInfo kInfo{"NF4", 0x34464e, 64, 34, CanonicalGroup::kCodebook};
  struct Block {
    LeHalf d;
    uint8_t qs[32];  // low nibble: element 2j, high nibble: element 2j + 1
  };
  static_assert(sizeof(Block) == kInfo.block_bytes);

  // y = d * value[q]
  static void decode(const Block& b, std::span<float, 64> out) {
    float d = b.d.get();
    for (int j = 0; j < 32; ++j) {
      out[2 * j] = d * kNf4Values[b.qs[j] & 15];
      out[2 * j + 1] = d * kNf4Values[b.qs[j] >> 4];
    }
  }
};

}  // namespace hearth
