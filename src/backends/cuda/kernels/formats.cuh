// Formats as warps read them: planar panels (quant/layout.h) in units of 256 columns x 16 rows, from shared memory.
//
// A lane is 4 * g + t. It reads rows 2g and 2g + 1 of a panel, and of each 32 columns ("block") the elements 8t .. 8t +
// 7: what a lane of the matrix unit wants (device.cuh), with row g of the fragment being row 2g of the panel and row g
// + 8 being row 2g + 1, and with the columns of a block in an order that activations follow.
#pragma once

#include "backends/cuda/kernels/device.cuh"
#include "backends/cuda/kernels/format_shape.h"
#include "backends/cuda/kernels/linear.h"
#include "quant/formats/codebooks.h"

namespace hearth::cuda {

// Two rows of a panel: x of row 2g, y of row 2g + 1.
struct Pair {
  float x, y;
};

template <int CodeBits, int HighBits, int Zero, Scales S, Table T = Table::kNone>
struct IntFormat : IntShape<CodeBits, HighBits, Zero, S, T> {
  using Shape = IntShape<CodeBits, HighBits, Zero, S, T>;
  using Shape::kCodeBytes, Shape::kHighBytes, Shape::kSubBytes, Shape::kScaleBytes, Shape::kHighOffset,
      Shape::kSubOffset, Shape::kScaleOffset, Shape::kUnitCols, Shape::kPlanes, Shape::kZero;

  // Lines 2 and 3 of each four have their halves swapped, so that the four lines of a block's reads meet other banks.
  static HEARTH_DEVICE int swizzle(int line, int byte) { return line * 64 + (byte ^ ((line & 2) << 4)); }

  // Copies unit `unit` of a panel to `stage` (an address in shared memory), one warp; columns past the end become zero
  // codes and scales.
  static HEARTH_DEVICE void load(uint32_t stage, const uint8_t* panel, const LinearParams& p, int unit, int lane) {
    if ((unit + 1) * kUnitCols <= p.cols) {
      copy_plane<kCodeBytes, true>(stage, panel, unit, lane);
      copy_plane<kHighBytes, false>(stage + kHighOffset, panel + p.high_offset, unit, lane);
      copy_plane<kSubBytes, false>(stage + kSubOffset, panel + p.sub_scales_offset, unit, lane);
      copy_plane<kScaleBytes, false>(stage + kScaleOffset, panel + p.scales_offset, unit, lane);
    } else {
      const int blocks = (p.cols + scale_elems(S) - 1) / scale_elems(S);
      copy_tail<kCodeBytes, true>(stage, panel, unit, p.cols * CodeBits * 2, lane);
      copy_tail<kHighBytes, false>(stage + kHighOffset, panel + p.high_offset, unit, p.cols * HighBits * 2, lane);
      copy_tail<kSubBytes, false>(stage + kSubOffset, panel + p.sub_scales_offset, unit, blocks * scale_lines(S) * 64,
                                  lane);
      copy_tail<kScaleBytes, false>(stage + kScaleOffset, panel + p.scales_offset, unit, blocks * scale_halves(S) * 32,
                                    lane);
    }
  }

