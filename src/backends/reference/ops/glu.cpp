#include <cmath>
#include <numbers>

#include "backends/reference/step.h"

namespace hearth::reference {

float activate(Activation activation, float x) {
  double v = x;
  switch (activation) {
    case Activation::kSilu:
      return static_cast<float>(v / (1 + std::exp(-v)));
    case Activation::kGeluTanh: {
      const double slope = std::sqrt(2 / std::numbers::pi);
      return static_cast<float>(0.5 * v * (1 + std::tanh(slope * (v + 0.044715 * v * v * v))));
    }
  }
  return 0;
}

void run(const GluOp& op, StepState& step) {
  Matrix gate = step.value(op.gate), up = step.value(op.up), out = step.value(op.out);
  for (int64_t i = 0; i < out.rows * out.cols; ++i) out.data[i] = activate(op.activation, gate.data[i]) * up.data[i];
}

}  // namespace hearth::reference
