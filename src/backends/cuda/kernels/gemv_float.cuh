// x W^T in f32 for matrices of floats, one row of x or eight at a time. A block multiplies one panel; a lane reads four
// of its rows (16 bytes of a line), its warps take turns along the columns.
#pragma once

#include "backends/cuda/kernels/device.cuh"
#include "backends/cuda/kernels/format_shape.h"
#include "backends/cuda/kernels/linear.cuh"

namespace hearth::cuda {

inline constexpr int kFloatWarps = kFloatThreads / 32;

struct FloatF32 {
  static constexpr int kElems = 1;  // to a dword
  static HEARTH_DEVICE float value(uint32_t w, int) { return __uint_as_float(w); }
};
struct FloatF16 {
  static constexpr int kElems = 2;
  static HEARTH_DEVICE float value(uint32_t w, int i) {
    return __half2float(__ushort_as_half(static_cast<unsigned short>(w >> (16 * i))));
  }
};
struct FloatBF16 {
  static constexpr int kElems = 2;
  static HEARTH_DEVICE float value(uint32_t w, int i) { return __uint_as_float(i == 0 ? w << 16 : w & 0xffff0000u); }
};

// kRows rows of x from row blockIdx.y * kRows on.
template <class F, int kRows>
HEARTH_DEVICE void gemv_float(const LinearParams& p) {
  __shared__ float partial[kFloatWarps][2][kRows][16];
  const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
  const int quarter = lane % 4, line_of_warp = lane / 4;
  const int first_row = blockIdx.y * kRows;
  const bool glu = p.glu != kNoActivation;

  const int task = blockIdx.x;
  const LinearPart& to = p.parts[glu ? 0 : part_of_panel(p, task)];
  const int panel = task - to.first_panel;

  grid_wait();
  grid_launch_next();
  const int rows = min(kRows, row_count(p.step, p.logit_rows) - first_row);
  if (rows <= 0) return;
  const float* x = p.x + static_cast<size_t>(first_row) * p.cols;
  const int lines = (p.cols + F::kElems - 1) / F::kElems;
  for (int which = 0; which < (glu ? 2 : 1); ++which) {
    const auto* weights = reinterpret_cast<const uint4*>((glu ? p.parts[which] : to).weights +
                                                         static_cast<size_t>(panel) * p.panel_bytes) +
                          quarter;
    float sums[kRows][4] = {};
#pragma unroll 4
    for (int line = 8 * warp + line_of_warp; line < lines; line += 8 * kFloatWarps) {
      const uint4 w = weights[static_cast<size_t>(line) * 4];
#pragma unroll
      for (int e = 0; e < F::kElems; ++e) {
        const int col = line * F::kElems + e;
        if (F::kElems > 1 && col >= p.cols) break;
        const float w0 = F::value(w.x, e), w1 = F::value(w.y, e), w2 = F::value(w.z, e), w3 = F::value(w.w, e);
#pragma unroll
        for (int r = 0; r < kRows; ++r) {
          const float v = r < rows ? x[static_cast<size_t>(r) * p.cols + col] : 0.0f;
          sums[r][0] += v * w0, sums[r][1] += v * w1, sums[r][2] += v * w2, sums[r][3] += v * w3;
        }
      }
    }
#pragma unroll
    for (int r = 0; r < kRows; ++r) {
#pragma unroll
      for (int i = 0; i < 4; ++i) {
        float v = sums[r][i];
#pragma unroll
        for (int step = 4; step < 32; step *= 2) v += __shfl_xor_sync(~0u, v, step);
        if (line_of_warp == 0) partial[warp][which][r][4 * quarter + i] = v;
      }
    }
  }
  __syncthreads();
  for (int i = threadIdx.x; i < 16 * rows; i += kFloatThreads) {
    const int r = i / 16, col = panel * 16 + i % 16;
    if (col >= to.rows) continue;
    auto sum_of = [&](int which) {
      float v = 0;
#pragma unroll
      for (int w = 0; w < kFloatWarps; ++w) v += partial[w][which][r][i % 16];
      return v;
    };
    float y = finish_product(p, glu, to, col, sum_of(0), [&] { return sum_of(1); });
    const size_t place = static_cast<size_t>(first_row + r) * to.rows + col;
    if (p.residual != nullptr) y += p.residual[place];
    to.out[place] = y;
  }
}

}  // namespace hearth::cuda
