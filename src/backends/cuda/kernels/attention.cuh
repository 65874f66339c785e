// What the attention kernels share: heads before they are used, entries of the cache, tiles of f16 in shared memory.
#pragma once

#include "backends/cuda/kernels/attention.h"
#include "backends/cuda/kernels/device.cuh"

namespace hearth::cuda {

// Norm and rotation of one head, x [dim], by one warp; the result is left in `head`, shared memory of this warp. Lane i
// takes the pairs i, i + 32 ...: those that are rotated, then neighbours.
template <int kMaxDim>
HEARTH_DEVICE void prepare_head(const float* x, int dim, HeadNorm norm, const RopeView& rope, int row, float* head) {
  constexpr int kUnits = (kMaxDim / 2 + 31) / 32;
  const int lane = threadIdx.x % 32, units = (dim + 1) / 2;
  const int pairs = rope.cos != nullptr ? rope.pairs : 0;
  const bool half = rope.half != 0;
  auto first = [&](int u) { return half && u < pairs ? u : 2 * u; };
  auto second = [&](int u) { return half && u < pairs ? u + pairs : 2 * u + 1; };
  float a[kUnits], b[kUnits], cos[kUnits], sin[kUnits], weight_a[kUnits], weight_b[kUnits];
  float squares = 0;
#pragma unroll
  for (int i = 0; i < kUnits; ++i) {
    const int u = lane + 32 * i;
    a[i] = b[i] = sin[i] = 0;
    cos[i] = weight_a[i] = weight_b[i] = 1;
    if (u < units) {
      const bool two = second(u) < dim;  // not the last of an odd number
      a[i] = x[first(u)];
      if (two) b[i] = x[second(u)];
      if (norm.weight != nullptr) {
        weight_a[i] = norm.weight[first(u)];
        if (two) weight_b[i] = norm.weight[second(u)];
      }
      if (u < pairs) {
        cos[i] = rope.cos[static_cast<int64_t>(row) * pairs + u];
        sin[i] = rope.sin[static_cast<int64_t>(row) * pairs + u];
      }
    }
    squares += a[i] * a[i] + b[i] * b[i];
  }
  float scale = 1;
  if (norm.weight != nullptr) scale = 1.0f / sqrtf(warp_sum(squares) / static_cast<float>(dim) + norm.eps);
#pragma unroll
  for (int i = 0; i < kUnits; ++i) {
    const int u = lane + 32 * i;
    if (u < units) {
      float y = a[i], z = b[i];
      if (norm.weight != nullptr) y = weight_a[i] * (y * scale), z = weight_b[i] * (z * scale);
      if (u < pairs) {
        const float turned = y * cos[i] - z * sin[i];
        z = y * sin[i] + z * cos[i];
        y = turned;
      }
      head[first(u)] = y;
      if (second(u) < dim) head[second(u)] = z;
    }
  }
  __syncwarp();
}

// ---- entries of the cache ----

// Where the entry of a token begins in `part` (K or V of a head in a page), and the scales of kQ8.
HEARTH_DEVICE uint8_t* entry_of(uint8_t* part, KvFormat format, int dim, int token) {
  return part + token * dim * (format == KvFormat::kF32 ? 4 : format == KvFormat::kF16 ? 2 : 1);
}
HEARTH_DEVICE __half* scales_of(uint8_t* part, int dim, int token) {
  return reinterpret_cast<__half*>(part + kPageRows * dim) + token * ((dim + kKvBlock - 1) / kKvBlock);
}

// Writes `head`, which lies in shared memory, as an entry of the cache; by one warp. `scales`: of kQ8, made as q8_0 is
// encoded.
HEARTH_DEVICE void write_entry(const float* head, KvFormat format, int dim, uint8_t* entry, __half* scales) {
  const int lane = threadIdx.x % 32;
  if (format == KvFormat::kF32) {
    for (int d = lane; d < dim; d += 32) reinterpret_cast<float*>(entry)[d] = head[d];
  } else if (format == KvFormat::kF16) {
    for (int d = lane; d < dim; d += 32) reinterpret_cast<__half*>(entry)[d] = __float2half_rn(head[d]);
  } else {
    for (int d = lane; d - lane < dim; d += kKvBlock) {
      const float x = d < dim ? head[d] : 0.0f;
      const __half scale = __float2half_rn(fminf(warp_max(fabsf(x)) / 127.0f, 65504.0f));
      const float s = __half2float(scale);
      const float code = rintf(x * (s != 0.0f ? 1.0f / s : 0.0f));
      if (d < dim) entry[d] = static_cast<uint8_t>(static_cast<int>(fminf(fmaxf(code, -127.0f), 127.0f)));
      if (lane == 0) scales[d / kKvBlock] = scale;
    }
  }
}

// The head's K and V in a page.
HEARTH_DEVICE uint8_t* head_of(const KvView& kv, int page, int kv_head) {
  return kv.base + static_cast<uint64_t>(page) * kv.page_stride_bytes +
         static_cast<uint64_t>(kv_head) * kv.head_stride_bytes;
}

// First position that a query at `position` sees.
HEARTH_DEVICE int first_visible(int position, int window) { return window > 0 ? max(0, position - window + 1) : 0; }

// ---- f16 tiles [rows][kDim] in shared memory ----

// Chunks of 16 bytes change places within a row, so that the same chunk of eight rows in a row lies in all 32 banks:
// with C chunks a row, row r begins at place C * r modulo 8, and chunk c of it is put at c ^ swizzle(r).
// C % 8 == 0: all rows begin at place 0; c ^ (r % 8) differ.
// C % 8 == 4: rows begin at 0, 4, 0, 4 ...; c ^ (r / 2 % 4) differ for rows of the same begin, in the lower two bits.
// C % 8 == 2 or 6: rows r and r + 4 begin at the same even place; c ^ (r / 4 % 2) differ.
template <int kDim>
struct Tile {
  static_assert(kDim % 16 == 0);
  static constexpr int kChunks = kDim / 8;
  static HEARTH_DEVICE int swizzle(int row) {
    return kChunks % 8 == 0 ? row & 7 : kChunks % 8 == 4 ? row >> 1 & 3 : row >> 2 & 1;
  }
  static HEARTH_DEVICE int place(int row, int chunk) { return (row * kChunks + (chunk ^ swizzle(row))) * 16; }

