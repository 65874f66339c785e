// out = x W^T with everything that passes fold into it. Few rows go through products that read each weight once; many
// through tiles that unpack weights to f32. Which of the two depends on the plan only, never on the rows of a step.
// kCandidates names the kernels; HEARTH_CPU_KERNEL=linear:NAME forces one.
#include <algorithm>
#include <cstring>
#include <string>

#include "backends/cpu/step.h"
#include "base/checked_math.h"

namespace hearth::cpu {
namespace {

// Most rows of a GEMM at a time: unpacking a panel is shared by them, their activations should stay in the L2 cache,
// and the packed copy of activations should stay small.
constexpr int64_t kRowBlock = 512;

struct Part {
  const Matrix* matrix;
  const float* bias;  // or nullptr
  float* out;         // [rows][matrix->rows]
};

class LinearStep : public CpuStep {
 public:
  LinearStep(const LinearOp& op, PrepareContext& context)
      : kernels_(context.kernels),
        kind_(context.graph.value(op.x).rows),
        x_(context.value(op.x)),
        cols_(context.graph.value(op.x).cols),
        norm_(op.norm ? context.weights.vector(op.norm->weight) : nullptr),
        eps_(op.norm ? op.norm->eps : 0),
        residual_(op.residual ? context.value(op.residual) : nullptr) {
    if (op.glu) glu_ = *op.glu == Activation::kSilu ? kernels_.silu_mul : kernels_.gelu_mul;
    for (size_t i = 0; i < op.parts.size(); ++i) {
      const LinearOp::Part& part = op.parts[i];
      const Matrix& matrix = context.weights.matrix(part.weight);
      bool writes = i == 0 || !op.glu;
      parts_.push_back({.matrix = &matrix,
                        .bias = part.bias ? context.weights.vector(part.bias) : nullptr,
                        .out = writes ? context.value(part.out) : nullptr});
    }
  }

 protected:
  // The tiles' result for one panel, [rows][16] for rows [first_row, first_row + rows), goes where it belongs.
  void finish(const Part& part, int64_t panel, int64_t first_row, int64_t rows, const float* tile) const {
    int64_t n = part.matrix->rows, col = panel * kLanes, width = std::min(kLanes, n - col);
    for (int64_t r = 0; r < rows; ++r) {
      int64_t at = (first_row + r) * n + col;
      if (residual_) {
        kernels_.add(residual_ + at, tile + r * kLanes, width, part.out + at);
      } else {
        std::memcpy(part.out + at, tile + r * kLanes, static_cast<size_t>(width) * sizeof(float));
      }
    }
  }
  void add_bias(const Part& part, int64_t panel, int64_t rows, float* tile) const {
    if (!part.bias) return;
    int64_t col = panel * kLanes, width = std::min(kLanes, part.matrix->rows - col);
    for (int64_t r = 0; r < rows; ++r) {
      kernels_.add(tile + r * kLanes, part.bias + col, width, tile + r * kLanes);
    }
  }

  const KernelTable& kernels_;
  RowKind kind_;
  const float* x_;
  int64_t cols_;
  const float* norm_;  // or nullptr
  float eps_;
  const float* residual_;  // or nullptr
  void (*glu_)(const float*, const float*, int64_t, float*) = nullptr;
  std::vector<Part> parts_;
};

// ---- few rows ----

bool integer_codes(const Matrix& matrix) { return matrix.kind && has_integer_codes(*matrix.kind); }

// Weights with integer codes times integer activations (when `ints`), all others unpacked to f32.
class GemvStep : public LinearStep {
 public:
  GemvStep(const LinearOp& op, PrepareContext& context, bool ints) : LinearStep(op, context), ints_(ints) {
    int64_t rows = context.rows(op.x);
    size_t panel_bytes = 0;
    for (const Part& part : parts_) {
      bool ints = uses_ints(*part.matrix);
      need_ints_ |= ints;
      need_floats_ |= !ints;
      if (ints && !part.matrix->planar) panel_bytes = std::max(panel_bytes, part.matrix->layout.panel_bytes);
      if (!glu_ || &part == parts_.data()) panels_ += part.matrix->panels();
    }
    limit_ = context.options.activations == Activations::kInt8 ? 127 : 32767;
    // Several panels to a tile keep a worker on one stretch of memory; at least eight tiles a worker keep all busy.
    tile_panels_ = std::clamp<int64_t>(panels_ / (int64_t{context.workers} * 8), 1, 8);

    Pieces worker;
    float_row_ = worker.take<float>(cols_);
    own_ = place(worker, 1);
    panel_scratch_ = worker.take<std::byte>(static_cast<int64_t>(panel_bytes));
    unpacked_ = worker.take<float>(kKBlock * kLanes);
    tile_ = worker.take<float>(2 * rows * kLanes);
    context.worker_bytes = std::max(context.worker_bytes, worker.used_bytes());
    Pieces shared;
    float_rows_ = shared.take<float>(need_floats_ ? rows * cols_ : 0);
    all_ = place(shared, rows);
    context.shared_bytes = std::max(context.shared_bytes, shared.used_bytes());
  }

