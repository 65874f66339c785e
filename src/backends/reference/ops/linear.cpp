#include <algorithm>
#include <system_error>
#include <thread>

#include "backends/reference/step.h"

namespace hearth::reference {
namespace {

// Eight sums that the compiler may keep in vectors; double, so that the order of summation does not matter here.
double dot(const float* a, const float* b, int64_t n) {
  double lane[8] = {};
  int64_t i = 0;
  for (; i + 8 <= n; i += 8) {
    for (int64_t j = 0; j < 8; ++j) lane[j] += static_cast<double>(a[i + j]) * b[i + j];
  }
  double sum = 0;
  for (double v : lane) sum += v;
  for (; i < n; ++i) sum += static_cast<double>(a[i]) * b[i];
  return sum;
}

// Calls f(begin, end) for pieces of [0, count), on several threads when the work is worth starting them.
template <class F>
void in_pieces(int64_t count, int64_t threads, int64_t multiplications, F&& f) {
  constexpr int64_t kWorthAThread = 1 << 21;
  int64_t pieces = std::clamp<int64_t>(multiplications / kWorthAThread, 1, std::min(threads, count));
  std::vector<std::thread> others;
  int64_t begin = count;  // of what has a thread
  try {
    for (int64_t p = pieces; --p > 0; begin = count * p / pieces) others.emplace_back(f, count * p / pieces, begin);
  } catch (const std::system_error&) {  // no more threads: this one does the rest
  }
  f(0, begin);
  for (std::thread& other : others) other.join();
}

// out = x W^T + bias
void multiply(const LinearOp::Part& part, Matrix x, Matrix out, const StepState& step) {
  const float* weight = step.weights[part.weight].data();
  in_pieces(out.cols, step.threads, x.rows * x.cols * out.cols, [&](int64_t begin, int64_t end) {
    for (int64_t o = begin; o < end; ++o) {
      double bias = part.bias ? step.weights[part.bias][static_cast<size_t>(o)] : 0;
      for (int64_t r = 0; r < x.rows; ++r) {
        out.data[r * out.cols + o] = static_cast<float>(dot(x.data + r * x.cols, weight + o * x.cols, x.cols) + bias);
      }
    }
  });
}

}  // namespace

void run(const LinearOp& op, StepState& step) {
  Matrix x = step.value(op.x);
  std::vector<float> normed;
  if (op.norm) {
    normed.resize(static_cast<size_t>(x.rows * x.cols));
    Matrix target{.data = normed.data(), .rows = x.rows, .cols = x.cols};
    for (int64_t r = 0; r < x.rows; ++r) {
      rms_norm(x.row(r), step.weights[op.norm->weight], op.norm->eps, target.row(r));
    }
    x = target;
  }
  for (const LinearOp::Part& part : op.parts) {
    if (op.glu && &part != &op.parts.front()) break;  // the up part is multiplied below: it has no value of its own
    multiply(part, x, step.value(part.out), step);
  }
  Matrix out = step.value(op.parts[0].out);
  if (op.glu) {
    std::vector<float> up_data(static_cast<size_t>(out.rows * out.cols));
    Matrix up{.data = up_data.data(), .rows = out.rows, .cols = out.cols};
    multiply(op.parts[1], x, up, step);
    for (int64_t i = 0; i < out.rows * out.cols; ++i) out.data[i] = activate(*op.glu, out.data[i]) * up.data[i];
  }
  if (op.residual) {
    Matrix residual = step.value(op.residual);
    for (int64_t i = 0; i < out.rows * out.cols; ++i) out.data[i] += residual.data[i];
  }
}

}  // namespace hearth::reference
