// out = x W^T with everything that passes fold into it. Few rows go through products that read each weight once; many
// through tiles that unpack a block of weights for all of them. Which of the two depends on the plan only, never on the
// rows of a step. kCandidates names the kernels; HEARTH_CPU_KERNEL=linear:NAME forces one.
#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <string>
#include <utility>

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
  // The tiles' result for `panels` neighbouring panels, [panel][panel_floats], each [row][16] for rows [first_row,
  // first_row + rows), goes where it belongs: row by row, for rows lie on pages of their own.
  void finish(const Part& part, int64_t panel, int64_t panels, int64_t first_row, int64_t rows, const float* tiles,
              int64_t panel_floats) const {
    int64_t n = part.matrix->rows;
    for (int64_t r = 0; r < rows; ++r) {
      for (int64_t p = 0; p < panels; ++p) {
        int64_t col = (panel + p) * kLanes, width = std::min(kLanes, n - col), at = (first_row + r) * n + col;
        const float* tile = tiles + p * panel_floats + r * kLanes;
        if (residual_) {
          kernels_.add(residual_ + at, tile, width, part.out + at);
        } else {
          std::memcpy(part.out + at, tile, static_cast<size_t>(width) * sizeof(float));
        }
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
    tile_panels_ = std::clamp<int64_t>(panels_ / (int64_t{context.workers} * 8), 1, 32);

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
    bool prepared = rows > 1;
    if (rows == 1) {
      // Each worker prepares the row for itself in its first tile: cheaper than a barrier.
      ints = rows_at(worker.scratch, own_);
      if (norm_) floats = at<float>(worker.scratch, float_row_);
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
      if (!std::exchange(prepared, true)) {
        prepare_row(0, norm_ ? at<float>(worker.scratch, float_row_) : nullptr, ints);
      }
      int64_t end = std::min(panels_, (t + 1) * tile_panels_);
      for (int64_t p = t * tile_panels_; p < end; ++p) panel(p, p + 1 == end, rows, ints, floats, worker);
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

  // One panel of one part times all rows: tile[row][16]. `last`: the next panel may be another worker's.
  void multiply(const Matrix& m, int64_t panel, bool last, int64_t rows, const IntRows& ints, const float* floats,
                const Worker& worker, float* tile) const {
    if (uses_ints(m)) {
      PanelView view = m.panel_view(panel, worker.scratch + panel_scratch_);
      if (last) view.next_bytes = 0;
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

  void panel(int64_t p, bool last, int64_t rows, const IntRows& ints, const float* floats, const Worker& worker) const {
    float* tile = at<float>(worker.scratch, tile_);
    if (glu_) {
      float* up = tile + rows * kLanes;
      for (int i = 0; i < 2; ++i) {
        const Part& part = parts_[static_cast<size_t>(i)];
        multiply(*part.matrix, p, last, rows, ints, floats, worker, i == 0 ? tile : up);
        add_bias(part, p, rows, i == 0 ? tile : up);
      }
      glu_(tile, up, rows * kLanes, tile);
      finish(parts_[0], p, 1, 0, rows, tile, 0);
      return;
    }
    const Part* part = parts_.data();
    for (; p >= part->matrix->panels(); ++part) p -= part->matrix->panels();
    multiply(*part->matrix, p, last, rows, ints, floats, worker, tile);
    add_bias(*part, p, rows, tile);
    finish(*part, p, 1, 0, rows, tile, 0);
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
  GemmStep(const LinearOp& op, PrepareContext& context, std::string_view name, const Gemm& gemm)
      : LinearStep(op, context), name_(name), gemm_(gemm), codes_(takes_codes(gemm, parts_[0].matrix->kind)) {
    int64_t rows = context.rows(op.x);
    // Tiles of several panels share what they read of the activations, but every worker should get some.
    int64_t panels = 0;
    for (const Part& part : parts_) panels += part.matrix->panels();
    unit_panels_ = std::clamp<int64_t>(panels / (int64_t{context.workers} * 4) / 2 * 2, 2, gemm.panels);
    size_t panel_bytes = 0;
    for (const Part& part : parts_) {
      if (!glu_ || &part == parts_.data()) units_ += units(part);
      if (codes_ && !part.matrix->planar) panel_bytes = std::max(panel_bytes, part.matrix->layout.panel_bytes);
    }
    Pieces worker;
    normed_ = worker.take<float>(norm_ ? gemm.rows * cols_ : 0);
    scratch_ = worker.take<std::byte>(static_cast<int64_t>(gemm.scratch_bytes));
    panel_scratch_ = worker.take<std::byte>(static_cast<int64_t>(panel_bytes) * unit_panels_);
    panel_scratch_bytes_ = panel_bytes;
    int64_t block_rows = round_up(std::min(rows, kRowBlock), gemm.rows);
    out_ = worker.take<float>(unit_panels_ * block_rows * kLanes);
    context.worker_bytes = std::max(context.worker_bytes, worker.used_bytes());
    size_t packed = static_cast<size_t>(block_rows / gemm.rows) * gemm.group_bytes(cols_);
    context.shared_bytes = std::max(context.shared_bytes, packed);
  }

  std::string_view kernel() const override { return name_; }

  void run(const Launch& launch, const Worker& worker) const override {
    int64_t rows = launch.count(kind_);
    if (rows == 0) return;
    int64_t blocks = ceil_div(rows, kRowBlock), block_rows = round_up(ceil_div(rows, blocks), gemm_.rows);
    for (int64_t first = 0; first < rows; first += block_rows) {
      if (first > 0) worker.barrier();  // the packed rows of the block before have been read
      int64_t n = std::min(block_rows, rows - first);
      worker.each_tile(ceil_div(n, gemm_.rows), [&](int64_t g) { pack(first, n, g, worker); });
      worker.barrier();
      worker.each_tile(units_, [&](int64_t u) { unit(u, first, n, worker); });
    }
  }

 private:
  // A unit is what one tile makes: neighbouring panels of one part, or with GLU as many of the gate as of the up
  // matrix.
  int64_t unit_panels() const { return glu_ ? unit_panels_ / 2 : unit_panels_; }
  int64_t units(const Part& part) const { return ceil_div(part.matrix->panels(), unit_panels()); }

  // Group g of the rows [first, first + rows), normalized.
  void pack(int64_t first, int64_t rows, int64_t g, const Worker& worker) const {
    int64_t row = g * gemm_.rows, n = std::min(gemm_.rows, rows - row);
    const float* x = x_ + (first + row) * cols_;
    if (norm_) {
      float* normed = at<float>(worker.scratch, normed_);
      for (int64_t r = 0; r < n; ++r) kernels_.rms_norm(x + r * cols_, norm_, cols_, eps_, normed + r * cols_);
      x = normed;
    }
    gemm_.pack(x, cols_, n, cols_, g, ceil_div(rows, gemm_.rows), worker.shared);
  }

  void unit(int64_t u, int64_t first_row, int64_t rows, const Worker& worker) const {
    const Part* part = parts_.data();
    for (; u >= units(*part); ++part) u -= units(*part);
    int64_t panel = u * unit_panels(), panels = std::min(unit_panels(), part->matrix->panels() - panel);
    int64_t panel_floats = round_up(rows, gemm_.rows) * kLanes;
    float* out = at<float>(worker.scratch, out_);

    PanelReader readers[kMaxTilePanels];
    CodePanel codes[kMaxTilePanels];
    int64_t count = 0;
    for (int matrix = 0; matrix < (glu_ ? 2 : 1); ++matrix) {
      for (int64_t p = 0; p < panels; ++p, ++count) {
        const Matrix& m = *part[matrix].matrix;
        if (codes_) {
          std::byte* scratch = worker.scratch + panel_scratch_ + static_cast<size_t>(count) * panel_scratch_bytes_;
          codes[count] = m.code_panel(gemm_, panel + p, scratch);
          readers[count] = codes[count].reader();
        } else {
          readers[count] = m.reader(panel + p);
        }
      }
    }
    gemm_.multiply({.a = worker.shared,
                    .rows = rows,
                    .cols = cols_,
                    .panels = count,
                    .read = readers,
                    .scratch = worker.scratch + scratch_,
                    .out = out});
    for (int64_t p = 0; p < panels; ++p) {
      float* tile = out + p * panel_floats;
      add_bias(*part, panel + p, rows, tile);
      if (glu_) {
        float* up = tile + panels * panel_floats;
        add_bias(part[1], panel + p, rows, up);
        glu_(tile, up, rows * kLanes, tile);
      }
    }
    finish(*part, panel, panels, first_row, rows, out, panel_floats);
  }

  std::string_view name_;
  const Gemm& gemm_;
  bool codes_;
  int64_t unit_panels_, units_ = 0;
  size_t panel_scratch_bytes_;
  size_t normed_, scratch_, panel_scratch_, out_;  // in the worker's scratch
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
bool takes_all_codes(const Gemm& gemm, const LinearOp& op, const PrepareContext& context) {
  return std::ranges::all_of(op.parts, [&](const LinearOp::Part& part) {
    return takes_codes(gemm, context.weights.matrix(part.weight).kind);
  });
}
bool takes_gemm_int(const LinearOp& op, const PrepareContext& context) {
  return takes_all_codes(context.kernels.gemm_int, op, context);
}
bool takes_gemm_bytes(const LinearOp& op, const PrepareContext& context) {
  return takes_all_codes(context.kernels.gemm_bytes, op, context);
}
bool takes_gemm_bf16(const LinearOp&, const PrepareContext& context) { return context.kernels.gemm_bf16.multiply; }
bool takes_gemm_amx(const LinearOp&, const PrepareContext& context) { return context.kernels.gemm_amx.multiply; }
// Weights in f32 have more digits than the matrix unit's two bf16; whoever keeps them wants them.
bool any_f32(const LinearOp& op, const PrepareContext& context) {
  return std::ranges::any_of(op.parts, [&](const LinearOp::Part& part) {
    return context.weights.matrix(part.weight).format == FormatId::kF32;
  });
}

template <bool Ints>
std::unique_ptr<CpuStep> make_gemv(const LinearOp& op, PrepareContext& context) {
  return std::make_unique<GemvStep>(op, context, Ints);
}

constexpr Candidate kCandidates[] = {
    {"linear:gemv_int", LinearKernel::kGemvInt, any_integer_codes, make_gemv<true>},
    {"linear:gemv_float", LinearKernel::kGemvFloat, always, make_gemv<false>},
    {"linear:gemm_f32", LinearKernel::kGemmF32, always,
     [](const LinearOp& op, PrepareContext& context) -> std::unique_ptr<CpuStep> {
       return std::make_unique<GemmStep>(op, context, "linear:gemm_f32", context.kernels.gemm_f32);
     }},
    {"linear:gemm_int", LinearKernel::kGemmInt, takes_gemm_int,
     [](const LinearOp& op, PrepareContext& context) -> std::unique_ptr<CpuStep> {
       return std::make_unique<GemmStep>(op, context, "linear:gemm_int", context.kernels.gemm_int);
     }},
    {"linear:gemm_bytes", LinearKernel::kGemmBytes, takes_gemm_bytes,
     [](const LinearOp& op, PrepareContext& context) -> std::unique_ptr<CpuStep> {
       return std::make_unique<GemmStep>(op, context, "linear:gemm_bytes", context.kernels.gemm_bytes);
     }},
    {"linear:gemm_bf16", LinearKernel::kGemmBf16, takes_gemm_bf16,
     [](const LinearOp& op, PrepareContext& context) -> std::unique_ptr<CpuStep> {
       return std::make_unique<GemmStep>(op, context, "linear:gemm_bf16", context.kernels.gemm_bf16);
     }},
    {"linear:gemm_amx", LinearKernel::kGemmAmx, takes_gemm_amx,
     [](const LinearOp& op, PrepareContext& context) -> std::unique_ptr<CpuStep> {
       return std::make_unique<GemmStep>(op, context, "linear:gemm_amx", context.kernels.gemm_amx);
     }},
};

LinearKernel choose(const LinearOp& op, const PrepareContext& context) {
  // Logit rows are few even in a prefill, and the matrix is the largest.
  bool few = context.plan.bucket.kind == PlanKind::kDecode || context.graph.value(op.x).rows == RowKind::kLogit;
  if (few) return any_integer_codes(op, context) ? LinearKernel::kGemvInt : LinearKernel::kGemvFloat;
  const bool eight_bits = context.options.activations == Activations::kInt8;
  if (takes_gemm_amx(op, context) && !any_f32(op, context)) {
    return eight_bits ? LinearKernel::kGemmBf16 : LinearKernel::kGemmAmx;
  }
  if (eight_bits && takes_gemm_bytes(op, context)) return LinearKernel::kGemmBytes;
  return takes_gemm_int(op, context) ? LinearKernel::kGemmInt : LinearKernel::kGemmF32;
}

const Candidate& candidate(LinearKernel kernel) {
  return *std::ranges::find_if(kCandidates, [=](const Candidate& c) { return c.kernel == kernel; });
}

}  // namespace

Result<LinearKernel> forced_linear_kernel() {
  const char* name = std::getenv("HEARTH_CPU_KERNEL");
  if (name == nullptr || *name == '\0') return LinearKernel::kAuto;
  std::string names;
  for (const Candidate& c : kCandidates) {
    if (c.name == name) return c.kernel;
    names.append(names.empty() ? "" : ", ").append(c.name);
  }
  return fail(ErrorCode::kUsage, "HEARTH_CPU_KERNEL: CPU kernel '{}' is unknown; there are: {}", name, names);
}

std::string_view name_of(LinearKernel kernel) { return candidate(kernel).name; }

std::unique_ptr<CpuStep> prepare(const LinearOp& op, PrepareContext& context) {
  LinearKernel forced = context.linear_kernel;
  bool takes_forced = forced != LinearKernel::kAuto && candidate(forced).supports(op, context);
  return candidate(takes_forced ? forced : choose(op, context)).make(op, context);
}

}  // namespace hearth::cpu
