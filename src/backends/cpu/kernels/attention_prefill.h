// Attention of blocks of queries as small matrix products, in f32 or on the matrix unit. Part of kernels.cpp.
//
// Keys are taken in blocks of 64 that begin at multiples of 64; a block that a row cannot see changes nothing in that
// row: its maximum stays, all its weights are 0.
#pragma once

#include "backends/cpu/kernels/attention.h"
#include "backends/cpu/kernels/gemm_amx.h"

namespace hearth::cpu {
namespace {

// The products of a tile are one of two classes. Panels are [n][16] f32, filled by the caller: of keys one for each
// page, n = head_dim; of values one for each 16 entries, n = kKeyBlock tokens.

#if defined(__AMX_BF16__)

class AmxProducts {
 public:
  AmxProducts(const PrefillAttention& a, int64_t rows)
      : rows_(rows),
        head_dim_(a.kv.head_dim),
        v_stride_(a.kv.v_stride),
        depth_((head_dim_ + kAmxCols - 1) / kAmxCols),
        groups_((rows + kAmxRows - 1) / kAmxRows) {
    const int64_t wide = depth_ * kAmxCols;
    panel_ = a.scratch;
    q_ = reinterpret_cast<std::byte*>(panel_ + kLanes * (wide > kKeyBlock ? wide : kKeyBlock));
    keys_ = q_ + groups_ * depth_ * AmxFull::kXStepBytes;
    values_ = keys_ + kKeyBlock / kLanes * depth_ * AmxFull::kWStepBytes;
    packed_ = values_ + v_stride_ / kLanes * kKeyBlock / kAmxCols * AmxFull::kWStepBytes;
    rest = reinterpret_cast<float*>(packed_ + groups_ * kKeyBlock / kAmxCols * AmxFull::kXStepBytes);
    const AmxConfig config;
    _tile_loadconfig(&config);
    pack(a.q, head_dim_, head_dim_, q_);
  }
  ~AmxProducts() { _tile_release(); }
  AmxProducts(const AmxProducts&) = delete;
  AmxProducts& operator=(const AmxProducts&) = delete;

  int64_t padded_rows() const { return groups_ * kAmxRows; }

  float* key_panel(int64_t) { return panel_; }
  void key_panel_done(int64_t page) {
    AmxFull::split_panel(panel_, head_dim_, keys_ + page * depth_ * AmxFull::kWStepBytes);
  }
  float* value_panel(int64_t) { return panel_; }
  void value_panel_done(int64_t i, int64_t tokens) {
    AmxFull::split_panel(panel_, tokens, values_ + i * (kKeyBlock / kAmxCols * AmxFull::kWStepBytes));
  }

  // scores[row][kKeyBlock] = queries x keys of the first `pages` pages.
  void scores(int64_t pages, float* out) const {
    multiply(q_, depth_, keys_, depth_ * AmxFull::kWStepBytes, pages, false, out, kKeyBlock);
  }
  // out[row][v_stride] += weights[row][kKeyBlock] x values, over the first `tokens` tokens.
  void values(const float* weights, int64_t tokens, float* out) const {
    const int64_t depth = (tokens + kAmxCols - 1) / kAmxCols;
    pack(weights, kKeyBlock, tokens, packed_);
    multiply(packed_, depth, values_, kKeyBlock / kAmxCols * AmxFull::kWStepBytes, v_stride_ / kLanes, true, out,
             v_stride_);
  }

  float* rest;  // scratch that is left

 private:
  void pack(const float* x, int64_t stride, int64_t cols, std::byte* out) const {
    const int64_t depth = (cols + kAmxCols - 1) / kAmxCols;
    for (int64_t g = 0; g < groups_; ++g) {
      const int64_t left = rows_ - g * kAmxRows;
      AmxFull::pack_block(x + g * kAmxRows * stride, stride, left < kAmxRows ? left : kAmxRows, cols,
                          out + g * depth * AmxFull::kXStepBytes);
    }
  }
  void multiply(const std::byte* a, int64_t depth, const std::byte* b, int64_t b_bytes, int64_t panels, bool add,
                float* c, int64_t stride) const {
    for (int64_t g = 0; g < groups_; ++g) {
      const std::byte* rows = a + g * depth * AmxFull::kXStepBytes;
      float* to = c + g * kAmxRows * stride;
      int64_t p = 0;
      for (; p + 2 <= panels; p += 2) {
        AmxFull::tile<2>(rows, b + p * b_bytes, b_bytes, depth, add, to + p * kLanes, stride, kLanes, nullptr);
      }
      if (p < panels) AmxFull::tile<1>(rows, b + p * b_bytes, b_bytes, depth, add, to + p * kLanes, stride, 0, nullptr);
    }
  }

