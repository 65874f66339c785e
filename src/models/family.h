// Model families: each knows the metadata keys and tensor names of its files and builds the graph. A family is one file
// and one line in registry.cpp.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "base/result.h"
#include "files/catalog.h"
#include "graph/graph.h"

namespace hearth {

class GraphBuilder;

// What everyone above the graph needs to know of a model.
struct ModelGraph {
  Graph graph;
  std::string architecture;
  int64_t context_length = 0;  // tokens it was trained for
  int64_t vocab_size = 0;      // logits
};

struct Family {
  std::string_view architecture;  // general.architecture
  Result<void> (*build)(GraphBuilder&);
};

// All families, in the order of the support table.
std::span<const Family> all_families();

// Builds the graph of a checkpoint with the family that it names. Fails with kUnsupported on an unknown architecture
// (the message lists the known ones) and with kInvalidInput on keys or tensors that are missing, left over or of a
// wrong shape. The catalog must outlive the graph. No pass has run on the result.
Result<ModelGraph> build_graph(const Catalog& catalog);

// llama.cpp, qwen2.cpp, ...
Result<void> build_llama(GraphBuilder& b);
Result<void> build_qwen2(GraphBuilder& b);
Result<void> build_qwen3(GraphBuilder& b);

}  // namespace hearth
