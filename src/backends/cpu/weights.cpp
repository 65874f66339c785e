#include "backends/cpu/weights.h"

#include <algorithm>
#include <array>
#include <cstring>

#include "base/check.h"
#include "base/checked_math.h"

namespace hearth::cpu {
namespace {

bool repacks(FormatId format, WeightLayout layout) {
  return layout != WeightLayout::kNative && planar_kind(format).has_value();
}

size_t planar_offset_step(const Weight& weight) {
  return round_up(planar_size_bytes(weight.tensor->format, weight.rows, weight.cols), kPlanarAlign);
}

constexpr int64_t kPanelsPerTile = 16;

struct Repack {
  const Matrix& matrix;
  std::byte* to;
};

void repack(ThreadPool& pool, const Matrix& matrix, std::byte* to) {
  Repack job{matrix, to};
  pool.run(
      [](void* context, ThreadPool::Worker& worker) {
        auto& job = *static_cast<Repack*>(context);
        const Matrix& m = job.matrix;
        worker.each_tile(ceil_div(m.panels(), kPanelsPerTile), [&](int64_t t) {
          int64_t row = t * kPanelsPerTile * kPanelRows;
          int64_t rows = std::min(m.rows - row, kPanelsPerTile * kPanelRows);
          to_planar(m.format, rows, m.cols, m.native + static_cast<size_t>(row) * m.native_row_bytes(),
                    job.to + static_cast<size_t>(t * kPanelsPerTile) * m.layout.panel_bytes);
        });
      },
      &job);
}

// out[k][lane] = rows[lane][k] for four lanes. Vectors of the compiler's own, so that no instruction set is named.
void turn(const float* rows, int64_t stride, int64_t n, float* out) {
  using Float4 = float __attribute__((vector_size(16)));
  int64_t k = 0;
  for (; k + 4 <= n; k += 4) {
    Float4 a[4];
    for (int i = 0; i < 4; ++i) std::memcpy(&a[i], rows + i * stride + k, sizeof a[i]);
    Float4 low01 = __builtin_shufflevector(a[0], a[1], 0, 4, 1, 5);
    Float4 high01 = __builtin_shufflevector(a[0], a[1], 2, 6, 3, 7);
    Float4 low23 = __builtin_shufflevector(a[2], a[3], 0, 4, 1, 5);
    Float4 high23 = __builtin_shufflevector(a[2], a[3], 2, 6, 3, 7);
    Float4 b[4] = {__builtin_shufflevector(low01, low23, 0, 1, 4, 5), __builtin_shufflevector(low01, low23, 2, 3, 6, 7),
                   __builtin_shufflevector(high01, high23, 0, 1, 4, 5),
                   __builtin_shufflevector(high01, high23, 2, 3, 6, 7)};
    for (int i = 0; i < 4; ++i) std::memcpy(out + (k + i) * kLanes, &b[i], sizeof b[i]);
  }
  for (; k < n; ++k) {
    for (int i = 0; i < 4; ++i) out[k * kLanes + i] = rows[i * stride + k];
  }
}

// Decodes each row's columns and turns them: the way of every format without planar panels.
void unpack_native(const Matrix& m, int64_t panel, int64_t k0, int64_t kn, float* out) {
  constexpr int64_t kStride = kKBlock + 16;  // rows a power of two apart would share few sets of the cache
  std::array<float, 4 * kStride> rows;
  const FormatInfo& info = format_info(m.format);
  size_t offset_bytes = static_cast<size_t>(k0 / info.block_elems) * info.block_bytes;
  for (int64_t lane = 0; lane < kLanes; ++lane) {
    int64_t r = panel * kLanes + lane;
    std::span row(rows.data() + lane % 4 * kStride, static_cast<size_t>(kn));
    if (r < m.rows) {
      decode_row(m.format, m.native + static_cast<size_t>(r) * m.native_row_bytes() + offset_bytes, row);
    } else {
      std::ranges::fill(row, 0.0f);
    }
    if (lane % 4 == 3) turn(rows.data(), kStride, kn, out + lane - 3);
  }
}

}  // namespace

std::optional<PlanarKind> planar_kind(FormatId id) {
  switch (id) {
    case FormatId::kF32:
      return PlanarKind::kF32;
    case FormatId::kF16:
      return PlanarKind::kF16;
    case FormatId::kBF16:
      return PlanarKind::kBF16;
    case FormatId::kQ8_0:
      return PlanarKind::kQ8_0;
    case FormatId::kQ4_0:
      return PlanarKind::kQ4_0;
    case FormatId::kQ4_1:
      return PlanarKind::kQ4_1;
    case FormatId::kQ5_0:
      return PlanarKind::kQ5_0;
    case FormatId::kQ5_1:
      return PlanarKind::kQ5_1;
    case FormatId::kQ4_K:
      return PlanarKind::kQ4_K;
    case FormatId::kQ5_K:
      return PlanarKind::kQ5_K;
    case FormatId::kQ6_K:
      return PlanarKind::kQ6_K;
    case FormatId::kQ2_K:
      return PlanarKind::kQ2_K;
    case FormatId::kQ3_K:
      return PlanarKind::kQ3_K;
    case FormatId::kIQ4_NL:
      return PlanarKind::kIQ4_NL;
    case FormatId::kIQ4_XS:
      return PlanarKind::kIQ4_XS;
    case FormatId::kMXFP4:
      return PlanarKind::kMXFP4;
    case FormatId::kNVFP4:
      return PlanarKind::kNVFP4;
    case FormatId::kNF4:
      return PlanarKind::kNF4;
    default:
      return std::nullopt;
  }
}

bool has_integer_codes(PlanarKind kind) { return kind > PlanarKind::kBF16; }

bool takes_codes(const Gemm& gemm, std::optional<PlanarKind> kind) {
  return kind && gemm.unpack[static_cast<size_t>(*kind)] != nullptr;
}

PanelView Matrix::view(const std::byte* panel, int64_t next_bytes) const {
  const auto* base = reinterpret_cast<const uint8_t*>(panel);
  return {.codes = base + layout.codes,
          .high = base + layout.high,
          .sub_scales = base + layout.sub_scales,
          .scales = reinterpret_cast<const uint16_t*>(base + layout.scales),
          .cols = cols,
          .next_bytes = next_bytes};
}

PanelView Matrix::panel_view(int64_t panel, std::byte* scratch) const {
  if (planar) {
    return view(planar + static_cast<size_t>(panel) * layout.panel_bytes,
                panel + 1 < panels() ? static_cast<int64_t>(layout.panel_bytes) : 0);
  }
  to_planar(format, std::min(rows - panel * kPanelRows, kPanelRows), cols,
            native + static_cast<size_t>(panel * kPanelRows) * native_row_bytes(), scratch);
  return view(scratch);
}

void Matrix::unpack(int64_t panel, int64_t k0, int64_t kn, float* out) const {
  if (planar) {
    kernels->unpack[static_cast<size_t>(*kind)](view(planar + static_cast<size_t>(panel) * layout.panel_bytes), k0, kn,
                                                out);
  } else {
    unpack_native(*this, panel, k0, kn, out);
  }
}

PanelReader CodePanel::reader() const {
  return {.run =
              [](const void* panel, int64_t, int64_t k0, int64_t kn, void* out) {
                const auto& self = *static_cast<const CodePanel*>(panel);
                self.unpack(self.view, k0, kn, out);
              },
          .context = this,
          .panel = 0};
}

CodePanel Matrix::code_panel(const Gemm& gemm, int64_t panel, std::byte* scratch) const {
  return {panel_view(panel, scratch), gemm.unpack[static_cast<size_t>(*kind)]};
}

PanelReader Matrix::reader(int64_t panel) const {
  return {.run = [](const void* matrix, int64_t panel, int64_t k0, int64_t kn,
                    void* out) { static_cast<const Matrix*>(matrix)->unpack(panel, k0, kn, static_cast<float*>(out)); },
          .context = this,
          .panel = panel};
}

size_t Weights::planar_bytes(const Graph& graph, WeightLayout layout) {
  std::vector<WeightUse> uses = weight_uses(graph);
  size_t total = 0;
  for (size_t i = 0; i < uses.size(); ++i) {
    const Weight& weight = graph.weights[i];
    if (uses[i] == WeightUse::kMatrix && repacks(weight.tensor->format, layout)) total += planar_offset_step(weight);
  }
  return total;
}

Result<Weights> Weights::load(const Graph& graph, const LoadOptions& options, const KernelTable& kernels,
                              ThreadPool& pool) {
  std::vector<WeightUse> uses = weight_uses(graph);
  Weights weights;
  weights.matrices_.resize(uses.size());
  weights.vectors_.resize(uses.size());
  HEARTH_ASSIGN(weights.planar_, Buffer::allocate(planar_bytes(graph, options.layout), true, "repacked weights"));

  size_t total_bytes = 0, done_bytes = 0, offset = 0;
  for (size_t i = 0; i < uses.size(); ++i) {
    if (uses[i] != WeightUse::kGathered) total_bytes += graph.weights[i].tensor->bytes.size();
  }
  for (size_t i = 0; i < uses.size(); ++i) {
    const Weight& weight = graph.weights[i];
    if (uses[i] == WeightUse::kGathered) continue;
    const TensorEntry& tensor = *weight.tensor;
    HEARTH_CHECK(tensor.bytes.size() == static_cast<size_t>(weight.rows) * row_bytes(tensor.format, weight.cols),
                 "{}: {} bytes for [{}, {}] of {}", tensor.name, tensor.bytes.size(), weight.rows, weight.cols,
                 format_info(tensor.format).name);
    if (uses[i] == WeightUse::kVector) {
      std::vector<float>& out = weights.vectors_[i];
      out.resize(static_cast<size_t>(weight.cols));
      decode_row(tensor.format, tensor.bytes.data(), out);
    } else {
      Matrix& matrix = weights.matrices_[i];
      matrix = {.format = tensor.format,
                .kind = planar_kind(tensor.format),
                .rows = weight.rows,
                .cols = weight.cols,
                .native = tensor.bytes.data(),
                .kernels = &kernels};
      if (matrix.kind) matrix.layout = planar_panel(tensor.format, weight.cols);
      if (repacks(tensor.format, options.layout)) {
        std::byte* to = weights.planar_.data() + offset;
        repack(pool, matrix, to);
        matrix.planar = to;
        offset += planar_offset_step(weight);
        if (options.release) options.release(tensor);
      }
    }
    done_bytes += tensor.bytes.size();
    if (options.progress) options.progress(done_bytes, total_bytes);
  }
  return weights;
}

}  // namespace hearth::cpu
