// Attention that needs no matrix units: appending to the cache, and a plain kernel for what the fast ones lack.
#include "backends/cuda/kernels/attention.cuh"

namespace hearth::cuda {
namespace {

// One warp for each key, value and, where they are wanted, query: heads, kv_heads and kv_heads of a row.
template <int kMaxDim>
HEARTH_DEVICE void append(const AttentionParams& p) {
  const int dim = p.kv.head_dim, kv_heads = p.kv.kv_heads, warp = threadIdx.x / 32, lane = threadIdx.x % 32;
  float* head = reinterpret_cast<float*>(dynamic_shared()) + warp * dim;
  const int queries = p.queries != nullptr ? p.heads : 0, items = queries + 2 * kv_heads;
  const int item = static_cast<int>(blockIdx.x) * kAttentionWarps + warp;
  const int row = item / items;
  int h = item % items;
  grid_wait();
  grid_launch_next();
  if (row >= p.step.header->rows) return;

  if (h < queries) {
    const int64_t at = (static_cast<int64_t>(row) * p.heads + h) * dim;
    prepare_head<kMaxDim>(p.q + at, dim, p.q_norm, p.rope, row, head);
    for (int d = lane; d < dim; d += 32) p.queries[at + d] = __half_as_ushort(__float2half_rn(head[d]));
    return;
  }
  h -= queries;
  const bool value = h >= kv_heads;
  if (value) h -= kv_heads;
  const int64_t at = (static_cast<int64_t>(row) * kv_heads + h) * dim;
  if (value) {
    prepare_head<kMaxDim>(p.v + at, dim, HeadNorm{}, RopeView{}, row, head);
  } else {
    prepare_head<kMaxDim>(p.k + at, dim, p.k_norm, p.rope, row, head);
  }
  const StepRow& r = p.step.rows[row];
  const int page = pages_of(p.step, r.sequence, p.kv_group)[r.position / kPageRows], token = r.position % kPageRows;
  uint8_t* part = head_of(p.kv, page, h) + (value ? p.kv.v_offset_bytes : 0);
  write_entry(head, p.kv.format, dim, entry_of(part, p.kv.format, dim, token), scales_of(part, dim, token));
}

HEARTH_DEVICE float read_entry(const uint8_t* part, KvFormat format, int dim, int token, int d) {
  uint8_t* p = const_cast<uint8_t*>(part);
  const uint8_t* entry = entry_of(p, format, dim, token);
  if (format == KvFormat::kF32) return reinterpret_cast<const float*>(entry)[d];
  if (format == KvFormat::kF16) return __half2float(reinterpret_cast<const __half*>(entry)[d]);
  return __half2float(scales_of(p, dim, token)[d / kKvBlock]) * static_cast<float>(static_cast<int8_t>(entry[d]));
}

}  // namespace

extern "C" __global__ void __launch_bounds__(32 * kAttentionWarps)
    attention_append(const __grid_constant__ AttentionParams p) {
  append<256>(p);
}
extern "C" __global__ void __launch_bounds__(32 * kAttentionWarps)
    attention_append_wide(const __grid_constant__ AttentionParams p) {
  append<kMaxHeadDim>(p);
}

// A block for each (head, row), f32 throughout. Each warp takes four positions of every sixteen and keeps its own sum;
// the sums are added at the end. Dynamic shared memory: the query and the sums, (1 + kAttentionWarps) * head_dim
// floats.
extern "C" __global__ void __launch_bounds__(32 * kAttentionWarps)
    attention_plain(const __grid_constant__ AttentionParams p) {
  constexpr int kTokens = 4;
  static_assert(kAttentionWarps * kTokens == kPageRows);
  const int dim = p.kv.head_dim, warp = threadIdx.x / 32, lane = threadIdx.x % 32;
  float* query = reinterpret_cast<float*>(dynamic_shared());
  float* sums = query + dim;  // [warps][dim]
  float* sum = sums + warp * dim;
  __shared__ float warp_largest[kAttentionWarps], warp_total[kAttentionWarps];
  const int head = static_cast<int>(blockIdx.x), row = static_cast<int>(blockIdx.y), kv_head = head / p.group;
  grid_wait();
  grid_launch_next();
  if (row >= p.step.header->rows) return;

  const int64_t at = (static_cast<int64_t>(row) * p.heads + head) * dim;
  if (warp == 0) prepare_head<kMaxHeadDim>(p.q + at, dim, p.q_norm, p.rope, row, query);
  for (int d = lane; d < dim; d += 32) sum[d] = 0;
  __syncthreads();

  const StepRow& r = p.step.rows[row];
  const int32_t* pages = pages_of(p.step, r.sequence, p.kv_group);
  const int first = first_visible(r.position, p.kv.window);
  float largest = -INFINITY, total = 0;
  for (int page = first / kPageRows; page <= r.position / kPageRows; ++page) {
    const int position = page * kPageRows + warp * kTokens;
    // Tokens [low, high) of the four are visible.
    const int low = max(0, first - position), high = min(kTokens, r.position - position + 1);
    if (low >= high) continue;
    const uint8_t* keys = head_of(p.kv, pages[page], kv_head);
    float score[kTokens] = {};
    for (int d = lane; d < dim; d += 32) {
#pragma unroll
      for (int i = 0; i < kTokens; ++i) {
        if (i >= low && i < high) score[i] += query[d] * read_entry(keys, p.kv.format, dim, warp * kTokens + i, d);
      }
    }
    float now = largest;
#pragma unroll
    for (int i = 0; i < kTokens; ++i) {
      score[i] = warp_sum(score[i]);
      if (p.soft_cap > 0) score[i] = soft_capped(score[i], p.soft_cap);
      if (i < low || i >= high) score[i] = -INFINITY;
      now = fmaxf(now, score[i]);
    }
    const float keep = exp2f((largest - now) * p.scale_log2);
    largest = now;
    total *= keep;
#pragma unroll
    for (int i = 0; i < kTokens; ++i) {
      score[i] = exp2f((score[i] - now) * p.scale_log2);
      total += score[i];
    }
    for (int d = lane; d < dim; d += 32) {
      float s = sum[d] * keep;
#pragma unroll
      for (int i = 0; i < kTokens; ++i) {
        if (i >= low && i < high) {
          s += score[i] * read_entry(keys + p.kv.v_offset_bytes, p.kv.format, dim, warp * kTokens + i, d);
        }
      }
      sum[d] = s;
    }
  }
  if (lane == 0) warp_largest[warp] = largest, warp_total[warp] = total;
  __syncthreads();

  float top = -INFINITY, all = 0, weight[kAttentionWarps];
  for (int w = 0; w < kAttentionWarps; ++w) top = fmaxf(top, warp_largest[w]);
#pragma unroll
  for (int w = 0; w < kAttentionWarps; ++w) {
    weight[w] = exp2f((warp_largest[w] - top) * p.scale_log2);  // 0 for a warp that saw nothing
    all += weight[w] * warp_total[w];
  }
  all += sink_weight(p, head, top);
  for (int d = static_cast<int>(threadIdx.x); d < dim; d += 32 * kAttentionWarps) {
    float s = 0;
#pragma unroll
    for (int w = 0; w < kAttentionWarps; ++w) s += weight[w] * sums[w * dim + d];
    p.out[at + d] = s / all;
  }
}

}  // namespace hearth::cuda
