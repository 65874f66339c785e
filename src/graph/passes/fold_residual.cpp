// add(x, linear(h, W)) -> linear with residual x.
#include "graph/passes.h"
#include "graph/rewrite.h"

namespace hearth {

void fold_residual(Graph& graph) {
  Uses uses(graph);
  std::vector<bool> dead(graph.nodes.size(), false);
  for (size_t n = 0; n < graph.nodes.size(); ++n) {
    const auto* add = std::get_if<AddOp>(&graph.nodes[n].op);
    if (!add) continue;
    for (auto [sum, residual] : {std::pair{add->b, add->a}, std::pair{add->a, add->b}}) {
      int32_t writer = uses.writer_of(sum);
      // The other summand must exist before the linear runs.
      if (!sole_writer<LinearOp>(graph, uses, sum) || uses.writer_of(residual) >= writer) continue;
      auto& linear = std::get<LinearOp>(graph.nodes[static_cast<size_t>(writer)].op);
      if (linear.parts.size() != 1 || linear.glu || linear.residual) continue;
      linear.residual = residual;
      linear.parts[0].out = add->out;
      dead[n] = true;
      break;
    }
  }
  remove_nodes(graph, dead);
}

}  // namespace hearth
