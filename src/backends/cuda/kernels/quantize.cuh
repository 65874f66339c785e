// Rows of f32 as products want them: normalized, and rounded to integers or to f16.
#pragma once

#include "backends/cuda/kernels/device.cuh"
#include "backends/cuda/kernels/linear.h"

namespace hearth::cuda {

// 1 / sqrt(mean(x^2) + eps) of a row, by all threads of a block; `scratch` as in block_sum.
HEARTH_DEVICE float rms_scale(const float* x, int cols, float eps, float* scratch) {
  float squares = 0;
  if (cols % 4 == 0) {
    for (int i = 4 * threadIdx.x; i < cols; i += 4 * blockDim.x) {
      const float4 v = *reinterpret_cast<const float4*>(x + i);
      squares += v.x * v.x + v.y * v.y + v.z * v.z + v.w * v.w;
    }
  } else {
    for (int i = threadIdx.x; i < cols; i += blockDim.x) squares += x[i] * x[i];
  }
  return rsqrtf(block_sum(squares, scratch) / static_cast<float>(cols) + eps);
}

// Eight columns from `first` on (a multiple of 8); zeros past the end.
HEARTH_DEVICE void read_eight(const float* x, int first, int cols, float (&v)[8]) {
#pragma unroll
  for (int i = 0; i < 8; ++i) v[i] = 0;
  if (cols % 4 == 0 && first + 8 <= cols) {
    const float4 a = *reinterpret_cast<const float4*>(x + first), b = *reinterpret_cast<const float4*>(x + first + 4);
    v[0] = a.x, v[1] = a.y, v[2] = a.z, v[3] = a.w, v[4] = b.x, v[5] = b.y, v[6] = b.z, v[7] = b.w;
  } else {
    for (int i = 0; i < 8 && first + i < cols; ++i) v[i] = x[first + i];
  }
}

// The larger one; NaN when one is.
HEARTH_DEVICE float max_or_nan(float a, float b) {
  float d;
  asm("max.NaN.f32 %0, %1, %2;" : "=f"(d) : "f"(a), "f"(b));
  return d;
}

// Row `row` as integers, by all threads of a block; cols is a multiple of 32. x, norm and codes are aligned to 16
// bytes. Returns this thread's part of the sum of squares of x, with a norm. Without a barrier at its end.
//
// Each block of a product of one row does this for itself before it multiplies, so that a token takes longer by it: a
// loop of twice as many instructions, with its loads one after the other, cost 3.5 %. 32 columns none of which exceeds
// 2^-100 become zeros.
HEARTH_DEVICE float quantize_row(const float* x, const float* norm, float scale, int cols, const IntRows& to, int row) {
  auto read = [&](const float* from, int chunk, float(&v)[8]) {
    float4 a{}, b{};
    if (8 * chunk < cols) {
      a = *reinterpret_cast<const float4*>(from + 8 * chunk),
      b = *reinterpret_cast<const float4*>(from + 8 * chunk + 4);
    }
    v[0] = a.x, v[1] = a.y, v[2] = a.z, v[3] = a.w, v[4] = b.x, v[5] = b.y, v[6] = b.z, v[7] = b.w;
  };
  const float most = static_cast<float>(to.limit), unit = 1.0f / most;
  float squares = 0, v[8], next[8];
  read(x, threadIdx.x, next);
  for (int chunk = threadIdx.x; chunk < 4 * to.blocks; chunk += blockDim.x) {  // whole warps, as blocks % 8 == 0
    float w[8];
    if (norm != nullptr) read(norm, chunk, w);
#pragma unroll
    for (int i = 0; i < 8; ++i) v[i] = next[i];
    read(x, chunk + blockDim.x, next);
    if (norm != nullptr) {
#pragma unroll
      for (int i = 0; i < 8; ++i) {
        squares += v[i] * v[i];
        v[i] *= scale * w[i];
      }
    }
    float largest = 0;
#pragma unroll
    for (int i = 0; i < 8; ++i) largest = max_or_nan(largest, fabsf(v[i]));
    largest = max_or_nan(largest, __shfl_xor_sync(~0u, largest, 1));
    largest = max_or_nan(largest, __shfl_xor_sync(~0u, largest, 2));
    const float inverse = largest > 0x1p-100f ? most / largest : 0.0f;
    // The sum with 1.5 * 2^23 is rounded to an integer, in the low bits of the float. With 128 more, the second byte is
    // hi and the first is lo with its highest bit turned.
    constexpr float kRound = 0x1.8p23f + 128;
    uint32_t bits[8], sum = 0;
#pragma unroll
    for (int i = 0; i < 8; ++i) {
      bits[i] = __float_as_uint(v[i] * inverse + kRound);
      sum += bits[i] - 0x4b400080u;  // kRound
    }
    uint32_t hi[2], lo[2];
#pragma unroll
    for (int i = 0; i < 2; ++i) {
      const uint32_t first = permute(bits[4 * i], bits[4 * i + 1], 0x5410),
                     second = permute(bits[4 * i + 2], bits[4 * i + 3], 0x5410);
      hi[i] = permute(first, second, 0x7531);
      lo[i] = permute(first, second, 0x6420) ^ 0x80808080;
    }
    const int at = (chunk >> 2) * to.rows + row, quarter = chunk & 3;
    uint8_t* codes = to.codes + at * 64 + quarter * 8;
    *reinterpret_cast<uint2*>(codes) = {hi[0], hi[1]};
    *reinterpret_cast<uint2*>(codes + 32) = {lo[0], lo[1]};
    sum += __shfl_xor_sync(~0u, sum, 1);
    if (quarter % 2 == 0) to.sums[2 * at + quarter / 2] = static_cast<int32_t>(sum);
    if (quarter == 0) to.scales[at] = largest * unit;
  }
  return squares;
}

}  // namespace hearth::cuda
