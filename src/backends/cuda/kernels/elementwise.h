// What the kernels of elementwise.cu are given.
#pragma once

#include "backends/cuda/kernels/params.h"

namespace hearth::cuda {

struct ElementwiseParams {
  StepView step;
  int32_t logit_rows;  // 1: values have the rows whose logits are wanted
  int32_t cols;
  const float* a;
  const float* b;
  float* out;
  int32_t activation;  // glu: ActivationKind
  // rms_norm: columns of a run and of `b`, the weight. rope: columns of a head.
  int32_t run;
  float eps;
  RopeView rope;
};

}  // namespace hearth::cuda
