// Few rows times a panel: every weight is read once for up to four (AVX-512: eight, portable: one) rows. Part of
// kernels.cpp.
#pragma once

#include "backends/cpu/kernels/planar.h"

namespace hearth::cpu {
namespace {

// Rows of a pass, and how many sums a row is spread over so that the latency of the multiply-add does not show.
#if defined(__AVX512F__)
constexpr int kMaxPassRows = 8;
template <int R>
constexpr int kChains = R == 1   ? 4
                        : R == 2 ? 2
                                 : 1;
#elif defined(__AVX2__)
constexpr int kMaxPassRows = 4;
template <int R>
constexpr int kChains = 1;
#else
constexpr int kMaxPassRows = 1;
template <int R>
constexpr int kChains = 1;
#endif

// Bytes ahead of the codes that are fetched; the processor's own prefetcher stops at page borders.
constexpr int64_t kPrefetchBytes = 1024;

template <class F, int R>
struct IntDot {
  static constexpr int kChain = kChains<R>;
  const PanelView& panel;
  const int16_t* codes[R];
  const float* scales[R];
  const int32_t* sums16[R];
  const int32_t* sums32[R];
  const float* totals[R];

  // sum[r] = the integer products of the 16 elements from e on.
  template <int Half>
  HEARTH_INLINE void add16(int64_t e, I32x16 (&sum)[R][kChain]) const {
    const uint8_t* lines = panel.codes + e / F::kLineElems * 64;
    for (int64_t b = 0; b < 16 / F::kLineElems; ++b) __builtin_prefetch(lines + kPrefetchBytes + 64 * b);
    each_pair16<F, Half>(lines, high_line<F>(panel, e), [&]<int I>(I32x16 pair) {
      for (int r = 0; r < R; ++r) {
        I32x16& s = sum[r][I % kChain];
        s = dot_halves(s, pair, broadcast_pair(codes[r] + e + 2 * I));
      }
    });
  }

  static HEARTH_INLINE I32x16 total(const I32x16 (&sum)[kChain]) {
    I32x16 t = sum[0];
    for (int i = 1; i < kChain; ++i) t = add(t, sum[i]);
    return t;
  }

  // Sums of 32 or 16 elements begin at -zero * (sum of the activations), so that they count from `zero`.
  HEARTH_INLINE void begin32(I32x16 (&sum)[R][kChain], int64_t block) const {
    for (int r = 0; r < R; ++r) {
      for (int i = 1; i < kChain; ++i) sum[r][i] = zero_i();
      sum[r][0] = F::kZero != 0 ? set1(-F::kZero * sums32[r][block]) : zero_i();
    }
  }
  HEARTH_INLINE void begin16(I32x16 (&sum)[R][kChain], int64_t group) const {
    for (int r = 0; r < R; ++r) {
      for (int i = 1; i < kChain; ++i) sum[r][i] = zero_i();
      sum[r][0] = set1(-F::kZero * sums16[r][group]);
    }
  }

  // The sum in units of the weights' scale.
  HEARTH_INLINE F32x16 value(const I32x16 (&sum)[kChain], int r, int64_t block) const {
    return mul(to_f32(total(sum)), set1(scales[r][block]));
  }

  HEARTH_INLINE void plain(F32x16 (&acc)[R]) const {
    constexpr bool kMin = F::kScale == ScaleKind::kHalfMin;
    for (int64_t block = 0; block < panel.cols / 32; ++block) {
      I32x16 sum[R][kChain];
      begin32(sum, block);
      add16<0>(block * 32, sum);
      add16<1>(block * 32 + 16, sum);
      const uint16_t* scale = panel.scales + block * (kMin ? 32 : 16);
      F32x16 d = load_f16(scale);
      for (int r = 0; r < R; ++r) acc[r] = fma(d, value(sum[r], r, block), acc[r]);
      if constexpr (kMin) {
        F32x16 m = load_f16(scale + 16);
        for (int r = 0; r < R; ++r) acc[r] = fma(m, set1(totals[r][block]), acc[r]);
      }
    }
  }

  // Loops that stay loops: eight blocks unrolled are more than the compiler keeps in registers (it then leaves the
  // loops over rows rolled, their sums in memory). The minimums go apart, or their sums would not fit beside the
  // others.
  HEARTH_INLINE void six_bits(F32x16 (&acc)[R]) const {
    const I32x16 byte = set1(0xff);
    for (int64_t super = 0; super < panel.cols / 256; ++super) {
      SixBit six = six_bit(panel, super);
      F32x16 part[R];
      for (int r = 0; r < R; ++r) part[r] = zero_f();
      for (int64_t quad = 0; quad < 2; ++quad) {
        I32x16 scales4 = six.scale[quad];
        for (int64_t block = super * 8 + 4 * quad; block < super * 8 + 4 * quad + 4; ++block) {
          I32x16 sum[R][kChain];
          begin32(sum, block);
          add16<0>(block * 32, sum);
          add16<1>(block * 32 + 16, sum);
          F32x16 scale = to_f32(bit_and(scales4, byte));
          scales4 = shift<8>(scales4);
          for (int r = 0; r < R; ++r) part[r] = fma(scale, value(sum[r], r, block), part[r]);
        }
      }
      F32x16 d = load_f16(panel.scales + super * 32);
      for (int r = 0; r < R; ++r) acc[r] = fma(d, part[r], acc[r]), part[r] = zero_f();
      for (int64_t quad = 0; quad < 2; ++quad) {
        I32x16 mins4 = six.min[quad];
        for (int64_t block = super * 8 + 4 * quad; block < super * 8 + 4 * quad + 4; ++block) {
          F32x16 min = to_f32(bit_and(mins4, byte));
          mins4 = shift<8>(mins4);
          for (int r = 0; r < R; ++r) part[r] = fma(min, set1(totals[r][block]), part[r]);
        }
      }
      F32x16 dmin = load_f16(panel.scales + super * 32 + 16);
      for (int r = 0; r < R; ++r) acc[r] = fnma(dmin, part[r], acc[r]);
    }
  }

