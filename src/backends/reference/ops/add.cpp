#include "backends/reference/step.h"

namespace hearth::reference {

void run(const AddOp& op, StepState& step) {
  Matrix a = step.value(op.a), b = step.value(op.b), out = step.value(op.out);
  for (int64_t i = 0; i < out.rows * out.cols; ++i) out.data[i] = a.data[i] + b.data[i];
}

}  // namespace hearth::reference
