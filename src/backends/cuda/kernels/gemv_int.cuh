// x W^T for few rows of x, W with integer codes: each weight is read once, at the speed of memory.
//
// A warp multiplies a unit (256 columns x 16 rows of W) at a time with the matrix unit for bytes. Activations are
// 16-bit integers, hi * 256 + lo, whose halves take a column each, so that one instruction gives both products. With
// fewer than four rows of x the columns that are left take the groups of columns that have scales of their own: zeros
// everywhere else make each column the sum of its group alone, and the lanes that scale sums all have work.
//
// Units of the block's panels go to its warps in turn; their weights come through a ring of asynchronous copies in
// shared memory that starts before this kernel may read activations (grid_wait). Sums of the warps meet in shared
// memory in a fixed order.
#pragma once

#include "backends/cuda/kernels/formats.cuh"
#include "backends/cuda/kernels/linear.cuh"
#include "backends/cuda/kernels/quantize.cuh"

namespace hearth::cuda {

inline constexpr int kGemvWarps = gemv_warps(kCompiledFor), kGemvThreads = 32 * kGemvWarps;

// Where the next unit of a warp is: `panel` counts the block's own panels.
struct UnitCursor {
  int panel, unit;
  HEARTH_DEVICE void advance(int units) {
    unit += kGemvWarps;
    while (unit >= units) unit -= units, ++panel;
  }
};

HEARTH_DEVICE const uint8_t* panel_address(const LinearParams& p, int local) {
  if (p.part_count == 1) {
    return p.parts[0].weights + static_cast<size_t>(blockIdx.x + local * gridDim.x) * p.panel_bytes;
  }
  if (p.glu != kNoActivation) {
    const int pair = blockIdx.x + local / 2 * gridDim.x;
    return p.parts[local & 1].weights + static_cast<size_t>(pair) * p.panel_bytes;
  }
  const int panel = blockIdx.x + local * gridDim.x, part = part_of_panel(p, panel);
  return p.parts[part].weights + static_cast<size_t>(panel - p.parts[part].first_panel) * p.panel_bytes;
}

// What a thread writes.
struct Output {
  const LinearPart* to;
  int col;
  size_t place;
  bool there;
  float residual;
};

// kTokens (1, 2 or 4) rows of x to a product of the matrix unit, kTiles such products. kFused: the one row of x is
// normalized and rounded here, by every block for itself.
template <class F, int kTokens, int kTiles, bool kFused>
HEARTH_DEVICE void gemv_int(const LinearParams& p) {
  extern __shared__ __align__(128) uint8_t shared[];
  __shared__ float scratch[32];
  constexpr int kGroups = 4 / kTokens;  // that share a product
  constexpr int kSets = 256 / F::kGroup / kGroups;
  constexpr int kSetBlocks = kGroups * F::kGroup < 32 ? 1 : kGroups * F::kGroup / 32;
  constexpr int kRows = kTokens * kTiles;
  constexpr int kStages = kGemvStages;
  static_assert(gemv_ring_bytes(F::kUnitBytes, kCompiledFor) + 2 * kGemvWarps * 16 * kRows * 4 <=
                most_shared_bytes(kCompiledFor));

  const int warp = threadIdx.x / 32, lane = threadIdx.x % 32, g = lane / 4, t = lane % 4;
  uint8_t* ring = shared + warp * (kStages * F::kUnitBytes);
  float* partial = reinterpret_cast<float*>(shared + p.partial_offset);

  const int glu = p.glu != kNoActivation ? 1 : 0;  // two panels to a task
  // Counting the panels takes a division, which the first loads need not wait for.
  auto has_panel = [&](int panel) { return static_cast<int>(blockIdx.x + (panel >> glu) * gridDim.x) < p.tasks; };

  UnitCursor ahead{0, warp};
  while (ahead.unit >= p.units) ahead.unit -= p.units, ++ahead.panel;
  UnitCursor now = ahead;
  const uint32_t ring_address = shared_address(ring);
  uint32_t fill = 0;  // offset of the stage that is filled next
  const uint8_t* ahead_panel = has_panel(ahead.panel) ? panel_address(p, ahead.panel) : nullptr;
  auto load_ahead = [&] {
    if (has_panel(ahead.panel)) {
      F::load(ring_address + fill, ahead_panel, p, ahead.unit, lane);
      const int before = ahead.panel;
      ahead.advance(p.units);
      if (ahead.panel != before && has_panel(ahead.panel)) ahead_panel = panel_address(p, ahead.panel);
    }
    copy_async_commit();
    fill = fill + F::kUnitBytes == kStages * F::kUnitBytes ? 0 : fill + F::kUnitBytes;
  };
#pragma unroll
  for (int i = 0; i < kStages - 1; ++i) load_ahead();
  const int tasks =
      (p.tasks - static_cast<int>(blockIdx.x) + static_cast<int>(gridDim.x) - 1) / static_cast<int>(gridDim.x);
  const int panels = tasks << glu;

  const int rows = row_count(p.step, p.logit_rows);
  if (p.wait_at_end == 0) grid_wait();
  grid_launch_next();
  if (rows == 0) {
    if (p.wait_at_end != 0) grid_wait();
    copy_async_wait<0>();
    return;
  }

  IntRows x = p.ints;
  if constexpr (kFused) {
    x.rows = 1;  // which the compiler may know
    x.codes = shared + p.x_offset;
    x.scales = reinterpret_cast<float*>(x.codes + x.blocks * 64);
    x.sums = reinterpret_cast<int32_t*>(x.scales + x.blocks);
    // Integers do not change when a row is scaled: the norm's factor waits until the end.
    const float squares = warp_sum(quantize_row(p.x, p.norm, 1.0f, p.cols, x, 0));
    if (lane == 0) scratch[warp] = squares;
    __syncthreads();
  }

  // As a column of B this lane gives plane g % 2 of a row and a group; of D it has both planes of another.
  const int plane = g & 1, row_b = (g >> 1) % kTokens, group_b = (g >> 1) / kTokens;
  const int row_d = t % kTokens, group_d = t / kTokens;

  const int slots = min(p.units, kGemvWarps);
  float sums[kTiles][2] = {};
  uint32_t stage = 0;
  for (int batch = 0; batch < panels; batch += p.batch_panels) {
    const int batch_end = min(batch + p.batch_panels, panels);
    while (now.panel < batch_end) {
      copy_async_wait<kStages - 2>();
      __syncwarp();
      load_ahead();
      const uint8_t* unit = ring + stage;
      stage = stage + F::kUnitBytes == kStages * F::kUnitBytes ? 0 : stage + F::kUnitBytes;
      const typename F::UnitScales scales = F::read_scales(unit, g);

      auto set = [&](auto index) {
        constexpr int kSet = decltype(index)::value;
        constexpr int kFirstBlock = kSet * kGroups * F::kGroup / 32;
        const int b_group = kSet * kGroups + group_b;
        const int b_block = F::kGroup == 32 ? b_group : b_group / 2;
        const bool b_half = F::kGroup == 32 || t / 2 == (b_group & 1);
        uint2 b[kTiles];
#pragma unroll
        for (int i = 0; i < kTiles; ++i) {
          const int at = (now.unit * 8 + b_block) * kRows + i * kTokens + row_b;
          b[i] = b_half ? *reinterpret_cast<const uint2*>(x.codes + at * 64 + plane * 32 + 8 * t) : uint2{0, 0};
          if constexpr (F::kSigned) {  // in the order of table values
            b[i] = {__byte_perm(b[i].x, b[i].y, 0x5140), __byte_perm(b[i].x, b[i].y, 0x7362)};
          }
        }
        int d[F::kPlanes][kTiles][4] = {};
#pragma unroll
        for (int k = 0; k < kSetBlocks; ++k) {
          uint32_t a[F::kPlanes * F::kTerms][4];
          F::factors(unit, kFirstBlock + k, g, t, a);
          const bool mine = b_block == kFirstBlock + k;
#pragma unroll
          for (int i = 0; i < kTiles; ++i) {
            const uint32_t b0 = mine ? b[i].x : 0, b1 = mine ? b[i].y : 0;
#pragma unroll
            for (int term = 0; term < F::kPlanes * F::kTerms; ++term)
              mma_s8<F::kSigned>(d[term / F::kTerms][i], a[term], b0, b1);
          }
        }
        Pair s, m;
        F::template scale<kSet * kGroups / 4>(scales, unit, g, kSet * kGroups % 4 + group_d, s, m);
        const int d_group = kSet * kGroups + group_d;
        const int d_block = now.unit * 8 + (F::kGroup == 32 ? d_group : d_group / 2);
#pragma unroll
        for (int i = 0; i < kTiles; ++i) {
          const int at = d_block * kRows + i * kTokens + row_d;
          const float x_scale = x.scales[at] * F::kFactorScale;
          int total = 0;
          if constexpr (F::kZero != 0 || F::kHasMin) {
            if constexpr (F::kGroup == 32) {
              const int2 two = *reinterpret_cast<const int2*>(x.sums + 2 * at);
              total = two.x + two.y;
            } else {
              total = x.sums[2 * at + (d_group & 1)];
            }
          }
#pragma unroll
          for (int r = 0; r < 2; ++r) {
            const int* dr = &d[0][i][2 * r];
            float product = static_cast<float>(dr[0] * 256 + dr[1] - F::kZero * total);
            if constexpr (F::kPlanes == 2) {
              const int* low = &d[F::kPlanes - 1][i][2 * r];
              product = product * 256.0f + static_cast<float>(low[0] * 256 + low[1]);
            }
            sums[i][r] += (r == 0 ? s.x : s.y) * (x_scale * product);
            if constexpr (F::kHasMin) sums[i][r] += (r == 0 ? m.x : m.y) * (x_scale * static_cast<float>(total));
          }
        }
      };
      for_each_index<kSets>(set);

      const int panel = now.panel, slot = now.unit % kGemvWarps;
      now.advance(p.units);
      if (now.panel != panel) {
        float* to = partial + ((panel - batch) * slots + slot) * (16 * kRows) + 2 * g;
#pragma unroll
        for (int i = 0; i < kTiles; ++i) {
#pragma unroll
          for (int r = 0; r < 2; ++r) {
            float v = sums[i][r];
            if constexpr (kTokens == 1) v += __shfl_xor_sync(~0u, v, 1);
            if constexpr (kTokens <= 2) v += __shfl_xor_sync(~0u, v, 2);
            sums[i][r] = v;
          }
          if (group_d == 0) {
            *reinterpret_cast<float2*>(to + 16 * (i * kTokens + row_d)) = {sums[i][0], sums[i][1]};
          }
          sums[i][0] = sums[i][1] = 0;
        }
      }
    }
    // Before the barrier, while slower warps multiply: all that an output needs beside the sums.
    auto output = [&](int i) {
      const int task = blockIdx.x + ((batch >> glu) + i / (16 * kRows)) * gridDim.x, row = i % (16 * kRows) / 16;
      const LinearPart& to = p.parts[glu ? 0 : part_of_panel(p, task)];
      const int col = (task - to.first_panel) * 16 + i % 16;
      Output o{&to, col, static_cast<size_t>(row) * to.rows + col, row < rows && col < to.rows, 0.0f};
      if (o.there && p.residual != nullptr) o.residual = p.residual[o.place];
      return o;
    };
    Output o = output(threadIdx.x);
    float x_factor = 1;
    if constexpr (kFused) {
      if (p.norm != nullptr) {
        float squares = 0;
        for (int w = 0; w < kGemvWarps; ++w) squares += scratch[w];
        x_factor = rsqrtf(squares / static_cast<float>(p.cols) + p.eps);
      }
    }
    __syncthreads();

    // Sums of the warps, in their order, and all that follows the product.
    const int outputs = ((batch_end - batch) >> glu) * (16 * kRows);
    for (int i = threadIdx.x; i < outputs; i += kGemvThreads) {
      if (i >= kGemvThreads) o = output(i);
      if (!o.there) continue;
      const int local = i / (16 * kRows) << glu, at = i % (16 * kRows);
      auto product = [&](int panel) {
        const float* from = partial + panel * slots * (16 * kRows) + at;
        float v = 0;
#pragma unroll kGemvWarps
        for (int s = 0; s < slots; ++s) v += from[s * (16 * kRows)];
        return x_factor * v;
      };
      o.to->out[o.place] =
          finish_product(p, glu, *o.to, o.col, product(local), [&] { return product(local + 1); }) + o.residual;
    }
    __syncthreads();
  }
  copy_async_wait<0>();
  if (p.wait_at_end != 0) grid_wait();
}

}  // namespace hearth::cuda
