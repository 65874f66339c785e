// What the kernel of candidates.cu is given and what it gives.
#pragma once

#include "backends/cuda/kernels/params.h"

namespace hearth::cuda {

inline constexpr int kCandidateCount = 64;  // kCandidates
inline constexpr int kWantedCount = 256;    // kMaxWantedLogits
inline constexpr int kCandidateThreads = 256;
inline constexpr int kCandidateKeys = 16;                              // of a thread
inline constexpr int kSliceCols = kCandidateThreads * kCandidateKeys;  // of a row, for one block

// Of one logit row, in memory of the host.
struct FoundRow {
  float sum;
  float tempered_sum;
  int32_t finite;
  int32_t unused;
  int32_t tokens[kCandidateCount];  // -1 past the end of a small vocabulary
  float logits[kCandidateCount];
  float wanted[kWantedCount];
};

// Of one slice of a row: `largest` is its largest logit, and the sums are of exponentials relative to it.
struct SliceSums {
  float sum;
  float tempered_sum;
  float largest;
  float finite;  // 1 or 0
};

struct CandidateParams {
  StepView step;
  const float* logits;  // [logit rows][vocab]
  int32_t vocab;
  int32_t slices;  // of a row
  // [logit rows][kCandidateCount][slices]: the best of each slice, then the second of each, ...: which threads of the
  // merge look at them one by one, so that the bound that they agree on is a good one.
  uint64_t* keys;
  SliceSums* sums;     // [logit rows][slices]
  uint32_t* counters;  // [logit rows], zero
  FoundRow* found;     // [logit rows]
};

}  // namespace hearth::cuda