  std::string_view kernel() const override { return ints_ ? "linear:gemv_int" : "linear:gemv_float"; }

  void run(const Launch& launch, const Worker& worker) const override {
    int64_t rows = launch.count(kind_);
    if (rows == 0) return;
    IntRows ints;
    const float* floats = x_;
    if (rows == 1) {
      // Each worker prepares the row for itself: cheaper than a barrier.
      ints = rows_at(worker.scratch, own_);
      if (norm_) floats = at<float>(worker.scratch, float_row_);
      prepare_row(0, norm_ ? at<float>(worker.scratch, float_row_) : nullptr, ints);
    } else {
      ints = rows_at(worker.shared, all_);
      if (norm_ && need_floats_) floats = at<float>(worker.shared, float_rows_);
      worker.each_tile(rows, [&](int64_t r) {
        float* normed = at<float>(worker.scratch, float_row_);
        if (need_floats_) normed = at<float>(worker.shared, float_rows_) + r * cols_;
        prepare_row(r, norm_ ? normed : nullptr, ints);
      });
      worker.barrier();
    }
    worker.each_tile(ceil_div(panels_, tile_panels_), [&](int64_t t) {
      int64_t end = std::min(panels_, (t + 1) * tile_panels_);
      for (int64_t p = t * tile_panels_; p < end; ++p) panel(p, rows, ints, floats, worker);
    });
  }

 private:
  struct IntPlace {
    size_t codes, scales, sums16, sums32, totals;
  };

  bool uses_ints(const Matrix& matrix) const { return ints_ && integer_codes(matrix); }

  IntPlace place(Pieces& pieces, int64_t rows) const {
    if (!need_ints_) return {};
    int64_t blocks = cols_ / kActBlock;
    return {.codes = pieces.take<int16_t>(rows * cols_),
            .scales = pieces.take<float>(rows * blocks),
            .sums16 = pieces.take<int32_t>(rows * 2 * blocks),
            .sums32 = pieces.take<int32_t>(rows * blocks),
            .totals = pieces.take<float>(rows * blocks)};
  }
  IntRows rows_at(std::byte* base, const IntPlace& place) const {
    return {.codes = at<int16_t>(base, place.codes),
            .scales = at<float>(base, place.scales),
            .sums16 = at<int32_t>(base, place.sums16),
            .sums32 = at<int32_t>(base, place.sums32),
            .totals = at<float>(base, place.totals),
            .code_stride = cols_,
            .scale_stride = cols_ / kActBlock};
  }

  // Normalizes row r into `normed` (nullptr: no norm) and makes integers of it where they are needed.
  void prepare_row(int64_t r, float* normed, const IntRows& ints) const {
    const float* x = x_ + r * cols_;
    if (normed) {
      kernels_.rms_norm(x, norm_, cols_, eps_, normed);
      x = normed;
    }
    if (need_ints_) kernels_.quantize(x, cols_, limit_, ints, r);
  }

  // One panel of one part times all rows: tile[row][16].
  void multiply(const Matrix& m, int64_t panel, int64_t rows, const IntRows& ints, const float* floats,
                const Worker& worker, float* tile) const {
    if (uses_ints(m)) {
      PanelView view = m.panel_view(panel, worker.scratch + panel_scratch_);
      kernels_.dot_int[static_cast<size_t>(*m.kind)](view, ints, rows, tile);
      return;
    }
    float* unpacked = at<float>(worker.scratch, unpacked_);
    for (int64_t k0 = 0; k0 < cols_; k0 += kKBlock) {
      int64_t kn = std::min(kKBlock, cols_ - k0);
      m.unpack(panel, k0, kn, unpacked);
      kernels_.dot_float(unpacked, kn, floats + k0, cols_, rows, k0 > 0, tile);
    }
  }

