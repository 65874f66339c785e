// Few rows times a panel: every weight is read once for up to four (AVX-512: eight, NEON: two, portable: one) rows.
// Part of kernels.cpp.
#pragma once

#include "backends/cpu/kernels/quads.h"

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
#elif defined(__aarch64__)
// Of 32 registers two rows take 16 for their sums (of low and of high digits), 4 for digits and 8 for codes; a third
// row would not fit. Four registers to a sum hide the latency of one row. Of one row's 61 instructions for 16 elements
// of 4 bits 24 are shared.
constexpr int kMaxPassRows = 2;
template <int R>
constexpr int kChains = 1;
#else
constexpr int kMaxPassRows = 1;
template <int R>
constexpr int kChains = 1;
#endif

template <class F, int R>
struct IntDot {
  // Of quads, the first sum is of low and the second of high digits.
  static constexpr int kChain = kAsQuads<F> ? 2 : !F::kPlain && F::kGroup == 16 && kChains<R> > 2 ? 2 : kChains<R>;
  const PanelView& panel;
  const int16_t* codes[R];
  const float* scales[R];
  const int32_t* sums16[R];
  const int32_t* sums32[R];
  const float* totals[R];
  int64_t ahead = 0;  // bytes from codes to those that are fetched with them

  // sum[r] = the integer products of the 16 elements from e on.
  template <int Half>
  HEARTH_INLINE void add16(int64_t e, I32x16 (&sum)[R][kChain]) const {
    const uint8_t* lines = panel.codes + e / F::kLineElems * 64;
    for (int64_t b = 0; b < 16 / F::kLineElems; ++b) __builtin_prefetch(lines + ahead + 64 * b, 0, 2);
#if defined(__ARM_FEATURE_DOTPROD)
    if constexpr (kAsQuads<F>) {
      Digits x[R];
      for (int r = 0; r < R; ++r) x[r] = load_digits(codes[r] + e);
      each_quad16<F, Half>(lines, high_line<F>(panel, e), [&]<int I>(I32x16 quad) {
        for (int r = 0; r < R; ++r) dot_digits<I>(sum[r][0], sum[r][1], quad, x[r]);
      });
      return;
    }
#endif
    each_pair16<F, Half>(lines, high_line<F>(panel, e), [&]<int I>(I32x16 pair) {
      for (int r = 0; r < R; ++r) {
        I32x16& s = sum[r][I % kChain];
        s = dot_halves(s, pair, broadcast_bits(codes[r] + e + 2 * I));
      }
    });
  }

  static HEARTH_INLINE I32x16 total(const I32x16 (&sum)[kChain]) {
    if constexpr (kAsQuads<F>) return add(sum[0], shift<-8>(sum[1]));
    I32x16 t = sum[0];
    for (int i = 1; i < kChain; ++i) t = add(t, sum[i]);
    return t;
  }

  // Sums of 32 or 16 elements begin at -zero * (sum of the activations), so that they count from `zero`.
  static constexpr int kZero = kAsQuads<F> && kSignedQuads<F> ? 0 : F::kZero;
  HEARTH_INLINE void begin32(I32x16 (&sum)[R][kChain], int64_t block) const {
    for (int r = 0; r < R; ++r) {
      for (int i = 1; i < kChain; ++i) sum[r][i] = zero_i();
      sum[r][0] = kZero != 0 ? set1(-kZero * sums32[r][block]) : zero_i();
    }
  }
  HEARTH_INLINE void begin16(I32x16 (&sum)[R][kChain], int64_t group) const {
    for (int r = 0; r < R; ++r) {
      for (int i = 1; i < kChain; ++i) sum[r][i] = zero_i();
      sum[r][0] = set1(-kZero * sums16[r][group]);
    }
  }

  // The sum in units of the weights' scale.
  HEARTH_INLINE F32x16 value(const I32x16 (&sum)[kChain], int r, int64_t block) const {
    return mul(to_f32(total(sum)), set1(scales[r][block]));
  }

