// The reference backend: plain f32, slow and obvious, the executable specification of every op. Everything that a
// caller might wrongly count on is taken away: buffers are opaque, work happens on another thread after launch() has
// returned, what launch() was given is copied and the copies are destroyed, memory that was not written is NaN.
#include <algorithm>
#include <future>
#include <limits>
#include <new>
#include <system_error>

#include "backends/backend.h"
#include "backends/reference/step.h"
#include "base/check.h"
#include "base/cpu_topology.h"

namespace hearth {
namespace reference {

Matrix StepState::value(ValueId id) {
  const Value& value = graph.value(id);
  const Slot& slot = plan.slot(id);
  int64_t rows = static_cast<int64_t>(value.rows == RowKind::kToken ? tokens.size() : logit_rows.size());
  HEARTH_CHECK(static_cast<size_t>(rows * value.cols) * sizeof(float) <= slot.size_bytes, "{}: {} rows in {} bytes",
               value.name, rows, slot.size_bytes);
  std::byte* data = arenas[static_cast<size_t>(slot.arena)].data() + slot.offset_bytes;
  return {.data = reinterpret_cast<float*>(data), .rows = rows, .cols = value.cols};
}

namespace {

struct State {
  State(const Graph& g, const LoadOptions& options) : graph(g), weights(g, options) {}
  const Graph& graph;
  Weights weights;
  std::vector<KvStore> kv;
  int64_t threads = 1;
  bool busy = false;  // a step was launched and not waited for
};

void copy_batch(const StepBatch& batch, StepState& step) {
  step.tokens.assign(batch.tokens.begin(), batch.tokens.end());
  step.logit_rows.assign(batch.logit_rows.begin(), batch.logit_rows.end());
  step.positions.clear();
  step.sequences.clear();
  for (const StepSequence& s : batch.sequences) {
    HEARTH_CHECK(s.first_row == static_cast<int64_t>(step.positions.size()) && s.rows > 0 && s.position >= 0,
                 "rows [{}, {}) at position {} after {} rows", s.first_row, s.first_row + s.rows, s.position,
                 step.positions.size());
    HEARTH_CHECK(s.pages.size() == step.graph.kv_groups.size(), "{} page tables for {} KV groups", s.pages.size(),
                 step.graph.kv_groups.size());
    for (int32_t i = 0; i < s.rows; ++i) step.positions.push_back(s.position + i);
    SequenceRows& rows = step.sequences.emplace_back();
    rows.first_row = s.first_row;
    rows.rows = s.rows;
    rows.position = s.position;
    for (std::span<const int32_t> pages : s.pages) rows.pages.emplace_back(pages.begin(), pages.end());
  }
  HEARTH_CHECK(step.positions.size() == step.tokens.size(), "sequences cover {} of {} rows", step.positions.size(),
               step.tokens.size());
  HEARTH_CHECK(static_cast<int64_t>(step.tokens.size()) <= step.plan.bucket.rows && !step.tokens.empty(),
               "{} rows in a bucket of {}", step.tokens.size(), step.plan.bucket.rows);
  HEARTH_CHECK(static_cast<int64_t>(step.logit_rows.size()) <= step.plan.logit_rows, "{} logit rows of {}",
               step.logit_rows.size(), step.plan.logit_rows);
  int32_t before = -1;
  for (int32_t row : step.logit_rows) {
    HEARTH_CHECK(row > before && row < static_cast<int32_t>(step.tokens.size()), "logit row {} after {} of {}", row,
                 before, step.tokens.size());
    before = row;
  }
}

// Runs the steps of all lanes in an order that their events allow.
Result<void> run_lanes(StepState& step) {
  std::vector<bool> raised(static_cast<size_t>(step.plan.events), false);
  std::vector<size_t> next(step.plan.lanes.size(), 0);
  for (bool moved = true; moved;) {
    moved = false;
    for (size_t lane = 0; lane < next.size(); ++lane) {
      const auto& steps = step.plan.lanes[lane].steps;
      for (; next[lane] < steps.size(); ++next[lane]) {
        const Step& s = steps[next[lane]];
        if (!std::ranges::all_of(s.waits, [&](int32_t event) { return raised[static_cast<size_t>(event)]; })) break;
        std::visit([&](const auto& op) { run(op, step); }, step.graph.nodes[static_cast<size_t>(s.node)].op);
        if (s.signals >= 0) raised[static_cast<size_t>(s.signals)] = true;
        moved = true;
      }
    }
  }
  for (size_t lane = 0; lane < next.size(); ++lane) {
    if (next[lane] == step.plan.lanes[lane].steps.size()) continue;
    return fail(ErrorCode::kInternal, "plan: lane {} waits at step {} for an event that nobody raises", lane,
                next[lane]);
  }
  return {};
}

class ReferenceExecutable final : public Executable {
 public:
  ReferenceExecutable(State& state, const Plan& plan)
      : state_(state),
        plan_(plan),
        step_{.graph = state.graph, .plan = plan_, .weights = state.weights, .kv = state.kv, .threads = state.threads} {
    for (size_t bytes : plan_.arena_bytes) step_.arenas.emplace_back(bytes);
  }
  ~ReferenceExecutable() override {
    if (running_.valid()) static_cast<void>(wait());
  }
  ReferenceExecutable(const ReferenceExecutable&) = delete;
  ReferenceExecutable& operator=(const ReferenceExecutable&) = delete;

