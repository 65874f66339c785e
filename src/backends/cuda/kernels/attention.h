// What the attention kernels are given, and their shapes, which the host needs to start them.
#pragma once

#include "backends/cuda/kernels/params.h"

namespace hearth::cuda {

struct HeadNorm {
  const float* weight;  // [head_dim]; nullptr: none
  float eps;
};

// What makes sums of different parts comparable.
struct alignas(8) PartScale {
  float largest;  // score
  float sum;      // of p = exp(scale * (score - largest))
};

// All attention kernels take this.
struct AttentionParams {
  StepView step;
  KvView kv;
  const float* q;  // [rows][heads * head_dim]
  const float* k;  // [rows][kv_heads * head_dim]
  const float* v;
  float* out;  // as q
  HeadNorm q_norm, k_norm;
  RopeView rope;
  float scale_log2;    // of scores, times log2(e)
  float soft_cap;      // of scores before they are scaled; 0: none
  const float* sinks;  // [heads], of the size of scaled scores; nullptr: none
  int32_t heads;
  int32_t group;  // query heads of a kv head
  int32_t kv_group;

  // Prefill plans: the queries after norm and rotation, f16 [rows][heads][head_dim]. nullptr: nobody wants them.
  uint16_t* queries;

  // Decode kernel.
  int32_t splits;            // most parts of a sequence's visible tokens
  int32_t riding;            // rows: those of the sequences that have one row (the first kRidingRows); else all
  int32_t appends;           // the only row of the step: its key and value are written here, not before
  float* partial;            // [rows][heads][splits][head_dim]: sums of p * v
  PartScale* partial_scale;  // [rows][heads][splits]
  uint32_t* done;            // [rows][kv heads and tiles of their queries]: parts that are complete
};

// ---- append, plain ----

inline constexpr int kAttentionWarps = 4;  // of a block of these kernels and of prefill
inline constexpr int kMaxHeadDim = 1024;

// ---- kernels on matrix units ----

// Head dimensions that they exist for.
constexpr bool has_matrix_attention(KvFormat format, int head_dim) {
  switch (format) {
    case KvFormat::kF16:
      return head_dim == 64 || head_dim == 80 || head_dim == 96 || head_dim == 128 || head_dim == 256;
    case KvFormat::kQ8:  // whole blocks of 32
      return head_dim == 64 || head_dim == 96 || head_dim == 128 || head_dim == 256;
    default:
      return false;
  }
}

// Keys, or values, of one head in one page.
constexpr int kv_part_bytes(KvFormat format, int head_dim) {
  return format == KvFormat::kF16 ? kPageRows * head_dim * 2 : kPageRows * (head_dim + head_dim / kKvBlock * 2);
}

inline constexpr int kQueryRows = 16;     // query heads that a decode block has at a time: rows of a matrix
inline constexpr int kMinSplitPages = 8;  // a part of a sequence is at least as long
inline constexpr int kSplitPageStep = 4;  // and a multiple of this: 64 tokens

// Each warp streams pages of its own through a ring. About 64 KiB a block, so that two or three blocks share a
// multiprocessor and keep 100 KiB on the way; at least two pages a warp.
struct DecodeShape {
  int warps;
  int stages;  // pages in the ring of a warp
  int part_bytes;
  int ring_bytes;    // of all warps
  int shared_bytes;  // ring, queries, a head in f32 for each warp, the key and value that are appended
};
constexpr DecodeShape decode_shape(KvFormat format, int head_dim) {
  DecodeShape s{};
  s.warps = head_dim > 128 ? 2 : 4;
  s.part_bytes = kv_part_bytes(format, head_dim);
  s.stages = (64 << 10) / (2 * s.warps * s.part_bytes);
  s.stages = s.stages < 2 ? 2 : s.stages > 4 ? 4 : s.stages;
  s.ring_bytes = s.warps * s.stages * 2 * s.part_bytes;
  s.shared_bytes = s.ring_bytes + kQueryRows * head_dim * 2 + s.warps * head_dim * 4 + 2 * head_dim * 2;
  return s;
}

// A block takes the query rows of a tile for one query head, or for two of the same kv head, which halves what is read
// from shared memory.
struct PrefillShape {
  int tokens;  // keys and values at a time
  int part_bytes;
  int query_bytes;   // f16 [query heads][kTileRows][head_dim]
  int stage_bytes;   // f16 K [tokens][head_dim], then V
  int shared_bytes;  // kF16: two stages; kQ8: one, and the pages as they are
};
constexpr PrefillShape prefill_shape(KvFormat format, int head_dim, int query_heads) {
  PrefillShape s{};
  s.tokens = head_dim > 128 ? 32 : 64;
  s.part_bytes = kv_part_bytes(format, head_dim);
  s.query_bytes = query_heads * kTileRows * head_dim * 2;
  s.stage_bytes = 2 * s.tokens * head_dim * 2;
  s.shared_bytes = s.query_bytes + s.stage_bytes;
  s.shared_bytes += format == KvFormat::kF16 ? s.stage_bytes : s.tokens / kPageRows * 2 * s.part_bytes;
  return s;
}

}  // namespace hearth::cuda
