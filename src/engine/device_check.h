// Whether a device computes what the model says: one token there and on the reference backend.
#pragma once

#include "backends/backend.h"
#include "base/result.h"

namespace hearth {

// The Kullback-Leibler divergence sum p (log p - log q) in nats between the next-token distributions after one token at
// position 0, p of `reference` and q of `device`. Uses page 0 of each KV group of both. kInternal when a logit is not
// finite.
Result<double> device_divergence(const Graph& graph, DeviceModel& reference, DeviceModel& device);

}  // namespace hearth
