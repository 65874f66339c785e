// Columns of a planar panel as f32 [kn][16], bit-equal to decode_row. Part of kernels.cpp.
#pragma once

#include "backends/cpu/kernels/planar.h"

namespace hearth::cpu {
namespace {

// Columns [k0, k0 + kn) of a panel with integer codes; k0 is a multiple of 256.
template <class F>
void unpack_int(const PanelView& p, int64_t k0, int64_t kn, float* out) {
  constexpr bool kMin = F::kScale == ScaleKind::kHalfMin || F::kScale == ScaleKind::kSixBit;
  // zero: code - kZero is exact in f32, so is the product with the scale; only adding the minimum rounds.
  auto write = [&]<int Half>(int64_t e, F32x16 scale, F32x16 min) {
    float* to = out + (e - k0) * kLanes;
    each_code16<F, Half>(p.codes + e / F::kLineElems * 64, high_line<F>(p, e), [&]<int I>(I32x16 code) {
      if constexpr (F::kZero != 0) code = sub(code, set1(F::kZero));
      F32x16 value = to_f32(code);
      store(to + I * kLanes, kMin ? fma(scale, value, min) : mul(scale, value));
    });
  };
  if constexpr (F::kScale == ScaleKind::kSixBit) {
    for (int64_t e = k0; e < k0 + kn; e += 256) {
      int64_t super = e / 256;
      SixBit six = six_bit(p, super);
      F32x16 d = load_f16(p.scales + super * 32), dmin = load_f16(p.scales + super * 32 + 16);
      unrolled<2>([&]<int Quad>() {
        unrolled<4>([&]<int J>() {
          int64_t from = e + (4 * Quad + J) * 32;
          F32x16 scale = mul(d, byte_to_f32<J>(six.scale[Quad]));
          F32x16 min = sub(zero_f(), mul(dmin, byte_to_f32<J>(six.min[Quad])));
          write.template operator()<0>(from, scale, min);
          write.template operator()<1>(from + 16, scale, min);
        });
      });
    }
  } else if constexpr (F::kScale == ScaleKind::kByte) {
    for (int64_t e = k0; e < k0 + kn; e += 64) {
      F32x16 d = load_f16(p.scales + e / 256 * 16);
      I32x16 scales4 = load(p.sub_scales + e / 64 * 64);
      unrolled<4>([&]<int J>() {
        write.template operator()<J % 2>(e + 16 * J, mul(d, signed_byte_to_f32<J>(scales4)), zero_f());
      });
    }
  } else {
    for (int64_t e = k0; e < k0 + kn; e += 32) {
      const uint16_t* scale = p.scales + e / 32 * (kMin ? 32 : 16);
      F32x16 d = load_f16(scale), m = kMin ? load_f16(scale + 16) : zero_f();
      write.template operator()<0>(e, d, m);
      write.template operator()<1>(e + 16, d, m);
    }
  }
}

void unpack_f32(const PanelView& p, int64_t k0, int64_t kn, float* out) {
  memcpy(out, p.codes + k0 * kLanes * 4, static_cast<size_t>(kn * kLanes) * 4);
}

template <bool Bf16>
void unpack_half(const PanelView& p, int64_t k0, int64_t kn, float* out) {
  for (int64_t k = k0; k < k0 + kn; k += 2) {  // k0 is even
    I32x16 line = load(p.codes + k / 2 * 64);
    F32x16 low, high;
    if constexpr (Bf16) {
      low = bits_to_f32(shift<-16>(line));
      high = bits_to_f32(bit_and(line, set1(static_cast<int32_t>(0xffff0000))));
    } else {
      f16_halves(line, low, high);
    }
    store(out + (k - k0) * kLanes, low);
    if (k + 1 < k0 + kn) store(out + (k + 1 - k0) * kLanes, high);
  }
}

}  // namespace
}  // namespace hearth::cpu
