// Ops that work on single rows and were not folded into a neighbour.
#include "backends/cpu/step.h"

namespace hearth::cpu {
namespace {

// f(row) for each row, a row to a tile.
template <class F>
class RowStep : public CpuStep {
 public:
  RowStep(RowKind kind, F f) : kind_(kind), f_(std::move(f)) {}
  void run(const Launch& launch, const Worker& worker) const override {
    worker.each_tile(launch.count(kind_), [&](int64_t row) { f_(launch, row); });
  }

 private:
  RowKind kind_;
  F f_;
};

template <class F>
std::unique_ptr<CpuStep> row_step(RowKind kind, F f) {
  return std::make_unique<RowStep<F>>(kind, std::move(f));
}

}  // namespace

std::unique_ptr<CpuStep> prepare(const RmsNormOp& op, PrepareContext& context) {
  const float* x = context.value(op.x);
  float* out = context.value(op.out);
  const float* weight = context.weights.vector(op.norm.weight);
  int64_t cols = context.graph.value(op.x).cols, run = context.graph.weight(op.norm.weight).cols;
  return row_step(context.graph.value(op.x).rows,
                  [=, eps = op.norm.eps, norm = context.kernels.rms_norm](const Launch&, int64_t row) {
                    for (int64_t c = 0; c < cols; c += run)
                      norm(x + row * cols + c, weight, run, eps, out + row * cols + c);
                  });
}

std::unique_ptr<CpuStep> prepare(const RopeOp& op, PrepareContext& context) {
  const float* x = context.value(op.x);
  float* out = context.value(op.out);
  RopeTable table = context.ropes[static_cast<size_t>(op.rope)];
  int64_t cols = context.graph.value(op.x).cols;
  return row_step(RowKind::kToken,
                  [=, head_dim = op.head_dim, rope = context.kernels.rope](const Launch&, int64_t row) {
                    float* to = out + row * cols;
                    std::copy_n(x + row * cols, cols, to);
                    for (int64_t c = 0; c < cols; c += head_dim) {
                      rope(to + c, table.cos + row * table.pairs(), table.sin + row * table.pairs(), table.rope->dims,
                           table.rope->pairing == RopePairing::kHalf);
                    }
                  });
}

std::unique_ptr<CpuStep> prepare(const GluOp& op, PrepareContext& context) {
  const float *gate = context.value(op.gate), *up = context.value(op.up);
  float* out = context.value(op.out);
  int64_t cols = context.graph.value(op.out).cols;
  auto glu = op.activation == Activation::kSilu ? context.kernels.silu_mul : context.kernels.gelu_mul;
  return row_step(context.graph.value(op.out).rows,
                  [=](const Launch&, int64_t row) { glu(gate + row * cols, up + row * cols, cols, out + row * cols); });
}

std::unique_ptr<CpuStep> prepare(const AddOp& op, PrepareContext& context) {
  const float *a = context.value(op.a), *b = context.value(op.b);
  float* out = context.value(op.out);
  int64_t cols = context.graph.value(op.out).cols;
  return row_step(context.graph.value(op.out).rows, [=, add = context.kernels.add](const Launch&, int64_t row) {
    add(a + row * cols, b + row * cols, cols, out + row * cols);
  });
}

std::unique_ptr<CpuStep> prepare(const GatherRowsOp& op, PrepareContext& context) {
  const float* x = context.value(op.x);
  float* out = context.value(op.out);
  int64_t cols = context.graph.value(op.out).cols;
  return row_step(RowKind::kLogit, [=](const Launch& launch, int64_t row) {
    std::copy_n(x + launch.logit_row[row] * cols, cols, out + row * cols);
  });
}

}  // namespace hearth::cpu
