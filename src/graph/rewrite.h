// What passes share: who writes and who reads a value, and removal of nodes.
#pragma once

#include <vector>

#include "graph/graph.h"

namespace hearth {

// Writer and readers of every value, as node indices. Valid until the graph is changed.
struct Uses {
  explicit Uses(const Graph& graph) : writer(graph.values.size(), -1), readers(graph.values.size()) {
    for (size_t n = 0; n < graph.nodes.size(); ++n) {
      for_each_input(graph.nodes[n].op,
                     [&](ValueId id) { readers[static_cast<size_t>(id.index)].push_back(static_cast<int32_t>(n)); });
      for_each_output(graph.nodes[n].op,
                      [&](ValueId id) { writer[static_cast<size_t>(id.index)] = static_cast<int32_t>(n); });
    }
    // These leave the graph: nobody may fold them away.
    if (graph.logits) readers[static_cast<size_t>(graph.logits.index)].push_back(-1);
    if (graph.hidden) readers[static_cast<size_t>(graph.hidden->value.index)].push_back(-1);
  }

  bool read_once(ValueId id) const { return readers[static_cast<size_t>(id.index)].size() == 1; }
  int32_t writer_of(ValueId id) const { return writer[static_cast<size_t>(id.index)]; }

  std::vector<int32_t> writer;
  std::vector<std::vector<int32_t>> readers;
};

// The op that writes `id` if it is a T and nothing else reads the value; nullptr otherwise.
template <class T>
const T* sole_writer(const Graph& graph, const Uses& uses, ValueId id) {
  int32_t n = uses.writer_of(id);
  if (n < 0 || !uses.read_once(id)) return nullptr;
  return std::get_if<T>(&graph.nodes[static_cast<size_t>(n)].op);
}

// Removes the nodes whose flag is set, keeping the order of the others.
inline void remove_nodes(Graph& graph, const std::vector<bool>& dead) {
  size_t kept = 0;
  for (size_t n = 0; n < graph.nodes.size(); ++n) {
    if (dead[n]) continue;
    if (kept != n) graph.nodes[kept] = std::move(graph.nodes[n]);
    ++kept;
  }
  graph.nodes.resize(kept);
}

}  // namespace hearth
