// IQ1_S and IQ1_M: vectors of eight ternary values from a codebook of 2048, shifted by an eighth up or down.
#pragma once

#include <span>

#include "quant/format.h"
#include "quant/formats/grids.h"
#include "quant/half.h"

namespace hearth {

struct IQ1_S {
  static constexpr FormatId kId = FormatId::kIQ1_S;
  static constexpr FormatInfo kInfo{"IQ1_S", 19, 256, 50, CanonicalGroup::kOther};
  struct Block {
    LeHalf d;
    uint8_t qs[32];  // low eight bits of the index of vector v
    LeU16 qh[8];     // per 32: bits 3l .. 3l + 2 index bits 8..10 of its vector l, bits 12..14 scale, bit 15 shift down
  };
  static_assert(sizeof(Block) == kInfo.block_bytes);

  // y = d * (2 scale + 1) * (grid +- 1/8)
  static void decode(const Block& b, std::span<float, 256> out) {
    float d = b.d.get();
    for (int v = 0; v < 32; ++v) {
      int qh = b.qh[v / 4].get();
      float scale = d * static_cast<float>(2 * ((qh >> 12) & 7) + 1);
      float shift = qh & 0x8000 ? -0.125f : 0.125f;
      uint16_t entry = kIq1Grid[b.qs[v] | ((qh >> (3 * (v % 4))) & 7) << 8];
      for (int k = 0; k < 8; ++k) out[8 * v + k] = scale * (static_cast<float>(iq1_value(entry, k)) + shift);
    }
  }
};

struct IQ1_M {
  static constexpr FormatId kId = FormatId::kIQ1_M;
  static constexpr FormatInfo kInfo{"IQ1_M", 29, 256, 56, CanonicalGroup::kOther};
  struct Block {
    uint8_t qs[32];   // low eight bits of the index of vector v
    uint8_t qh[16];   // nibble v: index bits 8..10, and bit 3 for shift down
    LeU16 scales[4];  // per 64: four 3-bit scales (one per 16); the top nibbles together are the f16 factor d
  };
  static_assert(sizeof(Block) == kInfo.block_bytes);

  // y = d * (2 scale + 1) * (grid +- 1/8)
  static void decode(const Block& b, std::span<float, 256> out) {
    unsigned bits = 0;
    for (int i = 0; i < 4; ++i) bits |= static_cast<unsigned>(b.scales[i].get() >> 12) << (4 * i);
    float d = f16_to_f32(static_cast<uint16_t>(bits));
    for (int v = 0; v < 32; ++v) {
      int scale = (b.scales[v / 8].get() >> (3 * (v / 2 % 4))) & 7;
      float group = d * static_cast<float>(2 * scale + 1);
      int nibble = (b.qh[v / 2] >> (4 * (v % 2))) & 15;
      float shift = nibble & 8 ? -0.125f : 0.125f;
      uint16_t entry = kIq1Grid[b.qs[v] | (nibble & 7) << 8];
      for (int k = 0; k < 8; ++k) out[8 * v + k] = group * (static_cast<float>(iq1_value(entry, k)) + shift);
    }
  }
};

}  // namespace hearth
