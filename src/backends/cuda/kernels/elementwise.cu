// Everything that reads and writes values row by row.
#include "backends/cuda/kernels/elementwise.h"

#include "backends/cuda/kernels/linear.cuh"
#include "backends/cuda/kernels/quantize.cuh"

namespace hearth::cuda {

// Block: one row.
extern "C" __global__ void rope_table(const __grid_constant__ RopeTableParams p) {
  const int row = blockIdx.x;
  const int position = row < p.step.header->rows ? p.step.rows[row].position : 0;
  grid_wait();
  grid_launch_next();
  if (row >= p.step.header->rows) return;
  for (int j = threadIdx.x; j < p.pairs; j += blockDim.x) {
    // The angle in turns less the whole ones, exact enough in double; the rest is small enough for f32.
    const double turns = position * p.frequency[j] * 0.15915494309189535;
    float s, c;
    sincospif(2 * static_cast<float>(turns - rint(turns)), &s, &c);
    p.cos[row * p.pairs + j] = c * p.magnitude;
    p.sin[row * p.pairs + j] = s * p.magnitude;
  }
}

extern "C" __global__ void add(const __grid_constant__ ElementwiseParams p) {
  grid_wait();
  grid_launch_next();
  const int64_t count = static_cast<int64_t>(row_count(p.step, p.logit_rows)) * p.cols;
  for (int64_t i = blockIdx.x * int64_t{blockDim.x} + threadIdx.x; i < count; i += int64_t{gridDim.x} * blockDim.x) {
    p.out[i] = p.a[i] + p.b[i];
  }
}

extern "C" __global__ void glu(const __grid_constant__ ElementwiseParams p) {
  grid_wait();
  grid_launch_next();
  const int64_t count = static_cast<int64_t>(row_count(p.step, p.logit_rows)) * p.cols;
  for (int64_t i = blockIdx.x * int64_t{blockDim.x} + threadIdx.x; i < count; i += int64_t{gridDim.x} * blockDim.x) {
    p.out[i] = activate(p.activation, p.a[i]) * p.b[i];
  }
}

// Block: one run of one row.
extern "C" __global__ void rms_norm(const __grid_constant__ ElementwiseParams p) {
  __shared__ float scratch[32];
  grid_wait();
  grid_launch_next();
  if (blockIdx.x >= row_count(p.step, p.logit_rows)) return;
  const size_t at = static_cast<size_t>(blockIdx.x) * p.cols + blockIdx.y * p.run;
  const float* x = p.a + at;
  float squares = 0;
  for (int i = threadIdx.x; i < p.run; i += blockDim.x) squares += x[i] * x[i];
  const float scale = rsqrtf(block_sum(squares, scratch) / static_cast<float>(p.run) + p.eps);
  for (int i = threadIdx.x; i < p.run; i += blockDim.x) p.out[at + i] = p.b[i] * (x[i] * scale);
}

// Block: one row.
extern "C" __global__ void rope(const __grid_constant__ ElementwiseParams p) {
  grid_wait();
  grid_launch_next();
  const int row = blockIdx.x;
  if (row >= p.step.header->rows) return;
  const float* x = p.a + static_cast<size_t>(row) * p.cols;
  float* out = p.out + static_cast<size_t>(row) * p.cols;
  const int pairs = p.rope.pairs;
  for (int i = threadIdx.x; i < p.cols; i += blockDim.x) {
    const int head = i / p.run * p.run, k = i % p.run;
    if (k >= 2 * pairs) {
      out[i] = x[i];
      continue;
    }
    const int j = p.rope.half ? k % pairs : k / 2;
    const bool second = p.rope.half ? k >= pairs : k % 2 != 0;
    const float c = p.rope.cos[row * pairs + j], s = p.rope.sin[row * pairs + j];
    const float a = x[head + (p.rope.half ? j : 2 * j)], b = x[head + (p.rope.half ? j + pairs : 2 * j + 1)];
    out[i] = second ? a * s + b * c : a * c - b * s;
  }
}

// Block: one of the rows whose logits are wanted.
extern "C" __global__ void gather_rows(const __grid_constant__ ElementwiseParams p) {
  grid_wait();
  grid_launch_next();
  const int row = blockIdx.x;
  if (row >= p.step.header->logit_rows) return;
  const float* x = p.a + static_cast<size_t>(p.step.logit_rows[row]) * p.cols;
  for (int i = threadIdx.x; i < p.cols; i += blockDim.x) p.out[static_cast<size_t>(row) * p.cols + i] = x[i];
}

// ---- activations for products; a block: one row ----

extern "C" __global__ void quantize_rows(const __grid_constant__ PrepareRowsParams p) {
  __shared__ float scratch[32];
  grid_wait();
  grid_launch_next();
  const int row = blockIdx.x;
  if (row >= row_count(p.step, p.logit_rows)) return;
  const float* x = p.x + static_cast<size_t>(row) * p.cols;
  const float scale = p.norm != nullptr ? rms_scale(x, p.cols, p.eps, scratch) : 1.0f;
  quantize_row(x, p.norm, scale, p.cols, p.ints, row);
}

// Values stay below 2^13, so that f16 holds them whatever their size; the scale is 1 for all but outliers. One barrier:
// what does not fit the registers is read again.
inline constexpr int kKeptChunks = 2;
extern "C" __global__ void __launch_bounds__(1024) halve_rows(const __grid_constant__ PrepareRowsParams p) {
  __shared__ float2 scratch[32];
  grid_wait();
  grid_launch_next();
  const int row = blockIdx.x;
  if (row >= row_count(p.step, p.logit_rows)) return;
  const float* x = p.x + static_cast<size_t>(row) * p.cols;
  const int chunks = p.halves.stride / 8;
  float squares = 0, largest = 0;
  auto read = [&](int chunk, float(&v)[8]) {
    read_eight(x, 8 * chunk, p.cols, v);
    float of_row = 0;
#pragma unroll
    for (int i = 0; i < 8; ++i) of_row += v[i] * v[i];
    if (p.norm != nullptr) {
      float w[8];
      read_eight(p.norm, 8 * chunk, p.cols, w);
#pragma unroll
      for (int i = 0; i < 8; ++i) v[i] *= w[i];
    }
    return of_row;
  };
  float kept[kKeptChunks][8];
#pragma unroll
  for (int k = 0; k < kKeptChunks; ++k) {
    const int chunk = threadIdx.x + k * blockDim.x;
    if (chunk >= chunks) continue;
    squares += read(chunk, kept[k]);
#pragma unroll
    for (int i = 0; i < 8; ++i) largest = fmaxf(largest, fabsf(kept[k][i]));
  }
  for (int chunk = threadIdx.x + kKeptChunks * blockDim.x; chunk < chunks; chunk += blockDim.x) {
    float v[8];
    squares += read(chunk, v);
#pragma unroll
    for (int i = 0; i < 8; ++i) largest = fmaxf(largest, fabsf(v[i]));
  }
  squares = warp_sum(squares);
  largest = warp_max(largest);
  if (threadIdx.x % 32 == 0) scratch[threadIdx.x / 32] = {squares, largest};
  __syncthreads();
  squares = largest = 0;
  for (unsigned w = 0; w < blockDim.x / 32; ++w) {
    squares += scratch[w].x;
    largest = fmaxf(largest, scratch[w].y);
  }
  const float factor = p.norm != nullptr ? rsqrtf(squares / static_cast<float>(p.cols) + p.eps) : 1.0f;
  largest *= factor;
  const int excess = largest > 0x1p13f && largest < INFINITY ? ilogbf(largest) - 12 : 0;
  const float down = factor * exp2f(static_cast<float>(-excess));
  if (threadIdx.x == 0) p.halves.scales[row] = exp2f(static_cast<float>(excess));
  auto* out = reinterpret_cast<uint4*>(p.halves.values + static_cast<size_t>(row) * p.halves.stride);
  auto write = [&](int chunk, const float(&v)[8]) {
    uint32_t two[4];
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      const __half2 h = __floats2half2_rn(v[2 * i] * down, v[2 * i + 1] * down);
      two[i] = *reinterpret_cast<const uint32_t*>(&h);
    }
    out[chunk] = {two[0], two[1], two[2], two[3]};
  };
#pragma unroll
  for (int k = 0; k < kKeptChunks; ++k) {
    const int chunk = threadIdx.x + k * blockDim.x;
    if (chunk < chunks) write(chunk, kept[k]);
  }
  for (int chunk = threadIdx.x + kKeptChunks * blockDim.x; chunk < chunks; chunk += blockDim.x) {
    float v[8];
    read(chunk, v);
    write(chunk, v);
  }
}

}  // namespace hearth::cuda