  // What block `block` (0..7) multiplies with, as bytes: codes, or for each plane of a table two terms whose sum is the
  // table's value. a[..][0], [2]: row 2g, elements 8t .. 8t + 3 and 8t + 4 .. 8t + 7; [1], [3]: row 2g + 1. Terms lie
  // in the order that values are found in: of the eight elements 0 4 1 5 and 2 6 3 7.
  static constexpr int kTerms = T == Table::kNone ? 1 : 2;
  static HEARTH_DEVICE void factors(const uint8_t* stage, int block, int g, int t, uint32_t (&a)[kPlanes * kTerms][4]) {
    if constexpr (T == Table::kNone) {
      codes(stage, block, g, t, a[0]);
    } else {
      const uint2 w = read2(stage + swizzle(block * 4 + t, 8 * g));
      look_up_terms(w.x, a, 0);
      look_up_terms(w.y, a, 1);
    }
  }
  // The same as single bytes: of a table the value.
  static HEARTH_DEVICE void values(const uint8_t* stage, int block, int g, int t, uint32_t (&a)[kPlanes][4]) {
    if constexpr (T == Table::kNone) {
      codes(stage, block, g, t, a[0]);
    } else {
      const uint2 w = read2(stage + swizzle(block * 4 + t, 8 * g));
      look_up(w.x, a, 0);
      look_up(w.y, a, 1);
    }
  }
  // Codes in the same order.
  static HEARTH_DEVICE void codes(const uint8_t* stage, int block, int g, int t, uint32_t (&a)[4]) {
    if constexpr (CodeBits == 8) {
      const int line = block * 8 + 2 * t;
      const uint2 first = read2(stage + swizzle(line, 8 * g)), second = read2(stage + swizzle(line + 1, 8 * g));
      a[0] = first.x, a[1] = first.y, a[2] = second.x, a[3] = second.y;
    } else if constexpr (CodeBits == 4) {
      const uint2 w = read2(stage + swizzle(block * 4 + t, 8 * g));
      a[0] = w.x & 0x0f0f0f0f, a[1] = w.y & 0x0f0f0f0f;
      a[2] = w.x >> 4 & 0x0f0f0f0f, a[3] = w.y >> 4 & 0x0f0f0f0f;
    } else {
      static_assert(CodeBits == 2);
      const uint2 w = read2(stage + (block * 2 + t / 2) * 64 + 8 * g);
      const uint32_t x = w.x >> (4 * (t & 1)), y = w.y >> (4 * (t & 1));
      a[0] = x & 0x03030303, a[1] = y & 0x03030303;
      a[2] = x >> 2 & 0x03030303, a[3] = y >> 2 & 0x03030303;
    }
    if constexpr (HighBits == 2) {
      static_assert(CodeBits == 4);
      const uint2 w = read2(stage + kHighOffset + (block * 2 + t / 2) * 64 + 8 * g);
      const uint32_t x = t & 1 ? w.x : w.x << 4, y = t & 1 ? w.y : w.y << 4;
      a[0] |= x & 0x30303030, a[1] |= y & 0x30303030;
      a[2] |= x >> 2 & 0x30303030, a[3] |= y >> 2 & 0x30303030;
    } else if constexpr (HighBits == 1) {
      const uint2 w = read2(stage + kHighOffset + block * 64 + 8 * g);
      const uint32_t x = w.x >> (2 * t), y = w.y >> (2 * t);
      constexpr uint32_t kBit = 0x01010101u << CodeBits;
      a[0] |= x << CodeBits & kBit, a[1] |= y << CodeBits & kBit;
      a[2] |= x << (CodeBits - 1) & kBit, a[3] |= y << (CodeBits - 1) & kBit;
    }
  }

  // The value that a code stands for, before its scale; exact.
  static HEARTH_DEVICE float value(uint32_t code) {
    if constexpr (T == Table::kNf4) {
      constexpr Values<float> kValues = table_values();
      return kValues.at[code];
    } else if constexpr (T != Table::kNone) {
      const uint32_t word = code < 8 ? (code < 4 ? table_word(0, 0) : table_word(0, 1))
                                     : (code < 12 ? table_word(0, 2) : table_word(0, 3));
      return static_cast<float>(static_cast<int8_t>(word >> (8 * (code % 4))));
    } else {
      return static_cast<float>(static_cast<int>(code) - kZero);
    }
  }

  // What of the scales is read once for a unit.
  struct UnitScales {
    uint2 lines[4];
    uint32_t halves[2];
  };
  static HEARTH_DEVICE UnitScales read_scales(const uint8_t* stage, int g) {
    UnitScales u{};
    if constexpr (scale_elems(S) == 256) {
#pragma unroll
      for (int i = 0; i < scale_lines(S); ++i) u.lines[i] = read2(stage + kSubOffset + 64 * i + 8 * g);
#pragma unroll
      for (int i = 0; i < scale_halves(S); ++i) u.halves[i] = read1(stage + kScaleOffset + 32 * i + 4 * g);
    }
    return u;
  }
  // What scales are multiplied with for factors(): NF4's are integers.
  static constexpr float kFactorScale = T == Table::kNf4 ? 1.0f / kIntLimit : 1.0f;

