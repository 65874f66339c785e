// From the hidden states of a prompt to its embedding.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "files/metadata.h"
#include "graph/graph.h"

namespace hearth {

// Of which hidden states an embedding is made, by the numbers that files have for it. With others, of a first token
// that sees the rest (2) or of a head that ranks (4), there is none.
enum class Pooling : int64_t { kMean = 1, kLast = 3 };

// The metadata key of Pooling. kLast when the file does not say, or says none (0).
std::string pooling_key(std::string_view architecture);
Result<Pooling> read_pooling(const Metadata& metadata, std::string_view architecture);

// Adds up the hidden states of a prompt and makes the embedding of the sum. How many they are makes no difference: an
// embedding has a length of 1.
class Embedder {
 public:
  // The norm's weight is read from the graph's tensors now.
  Embedder(const HiddenState& hidden, const Graph& graph);

  int64_t width() const { return static_cast<int64_t>(weight_.size()); }
  // Adds what the norm makes of `rows` [rows, width] to `sum` [width].
  void add(std::span<const float> rows, std::span<double> sum) const;
  // kInternal when it is not finite: the device computed nonsense.
  Result<std::vector<float>> finish(std::span<const double> sum) const;

 private:
  std::vector<float> weight_;
  float eps_;
};

}  // namespace hearth