  void panel(int64_t p, int64_t rows, const IntRows& ints, const float* floats, const Worker& worker) const {
    float* tile = at<float>(worker.scratch, tile_);
    if (glu_) {
      float* up = tile + rows * kLanes;
      for (int i = 0; i < 2; ++i) {
        const Part& part = parts_[static_cast<size_t>(i)];
        multiply(*part.matrix, p, rows, ints, floats, worker, i == 0 ? tile : up);
        add_bias(part, p, rows, i == 0 ? tile : up);
      }
      glu_(tile, up, rows * kLanes, tile);
      finish(parts_[0], p, 0, rows, tile);
      return;
    }
    const Part* part = parts_.data();
    for (; p >= part->matrix->panels(); ++part) p -= part->matrix->panels();
    multiply(*part->matrix, p, rows, ints, floats, worker, tile);
    add_bias(*part, p, rows, tile);
    finish(*part, p, 0, rows, tile);
  }

  bool ints_;
  bool need_ints_ = false, need_floats_ = false;
  int32_t limit_;
  int64_t panels_ = 0, tile_panels_ = 1;
  size_t float_row_, panel_scratch_, unpacked_, tile_;  // in the worker's scratch
  IntPlace own_{};
  size_t float_rows_;  // in the shared scratch
  IntPlace all_{};
};

// ---- many rows ----

class GemmStep : public LinearStep {
 public:
  GemmStep(const LinearOp& op, PrepareContext& context) : LinearStep(op, context) {
    int64_t group = context.kernels.gemm_rows, rows = context.rows(op.x);
    for (const Part& part : parts_) {
      unpackers_.push_back(part.matrix->unpacker());
      if (!glu_ || &part == parts_.data()) units_ += units(part);
    }
    Pieces worker;
    normed_ = worker.take<float>(norm_ ? group * cols_ : 0);
    scratch_ = worker.take<float>(2 * kKBlock * kLanes);
    int64_t block_rows = round_up(std::min(rows, kRowBlock), group);
    out_ = worker.take<float>(2 * block_rows * kLanes);
    context.worker_bytes = std::max(context.worker_bytes, worker.used_bytes());
    Pieces shared;
    packed_ = shared.take<float>(block_rows * cols_);
    context.shared_bytes = std::max(context.shared_bytes, shared.used_bytes());
  }

  std::string_view kernel() const override { return "linear:gemm_f32"; }

  void run(const Launch& launch, const Worker& worker) const override {
    int64_t rows = launch.count(kind_), group = kernels_.gemm_rows;
    if (rows == 0) return;
    int64_t blocks = ceil_div(rows, kRowBlock), block_rows = round_up(ceil_div(rows, blocks), group);
    for (int64_t first = 0; first < rows; first += block_rows) {
      if (first > 0) worker.barrier();  // the packed rows of the block before have been read
      int64_t n = std::min(block_rows, rows - first);
      worker.each_tile(ceil_div(n, group),
                       [&](int64_t t) { pack(first, t * group, std::min(group, n - t * group), worker); });
      worker.barrier();
      worker.each_tile(units_, [&](int64_t u) { unit(u, first, n, worker); });
    }
  }

 private:
  // A unit is what one tile makes: a gate and an up panel, or neighbouring panels of one part.
  int64_t units(const Part& part) const {
    return glu_ ? part.matrix->panels() : ceil_div<int64_t>(part.matrix->panels(), kernels_.gemm_panels);
  }

  // Rows [first + row, + rows), normalized, become one micro-tile of A.
  void pack(int64_t first, int64_t row, int64_t rows, const Worker& worker) const {
    const float* x = x_ + (first + row) * cols_;
    if (norm_) {
      float* normed = at<float>(worker.scratch, normed_);
      for (int64_t r = 0; r < rows; ++r) kernels_.rms_norm(x + r * cols_, norm_, cols_, eps_, normed + r * cols_);
      x = normed;
    }
    kernels_.pack_rows(x, cols_, rows, cols_, at<float>(worker.shared, packed_) + row * cols_);
  }