  // Scale and minimum of group 4 * Quad + low (0..3) of the unit, groups of kGroup columns.
  template <int Quad>
  static HEARTH_DEVICE void scale(const UnitScales& u, const uint8_t* stage, int g, int low, Pair& s, Pair& m) {
    const int shift = 8 * low;
    m = {0.0f, 0.0f};
    if constexpr (S == Scales::kHalf) {
      s = halves(read1(stage + kScaleOffset + (4 * Quad + low) * 32 + 4 * g));
    } else if constexpr (S == Scales::kHalfMin) {
      s = halves(read1(stage + kScaleOffset + (4 * Quad + low) * 64 + 4 * g));
      m = halves(read1(stage + kScaleOffset + (4 * Quad + low) * 64 + 32 + 4 * g));
    } else if constexpr (S == Scales::kHalf64) {
      s = halves(read1(stage + kScaleOffset + (4 * Quad + low) / 2 * 32 + 4 * g));
    } else if constexpr (S == Scales::kSixBit) {
      const Pair d = halves(u.halves[0]), dmin = halves(u.halves[1]);
      uint2 sc, mn;
      if constexpr (Quad == 0) {
        sc = {u.lines[0].x >> shift & 63, u.lines[0].y >> shift & 63};
        mn = {u.lines[1].x >> shift & 63, u.lines[1].y >> shift & 63};
      } else {
        const uint32_t x = u.lines[2].x >> shift, y = u.lines[2].y >> shift;
        sc = {(x & 15) | (u.lines[0].x >> shift >> 2 & 48), (y & 15) | (u.lines[0].y >> shift >> 2 & 48)};
        mn = {(x >> 4 & 15) | (u.lines[1].x >> shift >> 2 & 48), (y >> 4 & 15) | (u.lines[1].y >> shift >> 2 & 48)};
      }
      s = {d.x * static_cast<float>(sc.x), d.y * static_cast<float>(sc.y)};
      m = {-dmin.x * static_cast<float>(mn.x), -dmin.y * static_cast<float>(mn.y)};
    } else if constexpr (S == Scales::kByte) {
      const Pair d = halves(u.halves[0]);
      s = {d.x * static_cast<float>(static_cast<int8_t>(u.lines[Quad].x >> shift)),
           d.y * static_cast<float>(static_cast<int8_t>(u.lines[Quad].y >> shift))};
    } else if constexpr (S == Scales::kNibble) {
      const Pair d = halves(u.halves[0]), dmin = halves(u.halves[1]);
      const uint32_t x = u.lines[Quad].x >> shift, y = u.lines[Quad].y >> shift;
      s = {d.x * static_cast<float>(x & 15), d.y * static_cast<float>(y & 15)};
      m = {-dmin.x * static_cast<float>(x >> 4 & 15), -dmin.y * static_cast<float>(y >> 4 & 15)};
    } else if constexpr (S == Scales::kSix16) {
      const Pair d = halves(u.halves[0]);
      auto code = [&](uint32_t s0, uint32_t s1, uint32_t s2) {
        const uint32_t four = (Quad % 2 == 0 ? s0 : s1) >> shift >> (Quad < 2 ? 0 : 4) & 15;
        const uint32_t high = s2 >> shift;
        const uint32_t two = (Quad == 0 ? high << 4 : Quad == 1 ? high << 2 : Quad == 2 ? high : high >> 2) & 48;
        return static_cast<float>(static_cast<int>(four | two) - 32);
      };
      s = {d.x * code(u.lines[0].x, u.lines[1].x, u.lines[2].x), d.y * code(u.lines[0].y, u.lines[1].y, u.lines[2].y)};
    } else if constexpr (S == Scales::kSix32) {
      const Pair d = halves(u.halves[0]);
      auto code = [&](uint32_t line, uint32_t h) {
        const uint32_t two =
            Quad == 0 ? (h << 4 & 0x00003030) | (h << 16 & 0x30300000) : (h << 2 & 0x00003030) | (h << 14 & 0x30300000);
        const uint32_t four = line >> (Quad == 0 ? 0 : 4) & 0x0f0f0f0f;
        return static_cast<float>(static_cast<int>((four | two) >> shift & 63) - 32);
      };
      s = {d.x * code(u.lines[0].x, u.halves[1] & 0xffff), d.y * code(u.lines[0].y, u.halves[1] >> 16)};
    } else if constexpr (S == Scales::kE8M0) {
      const uint2 w = read2(stage + kSubOffset + Quad * 64 + 8 * g);
      auto power = [](uint32_t e) {  // 2^(e - 128)
        return __uint_as_float(e < 2 ? 0x00200000u << e : (e - 1) << 23);
      };
      s = {power(w.x >> shift & 255), power(w.y >> shift & 255)};
    } else {
      static_assert(S == Scales::kE4M3);
      const uint2 w = read2(stage + kSubOffset + Quad * 64 + 8 * g);
      auto value = [](uint32_t x) { return __uint_as_float((x & 127) << 20) * 0x1p+119f; };
      s = {value(w.x >> shift), value(w.y >> shift)};
    }
  }

 private:
  static HEARTH_DEVICE uint32_t read1(const uint8_t* p) { return *reinterpret_cast<const uint32_t*>(p); }
  static HEARTH_DEVICE uint2 read2(const uint8_t* p) { return *reinterpret_cast<const uint2*>(p); }
  static HEARTH_DEVICE Pair halves(uint32_t two) {
    const float2 f = __half22float2(*reinterpret_cast<const __half2*>(&two));
    return {f.x, f.y};
  }

