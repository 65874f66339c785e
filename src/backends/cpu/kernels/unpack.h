// Columns of a planar panel as f32 [kn][16], bit-equal to decode_row. Part of kernels.cpp.
#pragma once

#include "backends/cpu/kernels/planar.h"

namespace hearth::cpu {
namespace {

// Columns [k0, k0 + kn) of a panel with integer codes; k0 is a multiple of 256.
template <class F>
void unpack_int(const PanelView& p, int64_t k0, int64_t kn, float* out) {
  // Values and their products with the scale are exact in f32 (NF4's are not, but round as in decode_row); only adding
  // the minimum rounds.
  auto write = [&]<int Half>(int64_t e, F32x16 scale, F32x16 min) {
    float* to = out + (e - k0) * kLanes;
    each_value16<F, Half>(p.codes + e / F::kLineElems * 64, high_line<F>(p, e), [&]<int I>(F32x16 value) {
      store(to + I * kLanes, F::kMin ? fma(scale, value, min) : mul(scale, value));
    });
  };
  each_scale<F>(p, k0, kn, [&]<int Half>(int64_t e, F32x16 scale, F32x16 min) {
    write.template operator()<Half>(e, scale, min);
    if constexpr (F::kGroup == 32) write.template operator()<1>(e + 16, scale, min);
  });
}

void unpack_f32(const PanelView& p, int64_t k0, int64_t kn, float* out) {
  for (int64_t k = k0; k < k0 + kn; ++k) {
    const uint8_t* line = p.codes + k * kLanes * 4;
    __builtin_prefetch(line + kPrefetchBytes, 0, 2);
    store(out + (k - k0) * kLanes, load(reinterpret_cast<const float*>(line)));
  }
}

template <bool Bf16>
void unpack_half(const PanelView& p, int64_t k0, int64_t kn, float* out) {
  for (int64_t k = k0; k < k0 + kn; k += 2) {  // k0 is even
    __builtin_prefetch(p.codes + k / 2 * 64 + kPrefetchBytes, 0, 2);
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
