// MXFP4 and NVFP4: 4-bit floats (E2M1) with a power-of-two scale per 32 or an E4M3 scale per 16.
#pragma once

#include <bit>
#include <span>

#include "quant/format.h"
#include "quant/formats/codebooks.h"
#include "quant/half.h"

namespace hearth {

// Half of 2^(e - 127), the value of an E8M0 scale byte. Halving keeps e = 255 finite, which the OCP text calls NaN but
// existing engines multiply with like any other.
constexpr float e8m0_half(uint8_t e) {
  uint32_t bits = e < 2 ? 0x200000u << e : static_cast<uint32_t>(e - 1) << 23;
  return std::bit_cast<float>(bits);
}

// An unsigned E4M3 scale: bit 7 is ignored, 0x7f is 0, 448 is the largest value.
constexpr float ue4m3(uint8_t x) {
  x &= 0x7f;
  if (x == 0x7f) return 0.0f;
  auto m = static_cast<uint32_t>(x & 7);
  auto e = static_cast<uint32_t>(x >> 3);
  if (e == 0) return static_cast<float>(m) * 0x1p-9f;
  return std::bit_cast<float>((e + 120u) << 23 | m << 20);
}

struct MXFP4 {
  static constexpr FormatId kId = FormatId::kMXFP4;
  static constexpr FormatInfo kInfo{"MXFP4", 39, 32, 17, CanonicalGroup::kCodebook};
  struct Block {
    uint8_t e;       // E8M0: scale 2^(e - 127)
    uint8_t qs[16];  // low nibble: element j, high nibble: element j + 16
  };
  static_assert(sizeof(Block) == kInfo.block_bytes);

  // y = 2^(e - 127) * e2m1(q)
  static void decode(const Block& b, std::span<float, 32> out) {
    float half = e8m0_half(b.e);
    for (int j = 0; j < 16; ++j) {
      out[j] = half * static_cast<float>(kE2m1Doubled[b.qs[j] & 15]);
      out[j + 16] = half * static_cast<float>(kE2m1Doubled[b.qs[j] >> 4]);
    }
  }
};

// A second scale, one f32 per tensor or expert in a tensor of its own, multiplies the result; it is not part of a row.
struct NVFP4 {
  static constexpr FormatId kId = FormatId::kNVFP4;
  static constexpr FormatInfo kInfo{"NVFP4", 40, 64, 36, CanonicalGroup::kCodebook};
  struct Block {
    uint8_t d[4];    // unsigned E4M3, per 16 elements
    uint8_t qs[32];  // byte 8s + k: low nibble element 16s + k, high nibble element 16s + 8 + k
  };
  static_assert(sizeof(Block) == kInfo.block_bytes);

  // y = ue4m3(d) * e2m1(q)
  static void decode(const Block& b, std::span<float, 64> out) {
    for (int s = 0; s < 4; ++s) {
      float half = 0.5f * ue4m3(b.d[s]);
      for (int k = 0; k < 8; ++k) {
        uint8_t byte = b.qs[8 * s + k];
        out[16 * s + k] = half * static_cast<float>(kE2m1Doubled[byte & 15]);
        out[16 * s + 8 + k] = half * static_cast<float>(kE2m1Doubled[byte >> 4]);
      }
    }
  }
};

}  // namespace hearth
