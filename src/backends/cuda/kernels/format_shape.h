// Formats as the kernels of linear_*.cu know them: what host and device must agree on.
#pragma once

#include "backends/cuda/kernels/params.h"

namespace hearth::cuda {

enum class Scales { kHalf, kHalfMin, kHalf64, kSixBit, kByte, kNibble, kSix16, kSix32, kE8M0, kE4M3 };
enum class Table { kNone, kIq4, kE2m1, kNf4 };

constexpr int scale_elems(Scales s) {
  switch (s) {
    case Scales::kHalf:
    case Scales::kHalfMin:
      return 32;
    case Scales::kHalf64:
    case Scales::kE4M3:
      return 64;
    case Scales::kE8M0:
      return 128;
    default:
      return 256;
  }
}
constexpr int scale_lines(Scales s) {
  switch (s) {
    case Scales::kSixBit:
    case Scales::kSix16:
      return 3;
    case Scales::kByte:
    case Scales::kNibble:
      return 4;
    case Scales::kSix32:
    case Scales::kE8M0:
    case Scales::kE4M3:
      return 1;
    default:
      return 0;
  }
}
constexpr int scale_halves(Scales s) {
  switch (s) {
    case Scales::kHalf:
    case Scales::kHalf64:
    case Scales::kByte:
    case Scales::kSix16:
      return 1;
    case Scales::kHalfMin:
    case Scales::kSixBit:
    case Scales::kNibble:
    case Scales::kSix32:
      return 2;
    default:
      return 0;
  }
}

template <int CodeBits, int HighBits, int Zero, Scales S, Table T = Table::kNone>
struct IntShape {
  static constexpr bool kFloat = false;
  static constexpr int kUnitCols = 256;
  // A value is scale * (code - kZero) + min, or scale * table value.
  static constexpr int kZero = Zero;
  static constexpr bool kSigned = T != Table::kNone;        // factors() gives signed bytes
  static constexpr int kPlanes = T == Table::kNf4 ? 2 : 1;  // table values of 16 bits: hi * 256 + lo
  static constexpr int kGroup =
      S == Scales::kByte || S == Scales::kNibble || S == Scales::kSix16 || S == Scales::kE4M3 ? 16 : 32;
  static constexpr bool kHasMin = S == Scales::kHalfMin || S == Scales::kSixBit || S == Scales::kNibble;

  static constexpr int kCodeBytes = 512 * CodeBits;
  static constexpr int kHighBytes = 512 * HighBits;
  static constexpr int kSubBytes = 256 / scale_elems(S) * scale_lines(S) * 64;
  static constexpr int kScaleBytes = 256 / scale_elems(S) * scale_halves(S) * 32;
  static constexpr int kHighOffset = kCodeBytes;
  static constexpr int kSubOffset = kHighOffset + kHighBytes;
  static constexpr int kScaleOffset = kSubOffset + kSubBytes;
  static constexpr int kUnitBytes = kScaleOffset + kScaleBytes;
};

// Two f16 or bf16 to a dword: units of 64 columns.
struct HalfShape {
  static constexpr bool kFloat = true;
  static constexpr int kUnitCols = 64;
  static constexpr int kUnitBytes = 64 * 16 * 2;
};

// clang-format off
#define HEARTH_CUDA_INT_FORMATS(X)                                                                              \
  X(Q8_0, 8, 0, 128, Scales::kHalf)                                                                             \
  X(Q4_0, 4, 0, 8, Scales::kHalf) X(Q4_1, 4, 0, 0, Scales::kHalfMin) X(Q5_0, 4, 1, 16, Scales::kHalf)           \
      X(Q5_1, 4, 1, 0, Scales::kHalfMin) X(Q2_K, 2, 0, 0, Scales::kNibble) X(Q3_K, 2, 1, 4, Scales::kSix16)     \
          X(Q4_K, 4, 0, 0, Scales::kSixBit) X(Q5_K, 4, 1, 0, Scales::kSixBit) X(Q6_K, 4, 2, 32, Scales::kByte)  \
              X(IQ4_NL, 4, 0, 0, Scales::kHalf, Table::kIq4) X(IQ4_XS, 4, 0, 0, Scales::kSix32, Table::kIq4)    \
                  X(MXFP4, 4, 0, 0, Scales::kE8M0, Table::kE2m1) X(NVFP4, 4, 0, 0, Scales::kE4M3, Table::kE2m1) \
                      X(NF4, 4, 0, 0, Scales::kHalf64, Table::kNf4)
// clang-format on

// ---- shapes of the kernels, by what they were compiled for ----

constexpr int gemv_warps(int compiled_for) { return has_large_blocks(compiled_for) ? 16 : 8; }
inline constexpr int kGemvStages = 2;  // of the ring of weights of a warp
constexpr int gemv_ring_bytes(int unit_bytes, int compiled_for) {
  return gemv_warps(compiled_for) * kGemvStages * unit_bytes;
}

// Rows of x of the largest gemm tile.
constexpr int gemm_most_tokens(int compiled_for) { return has_large_blocks(compiled_for) ? 128 : 64; }
inline constexpr int kGemmMostWarps = 8;
struct GemmShape {
  int warps;
  int x_stages;     // of the ring of x
  int unit_stages;  // of the ring of weights of a warp: as far ahead as x
  int warp_bytes;   // of that ring
  int shared_bytes;
};
// The most warps, then the longest rings, that fit.
constexpr GemmShape gemm_shape(int unit_cols, int unit_bytes, int tokens, int compiled_for) {
  for (int warps = kGemmMostWarps; warps >= 4; warps /= 2) {
    for (int stages = 4; stages >= 2; --stages) {
      GemmShape s{warps, stages, unit_cols == 64 ? stages : 2, 0, 0};
      s.warp_bytes = s.unit_stages * 2 * unit_bytes;
      s.shared_bytes = warps * s.warp_bytes + stages * tokens * 128;
      if (s.shared_bytes <= most_shared_bytes(compiled_for)) return s;
    }
  }
  return {};  // there is no such kernel
}

inline constexpr int kFloatThreads = 256;
inline constexpr int kEmbedWarps = 16;

}  // namespace hearth::cuda