  int64_t rows_, head_dim_, v_stride_, depth_, groups_;
  float* panel_;
  std::byte *q_, *keys_, *values_, *packed_;
};

#endif

class F32Products {
 public:
  F32Products(const PrefillAttention& a, int64_t rows)
      : head_dim_(a.kv.head_dim), v_stride_(a.kv.v_stride), tiles_((rows + kTileRows - 1) / kTileRows) {
    q_ = a.scratch;
    keys_ = q_ + tiles_ * kTileRows * head_dim_;
    values_ = keys_ + kKeyBlock * head_dim_;
    rest = values_ + kKeyBlock * v_stride_;
    for (int64_t t = 0; t < tiles_; ++t) {
      const int64_t left = rows - t * kTileRows;
      pack_rows(a.q + t * kTileRows * head_dim_, head_dim_, left < kTileRows ? left : kTileRows, head_dim_,
                q_ + t * kTileRows * head_dim_);
    }
  }

  int64_t padded_rows() const { return tiles_ * kTileRows; }

  float* key_panel(int64_t page) { return keys_ + page * head_dim_ * kLanes; }
  void key_panel_done(int64_t) {}
  float* value_panel(int64_t i) { return values_ + i * kKeyBlock * kLanes; }
  void value_panel_done(int64_t, int64_t) {}

  void scores(int64_t pages, float* out) const {
    for (int64_t p = 0; p < pages; ++p) {
      for (int64_t t = 0; t < tiles_; ++t) {
        micro_tile<1, 1, kTileRows>(q_ + t * head_dim_ * kTileRows, keys_ + p * head_dim_ * kLanes, 0, head_dim_, false,
                                    out + t * kTileRows * kKeyBlock + p * kLanes, kKeyBlock, 0);
      }
    }
  }
  void values(const float* weights, int64_t tokens, float* out) const {
    for (int64_t d = 0; d < v_stride_; d += kLanes) {
      for (int64_t t = 0; t < tiles_; ++t) {
        micro_tile<1, kKeyBlock, 1>(weights + t * kTileRows * kKeyBlock, values_ + d * kKeyBlock, 0, tokens, true,
                                    out + t * kTileRows * v_stride_ + d, v_stride_, 0);
      }
    }
  }

  float* rest;

