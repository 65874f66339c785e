// attention(rope(head_norm(q)), rope(head_norm(k)), v) -> attention that does norms and rotation as it appends.
#include "graph/passes.h"
#include "graph/rewrite.h"

namespace hearth {

void fold_rope(Graph& graph) {
  Uses uses(graph);
  std::vector<bool> dead(graph.nodes.size(), false);
  auto kill_writer = [&](ValueId id) { dead[static_cast<size_t>(uses.writer_of(id))] = true; };
  for (Node& node : graph.nodes) {
    auto* attention = std::get_if<AttentionOp>(&node.op);
    if (!attention || attention->rope) continue;
    int64_t head_dim = graph.kv_groups[static_cast<size_t>(attention->kv_group)].head_dim;
    const auto* q_rope = sole_writer<RopeOp>(graph, uses, attention->q);
    const auto* k_rope = sole_writer<RopeOp>(graph, uses, attention->k);
    if (!q_rope || !k_rope || q_rope->rope != k_rope->rope || q_rope->head_dim != head_dim ||
        k_rope->head_dim != head_dim) {
      continue;
    }
    kill_writer(attention->q);
    kill_writer(attention->k);
    attention->rope = q_rope->rope;
    attention->q = q_rope->x;
    attention->k = k_rope->x;
    for (auto [value, norm] :
         {std::pair{&attention->q, &attention->q_norm}, std::pair{&attention->k, &attention->k_norm}}) {
      const auto* head_norm = sole_writer<RmsNormOp>(graph, uses, *value);
      if (!head_norm || graph.weight(head_norm->norm.weight).cols != head_dim) continue;
      kill_writer(*value);
      *norm = head_norm->norm;
      *value = head_norm->x;
    }
  }
  remove_nodes(graph, dead);
}

}  // namespace hearth
