#include "graph/graph.h"

#include <type_traits>

namespace hearth {
namespace {

// Checks one node against the graph; `written` tells which values exist so far.
class Verifier {
 public:
  explicit Verifier(const Graph& graph) : graph_(graph), written_(graph.values.size(), false) {}

  Result<void> run() {
    for (const Node& node : graph_.nodes) {
      node_ = &node;
      Result<void> ok;
      for_each_input(node.op, [&](ValueId id) {
        if (ok && !(in_range(id) && written_[static_cast<size_t>(id.index)]))
          ok = bug("reads value {} unwritten", id.index);
      });
      HEARTH_TRY(std::move(ok));
      for_each_output(node.op, [&](ValueId id) {
        if (!ok) return;
        if (!in_range(id) || written_[static_cast<size_t>(id.index)]) {
          ok = bug("writes value {} twice or out of range", id.index);
          return;
        }
        written_[static_cast<size_t>(id.index)] = true;
      });
      HEARTH_TRY(std::move(ok));
      HEARTH_TRY(std::visit([&](const auto& op) { return check(op); }, node.op));
    }
    if (!is_logit_rows(graph_.logits)) {
      return fail(ErrorCode::kInternal, "graph: logits are not written as logit rows");
    }
    if (graph_.hidden && !(is_logit_rows(graph_.hidden->value) && covers_row(*graph_.hidden))) {
      return fail(ErrorCode::kInternal, "graph: hidden states are not written as logit rows of their norm's width");
    }
    return {};
  }

 private:
  template <class... Args>
  Error bug(fmt::format_string<Args...> format, Args&&... args) const {
    return fail(ErrorCode::kInternal, "graph: {} {}", node_->name, fmt::format(format, std::forward<Args>(args)...));
  }

  bool is_logit_rows(ValueId id) const {
    return in_range(id) && written_[static_cast<size_t>(id.index)] && graph_.value(id).rows == RowKind::kLogit;
  }

  bool covers_row(const HiddenState& hidden) const {
    const WeightId weight = hidden.norm.weight;
    return hidden.norm.eps > 0 && weight && static_cast<size_t>(weight.index) < graph_.weights.size() &&
           graph_.weight(weight).rows == 1 && graph_.weight(weight).cols == cols(hidden.value);
  }

  bool in_range(ValueId id) const { return id && static_cast<size_t>(id.index) < graph_.values.size(); }
  int64_t cols(ValueId id) const { return graph_.value(id).cols; }

  // The shape of a value must be [the row kind of `like`, want].
  Result<void> same_rows(ValueId id, ValueId like, int64_t want) const {
    if (cols(id) != want) return bug("value {} has {} columns, needs {}", graph_.value(id).name, cols(id), want);
    if (graph_.value(id).rows != graph_.value(like).rows) return bug("mixes token rows and logit rows");
    return {};
  }

  Result<void> exists(WeightId id) const {
    if (!id || static_cast<size_t>(id.index) >= graph_.weights.size()) return bug("weight {} out of range", id.index);
    return {};
  }

  Result<void> matrix(WeightId id, int64_t rows, int64_t columns) const {
    HEARTH_TRY(exists(id));
    const Weight& w = graph_.weight(id);
    if (w.rows != rows || w.cols != columns) {
      return bug("weight {} is [{}, {}], needs [{}, {}]", w.tensor->name, w.rows, w.cols, rows, columns);
    }
    return {};
  }

  Result<void> norm(const Norm& n, int64_t columns) const {
    if (!(n.eps > 0)) return bug("norm without epsilon");
    HEARTH_TRY(exists(n.weight));
    HEARTH_TRY(matrix(n.weight, 1, graph_.weight(n.weight).cols));
    if (columns % graph_.weight(n.weight).cols != 0) return bug("norm width does not divide {}", columns);
    return {};
  }

  Result<void> rope(int32_t index, int64_t head_dim) const {
    if (index < 0 || static_cast<size_t>(index) >= graph_.ropes.size()) return bug("rope {} out of range", index);
    const Rope& r = graph_.ropes[static_cast<size_t>(index)];
    if (r.dims <= 0 || r.dims > head_dim || r.dims % 2 || static_cast<int64_t>(r.frequency.size()) * 2 != r.dims) {
      return bug("rope of {} dims with {} frequencies on heads of {}", r.dims, r.frequency.size(), head_dim);
    }
    return {};
  }

  Result<void> check(const EmbedOp& op) const {
    HEARTH_TRY(exists(op.table));
    if (graph_.value(op.out).rows != RowKind::kToken) return bug("embeds into logit rows");
    return matrix(op.table, graph_.weight(op.table).rows, cols(op.out));
  }

