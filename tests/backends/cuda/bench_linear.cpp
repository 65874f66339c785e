// Speed of the products of a model of Qwen3-8B's shape on the GPU, without attention: bench_cuda_linear [FORMAT] [ROWS
// ...]. Up to 64 rows are a decode plan, more a prefill plan. Bytes count every weight once a step.
#include <fmt/format.h>

#include <chrono>
#include <cstdlib>
#include <cstring>
#include <deque>

#include "backends/backend.h"
#include "base/check.h"
#include "quant/format.h"

namespace hearth::testing {
namespace {

constexpr int64_t kWidth = 4096, kInner = 12288, kKv = 1024, kLayers = 36, kVocab = 151936;

struct Bench {
  Graph graph;
  std::deque<TensorEntry> tensors;
  std::deque<std::vector<std::byte>> bytes;
  size_t read_bytes = 0;

  // The same random bytes for all matrices of a shape: the device has its own copy of each.
  WeightId weight(FormatId format, int64_t rows, int64_t cols) {
    const size_t size = static_cast<size_t>(rows) * row_bytes(format, cols);
    for (const auto& other : bytes) {
      if (other.size() == size) return add(format, rows, cols, other);
    }
    std::vector<std::byte>& data = bytes.emplace_back(size);
    uint64_t state = 1;
    for (size_t i = 0; i + 8 <= size; i += 8) {  // halves with small exponents: numbers, not NaN
      state = state * 6364136223846793005u + 1442695040888963407u;
      const uint64_t small = state & 0x8fff8fff8fff8fffu;
      std::memcpy(data.data() + i, &small, 8);
    }
    return add(format, rows, cols, data);
  }
  WeightId add(FormatId format, int64_t rows, int64_t cols, const std::vector<std::byte>& data) {
    tensors.push_back({.name = "w", .format = format, .shape = {rows, cols}, .bytes = data});
    graph.weights.push_back({.tensor = &tensors.back(), .rows = rows, .cols = cols});
    if (rows > 1) read_bytes += data.size();
    return {static_cast<int32_t>(graph.weights.size()) - 1};
  }
  ValueId value(int64_t cols, RowKind rows = RowKind::kToken) {
    graph.values.push_back({.name = "v", .rows = rows, .cols = cols});
    return {static_cast<int32_t>(graph.values.size()) - 1};
  }
  void node(Op op) { graph.nodes.push_back({.name = "n", .op = std::move(op)}); }

  void build(FormatId format) {
    const WeightId table = weight(FormatId::kF32, 64, kWidth);
    read_bytes = 0;
    ValueId x = value(kWidth);
    node(EmbedOp{.table = table, .out = x});
    const Norm norm{.weight = weight(FormatId::kF32, 1, kWidth), .eps = 1e-6f};
    for (int64_t layer = 0; layer < kLayers; ++layer) {
      const ValueId q = value(kWidth), k = value(kKv), v = value(kKv), y = value(kWidth), h = value(kInner);
      node(LinearOp{.x = x,
                    .parts = {{.weight = weight(format, kWidth, kWidth), .out = q},
                              {.weight = weight(format, kKv, kWidth), .out = k},
                              {.weight = weight(format, kKv, kWidth), .out = v}},
                    .norm = norm});
      node(LinearOp{.x = q, .parts = {{.weight = weight(format, kWidth, kWidth), .out = y}}, .residual = x});
      node(LinearOp{.x = y,
                    .parts = {{.weight = weight(format, kInner, kWidth), .out = h},
                              {.weight = weight(format, kInner, kWidth), .out = value(kInner)}},
                    .norm = norm,
                    .glu = Activation::kSilu});
      x = value(kWidth);
      node(LinearOp{.x = h, .parts = {{.weight = weight(format, kWidth, kInner), .out = x}}, .residual = y});
    }
    const ValueId last = value(kWidth, RowKind::kLogit), logits = value(kVocab, RowKind::kLogit);
    node(GatherRowsOp{.x = x, .out = last});
    node(LinearOp{.x = last, .parts = {{.weight = weight(format, kVocab, kWidth), .out = logits}}, .norm = norm});
    graph.logits = logits;
  }
};

void run(int argc, char** argv) {
  const FormatId format = format_from_name(argc > 1 ? argv[1] : "Q4_K").value();
  Bench bench;
  bench.build(format);
  auto backend = make_backend("cuda", {});
  HEARTH_CHECK(backend, "{}", backend.error().message);
  auto model = (*backend)->load(bench.graph, {});
  HEARTH_CHECK(model, "{}", model.error().message);
  for (int i = 2; i < argc || i == 2; ++i) {
    const int64_t rows = argc > 2 ? std::atoll(argv[i]) : 1;
    const Plan plan =
        make_single_lane_plan(bench.graph, bucket_for(rows <= 64 ? PlanKind::kDecode : PlanKind::kPrefill, rows));
    auto executable = (*model)->record(plan);
    HEARTH_CHECK(executable, "{}", executable.error().message);
    std::vector<int32_t> tokens(static_cast<size_t>(rows), 1), logit_rows;
    std::vector<StepSequence> sequences;
    for (int32_t r = 0; r < rows; ++r) sequences.push_back({.first_row = r, .rows = 1});
    for (int32_t r = 0; r < (rows <= 64 ? rows : 1); ++r) logit_rows.push_back(r);
    double best = 1e9;
    for (int run = 0; run < 20; ++run) {
      const auto begin = std::chrono::steady_clock::now();
      auto ok = (*executable)->launch({.tokens = tokens, .sequences = sequences, .logit_rows = logit_rows});
      if (ok) ok = (*executable)->wait();
      HEARTH_CHECK(ok, "{}", ok.error().message);
      best = std::min(best, std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count());
    }
    const double flops = 2.0 * static_cast<double>(rows) * 6.95e9;
    fmt::print("{} {:>5} rows: {:>8.3f} ms, {:>6.0f} GB/s, {:>6.1f} TFLOP/s, {:>8.0f} tok/s\n",
               format_info(format).name, rows, 1e3 * best, static_cast<double>(bench.read_bytes) / best * 1e-9,
               flops / best * 1e-12, static_cast<double>(rows) / best);
  }
}

}  // namespace
}  // namespace hearth::testing

int main(int argc, char** argv) { hearth::testing::run(argc, argv); }
