// Attention: rows are appended to the cache, then attend to it. Formats and head dimensions that have kernels on matrix
// units take those; the rest takes a plain one.
#include <algorithm>
#include <cmath>
#include <numbers>

#include "backends/cuda/kernels/attention.h"
#include "backends/cuda/step.h"
#include "base/check.h"
#include "base/checked_math.h"

namespace hearth::cuda {
namespace {

HeadNorm head_norm(const std::optional<Norm>& norm, const PrepareContext& context) {
  return norm ? HeadNorm{context.weights.vector(norm->weight), norm->eps} : HeadNorm{};
}

struct Start {
  const char* file;
  std::string kernel;
  int64_t grid[3] = {1, 1, 1};
  int64_t threads = 32 * kAttentionWarps;
  int64_t shared_bytes = 0;
};

Result<void> add(PrepareContext& context, const Start& start, const AttentionParams& params) {
  Launch launch;
  launch.shared_bytes = static_cast<size_t>(start.shared_bytes);
  HEARTH_ASSIGN(launch.kernel, context.kernels.get(start.file, start.kernel, launch.shared_bytes));
  for (int i = 0; i < 3; ++i) launch.grid[i] = static_cast<unsigned>(start.grid[i]);
  launch.threads = static_cast<unsigned>(start.threads);
  launch.set_params(params);
  context.launches.push_back(std::move(launch));
  return {};
}

std::string kernel_name(const char* kernel, const KvView& kv) {
  return fmt::format("attention_{}_{}_{}", kernel, kv.format == KvFormat::kF16 ? "f16" : "q8", kv.head_dim);
}

// Most parts that the visible tokens of one of `rows` rows are divided into: two blocks for each multiprocessor, but no
// more than one block combines quickly. Plans for few rows have the same, so that the bits of a row do not depend
// on the rows beside it (docs/decisions/0007-determinism.md).
int64_t split_count(const PrepareContext& context, const KvView& kv, int64_t tiles, int64_t rows) {
  constexpr int64_t kAlike = kDeterministicDecodeRows, kMost = 64;
  int64_t splits = std::min(kMost, ceil_div<int64_t>(2 * context.device.properties().processors, tiles));
  if (rows > kAlike) splits = splits * kAlike / rows;
  if (kv.window > 0) {
    // A window touches one page more than it fills.
    splits = std::min(splits, ceil_div<int64_t>(ceil_div<int64_t>(kv.window, kPageRows) + 1, kMinSplitPages));
  }
  return std::max<int64_t>(splits, 1);
}

}  // namespace

Result<void> prepare(const AttentionOp& op, PrepareContext& context) {
  const Bucket bucket = context.plan.bucket;
  const bool decode = bucket.kind == PlanKind::kDecode;
  AttentionParams p{.step = context.step,
                    .kv = context.kv.view(op.kv_group, op.kv_layer),
                    .q = context.value(op.q),
                    .k = context.value(op.k),
                    .v = context.value(op.v),
                    .out = context.value(op.out),
                    .q_norm = head_norm(op.q_norm, context),
                    .k_norm = head_norm(op.k_norm, context),
                    .rope = op.rope ? context.ropes[static_cast<size_t>(*op.rope)] : RopeView{},
                    .scale_log2 = static_cast<float>(static_cast<double>(op.scale) * std::numbers::log2e),
                    .soft_cap = op.soft_cap / op.scale,
                    .sinks = op.sinks ? context.weights.vector(op.sinks) : nullptr,
                    .heads = static_cast<int32_t>(op.heads),
                    .kv_group = op.kv_group};
  p.group = p.heads / p.kv.kv_heads;
  const int64_t dim = p.kv.head_dim, kv_heads = p.kv.kv_heads;
  if (dim > kMaxHeadDim) {
    return fail(ErrorCode::kUnsupported, "cannot run attention heads of {} entries on a GPU, at most {}", dim,
                kMaxHeadDim);
  }
  const bool matrix = has_matrix_attention(p.kv.format, p.kv.head_dim);
  p.appends = matrix && bucket == Bucket{PlanKind::kDecode, 1} && context.tuning.fusion;

  // Scratch: of prefill the queries, of decoding rows the parts.
  const int64_t decode_rows = decode ? bucket.rows : std::min<int64_t>(bucket.rows, kRidingRows);
  const int64_t tiles = kv_heads * ceil_div<int64_t>(p.group, kQueryRows);
  p.splits = static_cast<int32_t>(split_count(context, p.kv, tiles, decode_rows));
  p.riding = !decode;
  if (matrix) {
    HEARTH_CHECK(static_cast<size_t>(decode_rows * tiles) <= kCounters,
                 "attention of {} rows and {} kv heads needs {} "
                 "counters of {}",
                 decode_rows, kv_heads, decode_rows * tiles, kCounters);
    Pieces pieces;
    const size_t queries = pieces.take(decode ? 0 : static_cast<size_t>(bucket.rows * p.heads * dim) * 2);
    const auto parts = static_cast<size_t>(p.splits > 1 ? decode_rows * p.heads * p.splits : 0);
    const size_t partial = pieces.take(parts * static_cast<size_t>(dim) * sizeof(float));
    const size_t partial_scale = pieces.take(parts * sizeof(PartScale));
    const CUdeviceptr scratch = context.take_scratch(pieces);
    if (!decode) p.queries = reinterpret_cast<uint16_t*>(scratch + queries);
    p.partial = reinterpret_cast<float*>(scratch + partial);
    p.partial_scale = reinterpret_cast<PartScale*>(scratch + partial_scale);
    p.done = context.counters;
  }

  if (!p.appends) {
    const int64_t items = (matrix && !decode ? op.heads : 0) + 2 * kv_heads;
    HEARTH_TRY(add(context,
                   {.file = "attention_rows",
                    .kernel = dim <= 256 ? "attention_append" : "attention_append_wide",
                    .grid = {ceil_div<int64_t>(bucket.rows * items, kAttentionWarps), 1, 1},
                    .shared_bytes = kAttentionWarps * dim * static_cast<int64_t>(sizeof(float))},
                   p));
  }
  if (!matrix) {
    return add(context,
               {.file = "attention_rows",
                .kernel = "attention_plain",
                .grid = {op.heads, bucket.rows, 1},
                .shared_bytes = (1 + kAttentionWarps) * dim * static_cast<int64_t>(sizeof(float))},
               p);
  }
  if (!decode) {
    const int query_heads = p.group % 2 == 0 && dim <= 128 ? 2 : 1;
    HEARTH_TRY(add(context,
                   {.file = op.soft_cap > 0 ? "attention_prefill_capped" : "attention_prefill",
                    .kernel = fmt::format("{}_x{}", kernel_name("prefill", p.kv), query_heads),
                    .grid = {op.heads / query_heads, 2 * ceil_div<int64_t>(bucket.rows, kTileRows), 1},
                    .shared_bytes = prefill_shape(p.kv.format, p.kv.head_dim, query_heads).shared_bytes},
                   p));
  }
  const DecodeShape shape = decode_shape(p.kv.format, p.kv.head_dim);
  // Most steps of prefill have no riding rows; blocks that find none should be few.
  constexpr int64_t kRidingBlocks = 8;
  return add(context,
             {.file = op.soft_cap > 0 ? "attention_decode_capped" : "attention_decode",
              .kernel = kernel_name("decode", p.kv),
              .grid = {p.splits, tiles, decode ? bucket.rows : std::min(decode_rows, kRidingBlocks)},
              .threads = 32 * shape.warps,
              .shared_bytes = shape.shared_bytes},
             p);
}

}  // namespace hearth::cuda
