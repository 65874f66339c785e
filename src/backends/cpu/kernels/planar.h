// How the codes and scales of planar panels (quant/layout.h) are taken apart, 16 rows at a time. Part of kernels.cpp.
#pragma once

#include "backends/cpu/kernels.h"
#include "backends/cpu/kernels/simd.h"
#include "quant/formats/codebooks.h"

namespace hearth::cpu {
namespace {

// f.template operator()<0>() ... <N - 1>()
template <int N, class Fn, int I = 0>
HEARTH_INLINE void unrolled(Fn&& f) {
  if constexpr (I < N) {
    f.template operator()<I>();
    unrolled<N, Fn, I + 1>(static_cast<Fn&&>(f));
  }
}

// As PlanarScale in quant/layout.h.
enum class ScaleKind { kHalf, kHalfMin, kHalf64, kSixBit, kByte, kNibble, kSix16, kSix32, kE8M0, kE4M3 };

struct ScaleFacts {
  int64_t group;   // elements that share a (sub-)scale
  int64_t span;    // elements that share what lies in the scales plane, or the lines of sub-scales
  int64_t lines;   // of sub-scales for each span
  int64_t halves;  // f16 per row in the scales plane for each span: d, then a minimum or other bits
  bool min;
};
constexpr ScaleFacts scale_facts(ScaleKind kind) {
  switch (kind) {
    case ScaleKind::kHalf:
      return {32, 32, 0, 1, false};
    case ScaleKind::kHalfMin:
      return {32, 32, 0, 2, true};
    case ScaleKind::kHalf64:
      return {32, 64, 0, 1, false};
    case ScaleKind::kSixBit:
      return {32, 256, 3, 2, true};
    case ScaleKind::kByte:
      return {16, 256, 4, 1, false};
    case ScaleKind::kNibble:
      return {16, 256, 4, 2, true};
    case ScaleKind::kSix16:
      return {16, 256, 3, 1, false};
    case ScaleKind::kSix32:
      return {32, 256, 1, 2, false};
    case ScaleKind::kE8M0:
      return {32, 128, 1, 0, false};
    case ScaleKind::kE4M3:
      return {16, 64, 1, 0, false};
  }
  return {};
}

// A format with integer codes: value = scale * (code - kZero) [+ min].
template <int CodeBits, int HighBits, int Zero, ScaleKind Kind>
struct Planar {
  static constexpr int kCodeBits = CodeBits, kHighBits = HighBits, kZero = Zero;
  static constexpr ScaleKind kScale = Kind;
  static constexpr int64_t kLineElems = 32 / CodeBits;  // elements in one 64-byte line
  static constexpr int64_t kGroup = scale_facts(Kind).group, kSpan = scale_facts(Kind).span;
  static constexpr int64_t kSubBytes = scale_facts(Kind).lines * 64, kHalves = scale_facts(Kind).halves;
  static constexpr bool kMin = scale_facts(Kind).min;
  static constexpr int64_t kQuads = kSpan / kGroup / 4;  // lines of four sub-scales, unpacked to bytes, in a span
  static constexpr bool kPlain = kQuads == 0;            // no sub-scales
  static constexpr bool kCodebook = false;
  static constexpr float kUnit = 1.0f;
};
using PlanarQ8_0 = Planar<8, 0, 128, ScaleKind::kHalf>;
using PlanarQ4_0 = Planar<4, 0, 8, ScaleKind::kHalf>;
using PlanarQ4_1 = Planar<4, 0, 0, ScaleKind::kHalfMin>;
using PlanarQ5_0 = Planar<4, 1, 16, ScaleKind::kHalf>;
using PlanarQ5_1 = Planar<4, 1, 0, ScaleKind::kHalfMin>;
using PlanarQ2_K = Planar<2, 0, 0, ScaleKind::kNibble>;
using PlanarQ3_K = Planar<2, 1, 4, ScaleKind::kSix16>;
using PlanarQ4_K = Planar<4, 0, 0, ScaleKind::kSixBit>;
using PlanarQ5_K = Planar<4, 1, 0, ScaleKind::kSixBit>;
using PlanarQ6_K = Planar<4, 2, 32, ScaleKind::kByte>;

// A format whose 4-bit codes are indices. each_pair16() hands out integers in their place, so that
// value = scale * kUnit * (integer - kZero); kValues are the values themselves.
template <class Book, ScaleKind Kind>
struct PlanarCodebook : Planar<4, 0, Book::kZero, Kind> {
  static constexpr bool kCodebook = true;
  static constexpr float kUnit = Book::kUnit;
  static constexpr const auto& kIntegers = Book::kTables.integers;
  static constexpr const auto& kValues = Book::kTables.values;
};

// Values of int8 range, shifted to where they need no sign.
template <const auto& Values, int Zero>
struct ByteCodebook {
  static constexpr int kZero = Zero;
  static constexpr float kUnit = 1.0f;
  struct Tables {
    uint8_t integers[16];
    float values[16];
  };
  static constexpr Tables kTables = [] {
    Tables t{};
    for (int i = 0; i < 16; ++i) {
      t.integers[i] = static_cast<uint8_t>(Values[i] + Zero);
      t.values[i] = static_cast<float>(Values[i]);
    }
    return t;
  }();
};
// Values of [-1, 1] in steps of kUnit. Of all steps whose sums fit this one comes closest: off by 7e-5 in the mean and
// 1.23e-4 at most (a step of 1/2047: 1.2e-4 and 2.1e-4). Mean KL of SmolLM2 to f32: 3e-6.
struct Nf4Codebook {
  static constexpr int kZero = 0;
  static constexpr float kSteps = 1722.068f, kUnit = 1.0f / kSteps;
  struct Tables {
    WideTable integers;
    float values[16];
  };
  static constexpr Tables kTables = [] {
    Tables t{};
    for (int i = 0; i < 16; ++i) {
      float x = kNf4Values[i] * kSteps;
      auto word = static_cast<int16_t>(x < 0 ? x - 0.5f : x + 0.5f);
      t.integers.words[i] = word;
      t.integers.low[i] = static_cast<uint8_t>(word & 0xff);
      t.integers.high[i] = static_cast<uint8_t>(word >> 8 & 0xff);
      t.values[i] = kNf4Values[i];
    }
    return t;
  }();
};
// What 32 products with 16-bit activations sum up to must fit 32 bits.
constexpr bool sums_fit() {
  for (int16_t word : Nf4Codebook::kTables.integers.words) {
    if (int64_t{32} * 32767 * (word < 0 ? -word : word) > INT32_MAX) return false;
  }
  return true;
}
static_assert(sums_fit());
using PlanarIQ4_NL = PlanarCodebook<ByteCodebook<kIq4Values, 128>, ScaleKind::kHalf>;
using PlanarIQ4_XS = PlanarCodebook<ByteCodebook<kIq4Values, 128>, ScaleKind::kSix32>;
using PlanarMXFP4 = PlanarCodebook<ByteCodebook<kE2m1Doubled, 12>, ScaleKind::kE8M0>;
using PlanarNVFP4 = PlanarCodebook<ByteCodebook<kE2m1Doubled, 12>, ScaleKind::kE4M3>;
using PlanarNF4 = PlanarCodebook<Nf4Codebook, ScaleKind::kHalf64>;

// f.template operator()<F>(kind) for each format with integer codes.
template <class Fn>
constexpr void each_code_format(Fn&& f) {
  f.template operator()<PlanarQ8_0>(PlanarKind::kQ8_0);
  f.template operator()<PlanarQ4_0>(PlanarKind::kQ4_0);
  f.template operator()<PlanarQ4_1>(PlanarKind::kQ4_1);
  f.template operator()<PlanarQ5_0>(PlanarKind::kQ5_0);
  f.template operator()<PlanarQ5_1>(PlanarKind::kQ5_1);
  f.template operator()<PlanarQ4_K>(PlanarKind::kQ4_K);
  f.template operator()<PlanarQ5_K>(PlanarKind::kQ5_K);
  f.template operator()<PlanarQ6_K>(PlanarKind::kQ6_K);
  f.template operator()<PlanarQ2_K>(PlanarKind::kQ2_K);
  f.template operator()<PlanarQ3_K>(PlanarKind::kQ3_K);
  f.template operator()<PlanarIQ4_NL>(PlanarKind::kIQ4_NL);
  f.template operator()<PlanarIQ4_XS>(PlanarKind::kIQ4_XS);
  f.template operator()<PlanarMXFP4>(PlanarKind::kMXFP4);
  f.template operator()<PlanarNVFP4>(PlanarKind::kNVFP4);
  f.template operator()<PlanarNF4>(PlanarKind::kNF4);
}

// The line of high bits that belongs to the 16 elements from `e` (a multiple of 16) on.
template <class F>
HEARTH_INLINE I32x16 high_line(const PanelView& p, int64_t e) {
  if constexpr (F::kHighBits == 1) return load(p.high + (e / 32) * 64);
  if constexpr (F::kHighBits == 2) return load(p.high + (e / 16) * 64);
  return zero_i();
}

// The code bits above those in the codes plane, moved to where they belong: of element Byte of a four (Bytes = 1), or
// also of the one two further on, as 16-bit halves (Bytes = 0x10001). Quad: which four elements of the high line.
template <class F, int Quad, int Byte, uint32_t Bytes>
HEARTH_INLINE I32x16 high_bits(I32x16 high) {
  constexpr uint32_t kMask = ((1u << F::kHighBits) - 1) << F::kCodeBits;
  return bit_and(shift<8 * Byte + F::kHighBits * Quad - F::kCodeBits>(high), set1(static_cast<int32_t>(kMask * Bytes)));
}
// Half: which 16 elements of the 32, for high lines that hold 32.
template <class F, int Half>
constexpr int kFirstQuad = F::kHighBits == 1 ? 4 * Half : 0;

// f.template operator()<i>(integers): for the 8 pairs of 16 elements, in the order of IntRows, as 16-bit halves. The
// elements are those from `lines` on.
template <class F, int Half, class Fn>
HEARTH_INLINE void each_pair16(const uint8_t* lines, I32x16 high, Fn&& f) {
  if constexpr (F::kCodebook) {
    unrolled<2>([&]<int L>() {
      I32x16 x = load(lines + 64 * L);
      unrolled<2>([&]<int H>() {
        I32x16 even, odd;
        lookup(F::kIntegers, shift<4 * H>(x), even, odd);
        f.template operator()<4 * L + 2 * H>(even);
        f.template operator()<4 * L + 2 * H + 1>(odd);
      });
    });
  } else {
    // Fours of elements lie side by side, one to a byte of each lane; `even` and `odd` bytes make a pair each.
    constexpr int kQuadsOfLine = 8 / F::kCodeBits;
    const I32x16 mask = set1(((1 << F::kCodeBits) - 1) * 0x10001);
    unrolled<4 / kQuadsOfLine>([&]<int L>() {
      I32x16 x = load(lines + 64 * L);
      unrolled<kQuadsOfLine>([&]<int Q>() {
        constexpr int kQuad = L * kQuadsOfLine + Q, kTop = F::kCodeBits * (Q + 1) == 8;
        I32x16 even = bit_and(shift<F::kCodeBits * Q>(x), mask), odd;
        if constexpr (kTop) {
          odd = shift_halves<8 + F::kCodeBits * Q>(x);
        } else {
          odd = bit_and(shift<8 + F::kCodeBits * Q>(x), mask);
        }
        if constexpr (F::kHighBits > 0) {
          even = bit_or(even, high_bits<F, kFirstQuad<F, Half> + kQuad, 0, 0x10001>(high));
          odd = bit_or(odd, high_bits<F, kFirstQuad<F, Half> + kQuad, 1, 0x10001>(high));
        }
        f.template operator()<2 * kQuad>(even);
        f.template operator()<2 * kQuad + 1>(odd);
      });
    });
  }
}

// f.template operator()<e>(value): for each of 16 elements, the factor of its scale in f32.
template <class F, int Half, class Fn>
HEARTH_INLINE void each_value16(const uint8_t* lines, I32x16 high, Fn&& f) {
  constexpr int kQuadsOfLine = 8 / F::kCodeBits;
  unrolled<4 / kQuadsOfLine>([&]<int L>() {
    I32x16 x = load(lines + 64 * L);
    unrolled<kQuadsOfLine>([&]<int Q>() {
      constexpr int kQuad = L * kQuadsOfLine + Q;
      unrolled<4>([&]<int Byte>() {
        I32x16 code = shift<8 * Byte + F::kCodeBits * Q>(x);
        if constexpr (F::kCodebook) {
          f.template operator()<4 * kQuad + Byte>(lookup(F::kValues, code));
        } else {
          if constexpr (8 * Byte + F::kCodeBits * (Q + 1) < 32) code = bit_and(code, set1((1 << F::kCodeBits) - 1));
          if constexpr (F::kHighBits > 0) {
            code = bit_or(code, high_bits<F, kFirstQuad<F, Half> + kQuad, Byte, 1>(high));
          }
          if constexpr (F::kZero != 0) code = sub(code, set1(F::kZero));  // exact in f32
          f.template operator()<4 * kQuad + Byte>(to_f32(code));
        }
      });
    });
  });
}

// The sub-scales (and minimums) of kSpan elements: byte b of line q belongs to group 4q + b.
template <class F>
struct SubScales {
  I32x16 scale[F::kQuads], min[F::kMin ? F::kQuads : 1];
};
template <class F>
HEARTH_INLINE SubScales<F> sub_scales(const PanelView& p, int64_t span) {
  const I32x16 low6 = set1(0x3f3f3f3f), low4 = set1(0x0f0f0f0f), high2 = set1(0x30303030);
  SubScales<F> out;
  if constexpr (F::kScale == ScaleKind::kSixBit) {
    const uint8_t* line = p.sub_scales + span * F::kSubBytes;
    I32x16 s0 = load(line), s1 = load(line + 64), s2 = load(line + 128);
    out.scale[0] = bit_and(s0, low6);
    out.min[0] = bit_and(s1, low6);
    out.scale[1] = bit_or(bit_and(s2, low4), bit_and(shift<2>(s0), high2));
    out.min[1] = bit_or(bit_and(shift<4>(s2), low4), bit_and(shift<2>(s1), high2));
  } else if constexpr (F::kScale == ScaleKind::kSix16) {
    const uint8_t* line = p.sub_scales + span * F::kSubBytes;
    I32x16 s0 = load(line), s1 = load(line + 64), s2 = load(line + 128);
    out.scale[0] = bit_or(bit_and(s0, low4), bit_and(shift<-4>(s2), high2));
    out.scale[1] = bit_or(bit_and(s1, low4), bit_and(shift<-2>(s2), high2));
    out.scale[2] = bit_or(bit_and(shift<4>(s0), low4), bit_and(s2, high2));
    out.scale[3] = bit_or(bit_and(shift<4>(s1), low4), bit_and(shift<2>(s2), high2));
  } else if constexpr (F::kScale == ScaleKind::kSix32) {
    const I32x16 bytes01 = set1(0x00003030), bytes23 = set1(0x30300000);
    I32x16 low = load(p.sub_scales + span * F::kSubBytes), pairs = load_u16(p.scales + span * 32 + 16);
    out.scale[0] =
        bit_or(bit_and(low, low4), bit_or(bit_and(shift<-4>(pairs), bytes01), bit_and(shift<-16>(pairs), bytes23)));
    out.scale[1] = bit_or(bit_and(shift<4>(low), low4),
                          bit_or(bit_and(shift<-2>(pairs), bytes01), bit_and(shift<-14>(pairs), bytes23)));
  } else {
    for (int64_t q = 0; q < F::kQuads; ++q) {
      I32x16 line = load(p.sub_scales + span * F::kSubBytes + q * 64);
      if constexpr (F::kScale == ScaleKind::kNibble) {
        out.scale[q] = bit_and(line, low4);
        out.min[q] = bit_and(shift<4>(line), low4);
      } else {
        out.scale[q] = line;
      }
    }
  }
  return out;
}

// The lowest byte of each lane as a sub-scale.
template <class F>
HEARTH_INLINE F32x16 sub_scale(I32x16 x) {
  if constexpr (F::kScale == ScaleKind::kByte) return to_f32(shift_signed<24>(shift<-24>(x)));
  if constexpr (F::kScale == ScaleKind::kE4M3) {
    // Half of the scale, because values are doubled. Moving the exponent is all, except where it is 0 (subnormal): that
    // makes m = 0..7 into 2^-8 + m 2^-11 instead of m 2^-10, which is its double minus 2^-7.
    F32x16 moved = bits_to_f32(add(bit_and(shift<-20>(x), set1(0x07f00000)), set1(119 << 23)));
    return add(moved, min(sub(moved, set1(0x1p-7f)), zero_f()));
  }
  x = bit_and(x, set1(0xff));
  if constexpr (F::kScale == ScaleKind::kE8M0) {
    // Half of 2^(e - 127), because values are doubled: 2^(e - 128). The second is larger where that is subnormal.
    return bits_to_f32(max(shift<-23>(sub(x, set1(1))), shift<-21>(add(x, set1(1)))));
  }
  if constexpr (F::kScale == ScaleKind::kSix16 || F::kScale == ScaleKind::kSix32) x = sub(x, set1(32));
  return to_f32(x);
}

// f.template operator()<Half>(e, scale, min): for each kGroup elements from e on of columns [k0, k0 + kn), k0 a
// multiple of 256. Half is 1 for the second 16 of 32.
template <class F, class Fn>
HEARTH_INLINE void each_scale(const PanelView& p, int64_t k0, int64_t kn, Fn&& f) {
  const int64_t end = k0 + kn;
  if constexpr (F::kPlain) {
    for (int64_t e = k0; e < end; e += F::kGroup) {
      const uint16_t* scale = p.scales + e / F::kSpan * F::kHalves * kLanes;
      f.template operator()<0>(e, load_f16(scale), F::kMin ? load_f16(scale + kLanes) : zero_f());
    }
  } else {
    for (int64_t first = k0; first < end; first += F::kSpan) {
      const int64_t span = first / F::kSpan;
      const uint16_t* scale = p.scales + span * F::kHalves * kLanes;
      const SubScales<F> sub = sub_scales<F>(p, span);
      const F32x16 d = F::kHalves > 0 ? load_f16(scale) : set1(1.0f);
      const F32x16 minus_dmin = F::kMin ? mul(load_f16(scale + kLanes), set1(-1.0f)) : zero_f();
      for (int64_t q = 0; q < F::kQuads; ++q) {
        I32x16 scales4 = sub.scale[q], mins4 = F::kMin ? sub.min[q] : zero_i();
        auto next = [&]<int Half>(int64_t e) {
          F32x16 min = F::kMin ? mul(minus_dmin, to_f32(bit_and(mins4, set1(0xff)))) : zero_f();
          f.template operator()<Half>(e, mul(d, sub_scale<F>(scales4)), min);
          scales4 = shift<8>(scales4), mins4 = shift<8>(mins4);
        };
        const int64_t quad = first + q * 4 * F::kGroup,
                      quad_end = quad + 4 * F::kGroup < end ? quad + 4 * F::kGroup : end;
        for (int64_t e = quad; e < quad_end; e += 32) {
          next.template operator()<0>(e);
          if constexpr (F::kGroup == 16) next.template operator()<1>(e + 16);
        }
      }
    }
  }
}

}  // namespace
}  // namespace hearth::cpu
