// The weights of a graph, decoded to f32 once.
#pragma once

#include <span>
#include <vector>

#include "backends/backend.h"
#include "graph/graph.h"

namespace hearth::reference {

class Weights {
 public:
  Weights(const Graph& graph, const LoadOptions& options);

  // Row-major [rows, cols].
  std::span<const float> operator[](WeightId id) const { return decoded_[static_cast<size_t>(id.index)]; }

 private:
  std::vector<std::vector<float>> decoded_;  // by WeightId
};

}  // namespace hearth::reference
