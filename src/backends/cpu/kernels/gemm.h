// Many rows times panels in f32: a block of columns is unpacked to [k][16] and multiplied with all rows, so that
// decoding is paid once per row block and the product is exact and the same for every format. Part of kernels.cpp.
#pragma once

#include "backends/cpu/kernels/planar.h"

namespace hearth::cpu {
namespace {

#if defined(__AVX512F__)
constexpr int kTileRows = 12;
constexpr int kTilePanels = 2;
#else  // Sums in 12 of AVX2's 16 registers, in 24 of NEON's 32 (beside 4 of weights; seven rows would take 28)
constexpr int kTileRows = 6;
constexpr int kTilePanels = 1;
#endif

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

void pack_f32(const float* x, int64_t stride, int64_t rows, int64_t cols, int64_t group, int64_t, std::byte* out) {
  pack_rows(x, stride, rows, cols, reinterpret_cast<float*>(out) + group * cols * kTileRows);
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
