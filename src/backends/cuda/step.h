// How ops become kernel launches: each file of ops/ appends what its op needs to the plan that is being recorded.
#pragma once

#include <memory>
#include <string_view>
#include <vector>

#include "backends/backend.h"
#include "backends/cuda/kernels.h"
#include "backends/cuda/kernels/candidates.h"
#include "backends/cuda/kernels/elementwise.h"
#include "backends/cuda/kernels/params.h"
#include "backends/cuda/kv.h"
#include "backends/cuda/weights.h"
#include "plan/plan.h"

namespace hearth::cuda {

// What can be left out to measure its worth (HEARTH_CUDA_WITHOUT, names with commas), and what can be forced.
struct Tuning {
  bool graphs = true;     // "graphs": kernels are started one by one
  bool dependent = true;  // "dependent": a kernel starts when the one before it is complete
  bool fusion = true;     // "fusion": norms, quantization and appending are kernels of their own
  bool profile = false;   // HEARTH_CUDA_PROFILE: times of all kernels, printed when the model is closed
};
Result<Tuning> read_tuning();

// Counters that kernels find zero and leave zero: of blocks that are done with their part of a sum.
inline constexpr size_t kCounters = 1 << 16;

// What recording an op may use. Scratch is memory that kernels of one op share; values of other ops lie elsewhere.
struct PrepareContext {
  const Device& device;
  Kernels& kernels;
  const Graph& graph;
  const Plan& plan;
  const Weights& weights;
  const KvPools& kv;
  const LoadOptions& options;
  const Tuning& tuning;
  StepView step;
  std::span<const RopeView> ropes;  // by Graph::ropes
  CUdeviceptr arena;                // values
  CUdeviceptr scratch = 0;          // of scratch_bytes; 0 while it is being measured
  size_t scratch_bytes = 0;         // grown by each op to what it needs
  uint32_t* counters = nullptr;     // kCounters zeros; kernels leave them zero
  std::vector<Launch> launches;

  float* value(ValueId id) const { return reinterpret_cast<float*>(arena + plan.slot(id).offset_bytes); }
  // Capacity in rows.
  int64_t rows(ValueId id) const {
    return graph.value(id).rows == RowKind::kToken ? plan.bucket.rows : plan.logit_rows;
  }
  // Scratch of the pieces of one op.
  CUdeviceptr take_scratch(const Pieces& pieces) {
    scratch_bytes = std::max(scratch_bytes, pieces.used_bytes());
    return scratch;
  }
};
inline ActivationKind activation_kind(Activation activation) {
  return activation == Activation::kSilu ? kSiluActivation : kGeluActivation;
}

// One per file of ops/. Recording runs twice: first to measure scratch, then for good.
Result<void> prepare(const EmbedOp& op, PrepareContext& context);
Result<void> prepare(const RmsNormOp& op, PrepareContext& context);
Result<void> prepare(const LinearOp& op, PrepareContext& context);
Result<void> prepare(const RopeOp& op, PrepareContext& context);
Result<void> prepare(const AttentionOp& op, PrepareContext& context);
Result<void> prepare(const GluOp& op, PrepareContext& context);
Result<void> prepare(const AddOp& op, PrepareContext& context);
Result<void> prepare(const GatherRowsOp& op, PrepareContext& context);
// The same of any memory, for so many rows: runs of `a` normalized with the weight `b`; activation(a) * b.
Result<void> prepare_rms_norm(const ElementwiseParams& params, int64_t rows, PrepareContext& context);
Result<void> prepare_glu(const ElementwiseParams& params, int64_t rows, PrepareContext& context);
// What sampling needs to know of the logits, for each of their rows, to memory of the host.
Result<void> prepare_candidates(FoundRow* found, PrepareContext& context);

}  // namespace hearth::cuda
