// How the codes and scales of planar panels (quant/layout.h) are taken apart, 16 rows at a time. Part of kernels.cpp.
#pragma once

#include "backends/cpu/kernels.h"
#include "backends/cpu/kernels/simd.h"

namespace hearth::cpu {
namespace {

enum class ScaleKind { kHalf, kHalfMin, kSixBit, kByte };

// A format with integer codes: value = scale * (code - kZero) [+ min].
template <int CodeBits, int HighBits, int Zero, ScaleKind Kind>
struct Planar {
  static constexpr int kCodeBits = CodeBits, kHighBits = HighBits, kZero = Zero;
  static constexpr ScaleKind kScale = Kind;
  static constexpr int64_t kLineElems = 32 / CodeBits;                   // elements in one 64-byte line
  static constexpr int64_t kGroup = Kind == ScaleKind::kByte ? 16 : 32;  // elements that share a scale
  static constexpr bool kSuper = Kind == ScaleKind::kSixBit || Kind == ScaleKind::kByte;  // scales per 256
};
using PlanarQ8_0 = Planar<8, 0, 128, ScaleKind::kHalf>;
using PlanarQ4_0 = Planar<4, 0, 8, ScaleKind::kHalf>;
using PlanarQ4_1 = Planar<4, 0, 0, ScaleKind::kHalfMin>;
using PlanarQ5_0 = Planar<4, 1, 16, ScaleKind::kHalf>;
using PlanarQ5_1 = Planar<4, 1, 0, ScaleKind::kHalfMin>;
using PlanarQ4_K = Planar<4, 0, 0, ScaleKind::kSixBit>;
using PlanarQ5_K = Planar<4, 1, 0, ScaleKind::kSixBit>;
using PlanarQ6_K = Planar<4, 2, 32, ScaleKind::kByte>;

// The line of high bits that belongs to the 16 elements from `e` (a multiple of 16) on.
template <class F>
HEARTH_INLINE I32x16 high_line(const PanelView& p, int64_t e) {
  if constexpr (F::kHighBits == 1) return load(p.high + (e / 32) * 64);
  if constexpr (F::kHighBits == 2) return load(p.high + (e / 16) * 64);
  return zero_i();
}

// The code bits 4 and up of element 8c + 4h + byte, moved there; Half: which 16 elements of the 32 (1-bit planes only).
// With `Byte` in a low position of each 16-bit half the mask keeps that byte and the one two further on.
template <class F, int Half, int C, int H, int Byte, bool Pairs>
HEARTH_INLINE I32x16 high_bits(I32x16 high) {
  constexpr int kIndex = F::kHighBits == 1 ? 2 * (2 * Half + C) + H : 2 * (2 * C + H);
  constexpr int kMask = F::kHighBits == 1 ? 0x10 : 0x30;
  return bit_and(shift<8 * Byte + kIndex - 4>(high), set1(Pairs ? kMask * 0x10001 : kMask));
}

// f.template operator()<i>(codes): for the 8 pairs of 16 elements, in the order of IntRows. `Half` as above.
template <class F, int Half, class Fn>
HEARTH_INLINE void each_pair16(const uint8_t* lines, I32x16 high, Fn&& f) {
  if constexpr (F::kCodeBits == 8) {
    const I32x16 mask = set1(0x00ff00ff);
    auto line = [&]<int L>() {
      I32x16 x = load(lines + 64 * L);
      f.template operator()<2 * L>(bit_and(x, mask));
      f.template operator()<2 * L + 1>(shift_halves<8>(x));
    };
    line.template operator()<0>(), line.template operator()<1>();
    line.template operator()<2>(), line.template operator()<3>();
  } else {
    const I32x16 mask = set1(0x000f000f);
    auto line = [&]<int L>() {
      I32x16 x = load(lines + 64 * L);
      I32x16 c[4] = {bit_and(x, mask), bit_and(shift<8>(x), mask), bit_and(shift<4>(x), mask), shift_halves<12>(x)};
      if constexpr (F::kHighBits > 0) {
        c[0] = bit_or(c[0], high_bits<F, Half, L, 0, 0, true>(high));
        c[1] = bit_or(c[1], high_bits<F, Half, L, 0, 1, true>(high));
        c[2] = bit_or(c[2], high_bits<F, Half, L, 1, 0, true>(high));
        c[3] = bit_or(c[3], high_bits<F, Half, L, 1, 1, true>(high));
      }
      f.template operator()<4 * L>(c[0]);
      f.template operator()<4 * L + 1>(c[1]);
      f.template operator()<4 * L + 2>(c[2]);
      f.template operator()<4 * L + 3>(c[3]);
    };
    line.template operator()<0>(), line.template operator()<1>();
  }
}

// f.template operator()<e>(codes as int32) for each of 16 elements.
template <class F, int Half, class Fn>
HEARTH_INLINE void each_code16(const uint8_t* lines, I32x16 high, Fn&& f) {
  if constexpr (F::kCodeBits == 8) {
    const I32x16 mask = set1(0xff);
    auto line = [&]<int L>() {
      I32x16 x = load(lines + 64 * L);
      f.template operator()<4 * L>(bit_and(x, mask));
      f.template operator()<4 * L + 1>(bit_and(shift<8>(x), mask));
      f.template operator()<4 * L + 2>(bit_and(shift<16>(x), mask));
      f.template operator()<4 * L + 3>(shift<24>(x));
    };
    line.template operator()<0>(), line.template operator()<1>();
    line.template operator()<2>(), line.template operator()<3>();
  } else {
    const I32x16 mask = set1(0xf);
    auto part = [&]<int L, int H, int Byte>(I32x16 x) {
      I32x16 c = bit_and(shift<8 * Byte + 4 * H>(x), mask);
      if constexpr (F::kHighBits > 0) c = bit_or(c, high_bits<F, Half, L, H, Byte, false>(high));
      f.template operator()<8 * L + 4 * H + Byte>(c);
    };
    auto line = [&]<int L>() {
      I32x16 x = load(lines + 64 * L);
      part.template operator()<L, 0, 0>(x), part.template operator()<L, 0, 1>(x);
      part.template operator()<L, 0, 2>(x), part.template operator()<L, 0, 3>(x);
      part.template operator()<L, 1, 0>(x), part.template operator()<L, 1, 1>(x);
      part.template operator()<L, 1, 2>(x), part.template operator()<L, 1, 3>(x);
    };
    line.template operator()<0>(), line.template operator()<1>();
  }
}

// The six-bit scales (or minimums) 0..3 and 4..7 of 256 elements as four bytes per row.
struct SixBit {
  I32x16 scale[2], min[2];
};
HEARTH_INLINE SixBit six_bit(const PanelView& p, int64_t super) {
  const uint8_t* line = p.sub_scales + super * 192;
  I32x16 s0 = load(line), s1 = load(line + 64), s2 = load(line + 128);
  const I32x16 low6 = set1(0x3f3f3f3f), low4 = set1(0x0f0f0f0f), high2 = set1(0x30303030);
  return {{bit_and(s0, low6), bit_or(bit_and(s2, low4), bit_and(shift<2>(s0), high2))},
          {bit_and(s1, low6), bit_or(bit_and(shift<4>(s2), low4), bit_and(shift<2>(s1), high2))}};
}

template <int Byte>
HEARTH_INLINE F32x16 byte_to_f32(I32x16 x) {  // unsigned
  if constexpr (Byte == 3) return to_f32(shift<24>(x));
  return to_f32(bit_and(shift<8 * Byte>(x), set1(0xff)));
}
template <int Byte>
HEARTH_INLINE F32x16 signed_byte_to_f32(I32x16 x) {
  return to_f32(shift_signed<24>(shift<8 * Byte - 24>(x)));
}

// f.template operator()<0>() ... <N - 1>()
template <int N, class Fn, int I = 0>
HEARTH_INLINE void unrolled(Fn&& f) {
  if constexpr (I < N) {
    f.template operator()<I>();
    unrolled<N, Fn, I + 1>(static_cast<Fn&&>(f));
  }
}

}  // namespace
}  // namespace hearth::cpu
