// An NVIDIA GPU as a backend: loads weights, records plans as CUDA graphs, replays them.
#include "backends/cuda/backend.h"

#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <utility>

#include "backends/cuda/ops/linear.h"
#include "backends/cuda/probe.h"
#include "backends/step_check.h"
#include "base/check.h"
#include "base/checked_math.h"

namespace hearth::cuda {

Result<Tuning> read_tuning() {
  Tuning tuning;
  const char* without = std::getenv("HEARTH_CUDA_WITHOUT");
  for (std::string_view rest = without ? without : ""; !rest.empty();) {
    const std::string_view name = rest.substr(0, rest.find(','));
    rest.remove_prefix(std::min(rest.size(), name.size() + 1));
    if (name == "graphs") {
      tuning.graphs = false;
    } else if (name == "dependent") {
      tuning.dependent = false;
    } else if (name == "fusion") {
      tuning.fusion = false;
    } else {
      return fail(ErrorCode::kUsage, "HEARTH_CUDA_WITHOUT names \"{}\"; it can name graphs, dependent and fusion",
                  name);
    }
  }
  const char* profile = std::getenv("HEARTH_CUDA_PROFILE");
  tuning.profile = profile != nullptr && *profile != '\0' && *profile != '0';
  return tuning;
}

namespace {

// The step's data in GPU memory and the host's copy of it. One structure after the other at fixed addresses; page
// tables and the tokens whose logits are wanted, which grow, last and found through the header.
class StepMemory {
 public:
  // `table_entries`: page numbers of all sequences of a step; as sequences share pages there may be more than pages.
  static Result<StepMemory> allocate(const Device& device, int64_t rows, int64_t logit_rows, int64_t table_entries) {
    StepMemory m;
    Pieces pieces;
    m.header_ = pieces.take(sizeof(StepHeader));
    m.rows_ = pieces.take(static_cast<size_t>(rows) * sizeof(StepRow));
    m.logit_rows_ = pieces.take(static_cast<size_t>(logit_rows) * sizeof(int32_t));
    m.requests_ = pieces.take(static_cast<size_t>(logit_rows) * sizeof(StepRequest));
    m.sequences_ = pieces.take(static_cast<size_t>(rows) * sizeof(StepSpan));
    // Each sequence has at most one tile that is not full.
    m.tiles_ = pieces.take(static_cast<size_t>(rows) * sizeof(StepTile));
    m.fixed_bytes_ = pieces.used_bytes();
    const int64_t growing = std::max<int64_t>(4 * table_entries, 1 << 16) + logit_rows * kMaxWantedLogits;
    const size_t bytes = m.fixed_bytes_ + static_cast<size_t>(growing) * sizeof(int32_t);
    HEARTH_ASSIGN(m.device_, DeviceBuffer::allocate(device, bytes, "the data of a step"));
    HEARTH_ASSIGN(m.host_, HostBuffer::allocate(device, bytes, "the data of a step"));
    return m;
  }

  StepView view() const {
    return {.header = device_.at<const StepHeader>(header_),
            .rows = device_.at<const StepRow>(rows_),
            .logit_rows = device_.at<const int32_t>(logit_rows_),
            .requests = device_.at<const StepRequest>(requests_),
            .sequences = device_.at<const StepSpan>(sequences_),
            .tiles = device_.at<const StepTile>(tiles_)};
  }

