// What kernels are given: plain structures that the host fills and the device reads. All addresses are of GPU memory.
#pragma once

#include <cstdint>

namespace hearth::cuda {

inline constexpr int kPageRows = 16;  // tokens of a KV page (kPageTokens)

// Code for compute capability 9 and 10 may count on 227 KiB of shared memory for a block. All other code, also that
// for 8.0, stays within the 99 KiB that all GPUs from 8.0 on have: drivers compile it for those that are newer.
constexpr bool has_large_blocks(int compiled_for) { return compiled_for >= 90 && compiled_for < 110; }
// Dynamic shared memory that a block may be started with; 1 KiB is left for what kernels declare themselves.
constexpr int most_shared_bytes(int compiled_for) { return (has_large_blocks(compiled_for) ? 226 : 98) << 10; }

enum ActivationKind : int32_t { kNoActivation, kSiluActivation, kGeluActivation };

// ---- the running step: data that changes from step to step at addresses that do not ----

struct StepRow {
  int32_t token;
  int32_t position;
  int32_t sequence;
  int32_t unused;
};

struct StepSpan {  // rows [first_row, first_row + rows) of a sequence, at positions [position, position + rows)
  int32_t first_row;
  int32_t rows;
  int32_t position;
  int32_t unused;
};

// Work of prefill attention: `rows` query rows from `first_row` on, all of one sequence.
struct StepTile {
  int32_t first_row;
  int32_t rows;
};

// What to find of a logit row (CandidateRequest): beside its candidates, the logits of the tokens
// StepHeader::wanted[first, first + wanted).
struct StepRequest {
  float temperature;
  int32_t first;
  int32_t wanted;
  int32_t unused;
};

struct StepHeader {
  int32_t rows;
  int32_t logit_rows;
  int32_t sequences;
  int32_t tiles;
  // The page of position p in KV group g of sequence s is pages[page_offsets[s * groups + g] + p / kPageRows].
  const int32_t* pages;
  const int32_t* page_offsets;
  const int32_t* wanted;
  int32_t groups;
  int32_t unused;
};

struct StepView {
  const StepHeader* header;
  const StepRow* rows;          // [bucket rows]
  const int32_t* logit_rows;    // [logit rows]: index of a row
  const StepRequest* requests;  // [logit rows]
  const StepSpan* sequences;    // [sequences]
  const StepTile* tiles;        // of all other rows than the riding ones, each of at most kTileRows rows
};
inline constexpr int kTileRows = 64;
// Prefill plans: so many sequences with one row (the first ones) ride along, as in a decode plan.
inline constexpr int kRidingRows = 64;

// ---- rotation: tables of the step's rows, made by its first kernel ----

struct RopeTableParams {
  StepView step;
  const double* frequency;  // [pairs]
  float* cos;               // [rows][pairs]
  float* sin;
  int32_t pairs;
  float magnitude;
};

struct RopeView {
  const float* cos;  // [rows][pairs]; nullptr: no rotation
  const float* sin;
  int32_t pairs;
  int32_t half;  // pairs (j, j + pairs), else (2j, 2j + 1)
};

// ---- KV pages: [page][layer][kv head]{K, V} ----

enum class KvFormat : int32_t { kF32, kF16, kQ8 };

// One layer. A head's block is K [16 tokens][head_dim], then V the same. kQ8: codes are int8, an entry is scale * code;
// after the codes of K and after those of V follow their scales, f16 [16 tokens][scale_blocks], one for each 32 entries
// of a token (the last block may be shorter).
struct KvView {
  uint8_t* base;  // of this layer in page 0
  uint64_t page_stride_bytes;
  uint32_t head_stride_bytes;
  uint32_t v_offset_bytes;
  int32_t kv_heads;
  int32_t head_dim;
  int32_t window;  // 0: none
  KvFormat format;
};
inline constexpr int kKvBlock = 32;

}  // namespace hearth::cuda