  Result<void> launch(const StepBatch& batch) override {
    HEARTH_CHECK(!state_.busy, "launch before the last step was waited for");
    readable_ = false;
    copy_batch(batch, step_);
    for (std::vector<std::byte>& arena : step_.arenas) std::ranges::fill(arena, std::byte{0xff});  // NaN
    try {
      running_ = std::async(std::launch::async,
                            [this] { return guarded("the reference backend", [&] { return run_lanes(step_); }); });
    } catch (const std::system_error& error) {
      return fail(ErrorCode::kIo, "cannot start a thread: {}", error.code().message());
    }
    state_.busy = true;
    return {};
  }

  Result<void> wait() override {
    HEARTH_CHECK(running_.valid(), "wait without launch");
    Result<void> result = running_.get();
    state_.busy = false;
    readable_ = result.has_value();
    std::ranges::fill(step_.tokens, std::numeric_limits<int32_t>::min());
    step_.sequences.clear();
    return result;
  }

  Result<void> read_logits(int64_t first, std::span<float> out) override {
    read(state_.graph.logits, first, out);
    return {};
  }
  Result<void> read_hidden(int64_t first, std::span<float> out) override {
    HEARTH_CHECK(state_.graph.hidden, "read_hidden of a graph without hidden states");
    read(state_.graph.hidden->value, first, out);
    return {};
  }

 private:
  void read(ValueId id, int64_t first, std::span<float> out) {
    HEARTH_CHECK(readable_, "{} read before wait", state_.graph.value(id).name);
    const Matrix rows = step_.value(id);
    const auto count = static_cast<int64_t>(out.size());
    HEARTH_CHECK(first >= 0 && count % rows.cols == 0 && first * rows.cols + count <= rows.rows * rows.cols,
                 "{} floats from row {} on of {} [{}, {}]", count, first, state_.graph.value(id).name, rows.rows,
                 rows.cols);
    std::copy_n(rows.data + first * rows.cols, count, out.data());
  }

  State& state_;
  Plan plan_;
  StepState step_;
  std::future<Result<void>> running_;
  bool readable_ = false;
};

class ReferenceModel final : public DeviceModel {
 public:
  explicit ReferenceModel(std::unique_ptr<State> state) : state_(std::move(state)) {}

  Result<std::unique_ptr<Executable>> record(const Plan& plan) override {
    HEARTH_CHECK(plan.graph == &state_->graph, "the plan is of another graph");
    try {
      return std::unique_ptr<Executable>(std::make_unique<ReferenceExecutable>(*state_, plan));
    } catch (const std::bad_alloc&) {
      return fail(ErrorCode::kOutOfMemory, "cannot record a plan of {} rows on the reference backend: out of memory",
                  plan.bucket.rows);
    }
  }

  size_t page_bytes(int32_t group) const override {
    return kv_page_bytes(state_->graph.kv_groups[static_cast<size_t>(group)]);
  }
  Result<void> read_pages(std::span<const PageCopy> pages) const override {
    for (const PageCopy& copy : pages) {
      std::ranges::copy(std::as_bytes(state_->kv[static_cast<size_t>(copy.group)].page(copy.page)), copy.bytes);
    }
    return {};
  }
  Result<void> write_pages(std::span<const PageCopy> pages) override {
    for (const PageCopy& copy : pages) {
      const auto to = std::as_writable_bytes(state_->kv[static_cast<size_t>(copy.group)].page(copy.page));
      std::copy_n(copy.bytes, to.size(), to.begin());
    }
    return {};
  }

 private:
  std::unique_ptr<State> state_;
};

class ReferenceBackend final : public Backend {
 public:
  ReferenceBackend(const BackendOptions& options, const CpuTopology& topology)
      : threads_(options.threads > 0 ? options.threads : topology.workers()),
        info_{.name = "reference", .description = fmt::format("plain f32, {} threads", threads_), .workers = threads_} {
  }

  const DeviceInfo& info() const override { return info_; }

  size_t page_bytes(const KvGroup& group, KvType) const override { return kv_page_bytes(group); }

  size_t weight_bytes(const Graph& graph, WeightLayout) const override {
    size_t bytes = 0;
    for (const Weight& weight : graph.weights) bytes += static_cast<size_t>(weight.rows * weight.cols) * sizeof(float);
    return bytes;
  }

  Result<std::unique_ptr<DeviceModel>> load(const Graph& graph, const LoadOptions& options) override {
    HEARTH_CHECK(options.kv_pages.size() == graph.kv_groups.size(), "{} page counts for {} KV groups",
                 options.kv_pages.size(), graph.kv_groups.size());
    try {
      auto state = std::make_unique<State>(graph, options);
      state->threads = threads_;
      for (size_t g = 0; g < graph.kv_groups.size(); ++g) {
        HEARTH_ASSIGN(KvStore store, KvStore::create(graph.kv_groups[g], options.kv_type, options.kv_pages[g]));
        state->kv.push_back(std::move(store));
      }
      return std::unique_ptr<DeviceModel>(std::make_unique<ReferenceModel>(std::move(state)));
    } catch (const std::bad_alloc&) {
      return fail(ErrorCode::kOutOfMemory,
                  "cannot load the model on the reference backend: its weights take {} MB as f32; --device cpu keeps "
                  "them quantized",
                  weight_bytes(graph, options.layout) >> 20);
    }
  }

 private:
  int64_t threads_;
  DeviceInfo info_;
};

}  // namespace
}  // namespace reference

Result<std::unique_ptr<Backend>> make_reference_backend(const BackendOptions& options) {
  return std::unique_ptr<Backend>(std::make_unique<reference::ReferenceBackend>(options, read_cpu_topology()));
}

}  // namespace hearth
