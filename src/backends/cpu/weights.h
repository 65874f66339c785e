// The weights of a graph as the CPU's kernels read them: matrices planar or native, vectors as f32.
#pragma once

#include <functional>
#include <optional>
#include <vector>

#include "backends/backend.h"
#include "backends/cpu/kernels.h"
#include "backends/cpu/memory.h"
#include "backends/cpu/thread_pool.h"
#include "graph/graph.h"
#include "quant/layout.h"

namespace hearth::cpu {

// The kernel family that reads a format's planar layout; nothing for formats that have none.
std::optional<PlanarKind> planar_kind(FormatId id);
// Has integer codes, so that dot_int applies.
bool has_integer_codes(PlanarKind kind);

// Whether a product of many rows reads integer codes of this format (Gemm::unpack), not f32.
bool takes_codes(const Gemm& gemm, std::optional<PlanarKind> kind);

// A panel with integer codes, for products that read those (Gemm::unpack).
struct CodePanel {
  PanelView view;
  UnpackCodes unpack;

  PanelReader reader() const;  // refers to this
};

struct Matrix {
  FormatId format = FormatId::kF32;
  std::optional<PlanarKind> kind;
  int64_t rows = 0;
  int64_t cols = 0;
  const std::byte* native = nullptr;  // in the mapped file
  const std::byte* planar = nullptr;  // nullptr: only native
  PlanarPanel layout;                 // when kind
  const KernelTable* kernels = nullptr;

  int64_t panels() const { return (rows + kPanelRows - 1) / kPanelRows; }
  size_t native_row_bytes() const { return row_bytes(format, cols); }
  PanelView view(const std::byte* panel, int64_t next_bytes = 0) const;
  // Panel `panel`; a native one is converted into `scratch` (layout.panel_bytes, aligned to kPlanarAlign) first.
  PanelView panel_view(int64_t panel, std::byte* scratch) const;
  // Columns [k0, k0 + kn) of the panel as f32 [kn][16], whatever the format and layout.
  void unpack(int64_t panel, int64_t k0, int64_t kn, float* out) const;
  // unpack() in the form that products of many rows call; it refers to this matrix.
  PanelReader reader(int64_t panel) const;
  // `scratch` as in panel_view(); `gemm` takes this format.
  CodePanel code_panel(const Gemm& gemm, int64_t panel, std::byte* scratch) const;
};

class Weights {
 public:
  static Result<Weights> load(const Graph& graph, const LoadOptions& options, const KernelTable& kernels,
                              ThreadPool& pool);
  // What load() allocates for repacked matrices.
  static size_t planar_bytes(const Graph& graph, WeightLayout layout);

  // Of weights that a linear op multiplies with.
  const Matrix& matrix(WeightId id) const { return matrices_[static_cast<size_t>(id.index)]; }
  // Of norms and biases, as f32.
  const float* vector(WeightId id) const { return vectors_[static_cast<size_t>(id.index)].data(); }

 private:
  std::vector<Matrix> matrices_;             // by WeightId; rows == 0 for the others
  std::vector<std::vector<float>> vectors_;  // by WeightId
  Buffer planar_;
};

}  // namespace hearth::cpu
