// The CPU backend as the engine sees it, against the reference backend and against itself in other company.
#include <gtest/gtest.h>

#include <map>
#include <random>

#include "backends/cpu/isa.h"
#include "backends/cpu/isas.h"
#include "backends/cpu/step.h"
#include "backends/cpu/weights.h"
#include "graph/passes.h"
#include "hearth/model.h"
#include "quant/encode.h"
#include "support/child.h"
#include "support/logits.h"
#include "support/runner.h"
#include "support/tiny_file.h"

namespace hearth {
namespace {

using testing::make_tiny_model;
using testing::Runner;
using testing::TinyModel;

std::vector<int32_t> random_tokens(int64_t n, int64_t vocab, uint32_t seed) {
  std::mt19937 random(seed);
  std::uniform_int_distribution<int32_t> pick(0, static_cast<int32_t>(vocab - 1));
  std::vector<int32_t> tokens(static_cast<size_t>(n));
  for (int32_t& t : tokens) t = pick(random);
  return tokens;
}

class CpuBackend : public ::testing::TestWithParam<std::string> {
 protected:
  void SetUp() override {
    auto made = make_cpu_backend({.threads = 2, .isa = GetParam()});
    if (!made) GTEST_SKIP() << made.error().message;
    cpu_ = std::move(*made);
    reference_ = *make_reference_backend({});
  }

  // Logits of both for a prefill in two chunks and then single tokens, with every pass and with none.
  void compare(testing::TinyModelOptions options, testing::RunnerOptions run, double tolerance, size_t length = 150,
               KvType reference_kv = KvType::kF32) {
    TinyModel tiny = make_tiny_model(options);
    std::vector<int32_t> tokens = random_tokens(static_cast<int64_t>(length), options.vocab, 3);
    std::span<const int32_t> prompt = std::span(tokens).first(length - 10), rest = std::span(tokens).last(10);
    Runner expected(*reference_, tiny.model.graph, {.kv_type = reference_kv});
    int e = expected.add_sequence();
    std::vector<float> want = expected.append(e, tokens, PlanKind::kPrefill, 150);
    for (bool passes : {true, false}) {
      TinyModel other = make_tiny_model(options);
      Graph& graph = other.model.graph;
      std::vector<std::string> disabled;
      if (!passes) disabled = {"all"};
      ASSERT_TRUE(run_passes(graph, disabled));
      Runner runner(*cpu_, graph, run);
      int s = runner.add_sequence();
      std::vector<float> got = runner.append(s, prompt, PlanKind::kPrefill, 77);
      std::vector<float> decoded = runner.append(s, rest, PlanKind::kDecode, 3);
      got.insert(got.end(), decoded.begin(), decoded.end());
      EXPECT_LT(testing::deviation(got, want), tolerance) << options.architecture << " passes " << passes;
    }
  }

