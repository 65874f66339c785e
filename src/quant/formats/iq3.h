// IQ3_XXS and IQ3_S: vectors of four magnitudes from a codebook, with signs and a 4-bit scale per 32.
#pragma once

#include <span>

#include "quant/format.h"
#include "quant/formats/grids.h"
#include "quant/half.h"

namespace hearth {

struct IQ3_XXS {
  static constexpr FormatId kId = FormatId::kIQ3_XXS;
  static constexpr FormatInfo kInfo{"IQ3_XXS", 18, 256, 98, CanonicalGroup::kOther};
  struct Block {
    LeHalf d;
    uint8_t qs[64];            // index of vector v
    LeU32 signs_and_scale[8];  // per 32: bits 7l .. 7l + 6 sign index of its elements 8l .. 8l + 7, bits 28..31 scale
  };
  static_assert(sizeof(Block) == kInfo.block_bytes);

  // y = d * (scale + 1/2) / 2 * grid * sign
  static void decode(const Block& b, std::span<float, 256> out) {
    float d = b.d.get();
    for (int v = 0; v < 64; ++v) {
      uint32_t w = b.signs_and_scale[v / 8].get();
      float scale = d * (0.5f + static_cast<float>(w >> 28)) * 0.5f;
      const int8_t* signs = kEvenSigns.entry[(w >> (7 * (v / 2 % 4))) & 127] + 4 * (v % 2);
      decode_vector(scale, kIq3XxsGrid.entry[b.qs[v]], signs, &out[4 * v]);
    }
  }
};

struct IQ3_S {
  static constexpr FormatId kId = FormatId::kIQ3_S;
  static constexpr FormatInfo kInfo{"IQ3_S", 21, 256, 110, CanonicalGroup::kOther};
  struct Block {
    LeHalf d;
    uint8_t qs[64];     // low eight bits of the index of vector v
    uint8_t qh[8];      // bit v % 8 of byte v / 8: index bit 8 of vector v
    uint8_t signs[32];  // bit i % 8 of byte i / 8: element i is negative
    uint8_t scales[4];  // nibble g: scale of 32-group g
  };
  static_assert(sizeof(Block) == kInfo.block_bytes);

  // y = d * (2 scale + 1) * grid * sign
  static void decode(const Block& b, std::span<float, 256> out) {
    float d = b.d.get();
    for (int v = 0; v < 64; ++v) {
      int nibble = (b.scales[v / 16] >> (4 * (v / 8 % 2))) & 15;
      int index = b.qs[v] | ((b.qh[v / 8] >> (v % 8)) & 1) << 8;
      const int8_t* signs = kSigns.entry[b.signs[v / 2]] + 4 * (v % 2);
      decode_vector(d * static_cast<float>(2 * nibble + 1), kIq3SGrid.entry[index], signs, &out[4 * v]);
    }
  }
};

}  // namespace hearth