  // The same for chunk 2 * step + half of row `row + first`, where `first` is a multiple of 8; written so that little
  // of it changes with `first` and `step`.
  static HEARTH_DEVICE int place(int first, int row, int half, int step) {
    return first * kChunks * 16 + (kChunks % 8 == 0 ? place(row, half) ^ step * 32 : place(row, 2 * step + half));
  }

  // `tile`: its address (shared_address).
  // A (16 x 16): rows [row, row + 16), elements [16 * step, + 16). Matrices: rows 0-7 and 8-15 of the first 8 elements,
  // then of the other 8.
  static HEARTH_DEVICE void load_a(uint32_t (&a)[4], uint32_t tile, int row, int step) {
    const int lane = threadIdx.x % 32;
    load_matrices(a, tile + place(row, lane % 16, lane / 16, step));
  }
  // B for two products with columns = rows [row, row + 8) and [row + 8, + 8) of the tile, elements [16 * step, + 16):
  // b[0], b[1] and b[2], b[3]. Matrices: elements 0-7 and 8-15 of the first 8 rows, then of the other 8.
  static HEARTH_DEVICE void load_b(uint32_t (&b)[4], uint32_t tile, int row, int step) {
    const int lane = threadIdx.x % 32;
    load_matrices(b, tile + place(row, lane / 16 * 8 + lane % 8, lane / 8 % 2, step));
  }
  // B for two products with columns = elements [16 * step, + 8) and [16 * step + 8, + 8), k = rows [row, row + 16).
  // Matrices: rows 0-7 and 8-15 of the first 8 elements, then of the other 8.
  static HEARTH_DEVICE void load_b_transposed(uint32_t (&b)[4], uint32_t tile, int row, int step) {
    const int lane = threadIdx.x % 32;
    load_matrices_transposed(b, tile + place(row, lane % 16, lane / 16, step));
  }
  // A row from f32 in shared memory, by one warp.
  static HEARTH_DEVICE void store_row(uint8_t* tile, int row, const float* head) {
    for (int i = threadIdx.x % 32; i < kDim / 2; i += 32) {
      *reinterpret_cast<__half2*>(tile + place(row, i / 4) + i % 4 * 4) =
          __floats2half2_rn(head[2 * i], head[2 * i + 1]);
    }
  }
};

HEARTH_DEVICE uint32_t pack_halves(float low, float high) {
  const __half2 h = __floats2half2_rn(low, high);
  return *reinterpret_cast<const uint32_t*>(&h);
}

// ---- int8 codes as f16 ----

// Codes 0, 1 and codes 2, 3 of a word, each times its half of `scale`. A code + 128 in the low bits of the f16 1024 is
// the f16 1152 + code.
HEARTH_DEVICE void dequantize(uint32_t codes, __half2 scale, uint32_t& codes_01, uint32_t& codes_23) {
  codes ^= 0x80808080u;
  const uint32_t words[2] = {__byte_perm(codes, 0x64646464u, 0x4140), __byte_perm(codes, 0x64646464u, 0x4342)};
  uint32_t* out[2] = {&codes_01, &codes_23};
#pragma unroll
  for (int i = 0; i < 2; ++i) {
    const __half2 offset = __half2half2(__ushort_as_half(0x6480));  // 1152
    const __half2 value = __hmul2(__hsub2(*reinterpret_cast<const __half2*>(&words[i]), offset), scale);
    *out[i] = *reinterpret_cast<const uint32_t*>(&value);
  }
}

// ---- softmax ----

inline constexpr float kLog2e = 1.44269504f;

// cap * tanh(score / cap), to 2^-21 of cap.
HEARTH_DEVICE float soft_capped(float score, float cap) {
  return cap - __fdividef(2 * cap, exp2_fast(score * __fdividef(2 * kLog2e, cap)) + 1);
}

// What the sink of a query head adds to the sum of p = exp(scale * (score - largest)). May be infinite: then no value
// has any weight.
HEARTH_DEVICE float sink_weight(const AttentionParams& p, int head, float largest) {
  return p.sinks != nullptr ? exp2_fast(p.sinks[head] * kLog2e - largest * p.scale_log2) : 0.0f;
}

// Over the four lanes that share the rows of a product.
HEARTH_DEVICE float quad_max(float v) {
  v = fmaxf(v, __shfl_xor_sync(~0u, v, 1));
  return fmaxf(v, __shfl_xor_sync(~0u, v, 2));
}
HEARTH_DEVICE float quad_sum(float v) {
  v += __shfl_xor_sync(~0u, v, 1);
  return v + __shfl_xor_sync(~0u, v, 2);
}

}  // namespace hearth::cuda