  std::unique_ptr<Backend> cpu_, reference_;
};

INSTANTIATE_TEST_SUITE_P(Isa, CpuBackend, ::testing::ValuesIn(cpu::isa_names()),
                         [](const auto& info) { return info.param; });

TEST_P(CpuBackend, FamiliesInF32EqualTheReference) {
  compare({.architecture = "llama"}, {}, 2e-5);
  compare({.architecture = "mistral", .window = 37}, {}, 2e-5);
  compare({.architecture = "qwen2", .heads = 6, .kv_heads = 1, .head_dim = 24}, {}, 2e-5);
  compare({.architecture = "qwen3", .heads = 3, .kv_heads = 3, .head_dim = 40, .tied = true}, {}, 2e-5);
}

TEST_P(CpuBackend, EveryFormatEqualsTheReference) {
  for (FormatId format : all_formats()) {
    if (!can_encode(format)) continue;
    TinyModel tiny = make_tiny_model({.layers = 1, .width = 256, .ff_width = 256, .head_dim = 64, .format = format});
    Graph& graph = tiny.model.graph;
    std::vector<int32_t> tokens = random_tokens(30, graph.value(graph.logits).cols, 3);
    Runner expected(*reference_, graph, {});
    std::vector<float> want = expected.append(expected.add_sequence(), tokens, PlanKind::kPrefill, 30);
    ASSERT_TRUE(run_passes(graph, {}));
    for (WeightLayout layout : {WeightLayout::kPlanar, WeightLayout::kNative}) {
      Runner runner(*cpu_, graph, {.layout = layout});
      int s = runner.add_sequence();
      std::vector<float> got = runner.append(s, std::span(tokens).first(21), PlanKind::kPrefill, 21);
      std::vector<float> decoded = runner.append(s, std::span(tokens).last(9), PlanKind::kDecode, 3);
      got.insert(got.end(), decoded.begin(), decoded.end());
      // 2^-16 of a block's largest activation, a few matrices deep; NF4's values are rounded to 2^-13.
      EXPECT_LT(testing::deviation(got, want), format == FormatId::kNF4 ? 4e-3 : 1e-3)
          << format_info(format).name << " layout " << static_cast<int>(layout);
    }
  }
}

// More rows than a product takes at a time, in a plan for more rows still.
TEST_P(CpuBackend, PrefillOfManyRows) {
  TinyModel tiny =
      make_tiny_model({.layers = 1, .width = 32, .ff_width = 48, .heads = 2, .kv_heads = 1, .context = 2048});
  Graph& graph = tiny.model.graph;
  std::vector<int32_t> tokens = random_tokens(700, graph.value(graph.logits).cols, 4);
  Runner expected(*reference_, graph, {});
  std::vector<float> want = expected.append(expected.add_sequence(), tokens, PlanKind::kPrefill, 30);
  ASSERT_TRUE(run_passes(graph, {}));
  Runner runner(*cpu_, graph, {});
  std::vector<Runner::Part> part = {{runner.add_sequence(), tokens}};
  std::vector<float> got = runner.step(part, PlanKind::kPrefill, testing::WantLogits::kLast);
  EXPECT_LT(testing::deviation(got, std::span(want).last(got.size())), 2e-5);
}

TEST_P(CpuBackend, F16KeysAndValues) { compare({}, {.kv_type = KvType::kF16}, 5e-3); }

// The same rounding as the reference's, up to ties: what differs is what either computes from it.
TEST_P(CpuBackend, EightBitKeysAndValues) {
  compare({.head_dim = 64}, {.kv_type = KvType::kQ8}, 5e-3, 150, KvType::kQ8);
  compare({.architecture = "mistral", .head_dim = 32, .window = 37}, {.kv_type = KvType::kQ8}, 5e-3, 150, KvType::kQ8);
  KvGroup group{.layers = 2, .kv_heads = 3, .head_dim = 128};
  // 16 tokens of keys and values: a byte each, and two for each 32.
  EXPECT_EQ(cpu_->page_bytes(group, KvType::kQ8), 2u * 3 * 2 * 16 * (128 + 4 * 2));
  // Heads that are no multiple of a block of 32.
  compare({.architecture = "qwen2", .heads = 6, .kv_heads = 1, .head_dim = 24}, {.kv_type = KvType::kQ8}, 0.05);
  compare({.architecture = "qwen3", .heads = 3, .kv_heads = 3, .head_dim = 40}, {.kv_type = KvType::kQ8}, 0.05);
}

TEST_P(CpuBackend, EightBitActivations) {
  compare({.width = 256, .ff_width = 256, .head_dim = 64, .format = FormatId::kQ4_K},
          {.activations = Activations::kInt8}, 0.1, 40);
}

// Each sequence's logits must be the same bits alone and beside others.
TEST_P(CpuBackend, RowsDoNotDependOnTheirCompany) {
  for (FormatId format : {FormatId::kQ4_K, FormatId::kF16}) {
    TinyModel tiny = make_tiny_model({.architecture = "mistral",
                                      .layers = 1,
                                      .width = 256,
                                      .ff_width = 256,
                                      .head_dim = 64,
                                      .window = 100,
                                      .context = 1024,
                                      .format = format});
    Graph& graph = tiny.model.graph;
    ASSERT_TRUE(run_passes(graph, {}));
    auto vocab = graph.value(graph.logits).cols;
    constexpr int kSequences = 13;
    Runner together(*cpu_, graph, {.pages = 2048});
    std::vector<std::vector<int32_t>> prompts, next;
    std::vector<int> ids;
    std::vector<Runner::Part> parts;
    for (int i = 0; i < kSequences; ++i) {
      prompts.push_back(random_tokens(i == 12 ? 540 : 3 + 4 * i, vocab, static_cast<uint32_t>(i)));
      next.push_back(random_tokens(1, vocab, static_cast<uint32_t>(100 + i)));
      ids.push_back(together.add_sequence());
    }
    std::vector<std::vector<float>> prefill_alone, decode_alone;
    for (int i = 0; i < kSequences; ++i) {
      auto n = static_cast<size_t>(i);
      Runner alone(*cpu_, graph, {.pages = 256, .seed = static_cast<uint32_t>(i + 2)});
      int s = alone.add_sequence();
      prefill_alone.push_back(alone.append(s, prompts[n], PlanKind::kPrefill, 1000));
      decode_alone.push_back(alone.append(s, next[n], PlanKind::kDecode, 1));
    }
    for (int i = 0; i < kSequences; ++i)
      parts.push_back({ids[static_cast<size_t>(i)], prompts[static_cast<size_t>(i)]});
    std::vector<float> prefill = together.step(parts, PlanKind::kPrefill, testing::WantLogits::kLast);
    for (size_t i = 0; i < kSequences; ++i) parts[i].tokens = next[i];
    std::vector<float> decode = together.step(parts, PlanKind::kDecode);
    for (size_t i = 0; i < kSequences; ++i) {
      auto width = static_cast<size_t>(vocab);
      EXPECT_TRUE(std::equal(prefill.begin() + static_cast<int64_t>(i * width),
                             prefill.begin() + static_cast<int64_t>((i + 1) * width), prefill_alone[i].end() - vocab))
          << "prefill of sequence " << i;
      EXPECT_TRUE(
          std::equal(decode_alone[i].begin(), decode_alone[i].end(), decode.begin() + static_cast<int64_t>(i * width)))
          << "decode of sequence " << i;
    }
  }
}

// Dividing the splits of a long sequence among workers must not change a bit.
TEST_P(CpuBackend, WorkersDoNotChangeResults) {
  TinyModel tiny = make_tiny_model({.layers = 1, .heads = 2, .kv_heads = 1, .context = 2048});
  Graph& graph = tiny.model.graph;
  ASSERT_TRUE(run_passes(graph, {}));
  std::vector<int32_t> tokens = random_tokens(1400, graph.value(graph.logits).cols, 8);
  std::vector<std::vector<float>> results;
  for (int threads : {1, 2, 5}) {
    auto backend = make_cpu_backend({.threads = threads, .isa = GetParam()});
    ASSERT_TRUE(backend);
    Runner runner(**backend, graph, {.kv_type = KvType::kF16});
    int s = runner.add_sequence();
    runner.append(s, std::span(tokens).first(1390), PlanKind::kPrefill, 512);
    results.push_back(runner.append(s, std::span(tokens).subspan(1390), PlanKind::kDecode, 1));
  }
  EXPECT_EQ(results[0], results[1]);
  EXPECT_EQ(results[0], results[2]);
}

// launch() returns before the step is computed, so that what the engine does until wait() (it hands out the tokens of
// the step before) is not one step late. What launch() was given may be gone by then: Runner overwrites it.
TEST_P(CpuBackend, TheStepRunsInWait) {
  TinyModel tiny = make_tiny_model({});
  auto model = cpu_->load(tiny.model.graph, {.kv_pages = {8}});
  ASSERT_TRUE(model);
  Plan plan = make_single_lane_plan(tiny.model.graph, {PlanKind::kDecode, 1});
  auto executable = (*model)->record(plan);
  ASSERT_TRUE(executable);
  std::vector<int32_t> pages = {3}, row = {0};
  StepSequence sequence{.first_row = 0, .rows = 1, .position = 0, .pages = {pages}};
  auto launch = [&](int32_t token) {
    EXPECT_TRUE((*executable)->launch({.tokens = {&token, 1}, .sequences = {&sequence, 1}, .logit_rows = row}));
  };
  auto logits = [&] {
    std::vector<float> out(static_cast<size_t>(tiny.model.graph.value(tiny.model.graph.logits).cols));
    EXPECT_TRUE((*executable)->read_logits(0, out));
    return out;
  };
  launch(5);
  ASSERT_TRUE((*executable)->wait());
  std::vector<float> first = logits();
  launch(6);
  EXPECT_EQ(logits(), first);
  ASSERT_TRUE((*executable)->wait());
  EXPECT_NE(logits(), first);
}

TEST_P(CpuBackend, RefusesBrokenSteps) {
  TinyModel tiny = make_tiny_model({});
  auto model = cpu_->load(tiny.model.graph, {.kv_pages = {8}});
  ASSERT_TRUE(model);
  Plan plan = make_single_lane_plan(tiny.model.graph, {PlanKind::kDecode, 1});
  auto executable = (*model)->record(plan);
  ASSERT_TRUE(executable);
  std::vector<int32_t> pages = {0}, tokens = {1}, huge = {1 << 20};
  StepSequence good{.first_row = 0, .rows = 1, .position = 0, .pages = {pages}};
  StepSequence beyond{.first_row = 0, .rows = 1, .position = 16, .pages = {pages}};
  EXPECT_TRUE((*executable)->launch({.tokens = tokens, .sequences = {&good, 1}}));
  EXPECT_FALSE((*executable)->launch({.tokens = tokens, .sequences = {&beyond, 1}}));
  EXPECT_FALSE((*executable)->launch({.tokens = huge, .sequences = {&good, 1}}));
  EXPECT_FALSE((*executable)->launch({.tokens = tokens, .sequences = {}}));
}

TEST_P(CpuBackend, SaysWhatRuns) {
  std::map<std::string, std::string> titles = {{"portable", "portable C++"}, {"avx2", "AVX2"},
                                               {"avxvnni", "AVX2 VNNI"},     {"avx512", "AVX-512 VNNI"},
                                               {"amx", "AMX BF16"},          {"neon", "NEON"}};
#if defined(__aarch64__)
  titles["portable"] = "NEON without dot products";
#endif
  EXPECT_EQ(cpu_->info().description, titles[GetParam()] + ", 2 workers");
}

// Each kernel of linear ops, forced, is what both kinds of plan run, and computes the same within its rounding.
TEST_P(CpuBackend, ForcedKernelsRun) {
  TinyModel tiny =
      make_tiny_model({.layers = 1, .width = 256, .ff_width = 256, .head_dim = 64, .format = FormatId::kQ4_K});
  Graph& graph = tiny.model.graph;
  std::vector<int32_t> tokens = random_tokens(30, graph.value(graph.logits).cols, 3);
  Runner expected(*reference_, graph, {});
  std::vector<float> want = expected.append(expected.add_sequence(), tokens, PlanKind::kPrefill, 30);
  ASSERT_TRUE(run_passes(graph, {}));
  for (auto [name, tolerance] : {std::pair{"linear:gemv_int", 1e-3},
                                 {"linear:gemv_float", 2e-5},
                                 {"linear:gemm_f32", 2e-5},
                                 {"linear:gemm_int", 1e-3},
                                 {"linear:gemm_bytes", 0.1},
                                 {"linear:gemm_bf16", 0.1},
                                 {"linear:gemm_amx", 1e-3}}) {
    const cpu::KernelTable& kernels = *cpu::select_isa(GetParam()).value();
    const bool missing = (name == std::string("linear:gemm_amx") && !kernels.gemm_amx.multiply) ||
                         (name == std::string("linear:gemm_bf16") && !kernels.gemm_bf16.multiply) ||
                         (name == std::string("linear:gemm_int") && !kernels.gemm_int.multiply) ||
                         (name == std::string("linear:gemm_bytes") && !kernels.gemm_bytes.multiply);
    ASSERT_EQ(setenv("HEARTH_CPU_KERNEL", name, 1), 0);
    auto backend = make_cpu_backend({.threads = 2, .isa = GetParam()});
    ASSERT_EQ(unsetenv("HEARTH_CPU_KERNEL"), 0);
    ASSERT_TRUE(backend) << backend.error().message;
    auto model = (*backend)->load(graph, {.kv_pages = {4}});
    ASSERT_TRUE(model);
    for (PlanKind kind : {PlanKind::kDecode, PlanKind::kPrefill}) {
      Plan plan = make_single_lane_plan(graph, {kind, 8});
      auto executable = (*model)->record(plan);
      if (missing) {
        ASSERT_FALSE(executable);
        EXPECT_EQ(executable.error().code, ErrorCode::kUnsupported);
        EXPECT_TRUE(executable.error().message.starts_with(fmt::format("HEARTH_CPU_KERNEL forces {}", name)));
        continue;
      }
      ASSERT_TRUE(executable);
      std::vector<std::string_view> names = cpu::kernel_names(**executable);
      EXPECT_GE(names.size(), 4u);
      for (std::string_view n : names) {
        if (n.starts_with("linear:")) {
          EXPECT_EQ(n, name);
        }
      }
    }
    if (missing) continue;
    Runner runner(**backend, graph, {});
    int s = runner.add_sequence();
    std::vector<float> got = runner.append(s, std::span(tokens).first(21), PlanKind::kPrefill, 21);
    std::vector<float> decoded = runner.append(s, std::span(tokens).last(9), PlanKind::kDecode, 3);
    got.insert(got.end(), decoded.begin(), decoded.end());
    EXPECT_LT(testing::deviation(got, want), tolerance) << name;
  }
}

// What 8-bit activations multiply with in a prefill: bf16 on the matrix unit, else bytes, where the instruction set has
// a product of the format.
TEST_P(CpuBackend, EightBitActivationsTakeTheirProduct) {
  auto backend = make_cpu_backend({.threads = 1, .isa = GetParam()});
  ASSERT_TRUE(backend) << backend.error().message;
  const cpu::KernelTable& kernels = *cpu::select_isa(GetParam()).value();
  for (auto [format, kind] :
       {std::pair{FormatId::kQ4_K, cpu::PlanarKind::kQ4_K}, {FormatId::kQ8_0, cpu::PlanarKind::kQ8_0}}) {
    TinyModel tiny = make_tiny_model({.layers = 1, .width = 256, .ff_width = 256, .head_dim = 64, .format = format});
    ASSERT_TRUE(run_passes(tiny.model.graph, {}));
    auto model = (*backend)->load(tiny.model.graph, {.kv_pages = {4}, .activations = Activations::kInt8});
    ASSERT_TRUE(model);
    auto executable = (*model)->record(make_single_lane_plan(tiny.model.graph, {PlanKind::kPrefill, 16}));
    ASSERT_TRUE(executable);
    const char* want = kernels.gemm_bf16.multiply                   ? "linear:gemm_bf16"
                       : cpu::takes_codes(kernels.gemm_bytes, kind) ? "linear:gemm_bytes"
                       : cpu::takes_codes(kernels.gemm_int, kind)   ? "linear:gemm_int"
                                                                    : "linear:gemm_f32";
    EXPECT_TRUE(std::ranges::count(cpu::kernel_names(**executable), want) > 0)
        << want << " for " << format_info(format).name;
  }
  if (GetParam() == "avx512") {
    EXPECT_TRUE(cpu::takes_codes(kernels.gemm_bytes, cpu::PlanarKind::kQ8_0));
  }
  if (GetParam() == "avx2") {
    EXPECT_TRUE(cpu::takes_codes(kernels.gemm_bytes, cpu::PlanarKind::kQ4_K));
    EXPECT_FALSE(cpu::takes_codes(kernels.gemm_bytes, cpu::PlanarKind::kQ8_0));  // its sums do not fit
  }
}

TEST(CpuBackendOptions, RefusesUnknownKernels) {
  ASSERT_EQ(setenv("HEARTH_CPU_KERNEL", "linear:fast", 1), 0);
  auto backend = make_cpu_backend({.threads = 1});
  ASSERT_EQ(unsetenv("HEARTH_CPU_KERNEL"), 0);
  ASSERT_FALSE(backend);
  if (backend.error().code == ErrorCode::kUnsupported) GTEST_SKIP() << backend.error().message;
  EXPECT_EQ(backend.error().message,
            "HEARTH_CPU_KERNEL: CPU kernel 'linear:fast' is unknown; there are: linear:gemv_int, linear:gemv_float, "
            "linear:gemm_f32, "
            "linear:gemm_int, linear:gemm_bytes, linear:gemm_bf16, linear:gemm_amx");
}

// Address space is reserved for what is used only: some systems limit it (ulimit -v).
TEST(CpuBackendOptions, RunsWithLittleAddressSpace) {
  if (!testing::can_limit_address_space()) GTEST_SKIP();
  EXPECT_EQ(testing::run_with_address_space(size_t{256} << 20,
                                            [] {
                                              auto backend = make_cpu_backend({.threads = 2, .isa = "portable"});
                                              if (!backend) return 1;
                                              TinyModel tiny = make_tiny_model({});
                                              Runner runner(**backend, tiny.model.graph);
                                              std::vector<int32_t> tokens = random_tokens(300, 300, 1);
                                              int s = runner.add_sequence();
                                              runner.append(s, tokens, PlanKind::kPrefill, 200);
                                              return runner.length(s) == 300 ? 0 : 2;
                                            }),
            0);
}

TEST(CpuBackendOptions, RefusesTheImpossible) {
  auto unknown = make_cpu_backend({.isa = "sse9"});
  ASSERT_FALSE(unknown);
  EXPECT_EQ(unknown.error().code, ErrorCode::kUsage);
  EXPECT_NE(unknown.error().message.find("this machine runs: "), std::string::npos);
  EXPECT_NE(unknown.error().message.find("portable"), std::string::npos);
  for (const char* device : {"cpu", "reference"}) {
    for (int64_t threads : {int64_t{-1}, kMaxThreads + 1}) {
      auto backend = make_backend(device, {.threads = threads});
      ASSERT_FALSE(backend);
      EXPECT_NE(backend.error().message.find(fmt::format("threads is {}; it must be from 1 to 1024", threads)),
                std::string::npos);
    }
  }
}

}  // namespace
}  // namespace hearth