  Result<void> upload(const Device& device, const StepBatch& batch, size_t groups) {
    size_t table = 0;
    for (const StepSequence& s : batch.sequences) {
      for (const auto& pages : s.pages) table += pages.size();
    }
    size_t wanted = 0;
    for (const CandidateRequest& request : batch.requests) wanted += request.tokens.size();
    const size_t offsets = batch.sequences.size() * groups;
    const size_t bytes = fixed_bytes_ + (offsets + table + wanted) * sizeof(int32_t);
    if (bytes > host_.size_bytes()) {
      return fail(ErrorCode::kOutOfMemory, "a step with {} page numbers has no room for them; it has {} KiB", table,
                  host_.size_bytes() >> 10);
    }
    auto* header = host_.at<StepHeader>(header_);
    auto* rows = host_.at<StepRow>(rows_);
    auto* spans = host_.at<StepSpan>(sequences_);
    auto* tiles = host_.at<StepTile>(tiles_);
    auto* page_offsets = host_.at<int32_t>(fixed_bytes_);
    int32_t* pages = page_offsets + offsets;
    *header = {.rows = static_cast<int32_t>(batch.tokens.size()),
               .logit_rows = static_cast<int32_t>(batch.logit_rows.size()),
               .sequences = static_cast<int32_t>(batch.sequences.size()),
               .tiles = 0,
               .pages = device_.at<const int32_t>(fixed_bytes_) + offsets,
               .page_offsets = device_.at<const int32_t>(fixed_bytes_),
               .wanted = device_.at<const int32_t>(fixed_bytes_) + offsets + table,
               .groups = static_cast<int32_t>(groups),
               .unused = 0};
    int32_t next = 0, riding = 0;
    for (size_t s = 0; s < batch.sequences.size(); ++s) {
      const StepSequence& sequence = batch.sequences[s];
      spans[s] = {sequence.first_row, sequence.rows, sequence.position, 0};
      for (int32_t r = 0; r < sequence.rows; ++r) {
        const int32_t row = sequence.first_row + r;
        rows[row] = {batch.tokens[static_cast<size_t>(row)], sequence.position + r, static_cast<int32_t>(s), 0};
      }
      if (sequence.rows > 1 || riding++ >= kRidingRows) {
        for (int32_t r = 0; r < sequence.rows; r += kTileRows) {
          tiles[header->tiles++] = {sequence.first_row + r, std::min(kTileRows, sequence.rows - r)};
        }
      }
      for (size_t g = 0; g < groups; ++g) {
        page_offsets[s * groups + g] = next;
        std::ranges::copy(sequence.pages[g], pages + next);
        next += static_cast<int32_t>(sequence.pages[g].size());
      }
    }
    std::ranges::copy(batch.logit_rows, host_.at<int32_t>(logit_rows_));
    auto* requests = host_.at<StepRequest>(requests_);
    int32_t* wanted_tokens = pages + table;
    next = 0;
    for (size_t row = 0; row < batch.logit_rows.size(); ++row) {
      const CandidateRequest request = batch.requests.empty() ? CandidateRequest{} : batch.requests[row];
      const auto count = static_cast<int32_t>(request.tokens.size());
      requests[row] = {.temperature = request.temperature, .first = next, .wanted = count, .unused = 0};
      std::ranges::copy(request.tokens, wanted_tokens + next);
      next += count;
    }
    return device.driver().check(
        device.driver().cuMemcpyHtoDAsync(device_.address(), host_.at<std::byte>(), bytes, device.stream()),
        "copy the step to the GPU");
  }

 private:
  size_t header_ = 0, rows_ = 0, logit_rows_ = 0, requests_ = 0, sequences_ = 0, tiles_ = 0, fixed_bytes_ = 0;
  DeviceBuffer device_;
  HostBuffer host_;
};

// Times on the stream.
class Events {
 public:
  static Result<Events> create(const Device& device, size_t count) {
    Events self(device);
    while (self.events_.size() < count) {
      HEARTH_TRY(device.driver().check(device.driver().cuEventCreate(&self.events_.emplace_back(), CU_EVENT_DEFAULT),
                                       "make an event"));
    }
    return self;
  }
  Events(Events&&) = default;
  ~Events() {
    for (CUevent event : events_) {
      if (event != nullptr) device_.driver().cuEventDestroy(event);
    }
  }
  Result<void> record(size_t i) const {
    return device_.driver().check(device_.driver().cuEventRecord(events_[i], device_.stream()), "record an event");
  }
  // Between events i and i + 1, both of which are in the past.
  Result<double> milliseconds(size_t i) const {
    float milliseconds = 0;
    HEARTH_TRY(device_.driver().check(device_.driver().cuEventElapsedTime(&milliseconds, events_[i], events_[i + 1]),
                                      "read the time between two events"));
    return milliseconds;
  }

