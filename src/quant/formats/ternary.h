// TQ1_0, TQ2_0, Q1_0 and Q2_0: codes of one to two bits with one f16 scale per block.
#pragma once

#include <span>

#include "quant/format.h"
#include "quant/half.h"

namespace hearth {

// 256 ternary digits, five to a byte as a fraction in base 3: digit n of byte b is the top digit of (b * 3^n mod 256).
struct TQ1_0 {
  static constexpr FormatId kId = FormatId::kTQ1_0;
  static constexpr FormatInfo kInfo{"TQ1_0", 34, 256, 54, CanonicalGroup::kOther};
  struct Block {
    uint8_t qs[48];  // bytes 0..31: elements 0..159 (digit-major), bytes 32..47: elements 160..239
    uint8_t qh[4];   // elements 240..255, four digits to a byte
    LeHalf d;
  };
  static_assert(sizeof(Block) == kInfo.block_bytes);

  // -1, 0 or 1
  static int digit(uint8_t byte, int n) {
    static constexpr int kPower[5] = {1, 3, 9, 27, 81};
    int t = (byte * kPower[n]) & 255;
    return ((t * 3) >> 8) - 1;
  }

  // y = d * digit
  static void decode(const Block& b, std::span<float, 256> out) {
    float d = b.d.get();
    for (int n = 0; n < 5; ++n) {
      for (int m = 0; m < 32; ++m) out[32 * n + m] = d * static_cast<float>(digit(b.qs[m], n));
      for (int m = 0; m < 16; ++m) out[160 + 16 * n + m] = d * static_cast<float>(digit(b.qs[32 + m], n));
    }
    for (int n = 0; n < 4; ++n) {
      for (int m = 0; m < 4; ++m) out[240 + 4 * n + m] = d * static_cast<float>(digit(b.qh[m], n));
    }
  }
};

struct TQ2_0 {
  static constexpr FormatId kId = FormatId::kTQ2_0;
  static constexpr FormatInfo kInfo{"TQ2_0", 35, 256, 66, CanonicalGroup::kOther};
  struct Block {
    uint8_t qs[64];  // byte 32h + m, bits 2n and 2n + 1: element 128h + 32n + m
    LeHalf d;
  };
  static_assert(sizeof(Block) == kInfo.block_bytes);

  // y = d * (q - 1)
  static void decode(const Block& b, std::span<float, 256> out) {
    float d = b.d.get();
    for (int h = 0; h < 2; ++h) {
      for (int n = 0; n < 4; ++n) {
        for (int m = 0; m < 32; ++m) {
          out[128 * h + 32 * n + m] = d * static_cast<float>(((b.qs[32 * h + m] >> (2 * n)) & 3) - 1);
        }
      }
    }
  }
};

struct Q1_0 {
  static constexpr FormatId kId = FormatId::kQ1_0;
  static constexpr FormatInfo kInfo{"Q1_0", 41, 128, 18, CanonicalGroup::kOther};
  struct Block {
    LeHalf d;
    uint8_t qs[16];  // bit i & 7 of byte i >> 3: element i
  };
  static_assert(sizeof(Block) == kInfo.block_bytes);

  // y = bit ? d : -d
  static void decode(const Block& b, std::span<float, 128> out) {
    float d = b.d.get();
    for (int i = 0; i < 128; ++i) out[i] = d * static_cast<float>(2 * ((b.qs[i >> 3] >> (i & 7)) & 1) - 1);
  }
};

struct Q2_0 {
  static constexpr FormatId kId = FormatId::kQ2_0;
  static constexpr FormatInfo kInfo{"Q2_0", 42, 64, 18, CanonicalGroup::kOther};
  struct Block {
    LeHalf d;
    uint8_t qs[16];  // bits 2(i & 3) and up of byte i >> 2: element i
  };
  static_assert(sizeof(Block) == kInfo.block_bytes);

  // y = d * (q - 1)
  static void decode(const Block& b, std::span<float, 64> out) {
    float d = b.d.get();
    for (int i = 0; i < 64; ++i) out[i] = d * static_cast<float>(((b.qs[i >> 2] >> (2 * (i & 3))) & 3) - 1);
  }
};

}  // namespace hearth
