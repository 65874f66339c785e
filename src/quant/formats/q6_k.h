// Q6_K: 256 weights, 6-bit codes around 32 (four low bits, two high bits); i8 scale per 16, f16 factor.
#pragma once

#include <span>

#include "quant/format.h"
#include "quant/half.h"

namespace hearth {

struct Q6_K {
  static constexpr FormatId kId = FormatId::kQ6_K;
  static constexpr FormatInfo kInfo{"Q6_K", 14, 256, 210, CanonicalGroup::kAffine16};
  struct Block {
    uint8_t ql[128];    // low nibbles of byte 64h + l (+ 32): elements 128h + l (+ 32), high nibbles: 64 elements later
    uint8_t qh[64];     // byte 32h + l, bits 2g and 2g + 1: code bits 4, 5 of element 128h + 32g + l
    int8_t scales[16];  // per 16 elements
    LeHalf d;
  };
  static_assert(sizeof(Block) == kInfo.block_bytes);

  static int code(const Block& b, int i) {
    int h = i >> 7, g = (i & 127) >> 5, l = i & 31;
    uint8_t byte = b.ql[64 * h + 32 * (g & 1) + l];
    int low = g < 2 ? byte & 15 : byte >> 4;
    return low | ((b.qh[32 * h + l] >> (2 * g)) & 3) << 4;
  }

  // y = d * scale * (q - 32)
  static void decode(const Block& b, std::span<float, 256> out) {
    float d = b.d.get();
    for (int i = 0; i < 256; ++i) {
      out[i] = d * static_cast<float>(b.scales[i >> 4]) * static_cast<float>(code(b, i) - 32);
    }
  }
};

}  // namespace hearth
