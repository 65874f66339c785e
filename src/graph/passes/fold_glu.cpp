// glu(gate, up) of one merged linear -> that linear writes act(gate) * up itself.
#include "graph/passes.h"
#include "graph/rewrite.h"

namespace hearth {

void fold_glu(Graph& graph) {
  Uses uses(graph);
  std::vector<bool> dead(graph.nodes.size(), false);
  for (size_t n = 0; n < graph.nodes.size(); ++n) {
    const auto* glu = std::get_if<GluOp>(&graph.nodes[n].op);
    if (!glu) continue;
    int32_t writer = uses.writer_of(glu->gate);
    if (writer < 0 || writer != uses.writer_of(glu->up) || !uses.read_once(glu->gate) || !uses.read_once(glu->up)) {
      continue;
    }
    auto* linear = std::get_if<LinearOp>(&graph.nodes[static_cast<size_t>(writer)].op);
    if (!linear || linear->parts.size() != 2 || linear->residual) continue;
    if (linear->parts[0].out == glu->up) std::swap(linear->parts[0], linear->parts[1]);
    linear->glu = glu->activation;
    linear->parts[0].out = glu->out;
    dead[n] = true;
  }
  remove_nodes(graph, dead);
}

}  // namespace hearth
