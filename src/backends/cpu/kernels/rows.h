// Work on single rows: norms, activations, rotations, quantization of activations. Part of kernels.cpp.
#pragma once

#include "backends/cpu/kernels.h"
#include "backends/cpu/kernels/simd.h"

namespace hearth::cpu {
namespace {

void rms_norm(const float* x, const float* weight, int64_t n, float eps, float* out) {
  F32x16 sum = zero_f();
  int64_t i = 0;
  for (; i + 16 <= n; i += 16) {
    F32x16 v = load(x + i);
    sum = fma(v, v, sum);
  }
  if (i < n) {
    F32x16 v = load_part(x + i, n - i);
    sum = fma(v, v, sum);
  }
  F32x16 scale = set1(1.0f / __builtin_sqrtf(sum_lanes(sum) / static_cast<float>(n) + eps));
  for (i = 0; i + 16 <= n; i += 16) store(out + i, mul(mul(load(x + i), scale), load(weight + i)));
  if (i < n) store_part(out + i, mul(mul(load_part(x + i, n - i), scale), load_part(weight + i, n - i)), n - i);
}

// out = f(a, b) for n floats.
template <class Fn>
HEARTH_INLINE void map2(const float* a, const float* b, int64_t n, float* out, Fn&& f) {
  int64_t i = 0;
  for (; i + 16 <= n; i += 16) store(out + i, f(load(a + i), load(b + i)));
  if (i < n) store_part(out + i, f(load_part(a + i, n - i), load_part(b + i, n - i)), n - i);
}

void add_rows(const float* a, const float* b, int64_t n, float* out) {
  map2(a, b, n, out, [](F32x16 x, F32x16 y) { return add(x, y); });
}

void silu_mul(const float* gate, const float* up, int64_t n, float* out) {
  map2(gate, up, n, out, [](F32x16 g, F32x16 u) {
    F32x16 e = exp(sub(zero_f(), g));
    return mul(div(g, add(set1(1.0f), e)), u);
  });
}

// 0.5 x (1 + tanh(sqrt(2 / pi) (x + 0.044715 x^3))) = x / (1 + e^(-2 sqrt(2 / pi) (x + 0.044715 x^3)))
void gelu_mul(const float* gate, const float* up, int64_t n, float* out) {
  map2(gate, up, n, out, [](F32x16 g, F32x16 u) {
    F32x16 inner = mul(g, fma(mul(g, g), set1(0.044715f), set1(1.0f)));
    F32x16 e = exp(mul(inner, set1(-1.5957691216f)));
    return mul(div(g, add(set1(1.0f), e)), u);
  });
}

void rope(float* x, const float* cos, const float* sin, int64_t dims, bool half) {
  int64_t pairs = dims / 2;
  if (!half) {
    for (int64_t j = 0; j < pairs; ++j) {
      float a = x[2 * j], b = x[2 * j + 1];
      x[2 * j] = a * cos[j] - b * sin[j];
      x[2 * j + 1] = a * sin[j] + b * cos[j];
    }
    return;
  }
  for (int64_t j = 0; j < pairs; j += 16) {
    int64_t n = pairs - j < 16 ? pairs - j : 16;
    F32x16 a = load_part(x + j, n), b = load_part(x + pairs + j, n);
    F32x16 c = load_part(cos + j, n), s = load_part(sin + j, n);
    store_part(x + j, fnma(b, s, mul(a, c)), n);
    store_part(x + pairs + j, fma(a, s, mul(b, c)), n);
  }
}

void quantize(const float* x, int64_t n, int32_t limit, const IntRows& out, int64_t row) {
#if defined(__ARM_FEATURE_DOTPROD)
  limit = limit < kMaxActivation ? limit : kMaxActivation;
#endif
  int16_t* codes = out.codes + row * out.code_stride;
  float* scales = out.scales + row * out.scale_stride;
  int32_t* sums16 = out.sums16 + row * out.scale_stride * 2;
  int32_t* sums32 = out.sums32 + row * out.scale_stride;
  float* totals = out.totals + row * out.scale_stride;
  for (int64_t block = 0; block < n / kActBlock; ++block) {
    F32x16 a = load(x + block * kActBlock), b = load(x + block * kActBlock + 16);
    float largest = largest_magnitude(a, b), scale = largest / static_cast<float>(limit);
    // A scale below the smallest normal number would lose digits, or divide by zero: such a block counts as zero.
    bool usable = scale > 1.2e-38f;
    F32x16 inverse = set1(usable ? 1.0f / scale : 0.0f);
    I32x16 ia = round_to_int(mul(a, inverse)), ib = round_to_int(mul(b, inverse));
    store_i16_interleaved(codes + block * kActBlock, ia);
    store_i16_interleaved(codes + block * kActBlock + 16, ib);
    sums16[2 * block] = sum_lanes(ia);
    sums16[2 * block + 1] = sum_lanes(ib);
    sums32[block] = sums16[2 * block] + sums16[2 * block + 1];
    scales[block] = largest == largest ? (usable ? scale : 0.0f) : largest;  // NaN stays NaN
    totals[block] = scales[block] * static_cast<float>(sums32[block]);
  }
}

}  // namespace
}  // namespace hearth::cpu