  HEARTH_INLINE void bytes(F32x16 (&acc)[R]) const {
    for (int64_t super = 0; super < panel.cols / 256; ++super) {
      F32x16 part[R];
      for (int r = 0; r < R; ++r) part[r] = zero_f();
      for (int64_t quad = 0; quad < 4; ++quad) {
        I32x16 scales4 = load(panel.sub_scales + (super * 4 + quad) * 64);
        unrolled<4>([&]<int J>() {
          int64_t group = super * 16 + quad * 4 + J;
          I32x16 sum[R][kChain];
          begin16(sum, group);
          add16<J % 2>(group * 16, sum);
          F32x16 scale = signed_byte_to_f32<J>(scales4);
          for (int r = 0; r < R; ++r) part[r] = fma(scale, value(sum[r], r, group / 2), part[r]);
        });
      }
      F32x16 d = load_f16(panel.scales + super * 16);
      for (int r = 0; r < R; ++r) acc[r] = fma(d, part[r], acc[r]);
    }
  }
};

template <class F, int R>
void dot_int_pass(const PanelView& panel, const IntRows& a, int64_t row, float* out) {
  IntDot<F, R> dot{panel, {}, {}, {}, {}, {}};
  F32x16 acc[R];
  for (int r = 0; r < R; ++r) {
    dot.codes[r] = a.codes + (row + r) * a.code_stride;
    dot.scales[r] = a.scales + (row + r) * a.scale_stride;
    dot.sums16[r] = a.sums16 + (row + r) * a.scale_stride * 2;
    dot.sums32[r] = a.sums32 + (row + r) * a.scale_stride;
    dot.totals[r] = a.totals + (row + r) * a.scale_stride;
    acc[r] = zero_f();
  }
  if constexpr (F::kScale == ScaleKind::kSixBit) {
    dot.six_bits(acc);
  } else if constexpr (F::kScale == ScaleKind::kByte) {
    dot.bytes(acc);
  } else {
    dot.plain(acc);
  }
  for (int r = 0; r < R; ++r) store(out + (row + r) * kLanes, acc[r]);
}

template <class F>
void dot_int(const PanelView& panel, const IntRows& a, int64_t rows, float* out) {
  int64_t row = 0;
  if constexpr (kMaxPassRows >= 8) {
    for (; rows - row >= 8; row += 8) dot_int_pass<F, 8>(panel, a, row, out);
  }
  if constexpr (kMaxPassRows >= 4) {
    for (; rows - row >= 4; row += 4) dot_int_pass<F, 4>(panel, a, row, out);
    if (rows - row >= 2) dot_int_pass<F, 2>(panel, a, row, out), row += 2;
  }
  for (; row < rows; ++row) dot_int_pass<F, 1>(panel, a, row, out);
}

// Float weights [n][16]. Four sums a row, whatever the number of rows, so that a row's result does not depend on it.
template <int R>
void dot_float_pass(const float* weights, int64_t n, const float* a, int64_t stride, bool accumulate, float* out) {
  constexpr int kSums = 4;
  F32x16 acc[R][kSums];
  for (int r = 0; r < R; ++r) {
    for (int i = 0; i < kSums; ++i) acc[r][i] = zero_f();
  }
  int64_t k = 0;
  for (; k + kSums <= n; k += kSums) {
    for (int i = 0; i < kSums; ++i) {
      F32x16 w = load(weights + (k + i) * kLanes);
      for (int r = 0; r < R; ++r) acc[r][i] = fma(w, set1(a[r * stride + k + i]), acc[r][i]);
    }
  }
  for (; k < n; ++k) {
    F32x16 w = load(weights + k * kLanes);
    for (int r = 0; r < R; ++r) acc[r][0] = fma(w, set1(a[r * stride + k]), acc[r][0]);
  }
  for (int r = 0; r < R; ++r) {
    F32x16 sum = add(add(acc[r][0], acc[r][1]), add(acc[r][2], acc[r][3]));
    if (accumulate) sum = add(load(out + r * kLanes), sum);
    store(out + r * kLanes, sum);
  }
}

void dot_float(const float* weights, int64_t n, const float* a, int64_t stride, int64_t rows, bool accumulate,
               float* out) {
  int64_t row = 0;
  for (; rows - row >= 2; row += 2) {
    dot_float_pass<2>(weights, n, a + row * stride, stride, accumulate, out + row * kLanes);
  }
  if (row < rows) dot_float_pass<1>(weights, n, a + row * stride, stride, accumulate, out + row * kLanes);
}

}  // namespace
}  // namespace hearth::cpu