 private:
  explicit Events(const Device& device) : device_(device) {}
  const Device& device_;
  std::vector<CUevent> events_;
};

struct KernelTime {
  std::string name;
  double milliseconds = 0;
  int64_t launches = 0;
};

// What a model's executables share; only one of them runs at a time.
struct Shared {
  const Device& device;
  Kernels& kernels;
  const Graph& graph;
  LoadOptions options;
  Tuning tuning;
  Weights weights;
  KvPools kv;
  StepMemory step;
  DeviceBuffer counters;
  HostBuffer staging;                     // of rows that are read
  HostBuffer found;                       // [kMaxLogitRows] FoundRow, which the kernel writes
  std::vector<DeviceBuffer> frequencies;  // by Graph::ropes
  StepLimits limits;
  // The largest of the plans recorded so far, which all that fit into them share.
  std::shared_ptr<const DeviceBuffer> values, scratch;
  std::vector<KernelTime> times;

  ~Shared() {
    std::ranges::sort(times, std::ranges::greater{}, &KernelTime::milliseconds);
    for (const KernelTime& t : times) {
      fmt::print(stderr, "{:>10.3f} ms {:>8} launches {:>8.2f} us each  {}\n", t.milliseconds, t.launches,
                 1e3 * t.milliseconds / static_cast<double>(t.launches), t.name);
    }
  }
};

Result<std::shared_ptr<const DeviceBuffer>> at_least(const Device& device, size_t bytes,
                                                     std::shared_ptr<const DeviceBuffer>& largest, const char* what) {
  if (!largest || largest->size_bytes() < bytes) {
    HEARTH_ASSIGN(DeviceBuffer buffer, DeviceBuffer::allocate(device, std::max<size_t>(bytes, 1), what));
    largest = std::make_shared<const DeviceBuffer>(std::move(buffer));
  }
  return largest;
}

class CudaExecutable : public Executable {
 public:
  CudaExecutable(Shared& shared, std::vector<std::shared_ptr<const DeviceBuffer>> memory, std::vector<Launch> launches,
                 CUgraphExec graph, Bucket bucket, int64_t logit_rows, StepOutput logits, StepOutput hidden)
      : shared_(shared),
        memory_(std::move(memory)),
        launches_(std::move(launches)),
        graph_(graph),
        bucket_(bucket),
        logit_rows_(logit_rows),
        logits_(logits),
        hidden_(hidden) {}
  ~CudaExecutable() override {
    shared_.device.use();
    if (running_) static_cast<void>(shared_.device.synchronize("end the step"));
    if (graph_ != nullptr) shared_.device.driver().cuGraphExecDestroy(graph_);
  }

  Result<void> launch(const StepBatch& batch) override {
    HEARTH_TRY(check_step(batch, shared_.limits, bucket_, logit_rows_));
    const Device& device = shared_.device;
    device.use();
    HEARTH_TRY(shared_.step.upload(device, batch, shared_.graph.kv_groups.size()));
    running_ = true;
    launched_logits_ = static_cast<int64_t>(batch.logit_rows.size());
    for (size_t row = 0; row < batch.logit_rows.size(); ++row) {
      wanted_[row] = batch.requests.empty() ? 0 : batch.requests[row].tokens.size();
    }
    if (shared_.tuning.profile) return run_with_times();
    if (graph_ != nullptr)
      return device.driver().check(device.driver().cuGraphLaunch(graph_, device.stream()), "start a step");
    for (const Launch& launch : launches_) HEARTH_TRY(launch.enqueue(device));
    return {};
  }

  Result<void> wait() override {
    HEARTH_CHECK(std::exchange(running_, false), "wait without launch");
    shared_.device.use();
    return shared_.device.synchronize("run a step on the GPU");
  }

  std::optional<Candidates> candidates(int64_t row) const override {
    HEARTH_CHECK(row >= 0 && row < launched_logits_ && !running_, "candidates of row {} of {}", row, launched_logits_);
    const FoundRow& found = shared_.found.at<const FoundRow>()[row];
    const auto count = static_cast<size_t>(std::min(kCandidates, logits_.cols));
    return Candidates{.tokens = std::span(found.tokens).first(count),
                      .logits = std::span(found.logits).first(count),
                      .wanted = std::span(found.wanted).first(wanted_[static_cast<size_t>(row)]),
                      .sum = found.sum,
                      .tempered_sum = found.tempered_sum,
                      .finite = found.finite != 0};
  }

  Result<void> read_logits(int64_t first, std::span<float> out) override { return read(logits_, first, out); }
  Result<void> read_hidden(int64_t first, std::span<float> out) override { return read(hidden_, first, out); }

