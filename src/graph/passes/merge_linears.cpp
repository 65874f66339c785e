// linear(x, A), linear(x, B) -> linear(x, {A, B}): x is prepared once, and one step hands out all rows.
#include <map>

#include "graph/passes.h"
#include "graph/rewrite.h"

namespace hearth {

void merge_linears(Graph& graph) {
  std::vector<bool> dead(graph.nodes.size(), false);
  std::map<int32_t, size_t> first_with_input;  // value -> node
  for (size_t n = 0; n < graph.nodes.size(); ++n) {
    auto* linear = std::get_if<LinearOp>(&graph.nodes[n].op);
    if (!linear || linear->norm || linear->glu || linear->residual) continue;
    auto [it, inserted] = first_with_input.try_emplace(linear->x.index, n);
    if (inserted) continue;
    // Moving the later one up is sound: its only input is the one that the first reads too.
    auto& target = std::get<LinearOp>(graph.nodes[it->second].op);
    target.parts.insert(target.parts.end(), linear->parts.begin(), linear->parts.end());
    graph.nodes[it->second].name += "+" + graph.nodes[n].name.substr(graph.nodes[n].name.rfind('.') + 1);
    dead[n] = true;
  }
  remove_nodes(graph, dead);
}

}  // namespace hearth
