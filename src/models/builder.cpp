#include "models/builder.h"

#include <cmath>

#include "quant/format.h"

namespace hearth {

Result<int64_t> GraphBuilder::integer(std::string_view name, int64_t low, int64_t high) const {
  HEARTH_ASSIGN(int64_t v, metadata_.integer(key(name)));
  if (v < low || v > high) {
    return fail(ErrorCode::kInvalidInput, "metadata key {}: {} is not in [{}, {}]", key(name), v, low, high);
  }
  return v;
}

Result<int64_t> GraphBuilder::integer_or(std::string_view name, int64_t fallback, int64_t low, int64_t high) const {
  return metadata_.contains(key(name)) ? integer(name, low, high) : fallback;
}

Result<double> GraphBuilder::positive(std::string_view name) const {
  HEARTH_ASSIGN(double v, metadata_.real(key(name)));
  if (!std::isfinite(v) || v <= 0) {
    return fail(ErrorCode::kInvalidInput, "metadata key {}: {} is not a positive number", key(name), v);
  }
  return v;
}

Result<double> GraphBuilder::positive_or(std::string_view name, double fallback) const {
  return metadata_.contains(key(name)) ? positive(name) : fallback;
}

Result<WeightId> GraphBuilder::weight(std::string_view name, int64_t rows, int64_t cols, bool is_vector) {
  const TensorEntry* tensor = catalog_.find(name);
  if (!tensor) return fail(ErrorCode::kInvalidInput, "tensor {} is missing", name);
  bool fits = is_vector ? tensor->shape.size() == 1 && tensor->shape[0] == cols
                        : tensor->shape.size() == 2 && tensor->shape[0] == rows && tensor->shape[1] == cols;
  if (!fits) {
    return fail(ErrorCode::kInvalidInput, "tensor {}: expected {}, the file has {}", name,
                is_vector ? fmt::format("[{}]", cols) : fmt::format("[{}, {}]", rows, cols), shape_text(tensor->shape));
  }
  auto [it, inserted] = weights_.try_emplace(tensor->name);
  if (inserted) {
    it->second = WeightId{static_cast<int32_t>(model_.graph.weights.size())};
    model_.graph.weights.push_back({.tensor = tensor, .rows = rows, .cols = cols});
    used_.insert(tensor->name);
  }
  return it->second;
}

Result<WeightId> GraphBuilder::matrix(std::string_view name, int64_t rows, int64_t cols) {
  return weight(name, rows, cols, false);
}
Result<WeightId> GraphBuilder::vector(std::string_view name, int64_t cols) { return weight(name, 1, cols, true); }
Result<WeightId> GraphBuilder::optional_vector(std::string_view name, int64_t cols) {
  return find(name) ? vector(name, cols) : WeightId{};
}

Result<std::vector<float>> GraphBuilder::read_vector(std::string_view name, int64_t cols) {
  const TensorEntry* tensor = catalog_.find(name);
  if (!tensor || tensor->shape.size() != 1 || tensor->shape[0] != cols) {
    return fail(ErrorCode::kInvalidInput, "tensor {}: expected [{}], the file has {}", name, cols,
                tensor ? shape_text(tensor->shape) : "none");
  }
  used_.insert(tensor->name);
  std::vector<float> values(static_cast<size_t>(cols));
  decode_row(tensor->format, tensor->bytes.data(), values);
  return values;
}

ValueId GraphBuilder::value(std::string name, RowKind rows, int64_t cols) {
  model_.graph.values.push_back({.name = std::move(name), .rows = rows, .cols = cols});
  return ValueId{static_cast<int32_t>(model_.graph.values.size()) - 1};
}

ValueId GraphBuilder::push(std::string name, Op op) {
  ValueId out;
  for_each_output(op, [&](ValueId id) { out = id; });
  model_.graph.nodes.push_back({.name = std::move(name), .op = std::move(op)});
  return out;
}

ValueId GraphBuilder::embed(std::string name, WeightId table) {
  ValueId out = value(name, RowKind::kToken, model_.graph.weight(table).cols);
  return push(std::move(name), EmbedOp{.table = table, .out = out});
}

ValueId GraphBuilder::rms_norm(std::string name, ValueId x, Norm norm) {
  ValueId out = value(name, rows(x), cols(x));
  return push(std::move(name), RmsNormOp{.x = x, .norm = norm, .out = out});
}

ValueId GraphBuilder::linear(std::string name, ValueId x, WeightId weight, WeightId bias) {
  ValueId out = value(name, rows(x), model_.graph.weight(weight).rows);
  return push(std::move(name), LinearOp{.x = x, .parts = {{.weight = weight, .bias = bias, .out = out}}});
}

ValueId GraphBuilder::rope(std::string name, ValueId x, int64_t head_dim, int32_t rope) {
  ValueId out = value(name, rows(x), cols(x));
  return push(std::move(name), RopeOp{.x = x, .head_dim = head_dim, .rope = rope, .out = out});
}

ValueId GraphBuilder::attention(std::string name, AttentionOp op) {
  op.out = value(name, rows(op.q), cols(op.q));
  return push(std::move(name), op);
}

ValueId GraphBuilder::glu(std::string name, ValueId gate, ValueId up, Activation activation) {
  ValueId out = value(name, rows(gate), cols(gate));
  return push(std::move(name), GluOp{.gate = gate, .up = up, .activation = activation, .out = out});
}

ValueId GraphBuilder::add(std::string name, ValueId a, ValueId b) {
  ValueId out = value(name, rows(a), cols(a));
  return push(std::move(name), AddOp{.a = a, .b = b, .out = out});
}

ValueId GraphBuilder::gather_rows(std::string name, ValueId x) {
  ValueId out = value(name, RowKind::kLogit, cols(x));
  return push(std::move(name), GatherRowsOp{.x = x, .out = out});
}

int32_t GraphBuilder::add_rope(Rope rope) {
  model_.graph.ropes.push_back(std::move(rope));
  return static_cast<int32_t>(model_.graph.ropes.size()) - 1;
}

int32_t GraphBuilder::kv_group(int64_t kv_heads, int64_t head_dim, int64_t window) {
  auto& groups = model_.graph.kv_groups;
  for (size_t g = 0; g < groups.size(); ++g) {
    if (groups[g].kv_heads == kv_heads && groups[g].head_dim == head_dim && groups[g].window == window) {
      ++groups[g].layers;
      return static_cast<int32_t>(g);
    }
  }
  groups.push_back({.layers = 1, .kv_heads = kv_heads, .head_dim = head_dim, .window = window});
  return static_cast<int32_t>(groups.size()) - 1;
}

Result<ModelGraph> GraphBuilder::finish() && {
  std::string unused;
  int64_t count = 0;
  for (const TensorEntry& tensor : catalog_.tensors()) {
    if (used_.contains(tensor.name)) continue;
    if (++count <= 4) unused.append(unused.empty() ? "" : ", ").append(tensor.name);
  }
  if (count > 0) {
    return fail(ErrorCode::kUnsupported,
                "the file has {} tensors that {} models do not have: {}{}; this may be a newer variant of the family",
                count, model_.architecture, unused, count > 4 ? " ..." : "");
  }
  HEARTH_TRY(verify(model_.graph));
  return std::move(model_);
}

}  // namespace hearth
