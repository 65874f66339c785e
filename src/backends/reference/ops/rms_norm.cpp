#include <cmath>

#include "backends/reference/step.h"

namespace hearth::reference {

void rms_norm(std::span<const float> x, std::span<const float> weight, float eps, std::span<float> out) {
  double sum = 0;
  for (float v : x) sum += static_cast<double>(v) * v;
  double scale = 1 / std::sqrt(sum / static_cast<double>(x.size()) + eps);
  for (size_t i = 0; i < x.size(); ++i) out[i] = static_cast<float>(weight[i] * (x[i] * scale));
}

void run(const RmsNormOp& op, StepState& step) {
  Matrix x = step.value(op.x), out = step.value(op.out);
  std::span<const float> weight = step.weights[op.norm.weight];
  for (int64_t r = 0; r < x.rows; ++r) {
    for (size_t begin = 0; begin < static_cast<size_t>(x.cols); begin += weight.size()) {
      rms_norm(x.row(r).subspan(begin, weight.size()), weight, op.norm.eps, out.row(r).subspan(begin, weight.size()));
    }
  }
}

}  // namespace hearth::reference
