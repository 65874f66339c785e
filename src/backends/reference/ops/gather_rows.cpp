#include <algorithm>

#include "backends/reference/step.h"

namespace hearth::reference {

void run(const GatherRowsOp& op, StepState& step) {
  Matrix x = step.value(op.x), out = step.value(op.out);
  for (int64_t r = 0; r < out.rows; ++r) {
    std::ranges::copy(x.row(step.logit_rows[static_cast<size_t>(r)]), out.row(r).begin());
  }
}

}  // namespace hearth::reference
