// What sampling needs to know of the logits; runs behind all ops of a plan.
#include "backends/cuda/kernels/candidates.h"

#include "backends/cuda/step.h"
#include "base/checked_math.h"

namespace hearth::cuda {

static_assert(kCandidateCount == kCandidates && kWantedCount == kMaxWantedLogits);

Result<void> prepare_candidates(FoundRow* found, PrepareContext& context) {
  const ValueId logits = context.graph.logits;
  const int64_t rows = context.rows(logits), vocab = context.graph.value(logits).cols;
  const int64_t slices = ceil_div<int64_t>(vocab, kSliceCols);
  Pieces pieces;
  const size_t keys = pieces.take(static_cast<size_t>(rows * slices * kCandidateCount) * sizeof(uint64_t));
  const size_t sums = pieces.take(static_cast<size_t>(rows * slices) * sizeof(SliceSums));
  const CUdeviceptr scratch = context.take_scratch(pieces);
  Launch launch;
  HEARTH_ASSIGN(launch.kernel, context.kernels.get("candidates", "candidates", 0));
  launch.grid[0] = static_cast<unsigned>(slices);
  launch.grid[1] = static_cast<unsigned>(rows);
  launch.threads = kCandidateThreads;
  launch.set_params(CandidateParams{.step = context.step,
                                    .logits = context.value(logits),
                                    .vocab = static_cast<int32_t>(vocab),
                                    .slices = static_cast<int32_t>(slices),
                                    .keys = reinterpret_cast<uint64_t*>(scratch + keys),
                                    .sums = reinterpret_cast<SliceSums*>(scratch + sums),
                                    .counters = context.counters,
                                    .found = found});
  context.launches.push_back(std::move(launch));
  return {};
}

}  // namespace hearth::cuda
