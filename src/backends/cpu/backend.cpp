// The CPU as a backend: loads weights, records plans as arrays of prepared steps, runs them on the pool.
#include "backends/backend.h"

#include <cmath>
#include <utility>

#include "backends/cpu/isa.h"
#include "backends/cpu/step.h"
#include "backends/step_check.h"
#include "base/check.h"
#include "base/checked_math.h"
#include "base/cpu_topology.h"

namespace hearth::cpu {

void RopeTable::fill(int64_t row, int32_t position) const {
  for (int64_t j = 0; j < pairs(); ++j) {
    double angle = position * rope->frequency[static_cast<size_t>(j)];
    cos[row * pairs() + j] = static_cast<float>(std::cos(angle)) * rope->magnitude;
    sin[row * pairs() + j] = static_cast<float>(std::sin(angle)) * rope->magnitude;
  }
}

namespace {

// What a model's executables share; only one of them runs at a time.
struct Shared {
  const KernelTable& kernels;
  ThreadPool& pool;
  const Graph& graph;
  LoadOptions options;
  LinearKernel linear_kernel;
  Weights weights;
  KvPools kv;
  StepLimits limits;
  // The largest of the plans recorded so far, which all that fit into them share.
  std::shared_ptr<const Buffer> values, scratch;
};

// Memory that plans share, since only one of them runs at a time. One that needs more gets a larger buffer; those that
// were recorded before keep theirs.
Result<std::shared_ptr<const Buffer>> at_least(size_t size_bytes, std::shared_ptr<const Buffer>& largest,
                                               const char* what) {
  if (!largest || largest->size_bytes() < size_bytes) {
    HEARTH_ASSIGN(Buffer buffer, Buffer::allocate(size_bytes, false, what));
    largest = std::make_shared<const Buffer>(std::move(buffer));
  }
  return largest;
}

// What the steps of a plan work in.
struct Workspace {
  std::shared_ptr<const Buffer> values;   // arena, then rope tables
  std::shared_ptr<const Buffer> scratch;  // that of all workers, then each worker's own
  size_t shared_bytes = 0;
  size_t worker_bytes = 0;
};

class CpuExecutable : public Executable {
 public:
  CpuExecutable(Shared& shared, Workspace workspace, Bucket bucket, int64_t logit_rows, StepOutput logits,
                StepOutput hidden, std::vector<RopeTable> ropes, std::vector<std::unique_ptr<CpuStep>> steps)
      : shared_(shared),
        workspace_(std::move(workspace)),
        bucket_(bucket),
        logit_rows_(logit_rows),
        logits_(logits),
        hidden_(hidden),
        ropes_(std::move(ropes)),
        steps_(std::move(steps)),
        rows_(static_cast<size_t>(bucket.rows)) {}

  Result<void> launch(const StepBatch& batch) override {
    HEARTH_TRY(check_step(batch, shared_.limits, bucket_, logit_rows_));
    copy(batch);
    launched_ = true;
    return {};
  }

  // The caller is worker 0: what it does between launch() and wait() comes before the step, not after it.
  Result<void> wait() override {
    HEARTH_CHECK(std::exchange(launched_, false), "wait without launch");
    shared_.pool.run([](void* self, ThreadPool::Worker& place) { static_cast<CpuExecutable*>(self)->work(place); },
                     this);
    return {};
  }

  std::vector<std::string_view> kernels() const {
    std::vector<std::string_view> names;
    for (const auto& step : steps_) {
      if (!step->kernel().empty()) names.push_back(step->kernel());
    }
    return names;
  }

  Result<void> read_logits(int64_t first, std::span<float> out) override { return read(logits_, first, out); }
  Result<void> read_hidden(int64_t first, std::span<float> out) override { return read(hidden_, first, out); }

 private:
  Result<void> read(const StepOutput& output, int64_t first, std::span<float> out) const {
    HEARTH_TRY(check_read(out.size(), first, launch_.logit_rows, output.cols));
    std::copy_n(output.rows + first * output.cols, out.size(), out.begin());
    return {};
  }