 private:
  Result<void> read(const StepOutput& output, int64_t first, std::span<float> out) const {
    HEARTH_TRY(check_read(out.size(), first, launched_logits_, output.cols));
    const Device& device = shared_.device;
    device.use();
    const auto source = reinterpret_cast<CUdeviceptr>(output.rows + first * output.cols);
    auto* staging = shared_.staging.at<float>();
    const size_t count = out.size(), capacity = shared_.staging.size_bytes() / sizeof(float);
    for (size_t done = 0; done < count;) {
      const size_t n = std::min(capacity, count - done);
      HEARTH_TRY(device.driver().check(
          device.driver().cuMemcpyDtoHAsync(staging, source + done * sizeof(float), n * sizeof(float), device.stream()),
          "copy rows from the GPU"));
      HEARTH_TRY(device.synchronize("copy rows from the GPU"));
      std::copy_n(staging, n, out.begin() + static_cast<std::ptrdiff_t>(done));
      done += n;
    }
    return {};
  }

  Result<void> run_with_times() {
    const Device& device = shared_.device;
    HEARTH_ASSIGN(const Events events, Events::create(device, launches_.size() + 1));
    HEARTH_TRY(events.record(0));
    for (size_t i = 0; i < launches_.size(); ++i) {
      Launch launch = launches_[i];
      launch.dependent = false;
      HEARTH_TRY(launch.enqueue(device));
      HEARTH_TRY(events.record(i + 1));
    }
    HEARTH_TRY(device.synchronize("run a step on the GPU"));
    for (size_t i = 0; i < launches_.size(); ++i) {
      HEARTH_ASSIGN(const double milliseconds, events.milliseconds(i));
      const std::string name = fmt::format("{} ({} rows)", launches_[i].kernel.name, bucket_.rows);
      auto time = std::ranges::find(shared_.times, name, &KernelTime::name);
      if (time == shared_.times.end()) time = shared_.times.insert(time, KernelTime{.name = name});
      time->milliseconds += milliseconds;
      ++time->launches;
    }
    return {};
  }

  Shared& shared_;
  std::vector<std::shared_ptr<const DeviceBuffer>> memory_;  // kept alive
  std::vector<Launch> launches_;
  CUgraphExec graph_;  // nullptr: started one by one
  Bucket bucket_;
  int64_t logit_rows_;
  StepOutput logits_, hidden_;
  bool running_ = false;
  int64_t launched_logits_ = 0;
  size_t wanted_[kMaxLogitRows] = {};  // logits, by logit row
};

Result<CUgraphExec> capture(const Device& device, const std::vector<Launch>& launches) {
  const Driver& driver = device.driver();
  HEARTH_TRY(driver.check(driver.cuStreamBeginCapture(device.stream(), CU_STREAM_CAPTURE_MODE_THREAD_LOCAL),
                          "record a graph"));
  Result<void> result;
  for (const Launch& launch : launches) {
    if (result) result = launch.enqueue(device);
  }
  CUgraph graph = nullptr;
  Result<void> ended = driver.check(driver.cuStreamEndCapture(device.stream(), &graph), "record a graph");
  if (result) result = std::move(ended);
  CUgraphExec exec = nullptr;
  if (result) result = driver.check(driver.cuGraphInstantiate(&exec, graph, 0), "make a recorded graph ready");
  if (graph != nullptr) driver.cuGraphDestroy(graph);
  if (!result) return std::move(result).error();
  return exec;
}

// The memory of a plan's values: the arena, then the tables of rotations.
struct ValueMemory {
  explicit ValueMemory(const Plan& plan) {
    Pieces pieces;
    pieces.take(plan.arena_bytes[0]);
    for (const Rope& rope : plan.graph->ropes) {
      const auto table = static_cast<size_t>(plan.bucket.rows * (rope.dims / 2)) * sizeof(float);
      cos.push_back(pieces.take(table));
      sin.push_back(pieces.take(table));
    }
    bytes = pieces.used_bytes();
  }
  std::vector<RopeView> ropes(const Graph& graph, CUdeviceptr base) const {
    std::vector<RopeView> views;
    for (size_t r = 0; r < graph.ropes.size(); ++r) {
      views.push_back({.cos = reinterpret_cast<const float*>(base + cos[r]),
                       .sin = reinterpret_cast<const float*>(base + sin[r]),
                       .pairs = static_cast<int32_t>(graph.ropes[r].dims / 2),
                       .half = graph.ropes[r].pairing == RopePairing::kHalf});
    }
    return views;
  }

