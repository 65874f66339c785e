// Attention of single rows over long sequences, which memory bounds: a sequence's visible pages are divided among
// blocks, and each warp of a block streams pages of its own through shared memory. A block takes all query heads of a
// kv head (up to 16, the rows of a matrix), so that keys and values are read once. HEARTH_SOFT_CAP: whether scores are
// capped.
#include "backends/cuda/kernels/attention.cuh"

namespace hearth::cuda {
namespace {

constexpr bool kSoftCap = HEARTH_SOFT_CAP;

// Keys or values of a page in shared memory, and what a warp does with them. Lane = 4 * g + t holds, of the scores
// [16 query heads][16 tokens] s[j][0, 1]: query g, tokens 8 * j + 2t, 8 * j + 2t + 1; s[j][2, 3]: query g + 8. Of the
// sums [16 query heads][kDim] o[n][0, 1]: query g, elements column(n, 0), column(n, 1); o[n][2, 3]: query g + 8.
template <KvFormat kFormat, int kDim>
struct Part;

// An f16 tile.
template <int kDim>
struct Part<KvFormat::kF16, kDim> {
  using Rows = Tile<kDim>;
  static constexpr int kRowChunks = Rows::kChunks;  // of 16 bytes

  static HEARTH_DEVICE int column(int n, int e) { return 8 * n + 2 * (static_cast<int>(threadIdx.x) % 4) + e; }

  // Starts copying; tokens outside [low, high] become zeros.
  static HEARTH_DEVICE void copy(uint8_t* part, const uint8_t* from, bool, int low, int high) {
    const int lane = threadIdx.x % 32;
    const uint32_t to = shared_address(part);
#pragma unroll
    for (int i = 0; i < kPageRows * kRowChunks / 32; ++i) {
      const int at = lane + 32 * i, token = at / kRowChunks, chunk = at % kRowChunks;
      copy_async_16(to + Rows::place(token, chunk), from + at * 16, token >= low && token <= high ? 16 : 0);
    }
  }
  // Writes an entry that is not in memory yet.
  static HEARTH_DEVICE void patch(uint8_t* part, bool, int token, const uint8_t* entry, const __half*) {
    const int lane = threadIdx.x % 32;
    if (lane < kRowChunks) {
      *reinterpret_cast<uint4*>(part + Rows::place(token, lane)) = reinterpret_cast<const uint4*>(entry)[lane];
    }
  }
  // Of the tile of queries.
  static HEARTH_DEVICE void load_queries(uint32_t (&a)[kDim / 16][4], const uint8_t* queries) {
    const uint32_t tile = shared_address(queries);
#pragma unroll
    for (int i = 0; i < kDim / 16; ++i) Rows::load_a(a[i], tile, 0, i);
  }
  static HEARTH_DEVICE void multiply_keys(float (&s)[2][4], const uint32_t (&a)[kDim / 16][4], const uint8_t* keys) {
    const uint32_t tile = shared_address(keys);
#pragma unroll
    for (int i = 0; i < kDim / 16; ++i) {
      uint32_t b[4];
      Rows::load_b(b, tile, 0, i);
      mma_f16(s[0], a[i], b[0], b[1]);
      mma_f16(s[1], a[i], b[2], b[3]);
    }
  }
  static HEARTH_DEVICE void add_values(float (&o)[kDim / 8][4], const uint32_t (&p)[4], const uint8_t* values, int,
                                       int) {
    const uint32_t tile = shared_address(values);
#pragma unroll
    for (int i = 0; i < kDim / 16; ++i) {
      uint32_t b[4];
      Rows::load_b_transposed(b, tile, 0, i);
      mma_f16(o[2 * i], p, b[0], b[1]);
      mma_f16(o[2 * i + 1], p, b[2], b[3]);
    }
  }
};

// Codes [16][kDim], then scales [16][kDim / 32]. Codes become f16 in registers. The order of elements within a product
// is free as long as both factors agree: of a block of 32, lane t takes elements 8t .. 8t + 7 of a key; its codes 0-3
// are b[0], b[1] of the first product and codes 4-7 those of the second. Of values, column g of product i of a block is
// element 4g + i, so that a lane reads words of four codes.
template <int kDim>
struct Part<KvFormat::kQ8, kDim> {
  static_assert(kDim % kKvBlock == 0);
  static constexpr int kBlocks = kDim / kKvBlock;
  static constexpr int kRowChunks = kDim / 16;

