// out = x W^T with everything that passes fold into it. The rows that a plan has room for decide the kernel: up to
// eight rows read each weight once (gemv: 16-bit integers on the matrix unit for integer codes, f32 for floats), more
// go through f16 tiles (gemm). F32 matrices are multiplied in f32 always.
#include "backends/cuda/ops/linear.h"

#include <algorithm>
#include <map>
#include <utility>

#include "base/checked_math.h"

namespace hearth::cuda {

FormatShape format_shape(FormatId format) {
  switch (format) {
#define HEARTH_CUDA_SHAPE(name, ...)                       \
  case FormatId::k##name:                                  \
    return {.integer_codes = true,                         \
            .unit_cols = IntShape<__VA_ARGS__>::kUnitCols, \
            .unit_bytes = IntShape<__VA_ARGS__>::kUnitBytes};
    HEARTH_CUDA_INT_FORMATS(HEARTH_CUDA_SHAPE)
#undef HEARTH_CUDA_SHAPE
    case FormatId::kF16:
    case FormatId::kBF16:
      return {.unit_cols = HalfShape::kUnitCols, .unit_bytes = HalfShape::kUnitBytes};
    default:
      return {};
  }
}

std::string_view linear_file(FormatId format) {
  static const std::map<FormatId, std::string> kFiles = [] {
    std::map<FormatId, std::string> files;
    for (FormatId id : all_formats()) files[id] = fmt::format("linear_{}", format_info(id).name);
    return files;
  }();
  return kFiles.at(format);
}

static int units_of(const Matrix& matrix) {
  const FormatShape shape = format_shape(matrix.format);
  return shape.unit_cols > 0 ? static_cast<int>(ceil_div<int64_t>(matrix.cols, shape.unit_cols)) : 0;
}

LinearParams linear_params(const PrepareContext& context, const Matrix& matrix) {
  return {.step = context.step,
          .part_count = 1,
          .cols = static_cast<int32_t>(matrix.cols),
          .units = units_of(matrix),
          .panel_bytes = static_cast<uint32_t>(matrix.layout.panel_bytes),
          .high_offset = static_cast<uint32_t>(matrix.layout.high),
          .sub_scales_offset = static_cast<uint32_t>(matrix.layout.sub_scales),
          .scales_offset = static_cast<uint32_t>(matrix.layout.scales)};
}

namespace {

constexpr int64_t kGemvRows = 8;  // the most
// Shared memory for sums of a gemv; more panels' sums are added less often.
constexpr int kPartialBytes = 8 << 10;
// Longer rows are rounded by a kernel of their own: every block would spend its memory on them.
constexpr int64_t kMostFusedCols = 16384;

class LinearBuilder {
 public:
  LinearBuilder(const LinearOp& op, PrepareContext& context)
      : op_(op),
        context_(context),
        rows_(context.rows(op.x)),
        cols_(context.graph.value(op.x).cols),
        logit_rows_(context.graph.value(op.x).rows == RowKind::kLogit) {}

  Result<void> build() {
    HEARTH_ASSIGN(compiled_for_, context_.kernels.compiled_for());
    for (const LinearOp::Part& part : op_.parts) {
      const Matrix& matrix = context_.weights.matrix(part.weight);
      parts_.push_back({.matrix = &matrix,
                        .bias = part.bias ? context_.weights.vector(part.bias) : nullptr,
                        .out = op_.glu && !parts_.empty() ? nullptr : context_.value(part.out)});
    }
    place_scratch();
    residual_ = op_.residual ? context_.value(op_.residual) : nullptr;
    if (op_.glu && parts_[0].matrix->format != parts_[1].matrix->format) return build_separate_glu();
    // Parts of one format are one launch.
    std::vector<bool> done(parts_.size(), false);
    for (size_t i = 0; i < parts_.size(); ++i) {
      if (done[i]) continue;
      std::vector<Part> group;
      for (size_t j = i; j < parts_.size() && group.size() < kMaxParts; ++j) {
        if (done[j] || parts_[j].matrix->format != parts_[i].matrix->format) continue;
        group.push_back(parts_[j]);
        done[j] = true;
      }
      HEARTH_TRY(multiply(group, i > 0, op_.glu ? activation_kind(*op_.glu) : kNoActivation, residual_));
    }
    return {};
  }

 private:
  struct Part {
    const Matrix* matrix;
    const float* bias;
    float* out;
  };
  // Shared memory of a block of gemv: weights, sums, and the row of x that a fused one rounds.
  struct GemvMemory {
    int batch_panels;
    size_t ring_bytes, bytes, fused_bytes;
  };
  enum class Form { kFloats, kInts, kHalves };  // of activations

