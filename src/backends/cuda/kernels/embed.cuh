// Rows of a planar table as f32, exactly as the scalar decode gives them. A block writes one row.
#pragma once

#include "backends/cuda/kernels/formats.cuh"

namespace hearth::cuda {

template <class F>
HEARTH_DEVICE void embed_int(const LinearParams& p) {
  extern __shared__ __align__(128) uint8_t shared[];
  static_assert(kEmbedWarps * F::kUnitBytes <= most_shared_bytes(kCompiledFor));
  const int warp = threadIdx.x / 32, lane = threadIdx.x % 32, block = lane / 4, t = lane % 4;
  uint8_t* stage = shared + warp * F::kUnitBytes;
  const int row = blockIdx.x;
  const bool there = row < p.step.header->rows;
  const int token = there ? p.step.rows[row].token : 0, g = token % 16 / 2;
  const uint8_t* panel = p.parts[0].weights + static_cast<size_t>(token / 16) * p.panel_bytes;
  float* out = p.parts[0].out + static_cast<size_t>(row) * p.cols;
  grid_wait();
  grid_launch_next();
  if (!there) return;
  for (int unit = warp; unit < p.units; unit += kEmbedWarps) {
    __syncwarp();
    F::load(shared_address(stage), panel, p, unit, lane);
    copy_async_commit();
    copy_async_wait<0>();
    __syncwarp();
    const typename F::UnitScales scales = F::read_scales(stage, g);
    const int group = F::kGroup == 32 ? block : 2 * block + t / 2;
    Pair s{}, m{};
    for_each_index<256 / F::kGroup / 4>([&](auto quad) {
      constexpr int kQuad = decltype(quad)::value;
      if (group / 4 == kQuad) F::template scale<kQuad>(scales, stage, g, group % 4, s, m);
    });
    uint32_t codes[4];
    F::codes(stage, block, g, t, codes);
    const int col = unit * 256 + block * 32 + 8 * t;
    const bool odd = token % 2 != 0;
    if (col >= p.cols) continue;  // a multiple of 32
#pragma unroll
    for (int i = 0; i < 8; ++i) {
      const uint32_t four = odd ? codes[i / 4 * 2 + 1] : codes[i / 4 * 2];
      const float value = (odd ? s.y : s.x) * F::value(four >> (8 * (i % 4)) & 255);
      out[col + i] = F::kHasMin ? value + (odd ? m.y : m.x) : value;
    }
  }
}

// F as in gemv_float.cuh.
template <class F>
HEARTH_DEVICE void embed_float(const LinearParams& p) {
  const int row = blockIdx.x;
  const bool there = row < p.step.header->rows;
  const int token = there ? p.step.rows[row].token : 0;
  const auto* panel =
      reinterpret_cast<const uint32_t*>(p.parts[0].weights + static_cast<size_t>(token / 16) * p.panel_bytes);
  float* out = p.parts[0].out + static_cast<size_t>(row) * p.cols;
  grid_wait();
  grid_launch_next();
  if (!there) return;
  for (int col = threadIdx.x; col < p.cols; col += blockDim.x) {
    out[col] = F::value(panel[col / F::kElems * 16 + token % 16], col % F::kElems);
  }
}

}  // namespace hearth::cuda
