// The weights of a graph, decoded to f32 once.
#pragma once

#include <functional>
#include <span>
#include <vector>

#include "graph/graph.h"

namespace hearth::reference {

class Weights {
 public:
  Weights(const Graph& graph, const std::function<void(size_t, size_t)>& progress);

  // Row-major [rows, cols].
  std::span<const float> operator[](WeightId id) const { return decoded_[static_cast<size_t>(id.index)]; }

 private:
  std::vector<std::vector<float>> decoded_;  // by WeightId
};

}  // namespace hearth::reference