  Form form_of(const Matrix& matrix) const {
    const FormatShape shape = format_shape(matrix.format);
    if (rows_ <= kGemvRows) return shape.integer_codes ? Form::kInts : Form::kFloats;
    return shape.unit_cols > 0 ? Form::kHalves : Form::kFloats;
  }
  bool fused(Form form, const GemvMemory& memory) const {
    return form == Form::kInts && gemv_rows() == 1 && context_.tuning.fusion && cols_ <= kMostFusedCols &&
           memory.fused_bytes <= static_cast<size_t>(most_shared_bytes(compiled_for_));
  }

  // That a gemv of integers multiplies; of plans with more rows none does. Those for one row and for two add the groups
  // of columns in other orders than those for four and eight, which are alike.
  int gemv_rows() const {
    if (!context_.plan.deterministic && rows_ <= 2) return rows_ <= 1 ? 1 : 2;
    return rows_ <= 4 ? 4 : 8;
  }

  // All that the op needs of scratch, wherever it begins.
  void place_scratch() {
    Pieces pieces;
    const auto rows = static_cast<size_t>(rows_), cols = static_cast<size_t>(cols_);
    const auto blocks = round_up<size_t>(ceil_div<size_t>(cols, 32), 8), stride = round_up<size_t>(cols, 256);
    const size_t floats = pieces.take(op_.norm ? rows * cols * sizeof(float) : 0);
    const auto int_rows = static_cast<size_t>(gemv_rows());
    const size_t codes = pieces.take(int_rows * blocks * 64), scales = pieces.take(int_rows * blocks * sizeof(float)),
                 sums = pieces.take(int_rows * blocks * 2 * sizeof(int32_t));
    const size_t halves = pieces.take(rows * stride * sizeof(uint16_t)),
                 half_scales = pieces.take(rows * sizeof(float));
    size_t widest = 0;
    for (const Part& part : parts_) widest = std::max(widest, static_cast<size_t>(part.matrix->rows));
    const size_t gate = pieces.take(op_.glu ? rows * widest * sizeof(float) : 0),
                 up = pieces.take(op_.glu ? rows * widest * sizeof(float) : 0);
    scratch_ = pieces;
    const CUdeviceptr base = context_.take_scratch(pieces);
    floats_ = reinterpret_cast<float*>(base + floats);
    ints_ = {.codes = reinterpret_cast<uint8_t*>(base + codes),
             .scales = reinterpret_cast<float*>(base + scales),
             .sums = reinterpret_cast<int32_t*>(base + sums),
             .rows = gemv_rows(),
             .blocks = static_cast<int32_t>(blocks),
             .limit = context_.options.activations == Activations::kInt8 ? 127 : kIntLimit};
    halves_ = {.values = reinterpret_cast<uint16_t*>(base + halves),
               .scales = reinterpret_cast<float*>(base + half_scales),
               .stride = static_cast<int32_t>(stride)};
    gate_ = reinterpret_cast<float*>(base + gate);
    up_ = reinterpret_cast<float*>(base + up);
  }

  // Gate and up of different formats: two products and what follows.
  Result<void> build_separate_glu() {
    parts_[1].out = up_;
    float* out = std::exchange(parts_[0].out, gate_);
    for (const Part& part : parts_) HEARTH_TRY(multiply({part}, false, kNoActivation, nullptr));
    return prepare_glu({.step = context_.step,
                        .logit_rows = logit_rows_,
                        .cols = static_cast<int32_t>(parts_[0].matrix->rows),
                        .a = gate_,
                        .b = up_,
                        .out = out,
                        .activation = activation_kind(*op_.glu)},
                       rows_, context_);
  }

