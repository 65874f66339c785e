// The weights of a graph in GPU memory: matrices and gathered tables planar (quant/layout.h), vectors as f32. A format
// without a planar layout is expanded to f16.
#pragma once

#include <vector>

#include "backends/backend.h"
#include "backends/cuda/memory.h"
#include "graph/graph.h"
#include "quant/layout.h"

namespace hearth::cuda {

struct Matrix {
  FormatId format = FormatId::kF32;  // as it lies in memory
  int64_t rows = 0;
  int64_t cols = 0;
  const uint8_t* planar = nullptr;
  PlanarPanel layout;

  int64_t panels() const { return (rows + kPanelRows - 1) / kPanelRows; }
};

class Weights {
 public:
  static Result<Weights> load(const Device& device, const Graph& graph, const LoadOptions& options);
  // Where load() puts them in memory that begins at `base`; without memory. For sizes, before anything is loaded.
  static Weights place(const Graph& graph, CUdeviceptr base);
  // GPU memory that load() takes.
  static size_t device_bytes(const Graph& graph);

  const Matrix& matrix(WeightId id) const { return matrices_[static_cast<size_t>(id.index)]; }
  // Of norms and biases.
  const float* vector(WeightId id) const { return vectors_[static_cast<size_t>(id.index)]; }

 private:
  std::vector<Matrix> matrices_;       // by WeightId; rows == 0 for vectors
  std::vector<const float*> vectors_;  // by WeightId
  DeviceBuffer memory_;
};

}  // namespace hearth::cuda
