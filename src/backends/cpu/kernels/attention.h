// Attention over pages of keys and values: single queries in splits of 512 keys, and blocks of queries as small matrix
// products. Boundaries depend on positions only, so a row's result does not depend on its company. Part of kernels.cpp.
#pragma once

#include "backends/cpu/kernels/gemm.h"

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
      for (int64_t b = 0; b < 2 * kLanes * Kv::kBytes; b += 64) __builtin_prefetch(next + d * kLanes * Kv::kBytes + b);
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
    for (int64_t b = 0; b < 16 * Width * Kv::kBytes; b += 64) __builtin_prefetch(next + t * v_stride * Kv::kBytes + b);
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
  F32x16 best[G];
  for (int g = 0; g < G; ++g) best[g] = set1(kMinusInf);
  for (int64_t p = origin; p < a.end; p += kLanes) {
    const uint8_t* page = page_of(kv, p);
    const uint8_t* next = p + kLanes < a.end ? page_of(kv, p + kLanes) : page;
    F32x16 score[G];
    page_scores<Kv, G>(page, next, q, kv.head_dim, score);
    for (int g = 0; g < G; ++g) {
      if (a.end - p < kLanes) score[g] = first_lanes(score[g], set1(kMinusInf), a.end - p);
      if (p < a.begin) score[g] = first_lanes(set1(kMinusInf), score[g], a.begin - p);
      best[g] = max(score[g], best[g]);
      store(a.scratch + g * kKeySplit + (p - origin), score[g]);
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
    const uint8_t* next = p + kLanes < a.end ? page_of(kv, p + kLanes) + kv.v_offset_bytes : values;
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
  for (; a.heads - head >= 4; head += 4) attend_heads<Kv, 4>(a, head);
  if (a.heads - head == 3) attend_heads<Kv, 3>(a, head);
  if (a.heads - head == 2) attend_heads<Kv, 2>(a, head);
  if (a.heads - head == 1) attend_heads<Kv, 1>(a, head);
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

// Prefill. Keys are taken in blocks of 64 that begin at multiples of 64; a block that a row cannot see changes nothing
// in that row: its maximum stays, all its weights are 0.
template <class Kv>
void attend_prefill_as(const PrefillAttention& a) {
  const KvView& kv = a.kv;
  const int64_t rows = a.queries * a.heads, tiles = (rows + kTileRows - 1) / kTileRows;
  float* keys = a.scratch;                            // [v_stride][16]
  float* values = keys + kLanes * kv.v_stride;        // [v_stride / 16][kKeyBlock][16]
  float* weights = values + kKeyBlock * kv.v_stride;  // [kQueryRows][kKeyBlock]
  float* best = weights + kQueryRows * kKeyBlock;     // [kQueryRows]
  float* sums = best + kQueryRows;                    // [kQueryRows]
  for (int64_t r = 0; r < tiles * kTileRows; ++r) best[r] = kMinusInf, sums[r] = 0;
  memset(a.out, 0, static_cast<size_t>(tiles * kTileRows * kv.v_stride) * sizeof(float));

  const int64_t last = a.position + a.queries - 1;
  int64_t begin = a.window > 0 && a.position - a.window + 1 > 0 ? a.position - a.window + 1 : 0;
  for (int64_t block = begin / kKeyBlock * kKeyBlock; block <= last; block += kKeyBlock) {
    const int64_t pages =
        (last - block) / kLanes + 1 < kKeyBlock / kLanes ? (last - block) / kLanes + 1 : kKeyBlock / kLanes;
    const int64_t tokens = pages * kLanes;
    for (int64_t p = 0; p < pages; ++p) {
      if (kv.pages[block / kLanes + p] < 0) {  // behind the window: freed, masked below
        for (int64_t r = 0; r < tiles * kTileRows; ++r) store(weights + r * kKeyBlock + p * kLanes, zero_f());
        for (int64_t d = 0; d < kv.v_stride; d += 16) {
          for (int64_t t = 0; t < kLanes; ++t) store(values + (d * kKeyBlock) + (p * kLanes + t) * 16, zero_f());
        }
        continue;
      }
      const uint8_t* page = page_of(kv, block + p * kLanes);
      for (int64_t d = 0; d < kv.head_dim; ++d) store(keys + d * kLanes, Kv::key(page, kv.head_dim, d));
      for (int64_t i = 0; i < tiles; ++i) {
        micro_tile<1, 1, kTileRows>(a.q + i * kv.head_dim * kTileRows, keys, 0, kv.head_dim, false,
                                    weights + i * kTileRows * kKeyBlock + p * kLanes, kKeyBlock, 0);
      }
      for (int64_t t = 0; t < kLanes; ++t) {
        bool written = block + p * kLanes + t <= last;  // beyond it the page holds anything
        for (int64_t d = 0; d < kv.v_stride; d += 16) {
          F32x16 v = written ? Kv::value(page + kv.v_offset_bytes, kv.v_stride, t, d) : zero_f();
          store(values + d * kKeyBlock + (p * kLanes + t) * 16, v);
        }
      }
    }
    for (int64_t r = 0; r < rows; ++r) {
      const int64_t position = a.position + r / a.heads;
      // Visible: tokens [low, high) of the block.
      int64_t high = position + 1 - block < tokens ? position + 1 - block : tokens;
      int64_t low = a.window > 0 && position - a.window + 1 > block ? position - a.window + 1 - block : 0;
      float* w = weights + r * kKeyBlock;
      if (low >= high) {
        for (int64_t t = 0; t < tokens; t += 16) store(w + t, zero_f());
        continue;
      }
      F32x16 score[kKeyBlock / 16], top = set1(best[r]);
      for (int64_t i = 0; i < pages; ++i) {
        int64_t t = i * 16;
        score[i] = load(w + t);
        if (high < t + 16) score[i] = first_lanes(score[i], set1(kMinusInf), high > t ? high - t : 0);
        if (low > t) score[i] = first_lanes(set1(kMinusInf), score[i], low - t < 16 ? low - t : 16);
        top = max(score[i], top);
      }
      float m = max_lanes(top);
      F32x16 sum = zero_f();
      for (int64_t i = 0; i < pages; ++i) {
        F32x16 e = exp(sub(score[i], set1(m)));
        sum = add(sum, e);
        store(w + i * 16, e);
      }
      if (m != best[r]) {
        float change[16] = {best[r] - m};
        store(change, exp(load(change)));
        sums[r] *= change[0];
        F32x16 c = set1(change[0]);
        for (int64_t d = 0; d < kv.v_stride; d += 16) {
          store(a.out + r * kv.v_stride + d, mul(load(a.out + r * kv.v_stride + d), c));
        }
        best[r] = m;
      }
      sums[r] += sum_lanes(sum);
    }
    for (int64_t r = rows; r < tiles * kTileRows; ++r) {
      for (int64_t t = 0; t < tokens; t += 16) store(weights + r * kKeyBlock + t, zero_f());
    }
    for (int64_t d = 0; d < kv.v_stride; d += 16) {
      for (int64_t i = 0; i < tiles; ++i) {
        micro_tile<1, kKeyBlock, 1>(weights + i * kTileRows * kKeyBlock, values + d * kKeyBlock, 0, tokens, true,
                                    a.out + i * kTileRows * kv.v_stride + d, kv.v_stride, 0);
      }
    }
  }
  for (int64_t r = 0; r < rows; ++r) {
    F32x16 inverse = set1(1.0f / sums[r]);
    for (int64_t d = 0; d < kv.v_stride; d += 16) {
      store(a.out + r * kv.v_stride + d, mul(load(a.out + r * kv.v_stride + d), inverse));
    }
  }
}

void attend_prefill(const PrefillAttention& a) {
  switch (a.kv.format) {
    case KvFormat::kF32:
      return attend_prefill_as<KvF32>(a);
    case KvFormat::kF16:
      return attend_prefill_as<KvF16>(a);
    case KvFormat::kQ8:
      return attend_prefill_as<KvQ8>(a);
  }
}

}  // namespace
}  // namespace hearth::cpu
