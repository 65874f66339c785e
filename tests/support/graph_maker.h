// Graphs made by hand, with weights in memory: a single op, or a shape that a pass must refuse.
#pragma once

#include <deque>
#include <span>
#include <string>
#include <vector>

#include "graph/graph.h"

namespace hearth::testing {

// The graph views weights owned here; it must not outlive the maker.
class GraphMaker {
 public:
  Graph graph;

  // `values` row-major, encoded; or native bytes as they are.
  WeightId weight(std::string name, int64_t rows, int64_t cols, std::span<const float> values,
                  FormatId format = FormatId::kF32);
  WeightId native_weight(std::string name, int64_t rows, int64_t cols, std::span<const std::byte> bytes,
                         FormatId format);

  ValueId value(std::string name, int64_t cols, RowKind rows = RowKind::kToken);
  void add(std::string name, Op op) { graph.nodes.push_back({.name = std::move(name), .op = std::move(op)}); }

  // Nodes whose output value is made here.
  ValueId embed(std::string name, WeightId table);
  ValueId linear(std::string name, ValueId x, WeightId weight, WeightId bias = {});
  ValueId rms_norm(std::string name, ValueId x, WeightId weight, float eps = 1e-5f);
  ValueId rope(std::string name, ValueId x, int64_t head_dim, int32_t rope);
  ValueId glu(std::string name, ValueId gate, ValueId up, Activation activation = Activation::kSilu);
  ValueId sum(std::string name, ValueId a, ValueId b);
  ValueId attention(std::string name, AttentionOp op);
  // Makes the rows of x that are asked for the logits.
  void finish(ValueId x);

 private:
  std::deque<std::vector<std::byte>> data_;
  std::deque<TensorEntry> tensors_;
};

}  // namespace hearth::testing
