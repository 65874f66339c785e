// The backend over a driver that fails: every error is reported, nothing is lost, and what still fits goes on.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <random>

#include "backends/cuda/backend.h"
#include "backends/cuda/probe.h"
#include "fake_driver.h"
#include "support/graph_maker.h"

namespace hearth::testing {
namespace {

constexpr int64_t kVocab = 64, kCols = 256, kInner = 320;

// Every op that has a file in ops/, matrices of floats, halves and integer codes.
struct SmallModel {
  GraphMaker maker;

  SmallModel() {
    GraphMaker& m = maker;
    std::mt19937 random(1);
    std::normal_distribution<float> normal;
    auto values = [&](int64_t count) {
      std::vector<float> v(static_cast<size_t>(count));
      for (float& x : v) x = normal(random);
      return v;
    };
    auto weight = [&](const char* name, int64_t rows, int64_t cols, FormatId format) {
      return m.weight(name, rows, cols, values(rows * cols), format);
    };
    m.graph.kv_groups = {{.layers = 1, .kv_heads = 4, .head_dim = 64}};
    m.graph.ropes.push_back({.dims = 64, .frequency = std::vector<double>(32, 0.5)});
    ValueId x = m.embed("embed", weight("table", kVocab, kCols, FormatId::kQ8_0));
    x = m.rms_norm("norm", x, weight("norm", 1, kCols, FormatId::kF32));
    x = m.rope("rope", x, 64, 0);
    const ValueId q = m.linear("q", x, weight("q", kCols, kCols, FormatId::kQ4_0));
    const ValueId k = m.linear("k", x, weight("k", kCols, kCols, FormatId::kF32));
    const ValueId v = m.linear("v", x, weight("v", kCols, kCols, FormatId::kF16));
    x = m.sum("sum", m.attention("attention", {.q = q, .k = k, .v = v, .heads = 4, .scale = 0.125f}), x);
    const ValueId gate = m.linear("gate", x, weight("gate", kInner, kCols, FormatId::kQ8_0));
    const ValueId up = m.linear("up", x, weight("up", kInner, kCols, FormatId::kF16));
    x = m.sum("residual", x, m.linear("down", m.glu("glu", gate, up), weight("down", kCols, kInner, FormatId::kQ4_0)));
    m.finish(x);
    m.graph.hidden = {.value = m.graph.logits,
                      .norm = {.weight = weight("last_norm", 1, kCols, FormatId::kF32), .eps = 1e-5f}};
    m.graph.logits = m.linear("head", m.graph.logits, weight("head", kVocab, kCols, FormatId::kQ8_0));
  }
  const Graph& graph() const { return maker.graph; }
};

const SmallModel& small_model() {
  static const SmallModel model;
  return model;
}

constexpr int64_t kPages = 32;
const std::vector<Bucket> kBuckets = {{PlanKind::kDecode, 1}, {PlanKind::kDecode, 8}, {PlanKind::kPrefill, 128}};

Result<std::unique_ptr<DeviceModel>> load(Backend& backend) {
  return backend.load(small_model().graph(), {.kv_pages = {kPages}});
}

// One step of as many rows as the bucket has, its logits and its hidden state.
Result<void> run(Executable& executable, int64_t rows, const Graph& graph = small_model().graph()) {
  std::vector<int32_t> pages(static_cast<size_t>(rows / kPageTokens + 1), 0), tokens(static_cast<size_t>(rows), 1);
  StepSequence sequence{.rows = static_cast<int32_t>(rows)};
  sequence.pages.assign(graph.kv_groups.size(), pages);
  const int32_t last = static_cast<int32_t>(rows) - 1;
  HEARTH_TRY(
      executable.launch({.tokens = tokens, .sequences = std::span(&sequence, 1), .logit_rows = std::span(&last, 1)}));
  HEARTH_TRY(executable.wait());
  std::vector<float> logits(static_cast<size_t>(graph.value(graph.logits).cols));
  HEARTH_TRY(executable.read_logits(0, logits));
  if (!graph.hidden) return {};
  std::vector<float> hidden(static_cast<size_t>(graph.value(graph.hidden->value).cols));
  return executable.read_hidden(0, hidden);
}

// All that an engine does with a backend.
Result<void> use_everything(const cuda::Driver& driver, const cuda::Tuning& tuning) {
  const Graph& graph = small_model().graph();
  HEARTH_ASSIGN(auto backend, cuda::make_backend(driver, tuning, std::nullopt));
  HEARTH_TRY(backend->workspace_bytes(graph, {}, kBuckets));
  HEARTH_ASSIGN(auto model, load(*backend));
  std::vector<std::unique_ptr<Plan>> plans;
  std::vector<std::unique_ptr<Executable>> executables;
  for (const Bucket& bucket : kBuckets) {
    plans.push_back(std::make_unique<Plan>(make_single_lane_plan(graph, bucket)));
    HEARTH_ASSIGN(auto executable, model->record(*plans.back()));
    executables.push_back(std::move(executable));
    HEARTH_TRY(run(*executables.back(), bucket.rows));
  }
  std::vector<std::byte> memory(2 * model->page_bytes(0));
  const PageCopy pages[] = {{.page = 3, .bytes = memory.data()},
                            {.page = 4, .bytes = memory.data() + model->page_bytes(0)}};
  HEARTH_TRY(model->read_pages(pages));
  return model->write_pages(pages);
}

void expect_clean(const FakeDriver& fake, const std::string& when) {
  EXPECT_EQ(fake.live(), 0) << when;
  EXPECT_EQ(fake.used_bytes(), 0u) << when;
  for (const std::string& misuse : fake.misuses()) ADD_FAILURE() << when << ": " << misuse;
}

// Runs `use` with its first call failing, then its second, and so on until it has no such call.
template <class F>
void fail_every_call(CUresult error, ErrorCode expected, const std::string& what, F&& use) {
  std::map<std::string, int64_t> failures;
  for (int64_t n = 0; n < 100'000; ++n) {
    FakeDriver fake;
    fake.fail_call(n, error);
    const Result<void> result = use(fake);
    const std::string when = fmt::format("{}, call {} ({})", what, n, fake.failed());
    expect_clean(fake, when);
    if (fake.failed().empty()) {
      EXPECT_TRUE(result) << (result ? "" : result.error().message);
      EXPECT_GT(n, 100);
      for (const char* name : {"cuMemCreate", "cuMemMap", "cuMemSetAccess", "cuMemHostAlloc", "cuModuleLoadData"}) {
        EXPECT_GT(failures[name], 0) << name;
      }
      return;
    }
    ++failures[fake.failed()];
    if (result) {
      // How much is free is asked for words only; destructors wait before they give memory back, and report nothing.
      EXPECT_TRUE(fake.failed() == "cuMemGetInfo" || fake.failed() == "cuStreamSynchronize") << when;
      continue;
    }
    EXPECT_EQ(result.error().code, expected) << when << ": " << result.error().message;
    EXPECT_GT(result.error().message.size(), 20u) << when;
  }
  ADD_FAILURE() << "calls without an end";
}

void fail_every_call_of_a_model(CUresult error, ErrorCode expected, const cuda::Tuning& tuning) {
  const std::string what =
      fmt::format("error {}, graphs {}, times {}", static_cast<int>(error), tuning.graphs, tuning.profile);
  fail_every_call(error, expected, what, [&](FakeDriver& fake) { return use_everything(fake.driver(), tuning); });
}

// Code for older GPUs does not wait for the kernel before it, whatever GPU it runs on.
TEST(CudaDriver, OnlyKernelsThatWaitStartEarly) {
  for (const int compiled_for : {80, 90}) {
    FakeDriver fake;
    fake.compiled_for = compiled_for;
    const Result<void> result = use_everything(fake.driver(), {});
    ASSERT_TRUE(result) << result.error().message;
    EXPECT_GT(fake.kernels_run(), 0);
    EXPECT_EQ(fake.dependent_launches() > 0, compiled_for >= 90) << compiled_for;
  }
}

// Runs steps of all sizes that have kernels of their own.
Result<void> run_steps(const cuda::Driver& driver, const Graph& graph, KvType kv_type) {
  HEARTH_TRY(verify(graph));
  HEARTH_ASSIGN(auto backend, cuda::make_backend(driver, {}, std::nullopt));
  HEARTH_ASSIGN(auto model, backend->load(graph, {.kv_type = kv_type,
                                                  .kv_pages = std::vector<int64_t>(graph.kv_groups.size(), kPages)}));
  for (const Bucket& bucket : {Bucket{PlanKind::kDecode, 1}, Bucket{PlanKind::kDecode, 2}, Bucket{PlanKind::kDecode, 4},
                               Bucket{PlanKind::kDecode, 8}, Bucket{PlanKind::kDecode, 16},
                               Bucket{PlanKind::kDecode, 64}, Bucket{PlanKind::kPrefill, 128}}) {
    const Plan plan = make_single_lane_plan(graph, bucket);
    HEARTH_ASSIGN(auto executable, model->record(plan));
    HEARTH_TRY(run(*executable, bucket.rows, graph));
  }
  return {};
}

// GPUs differ in how much a block may have. Code for one runs on it, and the driver's code from 8.0 on all.
TEST(CudaDriver, BlocksHaveTheSharedMemoryThatTheyTake) {
  for (const auto [capability, compiled_for] :
       {std::pair{80, 80}, {86, 80}, {86, 86}, {89, 89}, {90, 80}, {90, 90}, {100, 80}, {120, 80}, {120, 120}}) {
    FakeDriver fake(Gpus{{.capability = capability}});
    fake.compiled_for = compiled_for;
    const std::string gpu = fmt::format("code for {} on {}", compiled_for, capability);
    for (const int64_t cols : {256, 768, 4096, 12288, 16384, 28672}) {
      GraphMaker m;
      ValueId x, sum;
      for (const FormatId format : all_formats()) {
        if (cols % format_info(format).block_elems != 0) continue;
        auto zeros = [&](const char* name) {
          const std::vector<std::byte> bytes(static_cast<size_t>(kVocab) * row_bytes(format, cols));
          return m.native_weight(name, kVocab, cols, bytes, format);
        };
        const ValueId row = m.embed("embed", zeros("table"));
        x = x ? m.sum("sum", x, row) : row;
        const ValueId y = m.linear("linear", x, zeros("weight"));
        sum = sum ? m.sum("sum", sum, y) : y;
      }
      m.finish(sum);
      const Result<void> ran = run_steps(fake.driver(), m.graph, KvType::kF16);
      EXPECT_TRUE(ran) << gpu << ", " << cols << " columns: " << ran.error().message;
    }
    for (const int64_t head_dim : {32, 64, 80, 96, 112, 128, 256, 320, 1024}) {
      for (const int64_t heads : {1, 2, 20}) {
        GraphMaker m;
        m.graph.kv_groups = {{.layers = 1, .kv_heads = 1, .head_dim = head_dim}};
        auto rows = [&](const char* name, int64_t count) {
          const std::vector<float> zeros(static_cast<size_t>(kVocab * count * head_dim));
          return m.embed(name, m.weight(name, kVocab, count * head_dim, zeros));
        };
        m.finish(m.attention(
            "attention", {.q = rows("q", heads), .k = rows("k", 1), .v = rows("v", 1), .heads = heads, .scale = 1}));
        for (const KvType kv_type : {KvType::kF32, KvType::kF16, KvType::kQ8}) {
          if (kv_type == KvType::kQ8 && head_dim % 32 != 0) continue;
          const Result<void> ran = run_steps(fake.driver(), m.graph, kv_type);
          EXPECT_TRUE(ran) << gpu << ", " << heads << " heads of " << head_dim << ": " << ran.error().message;
        }
      }
    }
    expect_clean(fake, gpu);
  }
}

TEST(CudaDriver, CodeWithLargerBlocksThanTheGpuHasIsRefused) {
  FakeDriver fake(Gpus{{.capability = 120}});
  const Result<void> result = use_everything(fake.driver(), {});
  ASSERT_FALSE(result);
  EXPECT_EQ(result.error().code, ErrorCode::kUnsupported);
  EXPECT_NE(result.error().message.find("HEARTH_CUDA_ARCHITECTURES=120"), std::string::npos) << result.error().message;
  expect_clean(fake, "at the end");
}

TEST(CudaDriver, TheFakeRunsAModel) {
  FakeDriver fake;
  const Result<void> result = use_everything(fake.driver(), {});
  ASSERT_TRUE(result) << result.error().message;
  EXPECT_GT(fake.kernels_run(), 20);
  expect_clean(fake, "at the end");
}

TEST(CudaDriver, OutOfMemoryAtEveryCallIsReported) {
  fail_every_call_of_a_model(CUDA_ERROR_OUT_OF_MEMORY, ErrorCode::kOutOfMemory, {});
}

TEST(CudaDriver, AnyErrorAtEveryCallIsReported) {
  fail_every_call_of_a_model(CUDA_ERROR_UNKNOWN, ErrorCode::kInternal, {});
}

TEST(CudaDriver, WithoutGraphsToo) {
  fail_every_call_of_a_model(CUDA_ERROR_OUT_OF_MEMORY, ErrorCode::kOutOfMemory, {.graphs = false});
}

TEST(CudaDriver, WithTimesToo) {
  ::testing::internal::CaptureStderr();
  fail_every_call_of_a_model(CUDA_ERROR_OUT_OF_MEMORY, ErrorCode::kOutOfMemory, {.profile = true});
  ::testing::internal::GetCapturedStderr();
}

TEST(CudaDriver, AStepThatFailsIsNotTheLast) {
  FakeDriver fake;
  {
    auto backend = cuda::make_backend(fake.driver(), {}, std::nullopt);
    ASSERT_TRUE(backend);
    auto model = load(**backend);
    ASSERT_TRUE(model);
    const Plan plan = make_single_lane_plan(small_model().graph(), kBuckets[0]);
    auto executable = (*model)->record(plan);
    ASSERT_TRUE(executable);
    int64_t calls = 0;
    for (; calls < 100; ++calls) {
      fake.fail_call(calls, CUDA_ERROR_OUT_OF_MEMORY);
      const Result<void> result = run(**executable, 1);
      if (fake.failed().empty()) break;
      EXPECT_FALSE(result) << fake.failed();
      fake.fail_call(-1, CUDA_SUCCESS);
      EXPECT_TRUE(run(**executable, 1)) << "after a failed " << calls;
    }
    EXPECT_GT(calls, 3);
  }
  expect_clean(fake, "at the end");
}

// Also where pinning is refused, or a copy fails in the middle of many.
TEST(CudaDriver, PagesGoToTheHostAndBack) {
  for (const bool pinned : {true, false}) {
    FakeDriver fake;
    {
      auto backend = cuda::make_backend(fake.driver(), {}, std::nullopt);
      ASSERT_TRUE(backend);
      auto model = load(**backend);
      ASSERT_TRUE(model);
      const size_t bytes = (*model)->page_bytes(0);
      const int64_t before = fake.live();
      if (!pinned) fake.fail_call(0, CUDA_ERROR_OUT_OF_MEMORY);
      const std::shared_ptr<std::byte[]> memory = (*model)->host_memory(3 * bytes);
      EXPECT_EQ(fake.failed(), pinned ? "" : "cuMemHostAlloc");
      ASSERT_NE(memory, nullptr);
      EXPECT_EQ(fake.live() - before, pinned ? 1 : 0);
      const auto at = [&](size_t page) { return memory.get() + page * bytes; };
      const auto fill = [&](int first) {
        for (size_t i = 0; i < 3 * bytes; ++i) memory[i] = std::byte(first + static_cast<int>(i / bytes));
      };
      fill(1);
      const PageCopy there[] = {{.page = 5, .bytes = at(0)}, {.page = 0, .bytes = at(1)}, {.page = 9, .bytes = at(2)}};
      ASSERT_TRUE((*model)->write_pages(there));
      fill(7);
      const PageCopy back[] = {{.page = 9, .bytes = at(0)}, {.page = 5, .bytes = at(1)}, {.page = 0, .bytes = at(2)}};
      ASSERT_TRUE((*model)->read_pages(back));
      for (const auto& [page, value] : {std::pair{0, 3}, {1, 1}, {2, 2}}) {
        EXPECT_TRUE(std::all_of(at(page), at(page) + bytes, [&](std::byte b) { return b == std::byte(value); }));
      }
      fake.fail_call(1, CUDA_ERROR_UNKNOWN);
      EXPECT_EQ((*model)->read_pages(back).error().code, ErrorCode::kInternal);
      EXPECT_EQ(fake.failed(), "cuMemcpyDtoHAsync");
      fake.fail_call(3, CUDA_ERROR_UNKNOWN);
      EXPECT_FALSE((*model)->write_pages(there));
      EXPECT_EQ(fake.failed(), "cuStreamSynchronize");  // one wait for all
      EXPECT_TRUE((*model)->write_pages(there));
    }
    expect_clean(fake, "at the end");
  }
}

// Memory from none to plenty: a clear error or success, and the largest plan that fits can be found by trying.
TEST(CudaDriver, WhatDoesNotFitIsSaidAndSmallerPlansStillRun) {
  const Graph& graph = small_model().graph();
  bool smaller = false, all = false;
  for (size_t mib = 2; mib <= 256 && !all; mib += 2) {
    FakeDriver fake(Gpus{{.total_bytes = mib << 20}});
    {
      auto backend = cuda::make_backend(fake.driver(), {}, std::nullopt);
      ASSERT_TRUE(backend) << backend.error().message;
      auto model = load(**backend);
      if (!model) {
        EXPECT_EQ(model.error().code, ErrorCode::kOutOfMemory);
        EXPECT_NE(model.error().message.find("MiB more are free on Fake 0"), std::string::npos)
            << model.error().message;
        continue;
      }
      // As the scheduler does: the large one first, then smaller ones.
      std::vector<std::unique_ptr<Plan>> plans;
      bool large_failed = false;
      for (const int64_t rows : {2048, 512, 128}) {
        plans.push_back(std::make_unique<Plan>(make_single_lane_plan(graph, {PlanKind::kPrefill, rows})));
        auto executable = (*model)->record(*plans.back());
        if (!executable) {
          EXPECT_EQ(executable.error().code, ErrorCode::kOutOfMemory) << executable.error().message;
          EXPECT_NE(executable.error().message.find("MiB"), std::string::npos) << executable.error().message;
          large_failed = true;
          continue;
        }
        const Result<void> ran = run(**executable, 128);
        EXPECT_TRUE(ran) << ran.error().message;
        smaller |= large_failed;
        all |= rows == 2048;
        break;
      }
    }
    expect_clean(fake, fmt::format("{} MiB", mib));
  }
  EXPECT_TRUE(smaller);
  EXPECT_TRUE(all);
}

TEST(CudaDriver, TheBudgetKnowsWhatPlansTake) {
  FakeDriver fake;
  const Graph& graph = small_model().graph();
  for (const KvType kv_type : {KvType::kF16, KvType::kQ8}) {
    auto backend = cuda::make_backend(fake.driver(), {}, std::nullopt);
    ASSERT_TRUE(backend);
    std::vector<Bucket> buckets = kBuckets;
    buckets.push_back({PlanKind::kPrefill, 512});
    LoadOptions options{.kv_type = kv_type, .kv_pages = {kPages}};
    auto workspace = (*backend)->workspace_bytes(graph, options, buckets);
    ASSERT_TRUE(workspace) << workspace.error().message;
    EXPECT_EQ(fake.used_bytes(), 0u);
    auto model = (*backend)->load(graph, options);
    ASSERT_TRUE(model);
    std::vector<std::unique_ptr<Plan>> plans;
    std::vector<std::unique_ptr<Executable>> executables;
    for (const Bucket& bucket : buckets) {
      plans.push_back(std::make_unique<Plan>(make_single_lane_plan(graph, bucket)));
      auto executable = (*model)->record(*plans.back());
      ASSERT_TRUE(executable) << executable.error().message;
      executables.push_back(std::move(*executable));
    }
    const size_t planned = (*backend)->weight_bytes(graph, WeightLayout::kAuto) +
                           static_cast<size_t>(kPages) * (*backend)->page_bytes(graph.kv_groups[0], kv_type) +
                           *workspace;
    EXPECT_LE(fake.used_bytes(), planned);
    // What is set aside is the only thing that is not exact, and pages of the GPU are 2 MiB.
    constexpr size_t kRounding = size_t{32} << 20;
    EXPECT_GE(fake.used_bytes() + cuda::kReservedBytes, planned);
    EXPECT_LE(fake.used_bytes(), planned - cuda::kReservedBytes + kRounding);
  }
}

TEST(CudaDriver, TheGpuWithTheMostFreeMemoryIsTakenUnlessOneIsNamed) {
  constexpr size_t kGiB = size_t{1} << 30;
  FakeDriver fake(Gpus{{.total_bytes = 8 * kGiB, .used_bytes = 6 * kGiB}, {.total_bytes = 4 * kGiB}});
  const auto name = [&](std::optional<int> index) {
    auto backend = cuda::make_backend(fake.driver(), {}, index);
    return backend ? (*backend)->info().name : backend.error().message;
  };
  EXPECT_EQ(name(std::nullopt), "cuda:1");
  EXPECT_EQ(name(0), "cuda:0");
  EXPECT_EQ(name(1), "cuda:1");
  EXPECT_EQ(name(2), "there is no GPU 2; this machine has cuda:0 to cuda:1");
  // Its memory is taken on it, not on the first.
  {
    auto backend = cuda::make_backend(fake.driver(), {}, 1);
    ASSERT_TRUE(backend);
    EXPECT_EQ((*backend)->available_bytes(), 4 * kGiB);
    auto model = load(**backend);
    ASSERT_TRUE(model);
    EXPECT_GT(fake.gpu(1).used_bytes, 0u);
    EXPECT_EQ(fake.gpu(0).used_bytes, 6 * kGiB);
  }
  EXPECT_EQ(fake.live(), 0);
}

TEST(CudaDriver, WithoutAGpuTheCpuIsOffered) {
  FakeDriver fake(Gpus{});
  auto backend = cuda::make_backend(fake.driver(), {}, std::nullopt);
  ASSERT_FALSE(backend);
  EXPECT_EQ(backend.error().code, ErrorCode::kNotFound);
  EXPECT_NE(backend.error().message.find("--device cpu"), std::string::npos);
}

TEST(CudaProbe, MeasuresEveryGpu) {
  FakeDriver fake(Gpus{{}, {.capability = 120}});
  CudaReport report;
  ReadMeter host(1, size_t{4} << 20);
  cuda::probe_devices(fake.driver(), report, 0.01, &host);
  EXPECT_EQ(report.problem, "");
  EXPECT_EQ(report.driver_cuda, CUDA_VERSION);
  ASSERT_EQ(report.gpus.size(), 2u);
  EXPECT_EQ(report.gpus[1].device, "cuda:1");
  EXPECT_EQ(report.gpus[1].capability, 120);
  for (const GpuReport& gpu : report.gpus) {
    EXPECT_EQ(gpu.problem, "");
    EXPECT_GT(gpu.free_bytes, 0u);
    for (const double rate :
         {gpu.read_bandwidth, gpu.to_device, gpu.from_device, gpu.host_read_beside_bus, gpu.to_device_beside_host}) {
      EXPECT_GT(rate, 0);
    }
  }
  expect_clean(fake, "at the end");
}

TEST(CudaProbe, SaysWhyAGpuCannotBeUsed) {
  FakeDriver fake(Gpus{{.capability = 61}, {.total_bytes = size_t{16} << 20}});
  CudaReport report;
  cuda::probe_devices(fake.driver(), report, 0.01, nullptr);
  ASSERT_EQ(report.gpus.size(), 2u);
  EXPECT_NE(report.gpus[0].problem.find("compute capability is 6.1"), std::string::npos) << report.gpus[0].problem;
  EXPECT_NE(report.gpus[1].problem.find("16 MiB of it are free"), std::string::npos) << report.gpus[1].problem;
  expect_clean(fake, "at the end");
}

TEST(CudaProbe, EveryCallMayFail) {
  for (int64_t n = 0;; ++n) {
    FakeDriver fake;
    fake.fail_call(n, CUDA_ERROR_OUT_OF_MEMORY);
    CudaReport report;
    cuda::probe_devices(fake.driver(), report, 1e-6, nullptr);
    const std::string when = fmt::format("call {} ({})", n, fake.failed());
    expect_clean(fake, when);
    if (fake.failed().empty()) {
      EXPECT_GT(n, 30);
      break;
    }
    if (fake.failed() == "cuMemGetInfo" || fake.failed() == "cuStreamSynchronize") continue;
    EXPECT_TRUE(!report.problem.empty() || !report.gpus.at(0).problem.empty()) << when;
  }
}

}  // namespace
}  // namespace hearth::testing
