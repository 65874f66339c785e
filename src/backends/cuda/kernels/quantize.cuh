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

// A row as integers (IntRows), by all threads of a block; cols is a multiple of 32. x, norm and codes are aligned to 16
// bytes. Returns this thread's part of the sum of squares of x. Without a barrier at its end.
HEARTH_DEVICE float quantize_row(const float* x, const float* norm, float scale, int cols, int blocks, int limit,
                                 uint8_t* codes, float* scales, int32_t* sums) {
  float squares = 0;
  for (int chunk = threadIdx.x; chunk < 4 * blocks; chunk += blockDim.x) {  // whole warps, as blocks % 8 == 0
    float v[8];
    read_eight(x, 8 * chunk, cols, v);
#pragma unroll
    for (int i = 0; i < 8; ++i) squares += v[i] * v[i];
    if (norm != nullptr && 8 * chunk < cols) {
      float w[8];
      read_eight(norm, 8 * chunk, cols, w);
#pragma unroll
      for (int i = 0; i < 8; ++i) v[i] *= scale * w[i];
    }
    float largest = 0;
#pragma unroll
    for (int i = 0; i < 8; ++i) largest = fmaxf(largest, fabsf(v[i]));
    largest = fmaxf(largest, __shfl_xor_sync(~0u, largest, 1));
    largest = fmaxf(largest, __shfl_xor_sync(~0u, largest, 2));
    const float inverse = largest > 0 ? static_cast<float>(limit) / largest : 0.0f;
    uint32_t hi[2] = {}, lo[2] = {};
    int sum = 0;
#pragma unroll
    for (int i = 0; i < 8; ++i) {
      const int code = min(max(__float2int_rn(v[i] * inverse), -limit), limit);
      sum += code;
      const int high = (code + 128) >> 8;
      hi[i / 4] |= static_cast<uint32_t>(high & 255) << (8 * (i % 4));
      lo[i / 4] |= static_cast<uint32_t>((code - high * 256) & 255) << (8 * (i % 4));
    }
    const int block = chunk / 4;
    uint8_t* to = codes + block * 64 + chunk % 4 * 8;
    *reinterpret_cast<uint2*>(to) = {hi[0], hi[1]};
    *reinterpret_cast<uint2*>(to + 32) = {lo[0], lo[1]};
    sum += __shfl_xor_sync(~0u, sum, 1);
    if (chunk % 2 == 0) sums[2 * block + chunk % 4 / 2] = sum;
    // A NaN must reach the result; the largest of numbers and NaN is a number.
    float poison = 0;
#pragma unroll
    for (int i = 0; i < 8; ++i) poison += v[i] * 0.0f;
    poison += __shfl_xor_sync(~0u, poison, 1);
    poison += __shfl_xor_sync(~0u, poison, 2);
    if (chunk % 4 == 0) scales[block] = largest / static_cast<float>(limit) + poison;
  }
  return squares;
}

}  // namespace hearth::cuda
