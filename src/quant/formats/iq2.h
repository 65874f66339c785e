// IQ2_XXS, IQ2_XS and IQ2_S: vectors of eight magnitudes from a codebook, with signs and a 4-bit scale per 16 or 32.
#pragma once

#include <span>

#include "quant/format.h"
#include "quant/formats/grids.h"
#include "quant/half.h"

namespace hearth {

struct IQ2_XXS {
  static constexpr FormatId kId = FormatId::kIQ2_XXS;
  static constexpr FormatInfo kInfo{"IQ2_XXS", 16, 256, 66, CanonicalGroup::kOther};
  struct Group {
    uint8_t index[4];       // of its four vectors
    LeU32 signs_and_scale;  // bits 7l .. 7l + 6: sign index of vector l, bits 28..31: scale
  };
  struct Block {
    LeHalf d;
    Group groups[8];  // per 32 elements
  };
  static_assert(sizeof(Block) == kInfo.block_bytes);

  // y = d * (scale + 1/2) / 4 * grid * sign
  static void decode(const Block& b, std::span<float, 256> out) {
    float d = b.d.get();
    for (int g = 0; g < 8; ++g) {
      uint32_t w = b.groups[g].signs_and_scale.get();
      float scale = d * (0.5f + static_cast<float>(w >> 28)) * 0.25f;
      for (int l = 0; l < 4; ++l) {
        decode_vector(scale, kIq2XxsGrid.entry[b.groups[g].index[l]], kEvenSigns.entry[(w >> (7 * l)) & 127],
                      &out[32 * g + 8 * l]);
      }
    }
  }
};

struct IQ2_XS {
  static constexpr FormatId kId = FormatId::kIQ2_XS;
  static constexpr FormatInfo kInfo{"IQ2_XS", 17, 256, 74, CanonicalGroup::kOther};
  struct Block {
    LeHalf d;
    LeU16 qs[32];       // per vector: bits 0..8 index, bits 9..15 sign index
    uint8_t scales[8];  // per 32: low nibble for its first 16 elements, high nibble for the others
  };
  static_assert(sizeof(Block) == kInfo.block_bytes);

  // y = d * (scale + 1/2) / 4 * grid * sign
  static void decode(const Block& b, std::span<float, 256> out) {
    float d = b.d.get();
    for (int v = 0; v < 32; ++v) {
      int nibble = (b.scales[v / 4] >> (4 * (v / 2 % 2))) & 15;
      float scale = d * (0.5f + static_cast<float>(nibble)) * 0.25f;
      uint16_t q = b.qs[v].get();
      decode_vector(scale, kIq2XsGrid.entry[q & 511], kEvenSigns.entry[q >> 9], &out[8 * v]);
    }
  }
};

struct IQ2_S {
  static constexpr FormatId kId = FormatId::kIQ2_S;
  static constexpr FormatInfo kInfo{"IQ2_S", 22, 256, 82, CanonicalGroup::kOther};
  struct Block {
    LeHalf d;
    uint8_t qs[32];     // low eight bits of the index of vector v
    uint8_t signs[32];  // all eight signs of vector v
    uint8_t qh[8];      // per 32: bits 2l, 2l + 1 are index bits 8, 9 of its vector l
    uint8_t scales[8];  // per 32: low nibble for its first 16 elements, high nibble for the others
  };
  static_assert(sizeof(Block) == kInfo.block_bytes);

  // y = d * (scale + 1/2) / 4 * grid * sign
  static void decode(const Block& b, std::span<float, 256> out) {
    float d = b.d.get();
    for (int v = 0; v < 32; ++v) {
      int nibble = (b.scales[v / 4] >> (4 * (v / 2 % 2))) & 15;
      float scale = d * (0.5f + static_cast<float>(nibble)) * 0.25f;
      int index = b.qs[v] | ((b.qh[v / 4] >> (2 * (v % 4))) & 3) << 8;
      decode_vector(scale, kIq2SGrid.entry[index], kSigns.entry[b.signs[v]], &out[8 * v]);
    }
  }
};

}  // namespace hearth
