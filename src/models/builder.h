// Builds a graph from a catalog: finds weights by name and checks their shapes, adds ops, accounts for every tensor.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <unordered_set>

#include "base/result.h"
#include "models/family.h"

namespace hearth {

class GraphBuilder {
 public:
  GraphBuilder(const Catalog& catalog, std::string_view architecture)
      : catalog_(catalog), metadata_(catalog.metadata()), prefix_(std::string(architecture) + '.') {
    model_.architecture = architecture;
  }

  // ---- hyper-parameters, by their key without "<architecture>." ----
  const Metadata& metadata() const { return metadata_; }
  std::string key(std::string_view name) const { return prefix_ + std::string(name); }
  // An integer in [low, high]. The version with a fallback takes it when the key is missing.
  Result<int64_t> integer(std::string_view name, int64_t low, int64_t high) const;
  Result<int64_t> integer_or(std::string_view name, int64_t fallback, int64_t low, int64_t high) const;
  // A finite number > 0.
  Result<double> positive(std::string_view name) const;
  Result<double> positive_or(std::string_view name, double fallback) const;

  // ---- weights ----
  const TensorEntry* find(std::string_view name) const { return catalog_.find(name); }
  // The matrix [rows, cols] or vector [cols] of that name.
  Result<WeightId> matrix(std::string_view name, int64_t rows, int64_t cols);
  Result<WeightId> vector(std::string_view name, int64_t cols);
  // None when the file lacks it.
  Result<WeightId> optional_vector(std::string_view name, int64_t cols);
  // Values of a small vector that the builder folds into the graph (rope factors). Marks it as used.
  Result<std::vector<float>> read_vector(std::string_view name, int64_t cols);

  // ---- ops; names are those of the checkpoint ----
  ValueId embed(std::string name, WeightId table);
  ValueId rms_norm(std::string name, ValueId x, Norm norm);
  ValueId linear(std::string name, ValueId x, WeightId weight, WeightId bias = {});
  ValueId rope(std::string name, ValueId x, int64_t head_dim, int32_t rope);
  ValueId attention(std::string name, AttentionOp op);  // op.out is set here
  ValueId glu(std::string name, ValueId gate, ValueId up, Activation activation);
  ValueId add(std::string name, ValueId a, ValueId b);
  ValueId gather_rows(std::string name, ValueId x);

  int32_t add_rope(Rope rope);
  // The group with these dimensions, made if there is none yet; `layers` counts up with each call.
  int32_t kv_group(int64_t kv_heads, int64_t head_dim, int64_t window);

  Graph& graph() { return model_.graph; }
  ModelGraph& model() { return model_; }

  // Checks that every tensor was used and that the graph verifies.
  Result<ModelGraph> finish() &&;

 private:
  Result<WeightId> weight(std::string_view name, int64_t rows, int64_t cols, bool is_vector);
  ValueId value(std::string name, RowKind rows, int64_t cols);
  int64_t cols(ValueId id) const { return model_.graph.value(id).cols; }
  RowKind rows(ValueId id) const { return model_.graph.value(id).rows; }
  ValueId push(std::string name, Op op);

  const Catalog& catalog_;
  const Metadata& metadata_;
  std::string prefix_;
  ModelGraph model_;
  std::unordered_set<std::string> used_;
  std::unordered_map<std::string, WeightId> weights_;
};

}  // namespace hearth
