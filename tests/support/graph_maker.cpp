#include "support/graph_maker.h"

#include "base/check.h"
#include "quant/encode.h"

namespace hearth::testing {

WeightId GraphMaker::weight(std::string name, int64_t rows, int64_t cols, std::span<const float> values,
                            FormatId format) {
  HEARTH_CHECK(static_cast<int64_t>(values.size()) == rows * cols, "{} values for [{}, {}]", values.size(), rows, cols);
  size_t stride_bytes = row_bytes(format, cols);
  std::vector<std::byte> bytes(static_cast<size_t>(rows) * stride_bytes);
  for (size_t r = 0; r < static_cast<size_t>(rows); ++r) {
    encode_row(format, values.subspan(r * static_cast<size_t>(cols), static_cast<size_t>(cols)),
               bytes.data() + r * stride_bytes);
  }
  return native_weight(std::move(name), rows, cols, bytes, format);
}

WeightId GraphMaker::native_weight(std::string name, int64_t rows, int64_t cols, std::span<const std::byte> bytes,
                                   FormatId format) {
  data_.emplace_back(bytes.begin(), bytes.end());
  tensors_.push_back({.name = std::move(name), .format = format, .shape = {rows, cols}, .bytes = data_.back()});
  graph.weights.push_back({.tensor = &tensors_.back(), .rows = rows, .cols = cols});
  return {static_cast<int32_t>(graph.weights.size()) - 1};
}

ValueId GraphMaker::value(std::string name, int64_t cols, RowKind rows) {
  graph.values.push_back({.name = std::move(name), .rows = rows, .cols = cols});
  return {static_cast<int32_t>(graph.values.size()) - 1};
}

ValueId GraphMaker::embed(std::string name, WeightId table) {
  ValueId out = value(name, graph.weight(table).cols);
  add(std::move(name), EmbedOp{.table = table, .out = out});
  return out;
}

ValueId GraphMaker::linear(std::string name, ValueId x, WeightId weight, WeightId bias) {
  ValueId out = value(name, graph.weight(weight).rows, graph.value(x).rows);
  add(std::move(name), LinearOp{.x = x, .parts = {{.weight = weight, .bias = bias, .out = out}}});
  return out;
}

ValueId GraphMaker::rms_norm(std::string name, ValueId x, WeightId weight, float eps) {
  ValueId out = value(name, graph.value(x).cols, graph.value(x).rows);
  add(std::move(name), RmsNormOp{.x = x, .norm = {.weight = weight, .eps = eps}, .out = out});
  return out;
}

ValueId GraphMaker::rope(std::string name, ValueId x, int64_t head_dim, int32_t rope) {
  ValueId out = value(name, graph.value(x).cols, graph.value(x).rows);
  add(std::move(name), RopeOp{.x = x, .head_dim = head_dim, .rope = rope, .out = out});
  return out;
}

ValueId GraphMaker::glu(std::string name, ValueId gate, ValueId up, Activation activation) {
  ValueId out = value(name, graph.value(gate).cols, graph.value(gate).rows);
  add(std::move(name), GluOp{.gate = gate, .up = up, .activation = activation, .out = out});
  return out;
}

ValueId GraphMaker::sum(std::string name, ValueId a, ValueId b) {
  ValueId out = value(name, graph.value(a).cols, graph.value(a).rows);
  add(std::move(name), AddOp{.a = a, .b = b, .out = out});
  return out;
}

ValueId GraphMaker::attention(std::string name, AttentionOp op) {
  op.out = value(name, graph.value(op.q).cols);
  ValueId out = op.out;
  add(std::move(name), std::move(op));
  return out;
}

void GraphMaker::finish(ValueId x) {
  graph.logits = value("logits", graph.value(x).cols, RowKind::kLogit);
  add("logit_rows", GatherRowsOp{.x = x, .out = graph.logits});
}

}  // namespace hearth::testing
