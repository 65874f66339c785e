// linear(rms_norm(x), W) -> linear with norm, when nothing else reads the normalized row.
#include "graph/passes.h"
#include "graph/rewrite.h"

namespace hearth {

void fold_norm(Graph& graph) {
  Uses uses(graph);
  std::vector<bool> dead(graph.nodes.size(), false);
  for (Node& node : graph.nodes) {
    auto* linear = std::get_if<LinearOp>(&node.op);
    if (!linear || linear->norm) continue;
    const auto* norm = sole_writer<RmsNormOp>(graph, uses, linear->x);
    if (!norm || graph.weight(norm->norm.weight).cols != graph.value(norm->x).cols) continue;
    dead[static_cast<size_t>(uses.writer_of(linear->x))] = true;
    linear->norm = norm->norm;
    linear->x = norm->x;
  }
  remove_nodes(graph, dead);
}

}  // namespace hearth
