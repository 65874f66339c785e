// IQ4_NL and IQ4_XS: 4-bit indices into one table of sixteen unevenly spaced values.
#pragma once

#include <span>

#include "quant/format.h"
#include "quant/formats/codebooks.h"
#include "quant/half.h"

namespace hearth {

struct IQ4_NL {
  static constexpr FormatId kId = FormatId::kIQ4_NL;
  static constexpr FormatInfo kInfo{"IQ4_NL", 20, 32, 18, CanonicalGroup::kCodebook};
  struct Block {
    LeHalf d;
    uint8_t qs[16];  // low nibble: element j, high nibble: element j + 16
  };
  static_assert(sizeof(Block) == kInfo.block_bytes);

  // y = d * value[q]
  static void decode(const Block& b, std::span<float, 32> out) {
    float d = b.d.get();
    for (int j = 0; j < 16; ++j) {
      out[j] = d * static_cast<float>(kIq4Values[b.qs[j] & 15]);
      out[j + 16] = d * static_cast<float>(kIq4Values[b.qs[j] >> 4]);
    }
  }
};

struct IQ4_XS {
  static constexpr FormatId kId = FormatId::kIQ4_XS;
  static constexpr FormatInfo kInfo{"IQ4_XS", 23, 256, 136, CanonicalGroup::kCodebook};
  struct Block {
    LeHalf d;
    LeU16 scales_h;       // bits 2g and 2g + 1: high bits of the scale of 32-group g
    uint8_t scales_l[4];  // nibble g: low bits of the scale of 32-group g
    uint8_t qs[128];      // byte 16g + j: low nibble element 32g + j, high nibble element 32g + 16 + j
  };
  static_assert(sizeof(Block) == kInfo.block_bytes);

  static int scale(const Block& b, int g) {
    int low = (b.scales_l[g >> 1] >> (4 * (g & 1))) & 15;
    int high = (b.scales_h.get() >> (2 * g)) & 3;
    return (low | high << 4) - 32;
  }

  // y = d * scale * value[q]
  static void decode(const Block& b, std::span<float, 256> out) {
    float d = b.d.get();
    for (int g = 0; g < 8; ++g) {
      float group = d * static_cast<float>(scale(b, g));
      for (int j = 0; j < 16; ++j) {
        uint8_t byte = b.qs[16 * g + j];
        out[32 * g + j] = group * static_cast<float>(kIq4Values[byte & 15]);
        out[32 * g + 16 + j] = group * static_cast<float>(kIq4Values[byte >> 4]);
      }
    }
  }
};

}  // namespace hearth
