#include <algorithm>
#include <cmath>

#include "backends/reference/step.h"

namespace hearth::reference {

void rotate(const Rope& rope, int64_t position, std::span<const float> x, std::span<float> out) {
  auto pairs = static_cast<size_t>(rope.dims / 2);
  for (size_t j = 0; j < pairs; ++j) {
    size_t a = rope.pairing == RopePairing::kInterleaved ? 2 * j : j;
    size_t b = rope.pairing == RopePairing::kInterleaved ? 2 * j + 1 : j + pairs;
    double angle = static_cast<double>(position) * rope.frequency[j];
    double c = std::cos(angle) * rope.magnitude, s = std::sin(angle) * rope.magnitude;
    double xa = x[a], xb = x[b];
    out[a] = static_cast<float>(xa * c - xb * s);
    out[b] = static_cast<float>(xa * s + xb * c);
  }
  std::copy(x.begin() + rope.dims, x.end(), out.begin() + rope.dims);
}

void run(const RopeOp& op, StepState& step) {
  Matrix x = step.value(op.x), out = step.value(op.out);
  const Rope& rope = step.graph.ropes[static_cast<size_t>(op.rope)];
  auto head_dim = static_cast<size_t>(op.head_dim);
  for (int64_t r = 0; r < x.rows; ++r) {
    for (size_t begin = 0; begin < static_cast<size_t>(x.cols); begin += head_dim) {
      rotate(rope, step.positions[static_cast<size_t>(r)], x.row(r).subspan(begin, head_dim),
             out.row(r).subspan(begin, head_dim));
    }
  }
}

}  // namespace hearth::reference
