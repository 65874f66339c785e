// Fusions as named passes over the graph. Each can be switched off, and the graph is verified after each.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "graph/graph.h"

namespace hearth {

struct Pass {
  std::string_view name;
  void (*run)(Graph&);
};

// All passes in the order in which they run.
std::span<const Pass> all_passes();

// Runs every pass whose name is not in `disabled` ("all" disables every one). Fails with kUsage on an unknown name and
// with kInternal when a pass leaves a graph that does not verify.
Result<void> run_passes(Graph& graph, std::span<const std::string> disabled);

// passes/*.cpp
void merge_linears(Graph& graph);
void fold_norm(Graph& graph);
void fold_glu(Graph& graph);
void fold_residual(Graph& graph);
void fold_rope(Graph& graph);

}  // namespace hearth