  size_t bytes = 0;
  std::vector<size_t> cos, sin;  // offsets, by Graph::ropes
};

// Appends the launches of all steps. `frequencies`: by Graph::ropes, or none while only sizes are wanted.
Result<void> prepare_all(PrepareContext& context, std::span<const DeviceBuffer> frequencies, FoundRow* found) {
  const Graph& graph = context.graph;
  for (size_t r = 0; r < graph.ropes.size(); ++r) {
    Launch launch;
    HEARTH_ASSIGN(launch.kernel, context.kernels.get("elementwise", "rope_table", 0));
    RopeTableParams params{.step = context.step,
                           .frequency = frequencies.empty() ? nullptr : frequencies[r].at<const double>(),
                           .cos = const_cast<float*>(context.ropes[r].cos),
                           .sin = const_cast<float*>(context.ropes[r].sin),
                           .pairs = context.ropes[r].pairs,
                           .magnitude = graph.ropes[r].magnitude};
    launch.grid[0] = static_cast<unsigned>(context.plan.bucket.rows);
    launch.threads = 64;
    launch.set_params(params);
    context.launches.push_back(std::move(launch));
  }
  for (const Step& step : context.plan.lanes[0].steps) {
    const Node& node = graph.nodes[static_cast<size_t>(step.node)];
    HEARTH_TRY(std::visit([&](const auto& op) { return prepare(op, context); }, node.op));
  }
  return prepare_candidates(found, context);
}

class CudaModel : public DeviceModel {
 public:
  explicit CudaModel(std::unique_ptr<Shared> shared) : shared_(std::move(shared)) {}

  Result<std::unique_ptr<Executable>> record(const Plan& plan) override {
    Shared& s = *shared_;
    const Graph& graph = s.graph;
    if (plan.graph != &graph || plan.lanes.size() != 1 || plan.lanes[0].kind != LaneKind::kCompute ||
        plan.arena_bytes.size() != 1) {
      return fail(ErrorCode::kUnsupported,
                  "the CUDA backend runs plans of the loaded graph with one compute lane; this has {}",
                  plan.lanes.size());
    }
    s.device.use();
    const ValueMemory memory(plan);
    HEARTH_ASSIGN(auto values, at_least(s.device, memory.bytes, s.values, "activations"));
    const std::vector<RopeView> ropes = memory.ropes(graph, values->address());
    PrepareContext context{.device = s.device,
                           .kernels = s.kernels,
                           .graph = graph,
                           .plan = plan,
                           .weights = s.weights,
                           .kv = s.kv,
                           .options = s.options,
                           .tuning = s.tuning,
                           .step = s.step.view(),
                           .ropes = ropes,
                           .arena = values->address(),
                           .counters = s.counters.at<uint32_t>()};
    HEARTH_TRY(prepare_all(context, s.frequencies, s.found.at<FoundRow>()));
    HEARTH_ASSIGN(auto scratch, at_least(s.device, context.scratch_bytes, s.scratch, "scratch"));
    context.scratch = scratch->address();
    context.launches.clear();
    HEARTH_TRY(prepare_all(context, s.frequencies, s.found.at<FoundRow>()));
    // Nothing of this step may start before its data is there, and nothing of the next before this is complete.
    context.launches.front().dependent = false;
    if (!s.tuning.dependent) {
      for (Launch& launch : context.launches) launch.dependent = false;
    }
    CUgraphExec exec = nullptr;
    if (s.tuning.graphs && !s.tuning.profile) {
      HEARTH_ASSIGN(exec, capture(s.device, context.launches));
    }
    const auto output = [&](ValueId id) { return StepOutput{.rows = context.value(id), .cols = graph.value(id).cols}; };
    return std::unique_ptr<Executable>(new CudaExecutable(s, {values, scratch}, std::move(context.launches), exec,
                                                          plan.bucket, plan.logit_rows, output(graph.logits),
                                                          graph.hidden ? output(graph.hidden->value) : StepOutput{}));
  }