  Result<void> check(const RmsNormOp& op) const {
    HEARTH_TRY(norm(op.norm, cols(op.x)));
    return same_rows(op.out, op.x, cols(op.x));
  }

  Result<void> check(const LinearOp& op) const {
    if (op.parts.empty()) return bug("has no parts");
    for (const LinearOp::Part& part : op.parts) {
      HEARTH_TRY(matrix(part.weight, cols(part.out), cols(op.x)));
      if (part.bias) HEARTH_TRY(matrix(part.bias, 1, cols(part.out)));
      HEARTH_TRY(same_rows(part.out, op.x, cols(part.out)));
    }
    if (op.norm) {
      HEARTH_TRY(norm(*op.norm, cols(op.x)));
      if (graph_.weight(op.norm->weight).cols != cols(op.x)) return bug("folded norm must cover the whole row");
    }
    if (op.glu && (op.parts.size() != 2 || cols(op.parts[0].out) != cols(op.parts[1].out))) {
      return bug("glu needs a gate and an up part of one width");
    }
    if (op.residual) {
      if (op.parts.size() != 1 || op.glu) return bug("a residual needs exactly one part and no glu");
      HEARTH_TRY(same_rows(op.residual, op.x, cols(op.parts[0].out)));
    }
    return {};
  }

  Result<void> check(const RopeOp& op) const {
    if (op.head_dim <= 0 || cols(op.x) % op.head_dim)
      return bug("head width {} does not divide {}", op.head_dim, cols(op.x));
    HEARTH_TRY(rope(op.rope, op.head_dim));
    return same_rows(op.out, op.x, cols(op.x));
  }

  Result<void> check(const AttentionOp& op) const {
    if (op.kv_group < 0 || static_cast<size_t>(op.kv_group) >= graph_.kv_groups.size()) return bug("no KV group");
    const KvGroup& group = graph_.kv_groups[static_cast<size_t>(op.kv_group)];
    if (op.kv_layer < 0 || op.kv_layer >= group.layers) return bug("KV layer {} of {}", op.kv_layer, group.layers);
    if (group.kv_heads <= 0 || op.heads <= 0 || op.heads % group.kv_heads)
      return bug("{} heads over {} KV heads", op.heads, group.kv_heads);
    if (!(op.scale > 0)) return bug("has no scale");
    if (!(op.soft_cap >= 0)) return bug("has a soft cap of {}", op.soft_cap);
    if (op.sinks) HEARTH_TRY(matrix(op.sinks, 1, op.heads));
    HEARTH_TRY(same_rows(op.q, op.q, op.heads * group.head_dim));
    HEARTH_TRY(same_rows(op.k, op.q, group.kv_heads * group.head_dim));
    HEARTH_TRY(same_rows(op.v, op.q, group.kv_heads * group.head_dim));
    HEARTH_TRY(same_rows(op.out, op.q, op.heads * group.head_dim));
    if (graph_.value(op.q).rows != RowKind::kToken) return bug("attends from logit rows");
    if (op.q_norm) HEARTH_TRY(norm(*op.q_norm, group.head_dim));
    if (op.k_norm) HEARTH_TRY(norm(*op.k_norm, group.head_dim));
    if (op.rope) HEARTH_TRY(rope(*op.rope, group.head_dim));
    return {};
  }

  Result<void> check(const GluOp& op) const {
    HEARTH_TRY(same_rows(op.up, op.gate, cols(op.gate)));
    return same_rows(op.out, op.gate, cols(op.gate));
  }

  Result<void> check(const AddOp& op) const {
    HEARTH_TRY(same_rows(op.b, op.a, cols(op.a)));
    return same_rows(op.out, op.a, cols(op.a));
  }

  Result<void> check(const GatherRowsOp& op) const {
    if (graph_.value(op.x).rows != RowKind::kToken || graph_.value(op.out).rows != RowKind::kLogit) {
      return bug("gathers token rows into logit rows only");
    }
    if (cols(op.x) != cols(op.out)) return bug("changes the width");
    return {};
  }

  const Graph& graph_;
  std::vector<bool> written_;
  const Node* node_ = nullptr;
};

}  // namespace

std::vector<WeightUse> weight_uses(const Graph& graph) {
  std::vector<WeightUse> uses(graph.weights.size(), WeightUse::kGathered);
  for (const Node& node : graph.nodes) {
    for_each_weight(node.op, [&](WeightId id, WeightUse use) {
      if (use != WeightUse::kGathered) uses[static_cast<size_t>(id.index)] = use;
    });
  }
  return uses;
}

Result<void> verify(const Graph& graph) { return Verifier(graph).run(); }

}  // namespace hearth