  // Before a span is read: says where the codes are that add16() fetches, and fetches the rest of that span. Past the
  // end of the panel it is the next one's; without a next one nothing new is fetched.
  HEARTH_INLINE void look_ahead(int64_t span) {
    constexpr int64_t kCodeBytes = F::kSpan / F::kLineElems * 64, kHalfBytes = F::kHalves * 2 * kLanes;
    constexpr int64_t kHighBytes = F::kSpan * F::kHighBits * 2;
    constexpr int64_t kSpans = (kPrefetchBytes + kCodeBytes - 1) / kCodeBytes;
    const int64_t spans = panel.cols / F::kSpan;
    int64_t to = span + kSpans, next = 0;
    if (to >= spans) {
      next = panel.next_bytes;
      to = next != 0 && to - spans < spans ? to - spans : span;
    }
    ahead = next + (to - span) * kCodeBytes;
    if (ahead == 0) return;
    auto fetch = [&]<int64_t Bytes>(const void* plane) {
      const auto* from = static_cast<const uint8_t*>(plane) + next + to * Bytes;
      for (int64_t b = 0; b < Bytes; b += 64) __builtin_prefetch(from + b, 0, 2);
    };
    fetch.template operator()<kHighBytes>(panel.high);
    fetch.template operator()<F::kSubBytes>(panel.sub_scales);
    fetch.template operator()<kHalfBytes>(panel.scales);
  }

  HEARTH_INLINE void plain(F32x16 (&acc)[R]) {
    for (int64_t block = 0; block < panel.cols / 32; ++block) {
      if (block % (F::kSpan / 32) == 0) look_ahead(block / (F::kSpan / 32));
      I32x16 sum[R][kChain];
      begin32(sum, block);
      add16<0>(block * 32, sum);
      add16<1>(block * 32 + 16, sum);
      const uint16_t* scale = panel.scales + block * 32 / F::kSpan * F::kHalves * 16;
      F32x16 d = load_f16(scale);
      for (int r = 0; r < R; ++r) acc[r] = fma(d, value(sum[r], r, block), acc[r]);
      if constexpr (F::kMin) {
        F32x16 m = load_f16(scale + 16);
        for (int r = 0; r < R; ++r) acc[r] = fma(m, set1(totals[r][block]), acc[r]);
      }
    }
  }

  // to[r] += sub-scale * products, for blocks [begin, end) of 32, at most those of four sub-scales.
  HEARTH_INLINE void add_quad(I32x16 scales4, int64_t begin, int64_t end, F32x16 (&to)[R]) const {
    for (int64_t block = begin; block < end; ++block) {
      I32x16 sum[R][kChain];
      F32x16 scale = sub_scale<F>(scales4);
      scales4 = shift<8>(scales4);
      if constexpr (F::kGroup == 32) {
        begin32(sum, block);
        add16<0>(block * 32, sum);
        add16<1>(block * 32 + 16, sum);
        for (int r = 0; r < R; ++r) to[r] = fma(scale, value(sum[r], r, block), to[r]);
      } else {
        F32x16 first[R];
        begin16(sum, 2 * block);
        add16<0>(block * 32, sum);
        for (int r = 0; r < R; ++r) first[r] = mul(scale, to_f32(total(sum[r])));
        scale = sub_scale<F>(scales4);
        scales4 = shift<8>(scales4);
        begin16(sum, 2 * block + 1);
        add16<1>(block * 32 + 16, sum);
        for (int r = 0; r < R; ++r) {
          to[r] = fma(fma(scale, to_f32(total(sum[r])), first[r]), set1(scales[r][block]), to[r]);
        }
      }
    }
  }

  // to[r] += minimum * sum of the activations, for the same.
  HEARTH_INLINE void add_quad_min(I32x16 mins4, int64_t begin, int64_t end, F32x16 (&to)[R]) const {
    const I32x16 byte = set1(0xff);
    for (int64_t block = begin; block < end; ++block) {
      F32x16 min = to_f32(bit_and(mins4, byte));
      mins4 = shift<8>(mins4);
      if constexpr (F::kGroup == 32) {
        for (int r = 0; r < R; ++r) to[r] = fma(min, set1(totals[r][block]), to[r]);
      } else {
        F32x16 min1 = to_f32(bit_and(mins4, byte));
        mins4 = shift<8>(mins4);
        for (int r = 0; r < R; ++r) {
          F32x16 both = mul(min, to_f32(set1(sums16[r][2 * block])));
          both = fma(min1, to_f32(set1(sums16[r][2 * block + 1])), both);
          to[r] = fma(both, set1(scales[r][block]), to[r]);
        }
      }
    }
  }

