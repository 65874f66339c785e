// Ops that read and write values row by row.
#include "backends/cuda/kernels/elementwise.h"

#include <algorithm>

#include "backends/cuda/step.h"
#include "base/checked_math.h"

namespace hearth::cuda {
namespace {

constexpr unsigned kThreads = 256;

ElementwiseParams params_for(const PrepareContext& context, ValueId x) {
  return {.step = context.step,
          .logit_rows = context.graph.value(x).rows == RowKind::kLogit,
          .cols = static_cast<int32_t>(context.graph.value(x).cols)};
}

Result<void> start(PrepareContext& context, const char* name, const ElementwiseParams& params, int64_t blocks,
                   int64_t blocks_y = 1) {
  Launch launch;
  HEARTH_ASSIGN(launch.kernel, context.kernels.get("elementwise", name, 0));
  launch.grid[0] = static_cast<unsigned>(blocks);
  launch.grid[1] = static_cast<unsigned>(blocks_y);
  launch.threads = kThreads;
  launch.set_params(params);
  context.launches.push_back(std::move(launch));
  return {};
}

// Enough blocks for all elements, at most a few for each multiprocessor.
int64_t blocks_for(const PrepareContext& context, int64_t count) {
  return std::clamp<int64_t>(ceil_div<int64_t>(count, kThreads), 1, 8 * context.device.properties().processors);
}

}  // namespace

Result<void> prepare(const RmsNormOp& op, PrepareContext& context) {
  ElementwiseParams params = params_for(context, op.x);
  params.a = context.value(op.x);
  params.b = context.weights.vector(op.norm.weight);
  params.out = context.value(op.out);
  params.run = static_cast<int32_t>(context.graph.weight(op.norm.weight).cols);
  params.eps = op.norm.eps;
  return prepare_rms_norm(params, context.rows(op.x), context);
}

Result<void> prepare_rms_norm(const ElementwiseParams& params, int64_t rows, PrepareContext& context) {
  return start(context, "rms_norm", params, rows, params.cols / params.run);
}

Result<void> prepare(const RopeOp& op, PrepareContext& context) {
  ElementwiseParams params = params_for(context, op.x);
  params.a = context.value(op.x);
  params.out = context.value(op.out);
  params.run = static_cast<int32_t>(op.head_dim);
  params.rope = context.ropes[static_cast<size_t>(op.rope)];
  return start(context, "rope", params, context.rows(op.x));
}

Result<void> prepare(const GluOp& op, PrepareContext& context) {
  ElementwiseParams params = params_for(context, op.gate);
  params.a = context.value(op.gate);
  params.b = context.value(op.up);
  params.out = context.value(op.out);
  params.activation = activation_kind(op.activation);
  return prepare_glu(params, context.rows(op.out), context);
}

Result<void> prepare_glu(const ElementwiseParams& params, int64_t rows, PrepareContext& context) {
  return start(context, "glu", params, blocks_for(context, rows * params.cols));
}

Result<void> prepare(const AddOp& op, PrepareContext& context) {
  ElementwiseParams params = params_for(context, op.a);
  params.a = context.value(op.a);
  params.b = context.value(op.b);
  params.out = context.value(op.out);
  return start(context, "add", params, blocks_for(context, context.rows(op.out) * params.cols));
}

Result<void> prepare(const GatherRowsOp& op, PrepareContext& context) {
  ElementwiseParams params = params_for(context, op.x);
  params.a = context.value(op.x);
  params.out = context.value(op.out);
  return start(context, "gather_rows", params, context.rows(op.out));
}

}  // namespace hearth::cuda
