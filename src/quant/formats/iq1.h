// IQ1_S and IQ1_M: vectors of eight ternary values from a codebook of 2048, shifted by an eighth up or down.
#pragma once

#include <span>

#include "quant/format.h"
#include "quant/formats/grids.h"
#include "quant/half.h"

namespace hearth {

// scale * (entry + 1/8), or - 1/8 when `down` is 1.
inline void decode_iq1_vector(float scale, int down, const int8_t (&entry)[8], float* out) {
  float values[8], shift = 0.125f * static_cast<float>(1 - 2 * down);
  for (int k = 0; k < 8; ++k) values[k] = static_cast<float>(entry[k]) + shift;
  for (int k = 0; k < 8; ++k) out[k] = scale * values[k];
}

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
      decode_iq1_vector(scale, qh >> 15, kIq1Grid.entry[b.qs[v] | ((qh >> (3 * (v % 4))) & 7) << 8], &out[8 * v]);
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
      decode_iq1_vector(group, nibble >> 3, kIq1Grid.entry[b.qs[v] | (nibble & 7) << 8], &out[8 * v]);
    }
  }
};

}  // namespace hearth