  // Activations in the form that a kernel reads, unless an earlier launch of this op made it.
  Result<void> prepare_rows(Form form) {
    if (form == Form::kFloats && !op_.norm) return {};
    bool& made = made_[static_cast<size_t>(form)];
    if (std::exchange(made, true)) return {};
    const auto cols = static_cast<int32_t>(cols_);
    if (form == Form::kFloats) {
      return prepare_rms_norm({.step = context_.step,
                               .logit_rows = logit_rows_,
                               .cols = cols,
                               .a = context_.value(op_.x),
                               .b = norm(),
                               .out = floats_,
                               .run = cols,
                               .eps = op_.norm->eps},
                              rows_, context_);
    }
    Launch launch;
    const char* name = form == Form::kInts ? "quantize_rows" : "halve_rows";
    HEARTH_ASSIGN(launch.kernel, context_.kernels.get("elementwise", name, 0));
    launch.grid[0] = static_cast<unsigned>(rows_);
    // A row in the registers of one block, if they suffice.
    launch.threads =
        static_cast<unsigned>(std::clamp<int64_t>(round_up<int64_t>(ceil_div<int64_t>(cols_, 8), 32), 64, 512));
    launch.set_params(PrepareRowsParams{.step = context_.step,
                                        .logit_rows = logit_rows_,
                                        .cols = cols,
                                        .x = context_.value(op_.x),
                                        .norm = norm(),
                                        .eps = op_.norm ? op_.norm->eps : 0,
                                        .ints = ints_,
                                        .halves = halves_});
    context_.launches.push_back(std::move(launch));
    return {};
  }

  // `sibling`: the launch before multiplied other parts with the same x.
  Result<void> multiply(const std::vector<Part>& parts, bool sibling, ActivationKind glu, const float* residual) {
    const Matrix& matrix = *parts[0].matrix;
    const FormatShape shape = format_shape(matrix.format);
    const Form form = form_of(matrix);
    const GemvMemory memory = form == Form::kInts ? gemv_memory(matrix) : GemvMemory{};
    const bool fuse = fused(form, memory);
    if (!fuse) HEARTH_TRY(prepare_rows(form));

    LinearParams params = linear_params(context_, matrix);
    params.logit_rows = logit_rows_;
    params.part_count = static_cast<int32_t>(parts.size());
    int64_t panels = 0;
    for (size_t i = 0; i < parts.size(); ++i) {
      params.parts[i] = {.weights = parts[i].matrix->planar,
                         .bias = parts[i].bias,
                         .out = parts[i].out,
                         .rows = static_cast<int32_t>(parts[i].matrix->rows),
                         .first_panel = static_cast<int32_t>(glu != kNoActivation ? 0 : panels)};
      panels += parts[i].matrix->panels();
    }
    params.glu = glu;
    params.tasks = static_cast<int32_t>(glu != kNoActivation ? matrix.panels() : panels);
    params.x = form == Form::kFloats && op_.norm ? floats_ : context_.value(op_.x);
    params.norm = fuse ? norm() : nullptr;
    params.eps = op_.norm ? op_.norm->eps : 0;
    params.ints = ints_;
    params.halves = halves_;
    params.residual = residual;
    params.splits = 1;
    // One that rounds x itself shares nothing with its sibling. That one has waited for x.
    params.wait_at_end = sibling && fuse && last_fused_;
    last_fused_ = fuse;

    switch (form) {
      case Form::kFloats:
        return start_float_gemv(params, matrix);
      case Form::kInts:
        return start_int_gemv(params, matrix, memory, fuse);
      case Form::kHalves:
        return start_gemm(params, matrix, shape);
    }
    return {};
  }

  Result<void> start_float_gemv(const LinearParams& params, const Matrix& matrix) {
    Launch launch;
    const int64_t rows = rows_ == 1 ? 1 : kGemvRows;
    HEARTH_ASSIGN(launch.kernel, context_.kernels.get(linear_file(matrix.format), rows == 1 ? "gemv_1" : "gemv_8", 0));
    launch.grid[0] = static_cast<unsigned>(params.tasks);
    launch.grid[1] = static_cast<unsigned>(ceil_div(rows_, rows));
    launch.threads = kFloatThreads;
    return finish(launch, params, matrix);
  }

  GemvMemory gemv_memory(const Matrix& matrix) const {
    const int panel_bytes =
        std::min(units_of(matrix), gemv_warps(compiled_for_)) * 16 * gemv_rows() * static_cast<int>(sizeof(float));
    GemvMemory m{};
    m.batch_panels = std::max(2, std::max(kPartialBytes, 2 * panel_bytes) / panel_bytes / 2 * 2);
    m.ring_bytes = static_cast<size_t>(gemv_ring_bytes(format_shape(matrix.format).unit_bytes, compiled_for_));
    m.bytes = round_up<size_t>(m.ring_bytes + static_cast<size_t>(m.batch_panels * panel_bytes), 128);
    m.fused_bytes = m.bytes + static_cast<size_t>(ints_.blocks) * (64 + 4 + 8);
    return m;
  }