  // Where a lane's 16 bytes go; 512 bytes on they go to the same place 512 bytes on.
  template <bool kSwizzle>
  static HEARTH_DEVICE uint32_t place(int lane) {
    return kSwizzle && CodeBits != 2 ? swizzle(lane / 4, lane % 4 * 16) : lane * 16;
  }
  template <int Bytes, bool kSwizzle>
  static HEARTH_DEVICE void copy_plane(uint32_t to, const uint8_t* plane, int unit, int lane) {
    if constexpr (Bytes > 0) {
      const uint8_t* from = plane + (static_cast<uint32_t>(unit) * Bytes + static_cast<uint32_t>(lane) * 16);
      to += place<kSwizzle>(lane);
#pragma unroll
      for (int first = 0; first < Bytes; first += 512) {
        if (first + 512 <= Bytes || lane < Bytes % 512 / 16) copy_async_16(to + first, from + first);
      }
    }
  }
  // The same where the plane may end, after `plane_bytes`.
  template <int Bytes, bool kSwizzle>
  static HEARTH_DEVICE void copy_tail(uint32_t to, const uint8_t* plane, int unit, int plane_bytes, int lane) {
    if constexpr (Bytes > 0) {
      to += place<kSwizzle>(lane);
#pragma unroll 1
      for (int first = 0; first < Bytes; first += 512) {
        const int at = unit * Bytes + first + lane * 16, left = min(max(plane_bytes - at, 0), 16);
        if (first + 512 <= Bytes || lane < Bytes % 512 / 16)
          copy_async_16(to + first, left > 0 ? plane + at : plane, left);
      }
    }
  }

  template <class V>
  struct Values {
    V at[16];
  };
  static constexpr Values<float> table_values() {
    Values<float> v{};
    for (int i = 0; i < 16; ++i) v.at[i] = kNf4Values[i];
    return v;
  }
  // Byte of table value i: of 8-bit tables itself, of NF4 the high (plane 0) or low byte of round(value * kIntLimit).
  static constexpr uint32_t table_byte(int plane, int i) {
    int value = 0;
    if (T == Table::kIq4) value = kIq4Values[i];
    if (T == Table::kE2m1) value = kE2m1Doubled[i];
    if (T == Table::kNf4) {
      const float scaled = kNf4Values[i] * kIntLimit;
      const int rounded = static_cast<int>(scaled + (scaled < 0 ? -0.5f : 0.5f)), high = (rounded + 128) >> 8;
      value = plane == 0 ? high : rounded - high * 256;
    }
    return static_cast<uint32_t>(value) & 255;
  }
  static constexpr uint32_t table_word(int plane, int word) {
    return table_byte(plane, 4 * word) | table_byte(plane, 4 * word + 1) << 8 | table_byte(plane, 4 * word + 2) << 16 |
           table_byte(plane, 4 * word + 3) << 24;
  }

  // Eight codes of one row become table values in a[plane][row] and a[plane][row + 2]. A byte permutation looks four of
  // them up at a time: codes below 8, codes from 8 on, and then the one of the two that bit 3 says.
  static HEARTH_DEVICE void look_up(uint32_t w, uint32_t (&a)[kPlanes][4], int row) {
    const uint32_t index = w & 0x77777777, which = (w >> 1 & 0x44444444) | 0x32103210;
    for_each_index<kPlanes>([&](auto plane) {
      constexpr int kPlane = decltype(plane)::value;
      constexpr uint32_t v0 = table_word(kPlane, 0), v1 = table_word(kPlane, 1), v2 = table_word(kPlane, 2),
                         v3 = table_word(kPlane, 3);
      a[kPlane][row] = permute(permute(v0, v1, index), permute(v2, v3, index), which);
      a[kPlane][row + 2] = permute(permute(v0, v1, index >> 16), permute(v2, v3, index >> 16), which >> 16);
    });
  }