  size_t page_bytes(int32_t group) const override { return shared_->kv.page_bytes(group); }
  Result<void> read_pages(std::span<const PageCopy> pages) const override {
    return copy_pages(pages, "copy pages from the GPU", [&](const PageCopy& copy, CUdeviceptr page, CUstream stream) {
      return shared_->device.driver().cuMemcpyDtoHAsync(copy.bytes, page, page_bytes(copy.group), stream);
    });
  }
  Result<void> write_pages(std::span<const PageCopy> pages) override {
    return copy_pages(pages, "copy pages to the GPU", [&](const PageCopy& copy, CUdeviceptr page, CUstream stream) {
      return shared_->device.driver().cuMemcpyHtoDAsync(page, copy.bytes, page_bytes(copy.group), stream);
    });
  }
  // Pinned; where that is refused, copies from and to any memory work too, at a fraction of the speed.
  std::shared_ptr<std::byte[]> host_memory(size_t bytes) override {
    Result<HostBuffer> pinned = HostBuffer::allocate(shared_->device, bytes, "the prefix cache");
    if (!pinned) return DeviceModel::host_memory(bytes);
    auto buffer = std::make_shared<HostBuffer>(std::move(*pinned));
    return {buffer, buffer->at<std::byte>()};
  }

 private:
  // One after the other on the stream, and one wait for all: also after a copy that could not be started, as those
  // before it may run.
  template <class Copy>
  Result<void> copy_pages(std::span<const PageCopy> pages, std::string_view attempt, const Copy& copy_one) const {
    const Device& device = shared_->device;
    device.use();
    Result<void> result;
    for (const PageCopy& copy : pages) {
      if (!result) break;
      result = device.driver().check(copy_one(copy, shared_->kv.page(copy.group, copy.page), device.stream()), attempt);
    }
    Result<void> done = device.synchronize(attempt);
    return result ? done : result;
  }

  std::unique_ptr<Shared> shared_;
};

class CudaBackend : public Backend {
 public:
  CudaBackend(std::unique_ptr<Device> device, Tuning tuning)
      : device_(std::move(device)), kernels_(*device_), tuning_(tuning) {
    const DeviceProperties& p = device_->properties();
    info_ = {.name = fmt::format("cuda:{}", p.index),
             .description =
                 fmt::format("{}, {} MiB of {} MiB free", p.name, device_->free_bytes() >> 20, p.total_bytes >> 20)};
  }

  const DeviceInfo& info() const override { return info_; }
  size_t page_bytes(const KvGroup& group, KvType type) const override { return KvPools::page_bytes(group, type); }
  size_t weight_bytes(const Graph& graph, WeightLayout) const override { return Weights::device_bytes(graph); }
  bool takes_int8(FormatId format) const override { return format_shape(format).integer_codes; }
  std::optional<size_t> available_bytes() const override { return device_->free_bytes(); }

  // Exact, by the same calls that record: only addresses are missing.
  Result<size_t> workspace_bytes(const Graph& graph, const LoadOptions& options,
                                 std::span<const Bucket> buckets) override {
    const Weights weights = Weights::place(graph, 0);
    HEARTH_ASSIGN(const KvPools kv, KvPools::allocate(*device_, graph.kv_groups, options.kv_type,
                                                      std::vector<int64_t>(graph.kv_groups.size(), 0)));
    size_t bytes = kReservedBytes;
    for (const Bucket& bucket : buckets) {
      const Plan plan = make_single_lane_plan(graph, bucket);
      const ValueMemory memory(plan);
      const std::vector<RopeView> ropes = memory.ropes(graph, 0);
      PrepareContext context{.device = *device_,
                             .kernels = kernels_,
                             .graph = graph,
                             .plan = plan,
                             .weights = weights,
                             .kv = kv,
                             .options = options,
                             .tuning = tuning_,
                             .step = {},
                             .ropes = ropes,
                             .arena = 0};
      HEARTH_TRY(prepare_all(context, {}, nullptr));
      // A plan that needs more than those before it gets memory of its own; they keep theirs.
      bytes += memory.bytes + context.scratch_bytes;
    }
    return bytes;
  }

  Result<double> read_bandwidth(double seconds) override { return measure_reads(*device_, kernels_, seconds); }

