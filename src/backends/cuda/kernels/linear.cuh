// What the products share around the multiplication itself.
#pragma once

#include "backends/cuda/kernels/device.cuh"
#include "backends/cuda/kernels/linear.h"

namespace hearth::cuda {

// The part that a panel belongs to, panels counted through all parts. Not with glu, which counts them in each.
HEARTH_DEVICE int part_of_panel(const LinearParams& p, int panel) {
  int part = 0;
  while (part + 1 < p.part_count && panel >= p.parts[part + 1].first_panel) ++part;
  return part;
}

// What follows a product y: bias, and with glu activation(y) * up, of which read_up() gives the product.
template <class ReadUp>
HEARTH_DEVICE float finish_product(const LinearParams& p, bool glu, const LinearPart& to, int col, float y,
                                   ReadUp&& read_up) {
  if (to.bias != nullptr) y += to.bias[col];
  if (glu) {
    float up = read_up();
    if (p.parts[1].bias != nullptr) up += p.parts[1].bias[col];
    y = activate(p.glu, y) * up;
  }
  return y;
}

HEARTH_DEVICE int row_count(const StepView& step, int32_t logit_rows) {
  return logit_rows ? step.header->logit_rows : step.header->rows;
}

}  // namespace hearth::cuda