  // The terms of table values: a permutation whose selector has bit 3 set gives 0 or -1, the sign of the byte that the
  // other bits select. So codes below 8 find low[code] in one table and the sign of high[code] in the other, codes from
  // 8 on find high[code - 8] and the sign of low[code - 8], and the matrix unit, which has time, adds the two.
  struct Terms {
    int low = 0, high = 0;
    bool found = false;
  };
  static constexpr int as_signed(uint32_t byte) { return static_cast<int>(byte) - (byte < 128 ? 0 : 256); }
  static constexpr Terms table_terms(int plane, int i) {
    const int below = as_signed(table_byte(plane, i)), above = as_signed(table_byte(plane, i + 8));
    for (int signs = 0; signs < 4; ++signs) {
      const int low_sign = -(signs & 1), high_sign = -(signs >> 1), low = below - high_sign, high = above - low_sign;
      const bool bytes = low >= -128 && low < 128 && high >= -128 && high < 128;
      if (bytes && (low < 0) == (low_sign < 0) && (high < 0) == (high_sign < 0)) return {low, high, true};
    }
    return {};
  }
  // Four of them, from i on: of codes below 8, or of those from 8 on.
  static constexpr uint32_t term_word(int plane, int i, bool high) {
    uint32_t word = 0;
    for (int k = 0; k < 4; ++k) {
      const Terms terms = table_terms(plane, i + k);
      word |= (static_cast<uint32_t>(high ? terms.high : terms.low) & 255) << (8 * k);
    }
    return word;
  }
  static constexpr bool has_terms(int plane) {
    for (int i = 0; i < 8; ++i) {
      if (!table_terms(plane, i).found) return false;
    }
    return true;
  }
  static HEARTH_DEVICE void look_up_terms(uint32_t w, uint32_t (&a)[kPlanes * kTerms][4], int row) {
    const uint32_t second = w >> 16, from_8 = w ^ 0x8888, second_from_8 = second ^ 0x8888;
    for_each_index<kPlanes>([&](auto plane) {
      constexpr int kPlane = decltype(plane)::value;
      static_assert(has_terms(kPlane));
      constexpr uint32_t l0 = term_word(kPlane, 0, false), l1 = term_word(kPlane, 4, false),
                         h0 = term_word(kPlane, 0, true), h1 = term_word(kPlane, 4, true);
      const uint32_t low = in_register(l0), high = in_register(h0);
      a[2 * kPlane][row] = permute(low, l1, w), a[2 * kPlane][row + 2] = permute(low, l1, second);
      a[2 * kPlane + 1][row] = permute(high, h1, from_8), a[2 * kPlane + 1][row + 2] = permute(high, h1, second_from_8);
    });
  }
};

template <bool kBrain>
struct HalfFormat : HalfShape {
  // The four 32-byte pieces of two lines, in an order that turns with every fourth line: four lanes that read lines
  // four apart meet other banks.
  static HEARTH_DEVICE int place(int line, int byte) {
    return line / 2 * 128 + (((line & 1) * 2 + byte / 32) ^ (line / 4 & 3)) * 32 + byte % 32;
  }
  static HEARTH_DEVICE void load(uint32_t stage, const uint8_t* panel, const LinearParams& p, int unit, int lane) {
    const int plane_bytes = (p.cols + 1) / 2 * 64;
    const uint8_t* from = panel + static_cast<size_t>(unit) * kUnitBytes;
#pragma unroll
    for (int first = 0; first < kUnitBytes / 16; first += 32) {
      const int chunk = first + lane;
      const int left = min(max(plane_bytes - unit * kUnitBytes - chunk * 16, 0), 16);
      copy_async_16(stage + place(chunk / 4, chunk % 4 * 16), left > 0 ? from + chunk * 16 : panel, left);
    }
  }
  // Block `block` (0..1) as f16 pairs: h[0], h[1]: fragments of elements 8t .. 8t + 3 and 8t + 4 .. 8t + 7.
  static HEARTH_DEVICE void fragments(const uint8_t* stage, int block, int g, int t, uint32_t (&h)[2][4]) {
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      const uint2 w = *reinterpret_cast<const uint2*>(stage + place(block * 16 + 4 * t + i, 8 * g));
      h[i / 2][i % 2 * 2] = half2_bits(w.x);
      h[i / 2][i % 2 * 2 + 1] = half2_bits(w.y);
    }
  }
  static HEARTH_DEVICE uint32_t half2_bits(uint32_t two) {
    if constexpr (!kBrain) return two;
    const __half2 h = __floats2half2_rn(__uint_as_float(two << 16), __uint_as_float(two & 0xffff0000u));
    return *reinterpret_cast<const uint32_t*>(&h);
  }
};

#define HEARTH_CUDA_FORMAT(name, ...) using name = IntFormat<__VA_ARGS__>;
HEARTH_CUDA_INT_FORMATS(HEARTH_CUDA_FORMAT)
#undef HEARTH_CUDA_FORMAT
using F16 = HalfFormat<false>;
using BF16 = HalfFormat<true>;

}  // namespace hearth::cuda