  Result<std::unique_ptr<DeviceModel>> load(const Graph& graph, const LoadOptions& options) override {
    const Device& device = *device_;
    device.use();
    int64_t table_entries = 0;
    for (int64_t pages : options.kv_pages) table_entries += pages;
    HEARTH_ASSIGN(KvPools kv, KvPools::allocate(device, graph.kv_groups, options.kv_type, options.kv_pages));
    HEARTH_TRY(kv.clear(device));
    HEARTH_ASSIGN(Weights weights, Weights::load(device, graph, options));
    HEARTH_ASSIGN(StepMemory step, StepMemory::allocate(device, kPrefillRows[std::size(kPrefillRows) - 1],
                                                        kMaxLogitRows, table_entries));
    HEARTH_ASSIGN(DeviceBuffer counters, DeviceBuffer::allocate(device, kCounters * sizeof(uint32_t), "counters"));
    HEARTH_TRY(counters.clear(device));
    HEARTH_ASSIGN(HostBuffer staging, HostBuffer::allocate(device, size_t{4} << 20, "rows that are read"));
    HEARTH_ASSIGN(HostBuffer found, HostBuffer::allocate(device, kMaxLogitRows * sizeof(FoundRow), "candidates"));
    std::vector<DeviceBuffer> frequencies;
    for (const Rope& rope : graph.ropes) {
      const size_t bytes = rope.frequency.size() * sizeof(double);
      HEARTH_ASSIGN(DeviceBuffer buffer, DeviceBuffer::allocate(device, bytes, "rotations"));
      HEARTH_TRY(device.driver().check(
          device.driver().cuMemcpyHtoDAsync(buffer.address(), rope.frequency.data(), bytes, device.stream()),
          "copy rotations to the GPU"));
      frequencies.push_back(std::move(buffer));
    }
    HEARTH_TRY(device.synchronize("prepare the GPU"));
    std::unique_ptr<Shared> shared(new Shared{.device = device,
                                              .kernels = kernels_,
                                              .graph = graph,
                                              .options = options,
                                              .tuning = tuning_,
                                              .weights = std::move(weights),
                                              .kv = std::move(kv),
                                              .step = std::move(step),
                                              .counters = std::move(counters),
                                              .staging = std::move(staging),
                                              .found = std::move(found),
                                              .frequencies = std::move(frequencies),
                                              .limits = step_limits(graph, options.kv_pages)});
    return std::unique_ptr<DeviceModel>(new CudaModel(std::move(shared)));
  }

 private:
  std::unique_ptr<Device> device_;
  Kernels kernels_;
  Tuning tuning_;
  DeviceInfo info_;
};

// The GPU with this index, or the one with the most free memory.
Result<std::unique_ptr<Device>> open_device(const Driver& driver, std::optional<int> index) {
  HEARTH_ASSIGN(const std::vector<DeviceProperties> devices, list_devices(driver));
  if (devices.empty()) {
    return fail(ErrorCode::kNotFound, "cannot use an NVIDIA GPU: the driver finds none; --device cpu works");
  }
  if (index) {
    if (*index < 0 || static_cast<size_t>(*index) >= devices.size()) {
      return fail(ErrorCode::kUsage, "there is no GPU {}; this machine has cuda:0 to cuda:{}", *index,
                  devices.size() - 1);
    }
    return Device::open(driver, devices[static_cast<size_t>(*index)]);
  }
  std::unique_ptr<Device> best;
  size_t most = 0;
  std::optional<Error> problem;
  for (const DeviceProperties& properties : devices) {
    Result<std::unique_ptr<Device>> device = Device::open(driver, properties);
    if (!device) {
      problem = device.error();
      continue;
    }
    const size_t free = (*device)->free_bytes();
    if (!best || free > most) best = std::move(*device), most = free;
  }
  if (!best) return std::move(*problem);
  return best;
}

}  // namespace

Result<std::unique_ptr<Backend>> make_backend(const Driver& driver, const Tuning& tuning, std::optional<int> index) {
  HEARTH_ASSIGN(auto device, open_device(driver, index));
  return std::unique_ptr<Backend>(new CudaBackend(std::move(device), tuning));
}

}  // namespace hearth::cuda

namespace hearth {

Result<std::unique_ptr<Backend>> make_cuda_backend(const BackendOptions& options) {
  HEARTH_ASSIGN(const cuda::Tuning tuning, cuda::read_tuning());
  HEARTH_ASSIGN(const cuda::Driver* driver, cuda::find_driver());
  return cuda::make_backend(*driver, tuning, options.device_index);
}

}  // namespace hearth