  // The step runs after launch() has returned. Nothing is allocated once the copies have grown.
  void copy(const StepBatch& batch) {
    tokens_.assign(batch.tokens.begin(), batch.tokens.end());
    logit_row_.assign(batch.logit_rows.begin(), batch.logit_rows.end());
    size_t count = batch.sequences.size();
    if (sequences_.size() < count) sequences_.resize(count);
    pages_.clear();
    for (size_t s = 0; s < count; ++s) {
      const StepSequence& sequence = sequences_[s] = batch.sequences[s];
      for (int32_t r = 0; r < sequence.rows; ++r) {
        rows_[static_cast<size_t>(sequence.first_row + r)] = {.sequence = static_cast<int32_t>(s),
                                                              .position = sequence.position + r};
      }
      for (const auto& pages : sequence.pages) pages_.insert(pages_.end(), pages.begin(), pages.end());
    }
    const int32_t* next = pages_.data();
    for (size_t s = 0; s < count; ++s) {
      for (auto& pages : sequences_[s].pages) {
        pages = {next, pages.size()};
        next += pages.size();
      }
    }
    launch_ = {.rows = static_cast<int64_t>(tokens_.size()),
               .logit_rows = static_cast<int64_t>(logit_row_.size()),
               .tokens = tokens_.data(),
               .logit_row = logit_row_.data(),
               .sequences = std::span(sequences_).first(count),
               .row = rows_.data()};
  }

  void work(ThreadPool::Worker& place) const {
    std::byte* scratch = workspace_.scratch->data();
    size_t own = workspace_.shared_bytes + static_cast<size_t>(place.index()) * workspace_.worker_bytes;
    Worker worker{.place = place, .scratch = scratch + own, .shared = scratch};
    worker.each_tile(launch_.rows, [&](int64_t row) {
      for (const RopeTable& rope : ropes_) rope.fill(row, rows_[static_cast<size_t>(row)].position);
    });
    for (const auto& step : steps_) {
      worker.barrier();
      step->run(launch_, worker);
    }
  }

  Shared& shared_;
  Workspace workspace_;
  Bucket bucket_;
  int64_t logit_rows_;
  StepOutput logits_, hidden_;
  std::vector<RopeTable> ropes_;
  std::vector<std::unique_ptr<CpuStep>> steps_;
  std::vector<RowInfo> rows_;
  // The launched step.
  bool launched_ = false;
  std::vector<int32_t> tokens_, logit_row_;
  std::vector<StepSequence> sequences_;  // at least as many as it has; their pages are in pages_
  std::vector<int32_t> pages_;
  Launch launch_;
};

class CpuModel : public DeviceModel {
 public:
  explicit CpuModel(std::unique_ptr<Shared> shared) : shared_(std::move(shared)) {}

  Result<std::unique_ptr<Executable>> record(const Plan& plan) override {
    Shared& s = *shared_;
    const Graph& graph = s.graph;
    if (plan.graph != &graph || plan.lanes.size() != 1 || plan.lanes[0].kind != LaneKind::kCompute ||
        plan.arena_bytes.size() != 1) {
      return fail(ErrorCode::kUnsupported,
                  "the CPU backend runs plans of the loaded graph with one compute lane; this has {}",
                  plan.lanes.size());
    }
    Pieces pieces;
    pieces.take<std::byte>(static_cast<int64_t>(plan.arena_bytes[0]));
    std::vector<size_t> places;
    for (const Rope& rope : graph.ropes) {
      int64_t count = plan.bucket.rows * (rope.dims / 2);
      for (int i = 0; i < 2; ++i) places.push_back(pieces.take<float>(count));
    }
    Workspace workspace;
    HEARTH_ASSIGN(workspace.values, at_least(pieces.used_bytes(), s.values, "activations"));
    std::byte* base = workspace.values->data();
    std::vector<RopeTable> ropes;
    for (size_t r = 0; r < graph.ropes.size(); ++r) {
      ropes.push_back(
          {.rope = &graph.ropes[r], .cos = at<float>(base, places[2 * r]), .sin = at<float>(base, places[2 * r + 1])});
    }

    PrepareContext context{.graph = graph,
                           .plan = plan,
                           .kernels = s.kernels,
                           .weights = s.weights,
                           .kv = s.kv,
                           .options = s.options,
                           .linear_kernel = s.linear_kernel,
                           .ropes = ropes,
                           .workers = s.pool.workers(),
                           .arena = base};
    std::vector<std::unique_ptr<CpuStep>> steps;
    for (const Step& step : plan.lanes[0].steps) {
      const Node& node = graph.nodes[static_cast<size_t>(step.node)];
      steps.push_back(std::visit([&](const auto& op) { return prepare(op, context); }, node.op));
    }
    if (s.linear_kernel != LinearKernel::kAuto) {
      const std::string_view forced = name_of(s.linear_kernel);
      if (std::ranges::none_of(steps, [&](const auto& step) { return step->kernel() == forced; })) {
        return fail(ErrorCode::kUnsupported,
                    "HEARTH_CPU_KERNEL forces {}, but with {} it multiplies none of this model's matrices", forced,
                    s.kernels.title);
      }
    }
    workspace.shared_bytes = round_up<size_t>(context.shared_bytes, 4096);
    workspace.worker_bytes = round_up<size_t>(context.worker_bytes, 4096);
    size_t scratch_bytes = workspace.shared_bytes + workspace.worker_bytes * static_cast<size_t>(s.pool.workers());
    HEARTH_ASSIGN(workspace.scratch, at_least(scratch_bytes, s.scratch, "scratch"));
    const auto output = [&](ValueId id) { return StepOutput{.rows = context.value(id), .cols = graph.value(id).cols}; };
    return std::unique_ptr<Executable>(new CpuExecutable(
        s, std::move(workspace), plan.bucket, plan.logit_rows, output(graph.logits),
        graph.hidden ? output(graph.hidden->value) : StepOutput{}, std::move(ropes), std::move(steps)));
  }

