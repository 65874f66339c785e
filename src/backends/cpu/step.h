// What a recorded step is: everything resolved to pointers and kernels, so that running it neither allocates nor looks
// anything up.
#pragma once

#include <algorithm>
#include <memory>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "backends/backend.h"
#include "backends/cpu/kernels.h"
#include "backends/cpu/kv.h"
#include "backends/cpu/thread_pool.h"
#include "backends/cpu/weights.h"
#include "plan/plan.h"

namespace hearth::cpu {

// One row of the running step.
struct RowInfo {
  int32_t sequence;
  int32_t position;
};

// The step that is being run.
struct Launch {
  int64_t rows = 0;
  int64_t logit_rows = 0;
  const int32_t* tokens = nullptr;
  const int32_t* logit_row = nullptr;
  std::span<const StepSequence> sequences;
  const RowInfo* row = nullptr;

  int64_t count(RowKind kind) const { return kind == RowKind::kToken ? rows : logit_rows; }
};

// A worker while a step runs. All workers run all steps; between two steps is a barrier.
struct Worker {
  ThreadPool::Worker& place;
  std::byte* scratch;  // of this worker alone, PrepareContext::worker_bytes
  std::byte* shared;   // of all workers during one step, PrepareContext::shared_bytes

  int count() const { return place.count(); }
  void barrier() const { place.barrier(); }
  // Values, `shared` and KV pages may be touched in tiles only (ThreadPool::Worker).
  template <class F>
  void each_tile(int64_t tiles, F&& f) const {
    place.each_tile(tiles, std::forward<F>(f));
  }
};

class CpuStep {
 public:
  virtual ~CpuStep() = default;
  // Of ops with several kernels, the one that runs: "linear:gemv_int".
  virtual std::string_view kernel() const { return {}; }
  virtual void run(const Launch& launch, const Worker& worker) const = 0;
};

// cos and sin of the step's positions, filled once per launch: [rows][dims / 2] each.
struct RopeTable {
  const Rope* rope = nullptr;
  float* cos = nullptr;
  float* sin = nullptr;
  int64_t pairs() const { return rope->dims / 2; }
  void fill(int64_t row, int32_t position) const;
};

// The kernels of LinearOp. kAuto: the plan and the formats decide.
enum class LinearKernel : uint8_t { kAuto, kGemvInt, kGemvFloat, kGemmF32, kGemmInt, kGemmBytes, kGemmBf16, kGemmAmx };
// What the environment variable HEARTH_CPU_KERNEL forces ("linear:gemv_float" and the like), kAuto without it. Fails
// with kUsage and the list of names.
Result<LinearKernel> forced_linear_kernel();
std::string_view name_of(LinearKernel kernel);  // not of kAuto

// What preparing a step may ask for.
struct PrepareContext {
  const Graph& graph;
  const Plan& plan;
  const KernelTable& kernels;
  const Weights& weights;
  const KvPools& kv;
  const LoadOptions& options;
  LinearKernel linear_kernel;        // taken by all ops that it supports
  std::span<const RopeTable> ropes;  // by Graph::ropes
  int workers;
  std::byte* arena;  // values
  // Grown by each step to what it needs of the scratch that it gets when it runs.
  size_t shared_bytes = 0;
  size_t worker_bytes = 0;

  float* value(ValueId id) const { return reinterpret_cast<float*>(arena + plan.slot(id).offset_bytes); }
  // Capacity in rows.
  int64_t rows(ValueId id) const {
    return graph.value(id).rows == RowKind::kToken ? plan.bucket.rows : plan.logit_rows;
  }
};

// Lays out scratch in 64-byte aligned pieces.
class Pieces {
 public:
  template <class T>
  size_t take(int64_t count) {
    size_t offset = used_;
    used_ += (static_cast<size_t>(count) * sizeof(T) + 63) / 64 * 64;
    return offset;
  }
  size_t used_bytes() const { return used_; }

 private:
  size_t used_ = 0;
};

template <class T>
T* at(std::byte* base, size_t offset) {
  return reinterpret_cast<T*>(base + offset);
}

// CpuStep::kernel() of a recorded plan's steps that have one, in order. `executable` is of this backend.
std::vector<std::string_view> kernel_names(const Executable& executable);

// One per file of ops/.
std::unique_ptr<CpuStep> prepare(const EmbedOp& op, PrepareContext& context);
std::unique_ptr<CpuStep> prepare(const RmsNormOp& op, PrepareContext& context);
std::unique_ptr<CpuStep> prepare(const LinearOp& op, PrepareContext& context);
std::unique_ptr<CpuStep> prepare(const RopeOp& op, PrepareContext& context);
std::unique_ptr<CpuStep> prepare(const AttentionOp& op, PrepareContext& context);
std::unique_ptr<CpuStep> prepare(const GluOp& op, PrepareContext& context);
std::unique_ptr<CpuStep> prepare(const AddOp& op, PrepareContext& context);
std::unique_ptr<CpuStep> prepare(const GatherRowsOp& op, PrepareContext& context);

}  // namespace hearth::cpu
