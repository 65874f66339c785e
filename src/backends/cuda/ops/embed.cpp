#include "backends/cuda/ops/linear.h"

namespace hearth::cuda {

Result<void> prepare(const EmbedOp& op, PrepareContext& context) {
  const Matrix& table = context.weights.matrix(op.table);
  LinearParams params = linear_params(context, table);
  params.parts[0] = {.weights = table.planar,
                     .bias = nullptr,
                     .out = context.value(op.out),
                     .rows = static_cast<int32_t>(table.rows),
                     .first_panel = 0};
  const FormatShape shape = format_shape(table.format);
  Launch launch;
  launch.shared_bytes = static_cast<size_t>(kEmbedWarps * shape.unit_bytes);
  HEARTH_ASSIGN(launch.kernel, context.kernels.get(linear_file(table.format), "embed", launch.shared_bytes));
  launch.grid[0] = static_cast<unsigned>(context.plan.bucket.rows);
  launch.threads = 32 * kEmbedWarps;
  launch.set_params(params);
  context.launches.push_back(std::move(launch));
  return {};
}

}  // namespace hearth::cuda
