#include "engine/embedding.h"

#include <cmath>

#include "quant/format.h"

namespace hearth {

std::string pooling_key(std::string_view architecture) { return fmt::format("{}.pooling_type", architecture); }

Result<Pooling> read_pooling(const Metadata& metadata, std::string_view architecture) {
  HEARTH_ASSIGN(const int64_t number, metadata.integer_or(pooling_key(architecture), 0));
  return number == 0 ? Pooling::kLast : static_cast<Pooling>(number);
}

Embedder::Embedder(const HiddenState& hidden, const Graph& graph)
    : weight_(static_cast<size_t>(graph.weight(hidden.norm.weight).cols)), eps_(hidden.norm.eps) {
  const TensorEntry& tensor = *graph.weight(hidden.norm.weight).tensor;
  decode_row(tensor.format, tensor.bytes.data(), weight_);
}

void Embedder::add(std::span<const float> rows, std::span<double> sum) const {
  const size_t width = weight_.size();
  for (; !rows.empty(); rows = rows.subspan(width)) {
    double squares = 0;
    for (size_t i = 0; i < width; ++i) squares += static_cast<double>(rows[i]) * rows[i];
    const double scale = 1 / std::sqrt(squares / static_cast<double>(width) + eps_);
    for (size_t i = 0; i < width; ++i) sum[i] += weight_[i] * (rows[i] * scale);
  }
}

Result<std::vector<float>> Embedder::finish(std::span<const double> sum) const {
  double squares = 0;
  for (double x : sum) squares += x * x;
  if (!std::isfinite(squares)) {
    return fail(ErrorCode::kInternal, "the hidden states of the prompt are not finite numbers");
  }
  const double scale = squares > 0 ? 1 / std::sqrt(squares) : 0;
  std::vector<float> values;
  values.reserve(sum.size());
  for (double x : sum) values.push_back(static_cast<float>(x * scale));
  return values;
}

}  // namespace hearth