  size_t page_bytes(int32_t group) const override {
    return KvPools::page_bytes(shared_->kv.group(group), shared_->options.kv_type);
  }
  Result<void> read_pages(std::span<const PageCopy> pages) const override {
    for (const PageCopy& copy : pages) std::ranges::copy(shared_->kv.page(copy.group, copy.page), copy.bytes);
    return {};
  }
  Result<void> write_pages(std::span<const PageCopy> pages) override {
    for (const PageCopy& copy : pages) {
      const auto to = shared_->kv.page(copy.group, copy.page);
      std::copy_n(copy.bytes, to.size(), to.begin());
    }
    return {};
  }

 private:
  std::unique_ptr<Shared> shared_;
};

std::vector<int> worker_cpus(const CpuTopology& topology, int64_t threads) {
  int64_t count = threads > 0 ? threads : topology.workers();
  std::vector<int> cpus(static_cast<size_t>(count), -1);
  // More workers than cores: which shares a core with which is better left to the system.
  if (count <= static_cast<int64_t>(topology.cores.size())) std::copy_n(topology.cores.begin(), count, cpus.begin());
  return cpus;
}

class CpuBackend : public Backend {
 public:
  CpuBackend(const KernelTable& kernels, LinearKernel linear_kernel, std::unique_ptr<ThreadPool> pool)
      : kernels_(kernels), linear_kernel_(linear_kernel), pool_(std::move(pool)) {
    int workers = pool_->workers();
    info_ = {.name = "cpu",
             .description = fmt::format("{}, {} worker{}", kernels.title, workers, workers == 1 ? "" : "s"),
             .workers = workers};
  }

  const DeviceInfo& info() const override { return info_; }
  size_t page_bytes(const KvGroup& group, KvType type) const override { return KvPools::page_bytes(group, type); }
  size_t weight_bytes(const Graph& graph, WeightLayout layout) const override {
    return Weights::planar_bytes(graph, layout);
  }
  bool takes_int8(FormatId format) const override {
    const std::optional<PlanarKind> kind = planar_kind(format);
    return (kind && has_integer_codes(*kind)) || (kernels_.gemm_bf16.multiply && format != FormatId::kF32);
  }

  Result<std::unique_ptr<DeviceModel>> load(const Graph& graph, const LoadOptions& options) override {
    HEARTH_ASSIGN(KvPools kv, KvPools::allocate(graph.kv_groups, options.kv_type, options.kv_pages));
    HEARTH_ASSIGN(Weights weights, Weights::load(graph, options, kernels_, *pool_));
    std::unique_ptr<Shared> shared(new Shared{.kernels = kernels_,
                                              .pool = *pool_,
                                              .graph = graph,
                                              .options = options,
                                              .linear_kernel = linear_kernel_,
                                              .weights = std::move(weights),
                                              .kv = std::move(kv),
                                              .limits = step_limits(graph, options.kv_pages)});
    return std::unique_ptr<DeviceModel>(new CpuModel(std::move(shared)));
  }

 private:
  const KernelTable& kernels_;
  LinearKernel linear_kernel_;
  std::unique_ptr<ThreadPool> pool_;
  DeviceInfo info_;
};

}  // namespace

std::vector<std::string_view> kernel_names(const Executable& executable) {
  return static_cast<const CpuExecutable&>(executable).kernels();
}

}  // namespace hearth::cpu

namespace hearth {

Result<std::unique_ptr<Backend>> make_cpu_backend(const BackendOptions& options) {
  HEARTH_ASSIGN(const cpu::KernelTable* kernels, cpu::select_isa(options.isa));
  HEARTH_ASSIGN(const cpu::LinearKernel linear_kernel, cpu::forced_linear_kernel());
  HEARTH_ASSIGN(auto pool, cpu::ThreadPool::start(cpu::worker_cpus(read_cpu_topology(), options.threads)));
  return std::unique_ptr<Backend>(new cpu::CpuBackend(*kernels, linear_kernel, std::move(pool)));
}

}  // namespace hearth
