// How exact the CPU backend is in each format that has kernels of its own: the weights of SmolLM2-135M-Instruct in that
// format, against the reference backend, which multiplies the same weights in f32. Prints the table of
// docs/performance.md. Skipped where the model is not there.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "backends/cpu/isa.h"
#include "backends/cpu/step.h"
#include "backends/cpu/weights.h"
#include "base/check.h"
#include "files/gguf.h"
#include "files/gguf_writer.h"
#include "graph/passes.h"
#include "quant/encode.h"
#include "quant/layout.h"
#include "support/logits.h"
#include "support/runner.h"
#include "support/tiny_file.h"

namespace hearth::testing {
namespace {

const std::string kBase = HEARTH_SHARED_DATA "/models/SmolLM2-135M-Instruct";
constexpr size_t kPositions = 64;

template <class T>
T checked(Result<T> result) {
  HEARTH_CHECK(result, "{}", result.error().message);
  return std::move(*result);
}

// The model is 576 wide, which blocks of 256 do not divide. One of 768 computes the same when the new columns and rows
// are zero, the new heads (three, with a KV head of their own) add nothing, and norms, which now average over a third
// more, are scaled.
constexpr double kNormScale = 576.0 / 768.0;
int64_t widened(int64_t size) { return size == 576 || size == 192 ? size / 3 * 4 : size; }

// The widened model with its matrices in `format`.
TempFile write_model(const Catalog& source, FormatId format) {
  const Metadata& metadata = source.metadata();
  GgufBuilder gguf;
  gguf.add("general.architecture", "llama");
  for (const char* key : {"block_count", "context_length", "feed_forward_length", "rope.dimension_count"}) {
    std::string name = fmt::format("llama.{}", key);
    gguf.add(name, static_cast<uint32_t>(checked(metadata.integer(name))));
  }
  gguf.add("llama.embedding_length", uint32_t{768});
  gguf.add("llama.attention.head_count", uint32_t{12});
  gguf.add("llama.attention.head_count_kv", uint32_t{4});
  gguf.add("llama.rope.freq_base", static_cast<float>(checked(metadata.real("llama.rope.freq_base"))));
  const char* eps = "llama.attention.layer_norm_rms_epsilon";
  gguf.add(eps, static_cast<float>(checked(metadata.real(eps)) * kNormScale));
  for (const TensorEntry& tensor : source.tensors()) {
    std::vector<int64_t> shape = tensor.shape;
    for (int64_t& size : shape) size = widened(size);
    gguf.add_tensor(tensor.name, shape.size() == 1 ? FormatId::kF32 : format, shape);
  }
  TempFile file;
  GgufFileWriter writer = checked(GgufFileWriter::create(file.path(), std::move(gguf)));
  for (const TensorEntry& tensor : source.tensors()) {
    bool norm = tensor.shape.size() == 1;
    int64_t rows = norm ? 1 : tensor.shape[0], cols = tensor.shape.back();
    FormatId to = norm ? FormatId::kF32 : format;
    size_t stride = row_bytes(tensor.format, cols);
    std::vector<float> values(static_cast<size_t>(widened(cols)), 0.0f);
    std::vector<std::byte> encoded(row_bytes(to, widened(cols)));
    for (int64_t r = 0; r < (norm ? 1 : widened(rows)); ++r) {
      auto row = std::span(values).first(static_cast<size_t>(cols));
      if (r < rows) {
        decode_row(tensor.format, tensor.bytes.data() + static_cast<size_t>(r) * stride, row);
      } else {
        std::ranges::fill(row, 0.0f);
      }
      if (norm) {
        for (float& v : row) v = static_cast<float>(v * std::sqrt(kNormScale));
      }
      encode_row(to, values, encoded.data());
      auto ok = writer.write(encoded);
      HEARTH_CHECK(ok, "{}", ok.error().message);
    }
  }
  auto ok = writer.finish();
  HEARTH_CHECK(ok, "{}", ok.error().message);
  return file;
}

std::vector<FormatId> planar_formats() {
  std::vector<FormatId> formats;
  for (size_t id = 0; id < all_formats().size(); ++id) {
    if (planar_format(static_cast<FormatId>(id))) formats.push_back(static_cast<FormatId>(id));
  }
  return formats;
}

class Exactness : public ::testing::TestWithParam<FormatId> {
 protected:
  void SetUp() override {
    if (!std::filesystem::exists(kBase + ".Q4_1.gguf")) GTEST_SKIP() << kBase << ".Q4_1.gguf is not there";
    std::ifstream file(kBase + ".logits.json");
    recorded_ = nlohmann::json::parse(file);
    tokens_ = recorded_["ids"].get<std::vector<int32_t>>();
    tokens_.resize(kPositions);
  }

  std::vector<float> logits_of(Runner& runner, PlanKind kind) {
    return runner.append(runner.add_sequence(), tokens_, kind, kind == PlanKind::kDecode ? 16 : kPositions);
  }