  void unit(int64_t u, int64_t first_row, int64_t rows, const Worker& worker) const {
    int64_t padded = round_up(rows, kernels_.gemm_rows);
    float* out = at<float>(worker.scratch, out_);
    GemmTile tile{.a = at<float>(worker.shared, packed_),
                  .rows = rows,
                  .cols = cols_,
                  .panels = 2,
                  .unpack = {&unpackers_[0], nullptr},
                  .panel = {u, u},
                  .scratch = at<float>(worker.scratch, scratch_),
                  .out = out};
    if (glu_) {
      tile.unpack[1] = &unpackers_[1];
      kernels_.gemm(tile);
      add_bias(parts_[0], u, rows, out);
      add_bias(parts_[1], u, rows, out + padded * kLanes);
      glu_(out, out + padded * kLanes, rows * kLanes, out);
      finish(parts_[0], u, first_row, rows, out);
      return;
    }
    size_t i = 0;
    for (; u >= units(parts_[i]); ++i) u -= units(parts_[i]);
    const Part& part = parts_[i];
    int64_t panel = u * kernels_.gemm_panels;
    tile.panels = static_cast<int>(std::min<int64_t>(kernels_.gemm_panels, part.matrix->panels() - panel));
    for (int p = 0; p < tile.panels; ++p) {
      tile.unpack[p] = &unpackers_[i];
      tile.panel[p] = panel + p;
    }
    kernels_.gemm(tile);
    for (int p = 0; p < tile.panels; ++p) {
      add_bias(part, panel + p, rows, out + p * padded * kLanes);
      finish(part, panel + p, first_row, rows, out + p * padded * kLanes);
    }
  }

  std::vector<Unpacker> unpackers_;  // of parts_
  int64_t units_ = 0;
  size_t normed_, scratch_, out_;  // in the worker's scratch
  size_t packed_;                  // in the shared scratch
};

// ---- which ----

struct Candidate {
  std::string_view name;
  LinearKernel kernel;
  bool (*supports)(const LinearOp& op, const PrepareContext& context);
  std::unique_ptr<CpuStep> (*make)(const LinearOp& op, PrepareContext& context);
};

bool any_integer_codes(const LinearOp& op, const PrepareContext& context) {
  return std::ranges::any_of(
      op.parts, [&](const LinearOp::Part& part) { return integer_codes(context.weights.matrix(part.weight)); });
}
bool always(const LinearOp&, const PrepareContext&) { return true; }

template <bool Ints>
std::unique_ptr<CpuStep> make_gemv(const LinearOp& op, PrepareContext& context) {
  return std::make_unique<GemvStep>(op, context, Ints);
}
std::unique_ptr<CpuStep> make_gemm(const LinearOp& op, PrepareContext& context) {
  return std::make_unique<GemmStep>(op, context);
}

constexpr Candidate kCandidates[] = {
    {"linear:gemv_int", LinearKernel::kGemvInt, any_integer_codes, make_gemv<true>},
    {"linear:gemv_float", LinearKernel::kGemvFloat, always, make_gemv<false>},
    {"linear:gemm_f32", LinearKernel::kGemmF32, always, make_gemm},
};

LinearKernel choose(const LinearOp& op, const PrepareContext& context) {
  // Logit rows are few even in a prefill, and the matrix is the largest.
  bool few = context.plan.bucket.kind == PlanKind::kDecode || context.graph.value(op.x).rows == RowKind::kLogit;
  if (!few) return LinearKernel::kGemmF32;
  return any_integer_codes(op, context) ? LinearKernel::kGemvInt : LinearKernel::kGemvFloat;
}

const Candidate& candidate(LinearKernel kernel) {
  return *std::ranges::find_if(kCandidates, [=](const Candidate& c) { return c.kernel == kernel; });
}

}  // namespace

Result<LinearKernel> linear_kernel_from_name(std::string_view name) {
  if (name.empty()) return LinearKernel::kAuto;
  std::string names;
  for (const Candidate& c : kCandidates) {
    if (c.name == name) return c.kernel;
    names.append(names.empty() ? "" : ", ").append(c.name);
  }
  return fail(ErrorCode::kUsage, "CPU kernel '{}' is unknown; there are: {}", name, names);
}

std::unique_ptr<CpuStep> prepare(const LinearOp& op, PrepareContext& context) {
  LinearKernel forced = context.linear_kernel;
  bool takes_forced = forced != LinearKernel::kAuto && candidate(forced).supports(op, context);
  return candidate(takes_forced ? forced : choose(op, context)).make(op, context);
}

}  // namespace hearth::cpu