  Result<void> start_int_gemv(LinearParams& params, const Matrix& matrix, const GemvMemory& memory, bool fuse) {
    params.batch_panels = memory.batch_panels;
    params.partial_offset = static_cast<uint32_t>(memory.ring_bytes);
    params.x_offset = static_cast<uint32_t>(memory.bytes);
    Launch launch;
    launch.threads = 32 * static_cast<unsigned>(gemv_warps(compiled_for_));
    launch.shared_bytes = fuse ? memory.fused_bytes : memory.bytes;
    const std::string name = fuse ? "gemv_1_fused" : fmt::format("gemv_{}", gemv_rows());
    HEARTH_ASSIGN(launch.kernel, context_.kernels.get(linear_file(matrix.format), name, launch.shared_bytes));
    HEARTH_ASSIGN(const int resident, context_.kernels.blocks_per_processor(
                                          launch.kernel, static_cast<int>(launch.threads), launch.shared_bytes));
    launch.grid[0] = static_cast<unsigned>(
        std::min<int64_t>(params.tasks, int64_t{resident} * context_.device.properties().processors));
    return finish(launch, params, matrix);
  }

  Result<void> start_gemm(LinearParams& params, const Matrix& matrix, const FormatShape& shape) {
    const int tokens = std::min(gemm_most_tokens(compiled_for_), rows_ <= 16 ? 16 : rows_ <= 64 ? 64 : 128);
    const GemmShape tile = gemm_shape(shape.unit_cols, shape.unit_bytes, tokens, compiled_for_);
    const int threads = 32 * tile.warps;
    Launch launch;
    launch.shared_bytes = static_cast<size_t>(tile.shared_bytes);
    HEARTH_ASSIGN(launch.kernel, context_.kernels.get(linear_file(matrix.format), fmt::format("gemm_{}", tokens),
                                                      launch.shared_bytes));
    HEARTH_ASSIGN(const int resident,
                  context_.kernels.blocks_per_processor(launch.kernel, threads, launch.shared_bytes));
    const int64_t row_tiles = ceil_div<int64_t>(rows_, tokens);
    const int64_t col_tiles =
        ceil_div<int64_t>(params.tasks, params.glu != kNoActivation ? tile.warps : 2 * tile.warps);
    const int64_t tiles = row_tiles * col_tiles;
    const int64_t slots = int64_t{resident} * context_.device.properties().processors;
    // As many parts as fill the device once; a part has a few units at least.
    const int64_t least_units = 256 / shape.unit_cols * 2;
    const int64_t most = std::max<int64_t>(1, params.units / least_units);
    const int64_t splits = tiles <= static_cast<int64_t>(kCounters) ? std::clamp<int64_t>(slots / tiles, 1, most) : 1;
    params.units_per_split = static_cast<int32_t>(ceil_div<int64_t>(params.units, splits));
    params.splits = static_cast<int32_t>(ceil_div(params.units, params.units_per_split));
    if (params.splits > 1) {
      Pieces pieces = scratch_;
      const size_t partial = pieces.take(static_cast<size_t>(tiles * params.splits * tokens * threads) * sizeof(float));
      params.partial = reinterpret_cast<float*>(context_.take_scratch(pieces) + partial);
      params.counters = context_.counters;
    }
    launch.grid[0] = static_cast<unsigned>(row_tiles);
    launch.grid[1] = static_cast<unsigned>(col_tiles);
    launch.grid[2] = static_cast<unsigned>(params.splits);
    launch.threads = static_cast<unsigned>(threads);
    return finish(launch, params, matrix);
  }

  Result<void> finish(Launch& launch, const LinearParams& params, const Matrix& matrix) {
    launch.kernel.name = fmt::format("{} {} [{}, {}]", launch.kernel.name, format_info(matrix.format).name,
                                     params.tasks * kPanelRows, matrix.cols);
    launch.set_params(params);
    context_.launches.push_back(std::move(launch));
    return {};
  }

  const float* norm() const { return op_.norm ? context_.weights.vector(op_.norm->weight) : nullptr; }

  const LinearOp& op_;
  PrepareContext& context_;
  int64_t rows_;  // that the plan has room for
  int64_t cols_;
  bool logit_rows_;
  int compiled_for_ = 0;  // the kernels
  std::vector<Part> parts_;
  const float* residual_ = nullptr;
  Pieces scratch_;
  float* floats_ = nullptr;
  IntRows ints_ = {};
  HalfRows halves_ = {};
  float* gate_ = nullptr;
  float* up_ = nullptr;
  bool made_[3] = {};
  bool last_fused_ = false;  // the launch before
};

}  // namespace

Result<void> prepare(const LinearOp& op, PrepareContext& context) { return LinearBuilder(op, context).build(); }

}  // namespace hearth::cuda
