// Attention of many rows of a sequence, which arithmetic bounds. A block takes a tile of 64 query rows for one query
// head, or for two of the same kv head; each of its four warps takes 16 of the rows. Blocks of keys and values come
// through shared memory, the next while this one is worked on; scores stay in registers (online softmax).
// HEARTH_SOFT_CAP: whether scores are capped.
#include "backends/cuda/kernels/attention.cuh"

namespace hearth::cuda {
namespace {

template <KvFormat kFormat, int kDim, int kHeads>
constexpr PrefillShape kPrefillShape = prefill_shape(kFormat, kDim, kHeads);

constexpr bool kSoftCap = HEARTH_SOFT_CAP;
constexpr int kThreads = 32 * kAttentionWarps;

// Grid: (query heads / kHeads, tiles or as many as there is room for).
template <KvFormat kFormat, int kDim, int kHeads>
HEARTH_DEVICE void prefill(const AttentionParams& p) {
  using Rows = Tile<kDim>;
  constexpr PrefillShape kShape = kPrefillShape<kFormat, kDim, kHeads>;
  static_assert(kShape.shared_bytes <= most_shared_bytes(kCompiledFor));
  constexpr int kTokens = kShape.tokens, kPages = kTokens / kPageRows;
  constexpr int kValues = kTokens * kDim * 2;  // where V begins in a stage
  constexpr int kPartBytes = kShape.part_bytes;
  // Scores of so many tokens are in registers at a time.
  constexpr int kInner = kHeads == 2 ? 32 : kTokens;
  const int warp = threadIdx.x / 32, lane = threadIdx.x % 32, g = lane / 4, t = lane % 4;

  uint8_t* queries = dynamic_shared();  // [kHeads][kTileRows][kDim]
  uint8_t* stages = queries + kShape.query_bytes;
  uint8_t* raw = stages + kShape.stage_bytes;  // kQ8: pages as they are, K and V
  const int head = static_cast<int>(blockIdx.x) * kHeads, kv_head = head / p.group;

  grid_wait();
  grid_launch_next();
  // The last tiles first: they are the longest.
  for (int i = p.step.header->tiles - 1 - static_cast<int>(blockIdx.y); i >= 0; i -= static_cast<int>(gridDim.y)) {
    const StepTile tile = p.step.tiles[i];
    const StepRow at = p.step.rows[tile.first_row];
    const int32_t* table = pages_of(p.step, at.sequence, p.kv_group);
    // Tokens [first, last] are visible to some row.
    const int first = first_visible(at.position, p.kv.window), last = at.position + tile.rows - 1;
    const int begin = first / kPageRows * kPageRows, blocks = (last - begin) / kTokens + 1;

    // Rows that the tile does not have become zeros, and so do tokens that no row sees.
#pragma unroll
    for (int m = 0; m < kHeads; ++m) {
#pragma unroll
      for (int c = 0; c < kTileRows * Rows::kChunks / kThreads; ++c) {
        const int n = static_cast<int>(threadIdx.x) + kThreads * c, r = n / Rows::kChunks, chunk = n % Rows::kChunks;
        const int row = tile.first_row + min(r, tile.rows - 1);
        copy_async_16(shared_address(queries) + Rows::place(m * kTileRows + r, chunk),
                      p.queries + (static_cast<int64_t>(row) * p.heads + head + m) * kDim + chunk * 8,
                      r < tile.rows ? 16 : 0);
      }
    }
    auto start = [&](int n) {
      const int token = begin + n * kTokens;
#pragma unroll
      for (int page = 0; page < kPages; ++page) {
        const int index = min(token / kPageRows + page, last / kPageRows);
        const uint8_t* from = head_of(p.kv, table[index], kv_head);
        if constexpr (kFormat == KvFormat::kF16) {
          constexpr int kChunks = kPageRows * Rows::kChunks;
          const uint32_t to = shared_address(stages) + n % 2 * kShape.stage_bytes;
#pragma unroll
          for (int c = 0; c < (kChunks + kThreads - 1) / kThreads; ++c) {
            const int chunk = static_cast<int>(threadIdx.x) + kThreads * c,
                      r = page * kPageRows + chunk / Rows::kChunks;
            if (kChunks % kThreads != 0 && chunk >= kChunks) continue;
            const int valid = token + r >= first && token + r <= last ? 16 : 0;
            const int place = Rows::place(r, chunk % Rows::kChunks);
            copy_async_16(to + place, from + chunk * 16, valid);
            copy_async_16(to + kValues + place, from + p.kv.v_offset_bytes + chunk * 16, valid);
          }
        } else {
          for (int c = static_cast<int>(threadIdx.x); c < 2 * kPartBytes / 16; c += kThreads) {
            copy_async_16(shared_address(raw) + page * 2 * kPartBytes + c * 16, from + c * 16);
          }
        }
      }
      copy_async_commit();
    };
    // kQ8: the pages become the f16 stage. 16 codes at a time.
    auto convert = [&](int n) {
      const int token = begin + n * kTokens;
      for (int c = static_cast<int>(threadIdx.x); c < 2 * kTokens * (kDim / 16); c += kThreads) {
        const int which = c / (kTokens * (kDim / 16)), r = c / (kDim / 16) % kTokens, chunk = c % (kDim / 16);
        const uint8_t* part = raw + (r / kPageRows * 2 + which) * kPartBytes;
        uint4 out[2] = {};
        if (token + r >= first && token + r <= last) {
          const uint4 codes = *reinterpret_cast<const uint4*>(part + r % kPageRows * kDim + chunk * 16);
          const __half* scales = reinterpret_cast<const __half*>(part + kPageRows * kDim);
          const __half2 scale = __half2half2(scales[r % kPageRows * (kDim / kKvBlock) + chunk / 2]);
          dequantize(codes.x, scale, out[0].x, out[0].y);
          dequantize(codes.y, scale, out[0].z, out[0].w);
          dequantize(codes.z, scale, out[1].x, out[1].y);
          dequantize(codes.w, scale, out[1].z, out[1].w);
        }
        uint8_t* to = stages + which * kValues;
        *reinterpret_cast<uint4*>(to + Rows::place(r, 2 * chunk)) = out[0];
        *reinterpret_cast<uint4*>(to + Rows::place(r, 2 * chunk + 1)) = out[1];
      }
    };
    start(0);

    // Of query rows g and g + 8 of the warp, for each head: largest score, this lane's part of the sum of p, and sums
    // of p * v: o[m][n][0, 1] row g, elements 8 * n + 2t, 8 * n + 2t + 1; [2, 3] row g + 8.
    float largest[kHeads][2], total[kHeads][2], o[kHeads][kDim / 8][4];
#pragma unroll
    for (int m = 0; m < kHeads; ++m) {
#pragma unroll
      for (int r = 0; r < 2; ++r) largest[m][r] = -INFINITY, total[m][r] = 0;
#pragma unroll
      for (int n = 0; n < kDim / 8; ++n) o[m][n][0] = o[m][n][1] = o[m][n][2] = o[m][n][3] = 0;
    }
    const int top = at.position + 16 * warp;  // position of the warp's first row; its last one's is top + 15

    for (int n = 0; n < blocks; ++n) {
      copy_async_wait<0>();
      __syncthreads();
      if constexpr (kFormat == KvFormat::kQ8) {
        convert(n);
        __syncthreads();
      }
      if (n + 1 < blocks) start(n + 1);
      const uint32_t keys = shared_address(stages) + (kFormat == KvFormat::kF16 ? n % 2 * kShape.stage_bytes : 0);
      const uint32_t values = keys + kValues;
      if (16 * warp >= tile.rows) continue;

#pragma unroll 1
      for (int inner = 0; inner < kTokens; inner += kInner) {
        const int token = begin + n * kTokens + inner;
        // Nothing of these for any row of the warp: in the future, or behind the window.
        if (token > top + 15 || (p.kv.window > 0 && token + kInner - 1 <= top - p.kv.window)) continue;

        // s[m][j][0, 1]: row g, tokens 8 * j + 2t, 8 * j + 2t + 1; [2, 3]: row g + 8.
        float s[kHeads][kInner / 8][4] = {};
#pragma unroll
        for (int k = 0; k < kDim / 16; ++k) {
          uint32_t a[kHeads][4];
#pragma unroll
          for (int m = 0; m < kHeads; ++m) Rows::load_a(a[m], shared_address(queries), m * kTileRows + 16 * warp, k);
#pragma unroll
          for (int j = 0; j < kInner / 16; ++j) {
            uint32_t b[4];
            Rows::load_b(b, keys, inner + 16 * j, k);
#pragma unroll
            for (int m = 0; m < kHeads; ++m) {
              mma_f16(s[m][2 * j], a[m], b[0], b[1]);
              mma_f16(s[m][2 * j + 1], a[m], b[2], b[3]);
            }
          }
        }
        if constexpr (kSoftCap) {
#pragma unroll
          for (int m = 0; m < kHeads; ++m) {
#pragma unroll
            for (int j = 0; j < kInner / 8; ++j) {
#pragma unroll
              for (int e = 0; e < 4; ++e) s[m][j][e] = soft_capped(s[m][j][e], p.soft_cap);
            }
          }
        }
        if (token + kInner - 1 > top || (p.kv.window > 0 && token <= top + 15 - p.kv.window)) {
#pragma unroll
          for (int j = 0; j < kInner / 8; ++j) {
#pragma unroll
            for (int e = 0; e < 4; ++e) {
              const int key = token + 8 * j + 2 * t + e % 2, position = top + g + e / 2 * 8;
              if (key > position || (p.kv.window > 0 && key <= position - p.kv.window)) {
#pragma unroll
                for (int m = 0; m < kHeads; ++m) s[m][j][e] = -INFINITY;
              }
            }
          }
        }

        uint32_t probabilities[kHeads][kInner / 16][4];  // A: [16 rows][16 tokens]
#pragma unroll
        for (int m = 0; m < kHeads; ++m) {
          float keep[2], base[2];
          bool rises = false;
#pragma unroll
          for (int r = 0; r < 2; ++r) {
            float now = largest[m][r];
            float here = -INFINITY;
#pragma unroll
            for (int j = 0; j < kInner / 8; ++j) here = fmaxf(here, fmaxf(s[m][j][2 * r], s[m][j][2 * r + 1]));
            now = fmaxf(now, quad_max(here));
            // A row may see nothing yet, when its window begins later.
            base[r] = now == -INFINITY ? 0.0f : now * p.scale_log2;
            keep[r] = exp2_fast(largest[m][r] * p.scale_log2 - base[r]);
            rises |= now > largest[m][r];
            largest[m][r] = now;
          }
          if (__any_sync(~0u, rises)) {
#pragma unroll
            for (int d = 0; d < kDim / 8; ++d) {
              o[m][d][0] *= keep[0], o[m][d][1] *= keep[0];
              o[m][d][2] *= keep[1], o[m][d][3] *= keep[1];
            }
            total[m][0] *= keep[0], total[m][1] *= keep[1];
          }
#pragma unroll
          for (int r = 0; r < 2; ++r) {
            float sum = 0;
#pragma unroll
            for (int j = 0; j < kInner / 8; ++j) {
              const float x = exp2_fast(s[m][j][2 * r] * p.scale_log2 - base[r]);
              const float y = exp2_fast(s[m][j][2 * r + 1] * p.scale_log2 - base[r]);
              sum += x + y;
              probabilities[m][j / 2][j % 2 * 2 + r] = pack_halves(x, y);
            }
            total[m][r] += sum;
          }
        }

#pragma unroll
        for (int j = 0; j < kInner / 16; ++j) {
#pragma unroll
          for (int d = 0; d < kDim / 16; ++d) {
            uint32_t b[4];
            Rows::load_b_transposed(b, values, inner + 16 * j, d);
#pragma unroll
            for (int m = 0; m < kHeads; ++m) {
              mma_f16(o[m][2 * d], probabilities[m][j], b[0], b[1]);
              mma_f16(o[m][2 * d + 1], probabilities[m][j], b[2], b[3]);
            }
          }
        }
      }
    }

#pragma unroll
    for (int m = 0; m < kHeads; ++m) {
#pragma unroll
      for (int r = 0; r < 2; ++r) {
        const float scale = 1.0f / (quad_sum(total[m][r]) + sink_weight(p, head + m, largest[m][r]));
        const int row = 16 * warp + g + 8 * r;
        if (row >= tile.rows) continue;
        float* to = p.out + (static_cast<int64_t>(tile.first_row + row) * p.heads + head + m) * kDim + 2 * t;
#pragma unroll
        for (int d = 0; d < kDim / 8; ++d) {
          *reinterpret_cast<float2*>(to + 8 * d) = {o[m][d][2 * r] * scale, o[m][d][2 * r + 1] * scale};
        }
      }
    }
    __syncthreads();  // the next tile goes where this one is
  }
}

}  // namespace

#define HEARTH_PREFILL(format, name, dim, heads)                                               \
  extern "C" __global__ void __launch_bounds__(kThreads, 2)                                    \
      attention_prefill_##name##_##dim##_x##heads(const __grid_constant__ AttentionParams p) { \
    prefill<format, dim, heads>(p);                                                            \
  }
