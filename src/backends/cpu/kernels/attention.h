// Keys and values in their pages, and attention of single queries in splits of 512 keys. Boundaries depend on positions
// only, so a row's result does not depend on its company. Part of kernels.cpp.
#pragma once

#include "backends/cpu/kernels/simd.h"

namespace hearth::cpu {
namespace {

constexpr float kMinusInf = -__builtin_inff();

// How a page keeps entries. get() is entry i in units of its scale (kScaled; else of 1); key(keys, head_dim, d) and
// value(values, v_stride, t, d) are entries of 16 tokens and 16 entries of a token, whatever the format.
struct KvF32 {
  static constexpr int64_t kBytes = 4;
  static constexpr bool kScaled = false;
  static HEARTH_INLINE F32x16 get(const uint8_t* p, int64_t i) { return load(reinterpret_cast<const float*>(p) + i); }
  static HEARTH_INLINE F32x16 key(const uint8_t* p, int64_t, int64_t d) { return get(p, d * kLanes); }
  static HEARTH_INLINE F32x16 value(const uint8_t* p, int64_t v_stride, int64_t t, int64_t d) {
    return get(p, t * v_stride + d);
  }
  static HEARTH_INLINE void put(uint8_t* p, int64_t i, F32x16 x) { store(reinterpret_cast<float*>(p) + i, x); }
  static HEARTH_INLINE void put_lane(uint8_t* p, int64_t i, F32x16 x, int lanes, int64_t stride) {
    float v[16];
    store(v, x);
    for (int j = 0; j < lanes; ++j) reinterpret_cast<float*>(p)[i + j * stride] = v[j];
  }
};

struct KvF16 {
  static constexpr int64_t kBytes = 2;
  static constexpr bool kScaled = false;
  static HEARTH_INLINE F32x16 saturate(F32x16 x) { return min(max(x, set1(-65504.0f)), set1(65504.0f)); }
  static HEARTH_INLINE F32x16 get(const uint8_t* p, int64_t i) {
    return load_f16(reinterpret_cast<const uint16_t*>(p) + i);
  }
  static HEARTH_INLINE F32x16 key(const uint8_t* p, int64_t, int64_t d) { return get(p, d * kLanes); }
  static HEARTH_INLINE F32x16 value(const uint8_t* p, int64_t v_stride, int64_t t, int64_t d) {
    return get(p, t * v_stride + d);
  }
  static HEARTH_INLINE void put(uint8_t* p, int64_t i, F32x16 x) {
    store_f16(reinterpret_cast<uint16_t*>(p) + i, saturate(x));
  }
  static HEARTH_INLINE void put_lane(uint8_t* p, int64_t i, F32x16 x, int lanes, int64_t stride) {
    uint16_t v[16];
    store_f16(v, saturate(x));
    for (int j = 0; j < lanes; ++j) reinterpret_cast<uint16_t*>(p)[i + j * stride] = v[j];
  }
};

struct KvQ8 {
  static constexpr int64_t kBytes = 1;
  static constexpr bool kScaled = true;
  static HEARTH_INLINE F32x16 get(const uint8_t* p, int64_t i) {
    return load_i8(reinterpret_cast<const int8_t*>(p) + i);
  }
  // The scales of 16 tokens for one block, behind the codes of `entries` to a token.
  static HEARTH_INLINE const uint16_t* scales(const uint8_t* p, int64_t entries, int64_t block) {
    return reinterpret_cast<const uint16_t*>(p + entries * kLanes) + block * kLanes;
  }
  static HEARTH_INLINE F32x16 key(const uint8_t* p, int64_t head_dim, int64_t d) {
    return mul(get(p, d * kLanes), load_f16(scales(p, head_dim, d / kKvBlock)));
  }
  static HEARTH_INLINE F32x16 value(const uint8_t* p, int64_t v_stride, int64_t t, int64_t d) {
    return mul(get(p, t * v_stride + d), set1(f16_to_f32(scales(p, v_stride, d / kKvBlock)[t])));
  }
};

HEARTH_INLINE uint8_t* page_of(const KvView& kv, int64_t position) {
  return kv.base + static_cast<size_t>(kv.pages[position / kLanes]) * kv.page_stride_bytes;
}

template <class Kv>
void kv_append_as(const KvView& kv, int64_t position, const float* k, const float* v) {
  uint8_t* page = page_of(kv, position);
  int64_t token = position % kLanes;
  for (int64_t d = 0; d < kv.v_stride; d += 16) {
    int64_t n = kv.head_dim - d < 16 ? kv.head_dim - d : 16;
    Kv::put_lane(page, d * kLanes + token, load_part(k + d, n), static_cast<int>(n), kLanes);
    Kv::put(page + kv.v_offset_bytes, token * kv.v_stride + d, load_part(v + d, n));
  }
}

// Up to kKvBlock entries as integers of magnitude <= 127, zeros behind them. Returns the scale, f16.
HEARTH_INLINE uint16_t quantize_block(const float* x, int64_t n, int8_t* codes) {
  F32x16 a = load_part(x, n < 16 ? n : 16), b = n > 16 ? load_part(x + 16, n - 16) : zero_f();
  float step = max_lanes(max(abs(a), abs(b))) / 127.0f;
  uint16_t scale = f32_to_f16(step < 65504.0f ? step : 65504.0f);
  float rounded = f16_to_f32(scale);
  F32x16 inverse = set1(rounded > 0 ? 1.0f / rounded : 0.0f), least = set1(-127.0f), most = set1(127.0f);
  store_i8(codes, round_to_int(min(max(mul(a, inverse), least), most)));
  store_i8(codes + 16, round_to_int(min(max(mul(b, inverse), least), most)));
  return scale;
}

void kv_append_q8(const KvView& kv, int64_t position, const float* k, const float* v) {
  uint8_t *keys = page_of(kv, position), *values = keys + kv.v_offset_bytes;
  int64_t token = position % kLanes;
  auto set_scale = [&](uint8_t* plane, int64_t entries, int64_t d, uint16_t scale) {
    memcpy(plane + entries * kLanes + (d / kKvBlock * kLanes + token) * 2, &scale, 2);
  };
  for (int64_t d = 0; d < kv.head_dim; d += kKvBlock) {
    int64_t n = kv.head_dim - d < kKvBlock ? kv.head_dim - d : kKvBlock;
    int8_t codes[kKvBlock];
    set_scale(keys, kv.head_dim, d, quantize_block(k + d, n, codes));
    for (int64_t j = 0; j < n; ++j) reinterpret_cast<int8_t*>(keys)[(d + j) * kLanes + token] = codes[j];
    set_scale(values, kv.v_stride, d, quantize_block(v + d, n, codes));
    int64_t padded = kv.v_stride - d < kKvBlock ? kv.v_stride - d : kKvBlock;
    memcpy(values + token * kv.v_stride + d, codes, static_cast<size_t>(padded));
  }
}

void kv_append(const KvView& kv, int64_t position, const float* k, const float* v) {
  switch (kv.format) {
    case KvFormat::kF32:
      return kv_append_as<KvF32>(kv, position, k, v);
    case KvFormat::kF16:
      return kv_append_as<KvF16>(kv, position, k, v);
    case KvFormat::kQ8:
      return kv_append_q8(kv, position, k, v);
  }
}

// cap * tanh(score / cap), to 2^-22 of cap.
HEARTH_INLINE F32x16 soft_capped(F32x16 score, float cap) {
  F32x16 e = exp(mul(score, set1(2.0f / cap)));
  return sub(set1(cap), div(set1(2.0f * cap), add(e, set1(1.0f))));
}

// scores[head][16] of one page; two sums per head hide the latency of the multiply-add. `next`: what is fetched
// meanwhile. Pages lie far apart, and the processor's own prefetcher starts anew at each.
template <class Kv, int G>
HEARTH_INLINE void page_scores(const uint8_t* keys, const uint8_t* next, const float* q, int64_t head_dim,
                               F32x16 (&out)[G]) {
  for (int g = 0; g < G; ++g) out[g] = zero_f();
  const int64_t run = Kv::kScaled ? kKvBlock : head_dim;  // entries of one scale
  for (int64_t first = 0; first < head_dim; first += run) {
    const int64_t end = head_dim - first < run ? head_dim : first + run;
    F32x16 acc[G][2];
    for (int g = 0; g < G; ++g) acc[g][0] = acc[g][1] = zero_f();
    int64_t d = first;
    for (; d + 2 <= end; d += 2) {
      for (int64_t b = 0; b < 2 * kLanes * Kv::kBytes; b += 64)
        __builtin_prefetch(next + d * kLanes * Kv::kBytes + b, 0, 2);
      F32x16 k0 = Kv::get(keys, d * kLanes), k1 = Kv::get(keys, (d + 1) * kLanes);
      for (int g = 0; g < G; ++g) {
        acc[g][0] = fma(k0, set1(q[g * head_dim + d]), acc[g][0]);
        acc[g][1] = fma(k1, set1(q[g * head_dim + d + 1]), acc[g][1]);
      }
    }
    if (d < end) {
      F32x16 k0 = Kv::get(keys, d * kLanes);
      for (int g = 0; g < G; ++g) acc[g][0] = fma(k0, set1(q[g * head_dim + d]), acc[g][0]);
    }
    for (int g = 0; g < G; ++g) {
      F32x16 sum = add(acc[g][0], acc[g][1]);
      if constexpr (Kv::kScaled) sum = fma(sum, load_f16(Kv::scales(keys, head_dim, first / run)), out[g]);
      out[g] = sum;
    }
  }
}

// out[head][v_stride] += weights[head][token] * values for tokens [first, last) of a page.
template <class Kv, int G, int Width>
HEARTH_INLINE void page_values(const uint8_t* values, const uint8_t* next, const float* weights, int64_t weight_stride,
                               int64_t first, int64_t last, int64_t v_stride, float* out) {
  F32x16 acc[G][Width];
  for (int g = 0; g < G; ++g) {
    for (int w = 0; w < Width; ++w) acc[g][w] = load(out + g * v_stride + 16 * w);
  }
  for (int64_t t = first; t < last; ++t) {
    F32x16 v[Width];
    for (int64_t b = 0; b < 16 * Width * Kv::kBytes; b += 64)
      __builtin_prefetch(next + t * v_stride * Kv::kBytes + b, 0, 2);
    for (int w = 0; w < Width; ++w) v[w] = Kv::get(values, t * v_stride + 16 * w);
    for (int g = 0; g < G; ++g) {
      F32x16 weight = set1(weights[g * weight_stride + t]);
      for (int w = 0; w < Width; ++w) acc[g][w] = fma(v[w], weight, acc[g][w]);
    }
  }
  for (int g = 0; g < G; ++g) {
    for (int w = 0; w < Width; ++w) store(out + g * v_stride + 16 * w, acc[g][w]);
  }
}

template <class Kv, int G>
void attend_heads(const DecodeAttention& a, int64_t head) {
  const KvView& kv = a.kv;
  const float* q = a.q + head * kv.head_dim;
  float* out = a.out + head * kv.v_stride;
  const int64_t origin = a.begin / kLanes * kLanes;  // scratch[0] is this position
  // What is read kPrefetchBytes after the page of p: keys, then (`values`) values of the same positions.
  const int64_t pages = (a.end - origin + kLanes - 1) / kLanes;
  const int64_t pages_ahead = kPrefetchBytes / static_cast<int64_t>(kv.v_offset_bytes) + 1;
  auto later = [&](int64_t p, bool values) {
    int64_t page = (p - origin) / kLanes + pages_ahead;
    if (!values && page >= pages) page -= pages, values = true;
    page = page < pages ? page : pages - 1;
    return page_of(kv, origin + page * kLanes) + (values ? kv.v_offset_bytes : 0);
  };
  // Scores of the page at p without those of tokens outside [begin, end).
  auto visible = [&](F32x16 score, int64_t p) {
    if (a.end - p < kLanes) score = first_lanes(score, set1(kMinusInf), a.end - p);
    if (p < a.begin) score = first_lanes(set1(kMinusInf), score, a.begin - p);
    return score;
  };
  F32x16 best[G];
  for (int g = 0; g < G; ++g) best[g] = set1(kMinusInf);
  for (int64_t p = origin; p < a.end; p += kLanes) {
    const uint8_t* page = page_of(kv, p);
    const uint8_t* next = later(p, false);
    F32x16 score[G];
    page_scores<Kv, G>(page, next, q, kv.head_dim, score);
    for (int g = 0; g < G; ++g) {
      score[g] = visible(score[g], p);
      best[g] = max(score[g], best[g]);
      store(a.scratch + g * kKeySplit + (p - origin), score[g]);
    }
  }
  if (a.soft_cap > 0) {
    for (int g = 0; g < G; ++g) {
      best[g] = soft_capped(best[g], a.soft_cap);
      for (int64_t p = origin; p < a.end; p += kLanes) {
        float* s = a.scratch + g * kKeySplit + (p - origin);
        store(s, visible(soft_capped(load(s), a.soft_cap), p));
      }
    }
  }
  for (int g = 0; g < G; ++g) {
    float m = max_lanes(best[g]);
    F32x16 sum = zero_f();
    for (int64_t i = 0; i < a.end - origin; i += 16) {
      float* s = a.scratch + g * kKeySplit + i;
      F32x16 w = exp(sub(load(s), set1(m)));
      sum = add(sum, w);
      store(s, w);
    }
    a.max[head + g] = m;
    a.sum[head + g] = sum_lanes(sum);
    for (int64_t d = 0; d < kv.v_stride; d += 16) store(out + g * kv.v_stride + d, zero_f());
  }
  for (int64_t p = origin; p < a.end; p += kLanes) {
    const uint8_t* values = page_of(kv, p) + kv.v_offset_bytes;
    const uint8_t* next = later(p, true);
    int64_t first = a.begin > p ? a.begin - p : 0, last = a.end - p < kLanes ? a.end - p : kLanes;
    for (int64_t d = 0; d < kv.v_stride; d += 32) {
      const float* weights = a.scratch + (p - origin);
      int64_t stride = kKeySplit;
      float scaled[G * kLanes];
      if constexpr (Kv::kScaled) {
        static_assert(kKvBlock == 32);
        F32x16 scale = load_f16(Kv::scales(values, kv.v_stride, d / kKvBlock));
        for (int g = 0; g < G; ++g) store(scaled + g * kLanes, mul(load(weights + g * kKeySplit), scale));
        weights = scaled;
        stride = kLanes;
      }
      if (d + 32 <= kv.v_stride) {
        page_values<Kv, G, 2>(values + d * Kv::kBytes, next + d * Kv::kBytes, weights, stride, first, last, kv.v_stride,
                              out + d);
      } else {
        page_values<Kv, G, 1>(values + d * Kv::kBytes, next + d * Kv::kBytes, weights, stride, first, last, kv.v_stride,
                              out + d);
      }
    }
  }
}

template <class Kv>
void attend_decode_as(const DecodeAttention& a) {
  int64_t head = 0;
#if !defined(__aarch64__)  // there the sums of two heads take 16 of 32 registers, keys or values 8
  for (; a.heads - head >= 4; head += 4) attend_heads<Kv, 4>(a, head);
  if (a.heads - head == 3) attend_heads<Kv, 3>(a, head), head += 3;
#endif
  for (; a.heads - head >= 2; head += 2) attend_heads<Kv, 2>(a, head);
  if (head < a.heads) attend_heads<Kv, 1>(a, head);
}

void attend_decode(const DecodeAttention& a) {
  switch (a.kv.format) {
    case KvFormat::kF32:
      return attend_decode_as<KvF32>(a);
    case KvFormat::kF16:
      return attend_decode_as<KvF16>(a);
    case KvFormat::kQ8:
      return attend_decode_as<KvQ8>(a);
  }
}

void merge_split(float* max_to, float* sum, float* out, float other_max, float other_sum, const float* other,
                 int64_t n) {
  float m = *max_to > other_max ? *max_to : other_max;
  float both[16] = {*max_to - m, other_max - m};
  store(both, exp(load(both)));
  F32x16 mine = set1(both[0]), theirs = set1(both[1]);
  *sum = *sum * both[0] + other_sum * both[1];
  *max_to = m;
  for (int64_t i = 0; i < n; i += 16) store(out + i, fma(load(other + i), theirs, mul(load(out + i), mine)));
}

}  // namespace
}  // namespace hearth::cpu
