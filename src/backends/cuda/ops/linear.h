// What the ops that read planar matrices share.
#pragma once

#include <string>

#include "backends/cuda/kernels/format_shape.h"
#include "backends/cuda/kernels/linear.h"
#include "backends/cuda/step.h"

namespace hearth::cuda {

struct FormatShape {
  bool integer_codes = false;
  int unit_cols = 0;  // 0: kernels that read no units
  int unit_bytes = 0;
};
FormatShape format_shape(FormatId format);

// The kernel file of a format's products: "linear_Q4_K".
std::string_view linear_file(FormatId format);

// Parameters that follow from the matrix and the step; parts are the caller's.
LinearParams linear_params(const PrepareContext& context, const Matrix& matrix);

}  // namespace hearth::cuda
