// Many rows times panels in f32: a block of columns is unpacked to [k][16] and multiplied with all rows, so that
// decoding is paid once per row block and the product is exact and the same for every format. Part of kernels.cpp.
#pragma once

#include "backends/cpu/kernels/planar.h"

namespace hearth::cpu {
namespace {

#if defined(__AVX512F__)
constexpr int kTileRows = 12;
constexpr int kTilePanels = 2;
#else
constexpr int kTileRows = 6;
constexpr int kTilePanels = 1;
#endif

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

void pack_rows(const float* x, int64_t stride, int64_t rows, int64_t n, float* out) {
  if (rows == kTileRows) {
    for (int64_t k = 0; k < n; ++k) {
      for (int64_t r = 0; r < kTileRows; ++r) out[k * kTileRows + r] = x[r * stride + k];
    }
    return;
  }
  for (int64_t k = 0; k < n; ++k) {
    for (int64_t r = 0; r < kTileRows; ++r) out[k * kTileRows + r] = r < rows ? x[r * stride + k] : 0.0f;
  }
}

// C[row][panel's 16 lanes] (+)= A B over k columns. A: element (row, k) at a[row * RowStride + k * KStride].
template <int Panels, int RowStride, int KStride>
HEARTH_INLINE void micro_tile(const float* a, const float* b, int64_t b_panel_stride, int64_t k, bool accumulate,
                              float* c, int64_t c_row_stride, int64_t c_panel_stride) {
  F32x16 acc[kTileRows][Panels];
  for (int r = 0; r < kTileRows; ++r) {
    for (int p = 0; p < Panels; ++p) {
      acc[r][p] = accumulate ? load(c + r * c_row_stride + p * c_panel_stride) : zero_f();
    }
  }
  for (int64_t i = 0; i < k; ++i) {
    F32x16 w[Panels];
    for (int p = 0; p < Panels; ++p) w[p] = load(b + p * b_panel_stride + i * kLanes);
    for (int r = 0; r < kTileRows; ++r) {
      F32x16 x = set1(a[r * RowStride + i * KStride]);
      for (int p = 0; p < Panels; ++p) acc[r][p] = fma(w[p], x, acc[r][p]);
    }
  }
  for (int r = 0; r < kTileRows; ++r) {
    for (int p = 0; p < Panels; ++p) store(c + r * c_row_stride + p * c_panel_stride, acc[r][p]);
  }
}

size_t f32_group_bytes(int64_t cols) { return static_cast<size_t>(cols * kTileRows) * sizeof(float); }

void pack_f32(const float* x, int64_t stride, int64_t rows, int64_t cols, std::byte* out) {
  pack_rows(x, stride, rows, cols, reinterpret_cast<float*>(out));
}

template <int Panels>
void gemm_f32_panels(const GemmTile& t, int64_t first) {
  auto* weights = reinterpret_cast<float*>(t.scratch);
  const auto* a = reinterpret_cast<const float*>(t.a);
  int64_t tiles = (t.rows + kTileRows - 1) / kTileRows;
  int64_t out_panel_stride = tiles * kTileRows * kLanes;
  for (int64_t k0 = 0; k0 < t.cols; k0 += kKBlock) {
    int64_t kn = t.cols - k0 < kKBlock ? t.cols - k0 : kKBlock;
    for (int p = 0; p < Panels; ++p) {
      const PanelReader& read = t.read[first + p];
      read.run(read.context, read.panel, k0, kn, weights + p * kKBlock * kLanes);
    }
    for (int64_t i = 0; i < tiles; ++i) {
      micro_tile<Panels, 1, kTileRows>(a + (i * t.cols + k0) * kTileRows, weights, kKBlock * kLanes, kn, k0 > 0,
                                       t.out + first * out_panel_stride + i * kTileRows * kLanes, kLanes,
                                       out_panel_stride);
    }
  }
}

void gemm_f32(const GemmTile& t) {
  int64_t p = 0;
  if constexpr (kTilePanels == 2) {
    for (; p + 2 <= t.panels; p += 2) gemm_f32_panels<2>(t, p);
  }
  for (; p < t.panels; ++p) gemm_f32_panels<1>(t, p);
}

constexpr Gemm kGemmF32 = {.rows = kTileRows,
                           .panels = 2,
                           .scratch_bytes = kTilePanels * kKBlock * kLanes * sizeof(float),
                           .group_bytes = f32_group_bytes,
                           .pack = pack_f32,
                           .multiply = gemm_f32};

}  // namespace
}  // namespace hearth::cpu