  static HEARTH_DEVICE int column(int n, int e) {
    return n / 4 * 32 + 8 * (static_cast<int>(threadIdx.x) % 4) + n % 4 + 4 * e;
  }

  // Blocks change places within a row, against bank conflicts. A row begins at place (of 32 bytes) kBlocks * token
  // modulo 4. Of keys, half a warp reads a block of tokens 0-3 or 4-7 together; of values, a warp reads a block of
  // tokens 0, 2, 4, 6 (and so on) together. kBlocks == 2: of values two and two meet.
  static HEARTH_DEVICE int swizzle(bool values, int token) {
    if (kBlocks % 4 == 0) return values ? token >> 1 & 3 : token & 3;
    return kBlocks % 2 == 0 ? token >> 1 & 1 : 0;
  }
  static HEARTH_DEVICE int place(bool values, int token, int block) {
    return token * kDim + (block ^ swizzle(values, token)) * 32;
  }
  static HEARTH_DEVICE const __half* scales(const uint8_t* part, int token) {
    return reinterpret_cast<const __half*>(part + kPageRows * kDim) + token * kBlocks;
  }

  // Scales of tokens outside [low, high] are copied all the same.
  static HEARTH_DEVICE void copy(uint8_t* part, const uint8_t* from, bool values, int low, int high) {
    const int lane = threadIdx.x % 32;
    const uint32_t to = shared_address(part);
#pragma unroll
    for (int i = 0; i < kPageRows * kRowChunks / 32; ++i) {
      const int at = lane + 32 * i, token = at / kRowChunks, chunk = at % kRowChunks;
      copy_async_16(to + place(values, token, chunk / 2) + chunk % 2 * 16, from + at * 16,
                    token >= low && token <= high ? 16 : 0);
    }
    if (lane < kRowChunks) copy_async_16(to + kPageRows * kDim + lane * 16, from + kPageRows * kDim + lane * 16);
  }
  static HEARTH_DEVICE void patch(uint8_t* part, bool values, int token, const uint8_t* entry,
                                  const __half* entry_scales) {
    const int lane = threadIdx.x % 32;
    if (lane < kRowChunks) {
      *reinterpret_cast<uint4*>(part + place(values, token, lane / 2) + lane % 2 * 16) =
          reinterpret_cast<const uint4*>(entry)[lane];
    }
    if (lane < kBlocks) const_cast<__half*>(scales(part, token))[lane] = entry_scales[lane];
  }
  static HEARTH_DEVICE void load_queries(uint32_t (&a)[kDim / 16][4], const uint8_t* queries) {
    const int g = threadIdx.x % 32 / 4, t = threadIdx.x % 4;
#pragma unroll
    for (int block = 0; block < kBlocks; ++block) {
      const uint4 low = *reinterpret_cast<const uint4*>(queries + Tile<kDim>::place(g, 4 * block + t));
      const uint4 high = *reinterpret_cast<const uint4*>(queries + Tile<kDim>::place(g + 8, 4 * block + t));
      uint32_t(&first)[4] = a[2 * block];
      uint32_t(&second)[4] = a[2 * block + 1];
      first[0] = low.x, first[1] = high.x, first[2] = low.y, first[3] = high.y;
      second[0] = low.z, second[1] = high.z, second[2] = low.w, second[3] = high.w;
    }
  }
  static HEARTH_DEVICE void multiply_keys(float (&s)[2][4], const uint32_t (&a)[kDim / 16][4], const uint8_t* keys) {
    const int g = threadIdx.x % 32 / 4, t = threadIdx.x % 4;
#pragma unroll
    for (int j = 0; j < 2; ++j) {
      const int token = 8 * j + g;
#pragma unroll
      for (int block = 0; block < kBlocks; ++block) {
        const uint2 codes = *reinterpret_cast<const uint2*>(keys + place(false, token, block) + 8 * t);
        const __half2 scale = __half2half2(scales(keys, token)[block]);
        uint32_t b[4];
        dequantize(codes.x, scale, b[0], b[1]);
        dequantize(codes.y, scale, b[2], b[3]);
        mma_f16(s[j], a[2 * block], b[0], b[1]);
        mma_f16(s[j], a[2 * block + 1], b[2], b[3]);
      }
    }
  }
  static HEARTH_DEVICE void add_values(float (&o)[kDim / 8][4], const uint32_t (&p)[4], const uint8_t* values, int low,
                                       int high) {
    const int g = threadIdx.x % 32 / 4, t = threadIdx.x % 4;
#pragma unroll
    for (int block = 0; block < kBlocks; ++block) {
      uint32_t b[2][4];  // [tokens 2t, 2t + 1 or 2t + 8, 2t + 9][product]
#pragma unroll
      for (int i = 0; i < 2; ++i) {
        const int token = 8 * i + 2 * t;
        // What is outside may be no number.
        const __half none = __ushort_as_half(0);
        const __half scale_0 = token >= low && token <= high ? scales(values, token)[block] : none;
        const __half scale_1 = token + 1 >= low && token + 1 <= high ? scales(values, token + 1)[block] : none;
        const uint32_t codes_0 = *reinterpret_cast<const uint32_t*>(values + place(true, token, block) + 4 * g);
        const uint32_t codes_1 = *reinterpret_cast<const uint32_t*>(values + place(true, token + 1, block) + 4 * g);
        const __half2 scale = __halves2half2(scale_0, scale_1);
        // Elements 0, 1 and 2, 3 of both tokens side by side.
        dequantize(__byte_perm(codes_0, codes_1, 0x5140), scale, b[i][0], b[i][1]);
        dequantize(__byte_perm(codes_0, codes_1, 0x7362), scale, b[i][2], b[i][3]);
      }
#pragma unroll
      for (int i = 0; i < 4; ++i) mma_f16(o[4 * block + i], p, b[0][i], b[1][i]);
    }
  }
};

// First row of the n-th sequence that has one row; -1: there are not so many.
HEARTH_DEVICE int riding_row(const StepView& step, int n) {
  const int lane = threadIdx.x % 32, sequences = step.header->sequences;
  if (n >= kRidingRows) return -1;
  for (int base = 0; base < sequences; base += 32) {
    const int s = base + lane;
    uint32_t found = __ballot_sync(~0u, s < sequences && step.sequences[s].rows == 1);
    if (n < __popc(found)) {
      for (; n > 0; --n) found &= found - 1;
      return step.sequences[base + __ffs(static_cast<int>(found)) - 1].first_row;
    }
    n -= __popc(found);
  }
  return -1;
}

// Sums of `count` parts of one row and head, from `item` on, by one warp: in their order, so that the result does not
// depend on who came first.
template <int kDim>
HEARTH_DEVICE void combine(const AttentionParams& p, int64_t item, int count, int head, float* out) {
  const float* partial = p.partial + item * kDim;
  const PartScale* scales = p.partial_scale + item;
  constexpr int kVector = kDim % 128 == 0 ? 4 : kDim % 64 == 0 ? 2 : 1;
  constexpr int kVectors = (kDim + 32 * kVector - 1) / (32 * kVector);  // of a lane
  const int lane = threadIdx.x % 32;
  float largest = -INFINITY;
  for (int i = lane; i < count; i += 32) largest = fmaxf(largest, __ldcg(&scales[i].largest));
  largest = warp_max(largest);
  float total = 0, sum[kVectors][kVector] = {};
  for (int base = 0; base < count; base += 32) {
    float weight = 0;
    if (base + lane < count) {
      weight = exp2_fast((__ldcg(&scales[base + lane].largest) - largest) * p.scale_log2);
      total += weight * __ldcg(&scales[base + lane].sum);
    }
    const int n = min(32, count - base);
#pragma unroll 8
    for (int i = 0; i < n; ++i) {
      const float w = __shfl_sync(~0u, weight, i);
      const float* part = partial + static_cast<int64_t>(base + i) * kDim;
#pragma unroll
      for (int v = 0; v < kVectors; ++v) {
        const int d = (lane + 32 * v) * kVector;
        if (kDim % (32 * kVector) != 0 && d >= kDim) continue;
        if constexpr (kVector == 4) {
          const float4 x = __ldcg(reinterpret_cast<const float4*>(part + d));
          sum[v][0] += w * x.x, sum[v][1] += w * x.y, sum[v][2] += w * x.z, sum[v][3] += w * x.w;
        } else if constexpr (kVector == 2) {
          const float2 x = __ldcg(reinterpret_cast<const float2*>(part + d));
          sum[v][0] += w * x.x, sum[v][1] += w * x.y;
        } else {
          sum[v][0] += w * __ldcg(part + d);
        }
      }
    }
  }
  total = warp_sum(total) + sink_weight(p, head, largest);
#pragma unroll
  for (int v = 0; v < kVectors; ++v) {
    const int d = (lane + 32 * v) * kVector;
    if (kDim % (32 * kVector) != 0 && d >= kDim) continue;
#pragma unroll
    for (int i = 0; i < kVector; ++i) out[d + i] = sum[v][i] / total;
  }
}

template <KvFormat kFormat, int kDim>
constexpr DecodeShape kDecodeShape = decode_shape(kFormat, kDim);

// Grid: (parts of a sequence, kv heads and tiles of their queries, rows or as many as there is room for).
template <KvFormat kFormat, int kDim>
HEARTH_DEVICE void decode(const AttentionParams& p) {
  using Kv = Part<kFormat, kDim>;
  constexpr DecodeShape kShape = kDecodeShape<kFormat, kDim>;
  constexpr int kWarps = kShape.warps, kStages = kShape.stages, kPartBytes = kShape.part_bytes;
  constexpr int kSumStride = kDim + 8;  // floats; rows of a quarter warp begin in different banks
  static_assert(kShape.shared_bytes <= most_shared_bytes(kCompiledFor));
  static_assert(kPartBytes % 16 == 0 && kWarps * kQueryRows * kSumStride * 4 <= kShape.ring_bytes);
  const int warp = threadIdx.x / 32, lane = threadIdx.x % 32, g = lane / 4, t = lane % 4;

  uint8_t* shared = dynamic_shared();
  uint8_t* ring = shared + warp * (kShape.ring_bytes / kWarps);
  float* sums = reinterpret_cast<float*>(shared);  // [warps][query rows][kSumStride], when the ring is done
  uint8_t* queries = shared + kShape.ring_bytes;
  float* head = reinterpret_cast<float*>(queries + kQueryRows * kDim * 2) + warp * kDim;
  // The key and the value that are appended: entries, and the scales of kQ8.
  auto new_entry = [&](int i) { return queries + kQueryRows * kDim * 2 + kWarps * kDim * 4 + i * kDim * 2; };
  auto new_scales = [&](int i) { return reinterpret_cast<__half*>(new_entry(i) + kDim); };
  __shared__ float warp_largest[kWarps][kQueryRows], warp_total[kWarps][kQueryRows];
  __shared__ bool last;

  const int query_tiles = (p.group + kQueryRows - 1) / kQueryRows;
  const int kv_head = static_cast<int>(blockIdx.y) / query_tiles;
  const int first_query = static_cast<int>(blockIdx.y) % query_tiles * kQueryRows;  // of the group
  const int used = min(kQueryRows, p.group - first_query);
  const int first_head = kv_head * p.group + first_query;

  bool waited = false;
  auto wait = [&] {
    if (!waited) {
      grid_wait();
      grid_launch_next();
    }
    waited = true;
  };
  for (int item = static_cast<int>(blockIdx.z);; item += static_cast<int>(gridDim.z)) {
    const int row = p.riding ? riding_row(p.step, item) : item;
    if (row < 0) break;
    const StepRow at = p.step.rows[row];  // read together with the header, though there may be no such row
    if (row >= p.step.header->rows) break;
    const int first = first_visible(at.position, p.kv.window);
    // Parts depend on nothing but the row's own visible pages.
    const int first_page = first / kPageRows, last_page = at.position / kPageRows, pages = last_page - first_page + 1;
    int part_pages = (pages + p.splits - 1) / p.splits;
    part_pages = max(kMinSplitPages, (part_pages + kSplitPageStep - 1) / kSplitPageStep * kSplitPageStep);
    const int parts = (pages + part_pages - 1) / part_pages, part = static_cast<int>(blockIdx.x);
    if (part >= parts) continue;
    // This warp's pages: begin, begin + kWarps ... below end; `count` of them.
    const int begin = first_page + part * part_pages + warp;
    const int end = min(first_page + (part + 1) * part_pages, last_page + 1);
    const int count = max(0, (end - begin + kWarps - 1) / kWarps);

    const int32_t* table = pages_of(p.step, at.sequence, p.kv_group);
    auto slot = [&](int i, int which) { return ring + (i % kStages * 2 + which) * kPartBytes; };
    int32_t ahead = 0;                           // of the page that is this lane's turn, of 32 in a row
    const uint8_t* block = nullptr;              // of the page whose keys were started last
    const int stored = at.position - p.appends;  // the last position that is in memory
    auto start_keys = [&](int i) {
      if (i % 32 == 0) ahead = begin + kWarps * (i + lane) < end ? table[begin + kWarps * (i + lane)] : 0;
      if (i < count) {
        const int page = begin + kWarps * i;
        block = head_of(p.kv, __shfl_sync(~0u, ahead, i % 32), kv_head);
        Kv::copy(slot(i, 0), block, false, first - page * kPageRows, stored - page * kPageRows);
      }
      copy_async_commit();
    };
    auto start_values = [&](int i) {
      if (i < count) {
        const int page = begin + kWarps * i;
        Kv::copy(slot(i, 1), block + p.kv.v_offset_bytes, true, first - page * kPageRows, stored - page * kPageRows);
      }
      copy_async_commit();
    };
    // Pages without rows of this step are as earlier steps left them: no need to wait. So is all that is stored when
    // the only row is appended here.
    const int fresh = p.appends ? last_page + 1 : p.step.sequences[at.sequence].position / kPageRows;
    const bool early = count == 0 || begin + kWarps * (min(count, kStages) - 1) < fresh;
    if (!early) wait();
#pragma unroll 1
    for (int i = 0; i < kStages; ++i) start_keys(i), start_values(i);
    if (early) wait();

    for (int r = warp; r < kQueryRows; r += kWarps) {
      if (r < used) {
        prepare_head<kDim>(p.q + (static_cast<int64_t>(row) * p.heads + first_head + r) * kDim, kDim, p.q_norm, p.rope,
                           row, head);
      } else {
        for (int d = lane; d < kDim; d += 32) head[d] = 0;
        __syncwarp();
      }
      Tile<kDim>::store_row(queries, r, head);
      __syncwarp();
    }
    const bool appends = p.appends && part == parts - 1;
    if (appends && warp >= kWarps - 2) {
      const int value = warp - (kWarps - 2);
      const int64_t from = (static_cast<int64_t>(row) * p.kv.kv_heads + kv_head) * kDim;
      if (value) {
        prepare_head<kDim>(p.v + from, kDim, HeadNorm{}, RopeView{}, row, head);
      } else {
        prepare_head<kDim>(p.k + from, kDim, p.k_norm, p.rope, row, head);
      }
      write_entry(head, kFormat, kDim, new_entry(value), new_scales(value));
      if (first_query == 0) {
        const int token = at.position % kPageRows;
        uint8_t* to = head_of(p.kv, table[last_page], kv_head) + (value ? p.kv.v_offset_bytes : 0);
        write_entry(head, kFormat, kDim, entry_of(to, kFormat, kDim, token), scales_of(to, kDim, token));
      }
    }
    __syncthreads();
    uint32_t a[kDim / 16][4];
    if (kDim <= 128) Kv::load_queries(a, queries);

    // Of queries g and g + 8: largest score, this lane's part of the sum of p, sums of p * v.
    float largest[2] = {-INFINITY, -INFINITY}, total[2] = {}, o[kDim / 8][4] = {};
    for (int i = 0; i < count; ++i) {
      const int page = begin + kWarps * i, low = first - page * kPageRows, high = at.position - page * kPageRows;
      const bool patched = appends && page == last_page;
      copy_async_wait<2 * kStages - 1>();  // the keys of page i
      __syncwarp();
      if (patched) {
        Kv::patch(slot(i, 0), false, high, new_entry(0), new_scales(0));
        __syncwarp();
      }
      if (kDim > 128) Kv::load_queries(a, queries);  // they do not stay in registers
      float s[2][4] = {};
      Kv::multiply_keys(s, a, slot(i, 0));
      __syncwarp();
      start_keys(i + kStages);

      if constexpr (kSoftCap) {
#pragma unroll
        for (int j = 0; j < 2; ++j) {
#pragma unroll
          for (int e = 0; e < 4; ++e) s[j][e] = soft_capped(s[j][e], p.soft_cap);
        }
      }
      if (low > 0 || high < kPageRows - 1) {
#pragma unroll
        for (int j = 0; j < 2; ++j) {
#pragma unroll
          for (int e = 0; e < 2; ++e) {
            const int token = 8 * j + 2 * t + e;
            if (token < low || token > high) s[j][e] = s[j][2 + e] = -INFINITY;
          }
        }
      }
      float now[2], keep[2];
#pragma unroll
      for (int r = 0; r < 2; ++r) {
        // Finite: at least one token of every page is visible.
        now[r] = quad_max(fmaxf(fmaxf(s[0][2 * r], s[0][2 * r + 1]), fmaxf(s[1][2 * r], s[1][2 * r + 1])));
        now[r] = fmaxf(now[r], largest[r]);
        keep[r] = exp2_fast((largest[r] - now[r]) * p.scale_log2);
      }
      if (__any_sync(~0u, now[0] > largest[0] || now[1] > largest[1])) {
#pragma unroll
        for (int n = 0; n < kDim / 8; ++n) {
          o[n][0] *= keep[0], o[n][1] *= keep[0];
          o[n][2] *= keep[1], o[n][3] *= keep[1];
        }
      }
      uint32_t probabilities[4];  // A: [16 query heads][16 tokens]
#pragma unroll
      for (int r = 0; r < 2; ++r) {
        largest[r] = now[r];
        const float base = now[r] * p.scale_log2;
#pragma unroll
        for (int j = 0; j < 2; ++j) {
          float& x = s[j][2 * r];
          float& y = s[j][2 * r + 1];
          x = exp2_fast(x * p.scale_log2 - base), y = exp2_fast(y * p.scale_log2 - base);
          probabilities[2 * j + r] = pack_halves(x, y);
        }
        total[r] = total[r] * keep[r] + (s[0][2 * r] + s[0][2 * r + 1]) + (s[1][2 * r] + s[1][2 * r + 1]);
      }

      copy_async_wait<2 * kStages - 1>();  // the values of page i
      __syncwarp();
      if (patched) {
        Kv::patch(slot(i, 1), true, high, new_entry(1), new_scales(1));
        __syncwarp();
      }
      Kv::add_values(o, probabilities, slot(i, 1), low, high);
      __syncwarp();
      start_values(i + kStages);
    }

    // The sums of the warps become one.
    __syncthreads();
#pragma unroll
    for (int r = 0; r < 2; ++r) {
      total[r] = quad_sum(total[r]);
      const int query = g + 8 * r;
      if (query < used) {
        float* to = sums + (warp * kQueryRows + query) * kSumStride;
#pragma unroll
        for (int n = 0; n < kDim / 8; ++n) {
          to[Kv::column(n, 0)] = o[n][2 * r];
          to[Kv::column(n, 1)] = o[n][2 * r + 1];
        }
        if (t == 0) warp_largest[warp][query] = largest[r], warp_total[warp][query] = total[r];
      }
    }
    __syncthreads();
    for (int i = static_cast<int>(threadIdx.x); i < used * kDim; i += 32 * kWarps) {
      const int query = i / kDim, d = i % kDim;
      float top = -INFINITY, all = 0, sum = 0;
#pragma unroll
      for (int w = 0; w < kWarps; ++w) top = fmaxf(top, warp_largest[w][query]);
#pragma unroll
      for (int w = 0; w < kWarps; ++w) {
        const float weight = exp2_fast((warp_largest[w][query] - top) * p.scale_log2);  // 0 for a warp without pages
        all += weight * warp_total[w][query];
        sum += weight * sums[(w * kQueryRows + query) * kSumStride + d];
      }
      if (parts == 1) {
        all += sink_weight(p, first_head + query, top);
        p.out[(static_cast<int64_t>(row) * p.heads + first_head + query) * kDim + d] = sum / all;
      } else {
        const int64_t to = (static_cast<int64_t>(item) * p.heads + first_head + query) * p.splits + part;
        p.partial[to * kDim + d] = sum;
        if (d == 0) p.partial_scale[to] = {top, all};
      }
    }

    // The block that completes the last part of the row combines them all.
    if (parts > 1) {
      uint32_t* done = p.done + item * static_cast<int>(gridDim.y) + blockIdx.y;
      if (is_last_block(done, static_cast<uint32_t>(parts), last)) {
        for (int r = warp; r < used; r += kWarps) {
          const int head = first_head + r;
          combine<kDim>(p, (static_cast<int64_t>(item) * p.heads + head) * p.splits, parts, head,
                        p.out + (static_cast<int64_t>(row) * p.heads + head) * kDim);
        }
      }
    }
    __syncthreads();  // the next row's pages go where these sums are
  }
  wait();
}

}  // namespace

#define HEARTH_DECODE(format, name, dim)                                                \
  extern "C" __global__ void __launch_bounds__(32 * kDecodeShape<format, dim>.warps, 3) \
      attention_decode_##name##_##dim(const __grid_constant__ AttentionParams p) {      \
    decode<format, dim>(p);                                                             \
  }
HEARTH_DECODE(KvFormat::kF16, f16, 64)
HEARTH_DECODE(KvFormat::kF16, f16, 80)
HEARTH_DECODE(KvFormat::kF16, f16, 96)
HEARTH_DECODE(KvFormat::kF16, f16, 128)
HEARTH_DECODE(KvFormat::kF16, f16, 256)
HEARTH_DECODE(KvFormat::kQ8, q8, 64)
HEARTH_DECODE(KvFormat::kQ8, q8, 96)
HEARTH_DECODE(KvFormat::kQ8, q8, 128)
HEARTH_DECODE(KvFormat::kQ8, q8, 256)
#undef HEARTH_DECODE

}  // namespace hearth::cuda