HEARTH_PREFILL(KvFormat::kF16, f16, 64, 1)
HEARTH_PREFILL(KvFormat::kF16, f16, 80, 1)
HEARTH_PREFILL(KvFormat::kF16, f16, 96, 1)
HEARTH_PREFILL(KvFormat::kF16, f16, 128, 1)
HEARTH_PREFILL(KvFormat::kF16, f16, 256, 1)
HEARTH_PREFILL(KvFormat::kF16, f16, 64, 2)
HEARTH_PREFILL(KvFormat::kF16, f16, 80, 2)
HEARTH_PREFILL(KvFormat::kF16, f16, 96, 2)
HEARTH_PREFILL(KvFormat::kF16, f16, 128, 2)
HEARTH_PREFILL(KvFormat::kQ8, q8, 64, 1)
HEARTH_PREFILL(KvFormat::kQ8, q8, 96, 1)
HEARTH_PREFILL(KvFormat::kQ8, q8, 128, 1)
HEARTH_PREFILL(KvFormat::kQ8, q8, 256, 1)
HEARTH_PREFILL(KvFormat::kQ8, q8, 64, 2)
HEARTH_PREFILL(KvFormat::kQ8, q8, 96, 2)
HEARTH_PREFILL(KvFormat::kQ8, q8, 128, 2)
#undef HEARTH_PREFILL

}  // namespace hearth::cuda
