#include "backends/cpu/step.h"
#include "quant/format.h"

namespace hearth::cpu {
namespace {

// The table stays in the file: only the rows of the step's tokens are read.
class EmbedStep : public CpuStep {
 public:
  EmbedStep(const Weight& table, float* out)
      : table_(table.tensor->bytes.data()),
        format_(table.tensor->format),
        row_bytes_(row_bytes(table.tensor->format, table.cols)),
        cols_(table.cols),
        out_(out) {}

  void run(const Launch& launch, const Worker& worker) const override {
    worker.each_tile(launch.rows, [&](int64_t row) {
      decode_row(format_, table_ + static_cast<size_t>(launch.tokens[row]) * row_bytes_,
                 std::span(out_ + row * cols_, static_cast<size_t>(cols_)));
    });
  }

 private:
  const std::byte* table_;
  FormatId format_;
  size_t row_bytes_;
  int64_t cols_;
  float* out_;
};

}  // namespace

std::unique_ptr<CpuStep> prepare(const EmbedOp& op, PrepareContext& context) {
  return std::make_unique<EmbedStep>(context.graph.weight(op.table), context.value(op.out));
}

}  // namespace hearth::cpu
