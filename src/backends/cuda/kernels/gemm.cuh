// x W^T for many rows of x, with f16 products and f32 sums: weights are decoded to f16 in the registers that the matrix
// unit reads, each once for all rows of the block's tile.
//
// A block computes kTokens rows of 256 columns of the output, or 128 where blocks have less memory (two panels of W to
// each of its warps; with glu a panel of gate and the same of up). Steps of 64 columns of x come through a ring in
// shared memory; weights come a unit at a time to the warp that needs them. A tile may be divided among several blocks
// along the columns of x: the last to be done adds the parts in their order.
#pragma once

#include "backends/cuda/kernels/formats.cuh"
#include "backends/cuda/kernels/linear.cuh"

namespace hearth::cuda {

// What f16 weights are multiplied by, so that small scales keep their precision; products are divided by it.
inline constexpr float kWeightScale = 64;

// Four signed or unsigned codes as f16 minus kZero: pairs of neighbours, of table values every second one.
template <class F>
HEARTH_DEVICE void half_codes(uint32_t codes, __half2& first, __half2& second) {
  // 0x64cc is 1024 + cc.
  constexpr int kOffset = F::kSigned ? 128 : F::kZero;
  if constexpr (F::kSigned) codes ^= 0x80808080;
  const uint32_t a = __byte_perm(codes, 0x64646464, F::kSigned ? 0x4240 : 0x4140);
  const uint32_t b = __byte_perm(codes, 0x64646464, F::kSigned ? 0x4341 : 0x4342);
  const __half2 offset = __float2half2_rn(1024.0f + kOffset);
  first = __hsub2(*reinterpret_cast<const __half2*>(&a), offset);
  second = __hsub2(*reinterpret_cast<const __half2*>(&b), offset);
}

// Block kBlock of a unit as f16: h[0], h[1]: fragments of elements 8t .. 8t + 3 and 8t + 4 .. 8t + 7, times
// kWeightScale.
template <class F, int kBlock>
HEARTH_DEVICE void half_fragments(const uint8_t* unit, const typename F::UnitScales& scales, int g, int t,
                                  uint32_t (&h)[2][4]) {
  constexpr int kFirstGroup = kBlock * 32 / F::kGroup;
  Pair s, m;
  F::template scale<kFirstGroup / 4>(scales, unit, g, kFirstGroup % 4 + (F::kGroup == 16 ? t / 2 : 0), s, m);
  // The two halves of a table value are 2 * hi and lo / 128: their sum is value / 128.
  constexpr float kFactor = F::kFactorScale * (F::kPlanes == 2 ? 128 * kWeightScale : kWeightScale);
  const __half2 s2[2] = {__float2half2_rn(s.x * kFactor), __float2half2_rn(s.y * kFactor)};
  const __half2 m2[2] = {__float2half2_rn(m.x * kWeightScale), __float2half2_rn(m.y * kWeightScale)};
  uint32_t a[F::kPlanes][4];
  F::values(unit, kBlock, g, t, a);
#pragma unroll
  for (int i = 0; i < 4;
       ++i) {  // a[i]: row i % 2; elements 4 * (i / 2) .., or of both fours those that follow each other
    __half2 c[2];
    half_codes<F>(a[0][i], c[0], c[1]);
    if constexpr (F::kPlanes == 2) {
      __half2 low[2];
      half_codes<F>(a[1][i], low[0], low[1]);
#pragma unroll
      for (int k = 0; k < 2; ++k) {
        c[k] = __hfma2(low[k], __float2half2_rn(1.0f / 128), __hadd2(c[k], c[k]));
      }
    }
#pragma unroll
    for (int k = 0; k < 2; ++k) {
      const __half2 v = F::kHasMin ? __hfma2(c[k], s2[i % 2], m2[i % 2]) : __hmul2(c[k], s2[i % 2]);
      h[F::kSigned ? k : i / 2][2 * (F::kSigned ? i / 2 : k) + i % 2] = *reinterpret_cast<const uint32_t*>(&v);
    }
  }
}

template <class F, int kTokens>
HEARTH_DEVICE void gemm(const LinearParams& p) {
  extern __shared__ __align__(128) uint8_t shared[];
  __shared__ bool last;
  constexpr int kSteps = F::kUnitCols / 64;  // of a unit
  constexpr GemmShape kShape = gemm_shape(F::kUnitCols, F::kUnitBytes, kTokens, kCompiledFor);
  constexpr int kWarps = kShape.warps, kThreads = 32 * kWarps, kXStages = kShape.x_stages;
  static_assert(kWarps > 0);
  constexpr int kColumnTiles = kTokens / 8;
  constexpr int kXStageBytes = kTokens * 128;

  const int warp = threadIdx.x / 32, lane = threadIdx.x % 32, g = lane / 4, t = lane % 4;
  const int first_row = blockIdx.x * kTokens;
  uint8_t* units = shared + warp * kShape.warp_bytes;
  uint8_t* x_ring = shared + kWarps * kShape.warp_bytes;

  // This warp's panels.
  const bool glu = p.glu != kNoActivation;
  const uint8_t* panel[2];
  int part_of[2], col_of[2];
#pragma unroll
  for (int i = 0; i < 2; ++i) {
    const int task = glu ? blockIdx.y * kWarps + warp : (blockIdx.y * kWarps + warp) * 2 + i;
    const int part = glu ? i : part_of_panel(p, task);
    const int local = glu ? task : task - p.parts[part].first_panel;
    part_of[i] = part;
    col_of[i] = local * 16 + 2 * g;
    panel[i] = task < p.tasks ? p.parts[part].weights + static_cast<size_t>(local) * p.panel_bytes : nullptr;
  }
  const int first_unit = blockIdx.z * p.units_per_split, end_unit = min(first_unit + p.units_per_split, p.units);
  const int steps = (end_unit - first_unit) * kSteps;

  auto load_weights = [&](int step) {
    if (step >= steps || step % kSteps != 0) return;
    const int unit = step / kSteps;
    const uint32_t to = shared_address(units) + unit % kShape.unit_stages * 2 * F::kUnitBytes;
#pragma unroll
    for (int i = 0; i < 2; ++i) {
      if (panel[i] != nullptr) F::load(to + i * F::kUnitBytes, panel[i], p, first_unit + unit, lane);
    }
  };
  int rows = 0;
  auto load_x = [&](int step) {
    if (step >= steps) return;
    const uint32_t to = shared_address(x_ring) + step % kXStages * kXStageBytes;
    const int first_col = first_unit * F::kUnitCols + step * 64;
    // Eight pieces of 16 bytes to a row of 64 columns. Odd rows have their halves swapped, for the banks.
#pragma unroll
    for (int i = 0; i < kTokens * 8; i += kThreads) {
      const int row = (i + threadIdx.x) / 8, piece = threadIdx.x % 8;
      if (kTokens * 8 < kThreads && row >= kTokens) break;
      const bool there = first_row + row < rows;
      const uint16_t* from =
          p.halves.values + static_cast<size_t>(there ? first_row + row : 0) * p.halves.stride + first_col + piece * 8;
      copy_async_16(to + row * 128 + (piece ^ (row & 1) << 2) * 16, from, there ? 16 : 0);
    }
  };

  constexpr int kAhead = kXStages - 1;
#pragma unroll
  for (int i = 0; i < kAhead; ++i) load_weights(i);  // complete with the first group that is committed
  grid_wait();
  grid_launch_next();
  rows = row_count(p.step, p.logit_rows);
  if (first_row >= rows) {
    copy_async_commit();
    copy_async_wait<0>();
    return;
  }
#pragma unroll
  for (int i = 0; i < kAhead; ++i) {
    load_x(i);
    copy_async_commit();
  }

  float sums[2][kColumnTiles][4] = {};
  int step = 0;
  for (int unit = 0; unit < end_unit - first_unit; ++unit) {
    const uint8_t* weights = units + unit % kShape.unit_stages * 2 * F::kUnitBytes;
    for_each_index<kSteps>([&](auto step_of_unit) {
      [[maybe_unused]] constexpr int kStep = decltype(step_of_unit)::value;
      copy_async_wait<kAhead - 1>();
      __syncthreads();
      load_weights(step + kAhead);
      load_x(step + kAhead);
      copy_async_commit();
      const uint8_t* x = x_ring + step % kXStages * kXStageBytes;
      for_each_index<2>([&](auto half) {
        constexpr int kHalf = decltype(half)::value;
        uint32_t a[2][2][4];  // [panel][fragment]
#pragma unroll
        for (int i = 0; i < 2; ++i) {
          if constexpr (F::kFloat) {
            F::fragments(weights + i * F::kUnitBytes, kHalf, g, t, a[i]);
          } else {
            const typename F::UnitScales scales = F::read_scales(weights + i * F::kUnitBytes, g);
            half_fragments<F, 2 * kStep + kHalf>(weights + i * F::kUnitBytes, scales, g, t, a[i]);
          }
        }
#pragma unroll
        for (int n = 0; n < kColumnTiles; ++n) {
          const int row = n * 8 + g;
          const uint4 b = *reinterpret_cast<const uint4*>(x + row * 128 + ((kHalf * 4 + t) ^ (g & 1) << 2) * 16);
#pragma unroll
          for (int i = 0; i < 2; ++i) {
            mma_f16(sums[i][n], a[i][0], b.x, b.y);
            mma_f16(sums[i][n], a[i][1], b.z, b.w);
          }
        }
      });
      ++step;
    });
  }
  copy_async_wait<0>();

  if (p.splits > 1) {
    const int tile = blockIdx.y * gridDim.x + blockIdx.x;
    constexpr int kSums = 2 * kColumnTiles;  // float4 of a thread
    auto* part = reinterpret_cast<float4*>(p.partial) + static_cast<size_t>(tile) * p.splits * kSums * kThreads;
    float4* own = part + static_cast<size_t>(blockIdx.z) * kSums * kThreads + threadIdx.x;
#pragma unroll
    for (int i = 0; i < kSums; ++i) {
      const float(&d)[4] = sums[i / kColumnTiles][i % kColumnTiles];
      own[i * kThreads] = {d[0], d[1], d[2], d[3]};
    }
    if (!is_last_block(p.counters + tile, static_cast<uint32_t>(p.splits), last)) return;
#pragma unroll
    for (int i = 0; i < kSums; ++i) {
      float(&d)[4] = sums[i / kColumnTiles][i % kColumnTiles];
      d[0] = d[1] = d[2] = d[3] = 0;
    }
    for (int s = 0; s < p.splits; ++s) {  // the loads of a part are on their way together
      const float4* from = part + static_cast<size_t>(s) * kSums * kThreads + threadIdx.x;
#pragma unroll
      for (int i = 0; i < kSums; ++i) {
        const float4 v = __ldcg(from + i * kThreads);
        float(&d)[4] = sums[i / kColumnTiles][i % kColumnTiles];
        d[0] += v.x, d[1] += v.y, d[2] += v.z, d[3] += v.w;
      }
    }
  }

  // Lane: columns col_of, col_of + 1 of the output (rows 2g, 2g + 1 of the panel) for rows 2t, 2t + 1 of each tile of
  // x.
#pragma unroll
  for (int n = 0; n < kColumnTiles; ++n) {
#pragma unroll
    for (int k = 0; k < 2; ++k) {
      const int row = first_row + n * 8 + 2 * t + k;
      if (row >= rows) continue;
      const float scale = p.halves.scales[row] * (F::kFloat ? 1.0f : 1.0f / kWeightScale);
#pragma unroll
      for (int i = 0; i < 2; ++i) {
        if (panel[i] == nullptr || (glu && i == 1)) continue;
        const LinearPart& to = p.parts[part_of[i]];
        float* out = to.out + static_cast<size_t>(row) * to.rows;
        const float* residual = p.residual != nullptr ? p.residual + static_cast<size_t>(row) * to.rows : nullptr;
#pragma unroll
        for (int c = 0; c < 2; ++c) {
          const int col = col_of[i] + c;
          if (col >= to.rows) continue;
          float y = finish_product(p, glu, to, col, sums[i][n][2 * c + k] * scale,
                                   [&] { return sums[1][n][2 * c + k] * scale; });
          if (residual != nullptr) y += residual[col];
          out[col] = y;
        }
      }
    }
  }
}

}  // namespace hearth::cuda
