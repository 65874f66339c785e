#include "backends/reference/weights.h"

#include "base/check.h"
#include "quant/format.h"

namespace hearth::reference {

Weights::Weights(const Graph& graph, const LoadOptions& options) {
  size_t total_bytes = 0, done_bytes = 0;
  for (const Weight& weight : graph.weights) total_bytes += weight.tensor->bytes.size();
  for (const Weight& weight : graph.weights) {
    const TensorEntry& tensor = *weight.tensor;
    size_t stride_bytes = row_bytes(tensor.format, weight.cols);
    HEARTH_CHECK(tensor.bytes.size() == static_cast<size_t>(weight.rows) * stride_bytes, "{}: {} bytes for [{}, {}]",
                 tensor.name, tensor.bytes.size(), weight.rows, weight.cols);
    std::vector<float>& out = decoded_.emplace_back(static_cast<size_t>(weight.rows * weight.cols));
    for (int64_t r = 0; r < weight.rows; ++r) {
      decode_row(tensor.format, tensor.bytes.data() + static_cast<size_t>(r) * stride_bytes,
                 std::span(out).subspan(static_cast<size_t>(r * weight.cols), static_cast<size_t>(weight.cols)));
    }
    done_bytes += tensor.bytes.size();
    if (options.release) options.release(tensor);
    if (options.progress) options.progress(done_bytes, total_bytes);
  }
}

}  // namespace hearth::reference
