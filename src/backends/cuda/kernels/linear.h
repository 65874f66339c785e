// What the kernels of LinearOp are given.
#pragma once

#include "backends/cuda/kernels/params.h"

namespace hearth::cuda {

// Rows of activations as integers: x = scale * code, a scale for each 32. A code is hi * 256 + lo, both signed bytes.
// What a product needs of a block of 32 columns lies together for all rows.
struct IntRows {
  uint8_t* codes;  // [block][row]{hi [32], lo [32]}
  float* scales;   // [block][row]
  int32_t* sums;   // [block][row][2]: of the codes of each 16
  int32_t rows;    // that there is room for: 1, 2, 4 or 8
  int32_t blocks;  // in a row: columns / 32, rounded up to 8; columns past the end are zero
  int32_t limit;   // largest magnitude of a code
};
// hi + lo reach from -127 * 256 - 127 to this.
inline constexpr int kIntLimit = 127 * 256 + 127;

// Rows of activations as f16: x = scale * value.
struct HalfRows {
  uint16_t* values;  // [row][stride]
  float* scales;     // [row]: a power of two
  int32_t stride;    // columns rounded up to 256; columns past the end are zero
};

// What turns rows of f32 into the above.
struct PrepareRowsParams {
  StepView step;
  int32_t logit_rows;  // 1: of the rows whose logits are wanted
  int32_t cols;
  const float* x;     // [row][cols]
  const float* norm;  // [cols] or nullptr
  float eps;
  IntRows ints;
  HalfRows halves;
};

struct LinearPart {
  const uint8_t* weights;  // planar
  const float* bias;       // [rows] or nullptr
  float* out;              // [row of x][rows]
  int32_t rows;
  int32_t first_panel;  // parts follow each other
};
inline constexpr int kMaxParts = 4;

struct LinearParams {
  StepView step;
  int32_t logit_rows;  // 1: x has the rows whose logits are wanted
  int32_t part_count;
  LinearPart parts[kMaxParts];  // all of the kernel's format
  int32_t glu;                  // ActivationKind; parts are gate and up, only parts[0].out is written
  int32_t tasks;                // panels of all parts; with glu pairs of a panel of gate and one of up
  int32_t cols;
  int32_t units;  // columns in units of the format, rounded up
  // quant/layout.h
  uint32_t panel_bytes;
  uint32_t high_offset;
  uint32_t sub_scales_offset;
  uint32_t scales_offset;

  const float* x;     // [row][cols]; kernels that round or convert x themselves
  const float* norm;  // [cols] or nullptr: x is normalized first
  float eps;
  IntRows ints;
  HalfRows halves;
  const float* residual;  // [row][parts[0].rows] or nullptr

  // gemv of integers: 1 when the kernel before this one writes nothing that it reads: that it is complete is waited for
  // at the end, for those that come after.
  int32_t wait_at_end;
  // gemv of integers: panels whose partial sums lie in shared memory at a time, and where.
  int32_t batch_panels;
  uint32_t partial_offset;
  uint32_t x_offset;

  // gemm: each tile is computed by `splits` blocks, each over units_per_split units.
  int32_t splits;
  int32_t units_per_split;
  float* partial;      // [tile][split][thread's sums]
  uint32_t* counters;  // [tile], zero
};

}  // namespace hearth::cuda
