// Many rows times panels with integer codes. Activations are int16 with a scale per 256 columns; the products of a
// group of weights are summed exactly in int32 (32 * 32767 * 2047 < 2^31), so a multiply-add of 16-bit pairs does the
// work of two in f32. Part of kernels.cpp.
//
// A group of kIntRows packed rows: codes as pairs [cols / 2][rows][2]; then in f32 the scales [ceil(cols / 256)][rows]
// and the sums of codes [cols / 16][rows] of each 16 and [cols / 32][rows] of each 32 columns.
#pragma once

#include "backends/cpu/kernels/gemm.h"

namespace hearth::cpu {
namespace {

#if defined(__AVX2__)

// Rows of a tile, and how many pairs of columns are unrolled: with VNNI a whole group, because the compiler copies sums
// that a loop carries; without it a product needs a register on its way to the sum, and fewer are left.
#if defined(__AVX512F__) || defined(__AVXVNNI__)
constexpr int kIntRows = kTileRows, kIntSteps = 16;
#else
constexpr int kIntRows = 5, kIntSteps = 2;
#endif

template <class F>
void unpack_int_block(const PanelView& p, int64_t k0, int64_t kn, IntBlock& out) {
  out.group = F::kGroup;
  out.has_min = F::kMin;
  auto codes16 = [&]<int Half>(int64_t e) {
    int16_t* to = out.codes[(e - k0) / 2][0];
    each_pair16<F, Half>(p.codes + e / F::kLineElems * 64, high_line<F>(p, e), [&]<int I>(I32x16 pair) {
      if constexpr (F::kZero != 0) pair = sub_halves(pair, set1(F::kZero * 0x10001));
      store(to + I * 2 * kLanes, pair);
    });
  };
  for (int64_t e = k0; e < k0 + kn; e += 32) codes16.template operator()<0>(e), codes16.template operator()<1>(e + 16);
  each_scale<F>(p, k0, kn, [&]<int>(int64_t e, F32x16 scale, F32x16 min) {
    if constexpr (F::kUnit != 1) scale = mul(scale, set1(F::kUnit));
    store(out.scales[(e - k0) / F::kGroup], scale);
    if constexpr (F::kMin) store(out.mins[(e - k0) / F::kGroup], min);
  });
}

// Where the parts of a packed group begin, in bytes.
struct IntGroup {
  explicit IntGroup(int64_t cols)
      : scales(cols * kIntRows * 2),
        sums16(scales + (cols + kKBlock - 1) / kKBlock * kIntRows * 4),
        sums32(sums16 + cols / 16 * kIntRows * 4),
        bytes((sums32 + cols / 32 * kIntRows * 4 + 63) / 64 * 64) {}
  int64_t scales, sums16, sums32, bytes;
};

size_t int_group_bytes(int64_t cols) { return static_cast<size_t>(IntGroup(cols).bytes); }

void pack_int(const float* x, int64_t stride, int64_t rows, int64_t cols, int64_t group, int64_t, std::byte* out) {
  const IntGroup at(cols);
  out += group * at.bytes;
  auto* codes = reinterpret_cast<int32_t*>(out);  // pairs
  auto* scales = reinterpret_cast<float*>(out + at.scales);
  auto* sums16 = reinterpret_cast<float*>(out + at.sums16);
  auto* sums32 = reinterpret_cast<float*>(out + at.sums32);
  if (rows < kIntRows) memset(out, 0, static_cast<size_t>(at.bytes));
  for (int64_t r = 0; r < rows; ++r) {
    const float* row = x + r * stride;
    for (int64_t k0 = 0; k0 < cols; k0 += kKBlock) {
      int64_t end = cols - k0 < kKBlock ? cols : k0 + kKBlock;
      F32x16 top = zero_f();
      for (int64_t k = k0; k < end; k += 16) top = max(abs(load(row + k)), top);
      float largest = max_lanes(top), scale = largest / 32767.0f;
      bool usable = scale > 1.2e-38f;  // as in quantize
      F32x16 inverse = set1(usable ? 1.0f / scale : 0.0f);
      scales[k0 / kKBlock * kIntRows + r] = largest == largest ? (usable ? scale : 0.0f) : largest;
      float half = 0;
      for (int64_t k = k0; k < end; k += 16) {
        I32x16 code = round_to_int(mul(load(row + k), inverse));
        int16_t pairs[16];
        store_i16_interleaved(pairs, code);
        int32_t words[8];
        memcpy(words, pairs, sizeof words);
        for (int64_t i = 0; i < 8; ++i) codes[(k / 2 + i) * kIntRows + r] = words[i];
        auto sum = static_cast<float>(sum_lanes(code));
        sums16[k / 16 * kIntRows + r] = sum;
        if (k % 32 == 16) sums32[k / 32 * kIntRows + r] = half + sum;
        half = sum;
      }
    }
  }
}

// A micro-tile: kIntRows rows x Panels panels over one block of columns.
template <int Panels, int Group, bool Min>
HEARTH_INLINE void int_tile(const std::byte* a, const IntGroup& at, const IntBlock* const (&b)[Panels], int64_t k0,
                            int64_t kn, float* c, int64_t c_panel_stride) {
  const auto* codes = reinterpret_cast<const int16_t*>(a) + k0 * kIntRows;
  const auto* scales = reinterpret_cast<const float*>(a + at.scales) + k0 / kKBlock * kIntRows;
  const auto* sums = reinterpret_cast<const float*>(a + (Group == 16 ? at.sums16 : at.sums32)) + k0 / Group * kIntRows;
  constexpr int kSteps = kIntSteps < Group / 2 ? kIntSteps : Group / 2;
  auto each_sum = [](auto&& f) {
    unrolled<kIntRows>([&]<int R>() { unrolled<Panels>([&]<int P>() { f.template operator()<R, P>(); }); });
  };
  float total[kIntRows * Panels * kLanes] = {};  // in units of the activations' scale
  for (int64_t g = 0; g < kn / Group; ++g) {
    I32x16 acc[kIntRows][Panels];
    each_sum([&]<int R, int P>() { acc[R][P] = zero_i(); });
    for (int64_t i = g * Group / 2; i < (g + 1) * Group / 2; i += kSteps) {
      const int16_t* x = codes + i * 2 * kIntRows;
      unrolled<kSteps>([&]<int I>() {
        I32x16 w[Panels];
        unrolled<Panels>([&]<int P>() { w[P] = load(reinterpret_cast<const uint8_t*>(b[P]->codes[i + I])); });
        unrolled<kIntRows>([&]<int R>() {
          I32x16 pair = broadcast_pair(x + 2 * (I * kIntRows + R));
          unrolled<Panels>([&]<int P>() { acc[R][P] = dot_halves(acc[R][P], w[P], pair); });
        });
      });
    }
    F32x16 scale[Panels], min[Panels];
    unrolled<Panels>([&]<int P>() {
      scale[P] = load(b[P]->scales[g]);
      min[P] = Min ? load(b[P]->mins[g]) : zero_f();
    });
    each_sum([&]<int R, int P>() {
      float* to = total + (R * Panels + P) * kLanes;
      F32x16 before = load(to);
      if constexpr (Min) before = fma(min[P], set1(sums[g * kIntRows + R]), before);
      store(to, fma(scale[P], to_f32(acc[R][P]), before));
    });
  }
  for (int r = 0; r < kIntRows; ++r) {
    F32x16 scale = set1(scales[r]);
    for (int p = 0; p < Panels; ++p) {
      float* to = c + p * c_panel_stride + r * kLanes;
      F32x16 before = zero_f();
      if (k0 > 0) before = load(to);
      store(to, fma(scale, load(total + (r * Panels + p) * kLanes), before));
    }
  }
}

template <int Panels, int Group, bool Min>
void int_tiles_of(const GemmTile& t, const IntBlock* const (&b)[Panels], int64_t k0, int64_t kn, float* out) {
  const IntGroup at(t.cols);
  int64_t tiles = (t.rows + kIntRows - 1) / kIntRows;
  for (int64_t i = 0; i < tiles; ++i) {
    int_tile<Panels, Group, Min>(t.a + i * at.bytes, at, b, k0, kn, out + i * kIntRows * kLanes,
                                 tiles * kIntRows * kLanes);
  }
}

template <int Panels>
void int_tiles(const GemmTile& t, const IntBlock* const (&b)[Panels], int64_t k0, int64_t kn, float* out) {
  if (b[0]->group == 16) {
    b[0]->has_min ? int_tiles_of<Panels, 16, true>(t, b, k0, kn, out)
                  : int_tiles_of<Panels, 16, false>(t, b, k0, kn, out);
  } else {
    b[0]->has_min ? int_tiles_of<Panels, 32, true>(t, b, k0, kn, out)
                  : int_tiles_of<Panels, 32, false>(t, b, k0, kn, out);
  }
}

template <int Panels>
void gemm_int_panels(const GemmTile& t, int64_t first) {
  auto* blocks = reinterpret_cast<IntBlock*>(t.scratch);
  const int64_t panel_floats = (t.rows + kIntRows - 1) / kIntRows * kIntRows * kLanes;
  float* out = t.out + first * panel_floats;
  for (int64_t k0 = 0; k0 < t.cols; k0 += kKBlock) {
    int64_t kn = t.cols - k0 < kKBlock ? t.cols - k0 : kKBlock;
    const IntBlock* b[Panels];
    for (int p = 0; p < Panels; ++p) {
      const PanelReader& read = t.read[first + p];
      read.run(read.context, read.panel, k0, kn, blocks + p);
      b[p] = blocks + p;
    }
    if (Panels == 1 || (b[0]->group == b[Panels - 1]->group && b[0]->has_min == b[Panels - 1]->has_min)) {
      int_tiles<Panels>(t, b, k0, kn, out);
    } else {  // of different formats
      for (int p = 0; p < Panels; ++p) {
        const IntBlock* const one[1] = {b[p]};
        int_tiles<1>(t, one, k0, kn, out + p * panel_floats);
      }
    }
  }
}

void gemm_int(const GemmTile& t) {
  int64_t p = 0;
  if constexpr (kTilePanels == 2) {
    for (; p + 2 <= t.panels; p += 2) gemm_int_panels<2>(t, p);
  }
  for (; p < t.panels; ++p) gemm_int_panels<1>(t, p);
}

constexpr Gemm kGemmInt = {.rows = kIntRows,
                           .panels = 2,
                           .scratch_bytes = kTilePanels * sizeof(IntBlock),
                           .group_bytes = int_group_bytes,
                           .pack = pack_int,
                           .multiply = gemm_int};

#else  // On NEON a product of digits (quads.h) would take two thirds of the instructions of f32: not built, not
       // measured.

constexpr Gemm kGemmInt = {};

#endif

}  // namespace
}  // namespace hearth::cpu