 private:
  int64_t head_dim_, v_stride_, tiles_;
  float *q_, *keys_, *values_;
};

// Softmax of one block of scores: weights[row] become e^(score - maximum), sums and the rows of out so far follow the
// maximum. Visible are tokens [low, high) of the block.
HEARTH_INLINE void soften(float* w, int64_t tokens, int64_t low, int64_t high, float* out, int64_t v_stride,
                          float* best, float* total) {
  if (low >= high) {
    for (int64_t t = 0; t < tokens; t += 16) store(w + t, zero_f());
    return;
  }
  F32x16 score[kKeyBlock / 16], top = set1(*best);
  for (int64_t t = 0; t < tokens; t += 16) {
    F32x16 s = load(w + t);
    if (high < t + 16) s = first_lanes(s, set1(kMinusInf), high > t ? high - t : 0);
    if (low > t) s = first_lanes(set1(kMinusInf), s, low - t < 16 ? low - t : 16);
    score[t / 16] = s;
    top = max(s, top);
  }
  float m = max_lanes(top);
  F32x16 sum = zero_f();
  for (int64_t t = 0; t < tokens; t += 16) {
    F32x16 e = exp(sub(score[t / 16], set1(m)));
    sum = add(sum, e);
    store(w + t, e);
  }
  if (m != *best) {
    float change[16] = {*best - m};
    store(change, exp(load(change)));
    *total *= change[0];
    F32x16 c = set1(change[0]);
    for (int64_t d = 0; d < v_stride; d += 16) store(out + d, mul(load(out + d), c));
    *best = m;
  }
  *total += sum_lanes(sum);
}

template <class Products, class Kv>
void attend_prefill_as(const PrefillAttention& a) {
  const KvView& kv = a.kv;
  const int64_t rows = a.queries * a.heads;
  Products products(a, rows);
  const int64_t padded = products.padded_rows();
  float* weights = products.rest;              // [padded][kKeyBlock]
  float* best = weights + padded * kKeyBlock;  // [padded]
  float* sums = best + padded;                 // [padded]
  for (int64_t r = 0; r < padded; ++r) {       // a sink is as a key that was seen before all others
    best[r] = a.sinks ? a.sinks[r % a.heads] : kMinusInf;
    sums[r] = a.sinks ? 1.0f : 0.0f;
  }
  memset(a.out, 0, static_cast<size_t>(padded * kv.v_stride) * sizeof(float));

  const int64_t last = a.position + a.queries - 1;
  int64_t begin = a.window > 0 && a.position - a.window + 1 > 0 ? a.position - a.window + 1 : 0;
  for (int64_t block = begin / kKeyBlock * kKeyBlock; block <= last; block += kKeyBlock) {
    const int64_t pages =
        (last - block) / kLanes + 1 < kKeyBlock / kLanes ? (last - block) / kLanes + 1 : kKeyBlock / kLanes;
    const int64_t tokens = pages * kLanes;
    const uint8_t* page[kKeyBlock / kLanes];  // nullptr behind the window: freed, masked below
    for (int64_t p = 0; p < pages; ++p) {
      page[p] = kv.pages[block / kLanes + p] < 0 ? nullptr : page_of(kv, block + p * kLanes);
    }
    for (int64_t p = 0; p < pages; ++p) {
      float* panel = products.key_panel(p);
      for (int64_t d = 0; d < kv.head_dim; ++d) {
        store(panel + d * kLanes, page[p] ? Kv::key(page[p], kv.head_dim, d) : zero_f());
      }
      products.key_panel_done(p);
    }
    products.scores(pages, weights);
    for (int64_t r = 0; r < rows; ++r) {
      if (a.soft_cap > 0) {
        float* s = weights + r * kKeyBlock;
        for (int64_t t = 0; t < tokens; t += 16) store(s + t, soft_capped(load(s + t), a.soft_cap));
      }
      const int64_t position = a.position + r / a.heads;
      int64_t high = position + 1 - block < tokens ? position + 1 - block : tokens;
      int64_t low = a.window > 0 && position - a.window + 1 > block ? position - a.window + 1 - block : 0;
      soften(weights + r * kKeyBlock, tokens, low, high, a.out + r * kv.v_stride, kv.v_stride, best + r, sums + r);
    }
    for (int64_t r = rows; r < padded; ++r) {
      for (int64_t t = 0; t < tokens; t += 16) store(weights + r * kKeyBlock + t, zero_f());
    }
    for (int64_t d = 0; d < kv.v_stride; d += 16) {
      float* panel = products.value_panel(d / 16);
      for (int64_t t = 0; t < tokens; ++t) {
        const uint8_t* from = page[t / kLanes];
        bool written = from && block + t <= last;  // beyond it the page holds anything
        store(panel + t * kLanes, written ? Kv::value(from + kv.v_offset_bytes, kv.v_stride, t % kLanes, d) : zero_f());
      }
      products.value_panel_done(d / 16, tokens);
    }
    products.values(weights, tokens, a.out);
  }
  for (int64_t r = 0; r < rows; ++r) {
    F32x16 inverse = set1(1.0f / sums[r]);
    for (int64_t d = 0; d < kv.v_stride; d += 16) {
      store(a.out + r * kv.v_stride + d, mul(load(a.out + r * kv.v_stride + d), inverse));
    }
  }
}

template <class Products>
void attend_prefill(const PrefillAttention& a) {
  switch (a.kv.format) {
    case KvFormat::kF32:
      return attend_prefill_as<Products, KvF32>(a);
    case KvFormat::kF16:
      return attend_prefill_as<Products, KvF16>(a);
    case KvFormat::kQ8:
      return attend_prefill_as<Products, KvQ8>(a);
  }
}

constexpr PrefillKernel kPrefillF32 = {.rows = 96, .attend = attend_prefill<F32Products>};
#if defined(__AMX_BF16__)
// Many rows share the splitting of keys and values.
constexpr PrefillKernel kPrefillAmx = {.rows = kMaxQueryRows, .attend = attend_prefill<AmxProducts>};
#else
constexpr PrefillKernel kPrefillAmx = {};
#endif

}  // namespace
}  // namespace hearth::cpu