  // The widened f32 model is the model of which the log-probabilities were recorded.
  void expect_recorded(std::span<const float> logits) {
    size_t width = logits.size() / kPositions;
    double worst = 0;
    for (size_t r = 0; r < kPositions; ++r) {
      std::vector<double> p = log_softmax(logits.subspan(r * width, width));
      for (const auto& [token, logprob] : recorded_["rows"][r]["top"].get<std::vector<std::pair<size_t, double>>>()) {
        worst = std::max(worst, std::abs(p[token] - logprob));
      }
    }
    EXPECT_LT(worst, 1e-4);
  }

  nlohmann::json recorded_;
  std::vector<int32_t> tokens_;
};

// Whether the kernel is what all linear ops of the runner's prefill plans run.
bool runs(Runner& runner, const Graph& graph, std::string_view kernel) {
  auto executable = runner.model().record(make_single_lane_plan(graph, bucket_for(PlanKind::kPrefill, 16)));
  return executable && std::ranges::all_of(cpu::kernel_names(**executable), [&](std::string_view n) {
           return !n.starts_with("linear:") || n == kernel;
         });
}

TEST_P(Exactness, MeanDivergence) {
  FormatId format = GetParam();
  ASSERT_TRUE(can_encode(format));
  TempFile file = write_model(checked(open_gguf(kBase + ".Q4_1.gguf")), format);
  Catalog catalog = checked(open_gguf(file.path()));
  ModelGraph model = checked(build_graph(catalog));
  auto reference = checked(make_reference_backend({}));
  std::vector<float> expected;
  {
    Runner runner(*reference, model.graph, {.kv_type = KvType::kF32, .pages = 5});
    expected = logits_of(runner, PlanKind::kPrefill);
  }
  if (format == FormatId::kF32) expect_recorded(expected);
  auto ok = run_passes(model.graph, {});
  ASSERT_TRUE(ok) << ok.error().message;

  auto divergence = [&](Runner& runner, PlanKind kind) {
    std::vector<float> got = logits_of(runner, kind);
    double sum = 0;
    for (double kl : row_divergences(expected, got, got.size() / kPositions)) sum += kl;
    return sum / kPositions;
  };
  RunnerOptions options{.kv_type = KvType::kF16, .pages = 10};
  for (std::string_view isa : {"avx2", "avxvnni", "avx512", "amx"}) {
    auto table = cpu::select_isa(isa);
    if (!table) continue;  // not of this machine
    std::string line = fmt::format("mean KL of {:<6} on {:<8}", format_info(format).name, isa);
    auto figure = [&](std::string_view title, double kl) { line += fmt::format(" {} {:.1e}", title, kl); };
    auto small_figure = [&](std::string_view title, double kl) {
      figure(title, kl);
      EXPECT_LT(kl, 1e-3) << isa << " " << title;
    };
    auto backend = checked(make_cpu_backend({.threads = 2, .isa = std::string(isa)}));
    {
      Runner runner(*backend, model.graph, options);
      small_figure("decode", divergence(runner, PlanKind::kDecode));
      small_figure("prefill", divergence(runner, PlanKind::kPrefill));
    }
    const cpu::KernelTable& kernels = **table;
    for (auto [name, gemm] :
         {std::pair{"gemm_f32", &kernels.gemm_f32}, {"gemm_int", &kernels.gemm_int}, {"gemm_amx", &kernels.gemm_amx}}) {
      if (!gemm->multiply) continue;
      std::string kernel = fmt::format("linear:{}", name);
      setenv("HEARTH_CPU_KERNEL", kernel.c_str(), 1);
      auto forced = checked(make_cpu_backend({.threads = 2, .isa = std::string(isa)}));
      unsetenv("HEARTH_CPU_KERNEL");
      Runner runner(*forced, model.graph, options);
      // Integer products are not of all formats; what has one must run it.
      const bool takes = gemm != &kernels.gemm_int || cpu::takes_codes(*gemm, cpu::planar_kind(format));
      ASSERT_EQ(runs(runner, model.graph, kernel), takes) << isa << " " << kernel;
      if (takes) small_figure(name, divergence(runner, PlanKind::kPrefill));
    }
    options.activations = Activations::kInt8;
    Runner runner(*backend, model.graph, options);
    figure("int8 decode", divergence(runner, PlanKind::kDecode));
    figure("int8 prefill", divergence(runner, PlanKind::kPrefill));
    options.activations = Activations::kDefault;
    fmt::print("{}\n", line);
    std::fflush(stdout);
  }
}

// Each runs for half a minute: their names make them slow tests.
INSTANTIATE_TEST_SUITE_P(Formats, Exactness, ::testing::ValuesIn(planar_formats()),
                         [](const auto& format) { return std::string(format_info(format.param).name) + "_slow"; });

}  // namespace
}  // namespace hearth::testing