  // Formats with sub-scales. Loops that stay loops: eight blocks unrolled are more than the compiler keeps in registers
  // (it then leaves the loops over rows rolled, their sums in memory). The minimums go apart, or their sums would not
  // fit beside the others.
  HEARTH_INLINE void spans(F32x16 (&acc)[R]) {
    constexpr int64_t kSpanBlocks = F::kSpan / 32, kQuadBlocks = kSpanBlocks / F::kQuads;
    int64_t blocks = panel.cols / 32;
    for (int64_t span = 0, first = 0; first < blocks; ++span, first += kSpanBlocks) {
      look_ahead(span);
      SubScales<F> sub = sub_scales<F>(panel, span);
      if constexpr (F::kHalves == 0) {
        int64_t end = first + kSpanBlocks < blocks ? first + kSpanBlocks : blocks;
        add_quad(sub.scale[0], first, end, acc);
      } else {
        F32x16 part[R];
        for (int r = 0; r < R; ++r) part[r] = zero_f();
        for (int64_t q = 0; q < F::kQuads; ++q) {
          add_quad(sub.scale[q], first + q * kQuadBlocks, first + (q + 1) * kQuadBlocks, part);
        }
        F32x16 d = load_f16(panel.scales + span * F::kHalves * 16);
        for (int r = 0; r < R; ++r) acc[r] = fma(d, part[r], acc[r]);
        if constexpr (F::kMin) {
          for (int r = 0; r < R; ++r) part[r] = zero_f();
          for (int64_t q = 0; q < F::kQuads; ++q) {
            add_quad_min(sub.min[q], first + q * kQuadBlocks, first + (q + 1) * kQuadBlocks, part);
          }
          F32x16 dmin = load_f16(panel.scales + span * F::kHalves * 16 + 16);
          for (int r = 0; r < R; ++r) acc[r] = fnma(dmin, part[r], acc[r]);
        }
      }
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
  if constexpr (F::kPlain) {
    dot.plain(acc);
  } else {
    dot.spans(acc);
  }
  for (int r = 0; r < R; ++r) {
    if constexpr (F::kUnit != 1) acc[r] = mul(acc[r], set1(F::kUnit));
    store(out + (row + r) * kLanes, acc[r]);
  }
}

template <class F>
void dot_int(const PanelView& panel, const IntRows& a, int64_t rows, float* out) {
  int64_t row = 0;
  if constexpr (kMaxPassRows >= 8) {
    for (; rows - row >= 8; row += 8) dot_int_pass<F, 8>(panel, a, row, out);
  }
  if constexpr (kMaxPassRows >= 4) {
    for (; rows - row >= 4; row += 4) dot_int_pass<F, 4>(panel, a, row, out);
  }
  if constexpr (kMaxPassRows >= 2) {
    for (; rows - row >= 2; row += 2) dot_int_pass<F, 2>(panel, a, row, out);
  }
  for (; row < rows; ++row) dot_int_pass<F, 1>(panel, a, row, out);
}

// Float weights [n][16]. As many sums a row, whatever the number of rows, so that a row's result does not depend on it.
#if defined(__aarch64__)
constexpr int kFloatSums = 2;  // of four registers each, for two rows half of all
#else
constexpr int kFloatSums = 4;
#endif
template <int R>
void dot_float_pass(const float* weights, int64_t n, const float* a, int64_t stride, bool accumulate, float* out) {
  constexpr int kSums = kFloatSums;
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
    F32x16 sum = add(acc[r][0], acc[r][1]);
    if constexpr (kSums == 4) sum = add(sum, add(acc[r][2], acc[r][3]));
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
