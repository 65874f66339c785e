#include <algorithm>

#include "backends/reference/step.h"
#include "base/check.h"

namespace hearth::reference {

void run(const EmbedOp& op, StepState& step) {
  const Weight& table = step.graph.weight(op.table);
  Matrix out = step.value(op.out);
  for (int64_t r = 0; r < out.rows; ++r) {
    int64_t token = step.tokens[static_cast<size_t>(r)];
    HEARTH_CHECK(token >= 0 && token < table.rows, "token {} of {}", token, table.rows);
    auto row = step.weights[op.table].subspan(static_cast<size_t>(token * table.cols), static_cast<size_t>(table.cols));
    std::ranges::copy(row, out.row(r).begin());
  }
}

}  // namespace hearth::reference
