#include "backends/cuda/weights.h"

#include <algorithm>
#include <atomic>
#include <cstring>
#include <map>
#include <system_error>
#include <thread>

#include "base/check.h"
#include "base/checked_math.h"
#include "base/cpu_topology.h"
#include "quant/half.h"

namespace hearth::cuda {
namespace {

constexpr size_t kStagingBytes = size_t{64} << 20;  // two of these take turns

// Gathered rows are exact; products may round what has no kernels to f16.
FormatId stored_format(FormatId format, WeightUse use) {
  if (planar_format(format)) return format;
  const bool wide = format == FormatId::kF64 || format == FormatId::kI32 || format == FormatId::kI64;
  return wide || use == WeightUse::kGathered ? FormatId::kF32 : FormatId::kF16;
}

size_t stored_bytes(const Weight& weight, WeightUse use) {
  size_t bytes = use == WeightUse::kVector
                     ? static_cast<size_t>(weight.cols) * sizeof(float)
                     : planar_size_bytes(stored_format(weight.tensor->format, use), weight.rows, weight.cols);
  return round_up<size_t>(bytes, 256);
}

// Rows [first, first + rows) as planar panels; first is a multiple of 16.
void make_panels(const Weight& weight, FormatId format, int64_t first, int64_t rows, std::byte* out) {
  const TensorEntry& tensor = *weight.tensor;
  const size_t native_row = row_bytes(tensor.format, weight.cols);
  const std::byte* native = tensor.bytes.data() + static_cast<size_t>(first) * native_row;
  if (format == tensor.format) return to_planar(format, rows, weight.cols, native, out);
  const size_t expanded_row = row_bytes(format, weight.cols);
  std::vector<std::byte> expanded(static_cast<size_t>(rows) * expanded_row);
  std::vector<float> values(static_cast<size_t>(weight.cols));
  for (int64_t r = 0; r < rows; ++r) {
    decode_row(tensor.format, native + static_cast<size_t>(r) * native_row, values);
    std::byte* to = expanded.data() + static_cast<size_t>(r) * expanded_row;
    for (size_t i = 0; i < values.size(); ++i) {
      if (format == FormatId::kF32) {
        std::memcpy(to + 4 * i, &values[i], 4);
      } else {
        const uint16_t half = f32_to_f16(values[i]);
        std::memcpy(to + 2 * i, &half, 2);
      }
    }
  }
  to_planar(format, rows, weight.cols, expanded.data(), out);
}

// Copies to the GPU through two pinned buffers, so that panels are made while the bus copies.
class Uploader {
 public:
  static Result<Uploader> create(const Device& device) {
    Uploader self(device);
    for (Turn& turn : self.turns_) {
      HEARTH_ASSIGN(turn.memory, HostBuffer::allocate(device, kStagingBytes, "loading weights"));
      HEARTH_TRY(
          device.driver().check(device.driver().cuEventCreate(&turn.copied, CU_EVENT_DISABLE_TIMING), "make an event"));
    }
    return self;
  }
  Uploader(Uploader&&) = default;
  ~Uploader() {
    for (Turn& turn : turns_) {
      if (turn.memory.size_bytes() > 0 && turn.copied != nullptr) device_->driver().cuEventDestroy(turn.copied);
    }
  }

  // fill(bytes) writes what goes to `to`; at most kStagingBytes.
  template <class F>
  Result<void> copy(CUdeviceptr to, size_t bytes, F&& fill) {
    Turn& turn = turns_[next_++ % 2];
    const Driver& driver = device_->driver();
    HEARTH_TRY(driver.check(driver.cuEventSynchronize(turn.copied), "copy weights to the GPU"));
    fill(turn.memory.at<std::byte>());
    HEARTH_TRY(driver.check(driver.cuMemcpyHtoDAsync(to, turn.memory.at<std::byte>(), bytes, device_->stream()),
                            "copy weights to the GPU"));
    return driver.check(driver.cuEventRecord(turn.copied, device_->stream()), "copy weights to the GPU");
  }

 private:
  struct Turn {
    HostBuffer memory;
    CUevent copied = nullptr;
  };
  explicit Uploader(const Device& device) : device_(&device) {}
  const Device* device_;
  Turn turns_[2];
  size_t next_ = 0;
};

// f(i) for i in [0, count) on all cores.
template <class F>
void in_parallel(int64_t count, F&& f) {
  std::atomic<int64_t> next{0};
  auto work = [&] {
    for (int64_t i; (i = next.fetch_add(1)) < count;) f(i);
  };
  std::vector<std::jthread> threads;
  const int64_t others = std::min<int64_t>(read_cpu_topology().workers(), count) - 1;
  try {
    for (int64_t t = 0; t < others; ++t) threads.emplace_back(work);
  } catch (const std::system_error&) {  // fewer, then
  }
  work();
}

}  // namespace

size_t Weights::device_bytes(const Graph& graph) {
  const std::vector<WeightUse> uses = weight_uses(graph);
  size_t bytes = 0;
  for (size_t i = 0; i < uses.size(); ++i) bytes += stored_bytes(graph.weights[i], uses[i]);
  return bytes;
}

Weights Weights::place(const Graph& graph, CUdeviceptr base) {
  const std::vector<WeightUse> uses = weight_uses(graph);
  Weights weights;
  weights.matrices_.resize(uses.size());
  weights.vectors_.resize(uses.size());
  for (size_t i = 0; i < uses.size(); ++i) {
    const Weight& weight = graph.weights[i];
    if (uses[i] == WeightUse::kVector) {
      weights.vectors_[i] = reinterpret_cast<const float*>(base);
    } else {
      Matrix& matrix = weights.matrices_[i];
      matrix = {.format = stored_format(weight.tensor->format, uses[i]),
                .rows = weight.rows,
                .cols = weight.cols,
                .planar = reinterpret_cast<const uint8_t*>(base)};
      matrix.layout = planar_panel(matrix.format, weight.cols);
    }
    base += stored_bytes(weight, uses[i]);
  }
  return weights;
}

Result<Weights> Weights::load(const Device& device, const Graph& graph, const LoadOptions& options) {
  const std::vector<WeightUse> uses = weight_uses(graph);
  HEARTH_ASSIGN(DeviceBuffer memory, DeviceBuffer::allocate(device, device_bytes(graph), "the weights"));
  Weights weights = place(graph, memory.address());
  weights.memory_ = std::move(memory);
  HEARTH_ASSIGN(Uploader uploader, Uploader::create(device));

  size_t total_bytes = 0, done_bytes = 0;
  for (const Weight& weight : graph.weights) total_bytes += weight.tensor->bytes.size();
  for (size_t i = 0; i < uses.size(); ++i) {
    const Weight& weight = graph.weights[i];
    const TensorEntry& tensor = *weight.tensor;
    HEARTH_CHECK(tensor.bytes.size() == static_cast<size_t>(weight.rows) * row_bytes(tensor.format, weight.cols),
                 "{}: {} bytes for [{}, {}] of {}", tensor.name, tensor.bytes.size(), weight.rows, weight.cols,
                 format_info(tensor.format).name);
    if (uses[i] == WeightUse::kVector) {
      const auto cols = static_cast<size_t>(weight.cols);
      const auto to = reinterpret_cast<CUdeviceptr>(weights.vectors_[i]);
      HEARTH_TRY(uploader.copy(to, cols * sizeof(float), [&](std::byte* out) {
        decode_row(tensor.format, tensor.bytes.data(), std::span(reinterpret_cast<float*>(out), cols));
      }));
    } else {
      const Matrix& matrix = weights.matrices_[i];
      const auto to = reinterpret_cast<CUdeviceptr>(matrix.planar);
      const size_t panel_bytes = matrix.layout.panel_bytes;
      if (panel_bytes > kStagingBytes) {
        return fail(ErrorCode::kUnsupported, "{}: rows of {} columns are too long for the GPU", tensor.name,
                    weight.cols);
      }
      const auto batch = static_cast<int64_t>(kStagingBytes / std::max<size_t>(panel_bytes, 1));
      for (int64_t panel = 0; panel < matrix.panels(); panel += batch) {
        const int64_t count = std::min(batch, matrix.panels() - panel);
        HEARTH_TRY(uploader.copy(to + static_cast<size_t>(panel) * panel_bytes,
                                 static_cast<size_t>(count) * panel_bytes, [&](std::byte* out) {
                                   constexpr int64_t kRun = 4;  // panels to a piece of work
                                   in_parallel(ceil_div(count, kRun), [&](int64_t run) {
                                     for (int64_t p = run * kRun; p < std::min(count, (run + 1) * kRun); ++p) {
                                       const int64_t first = (panel + p) * kPanelRows;
                                       make_panels(weight, matrix.format, first,
                                                   std::min(kPanelRows, weight.rows - first),
                                                   out + static_cast<size_t>(p) * panel_bytes);
                                     }
                                   });
                                 }));
        if (options.progress) {
          options.progress(done_bytes + tensor.bytes.size() * static_cast<size_t>(panel + count) /
                                            static_cast<size_t>(matrix.panels()),
                           total_bytes);
        }
      }
      if (options.release) options.release(tensor);
    }
    done_bytes += tensor.bytes.size();
    if (options.progress) options.progress(done_bytes, total_bytes);
  }
  HEARTH_TRY(device.synchronize("copy weights to the GPU"));
  return weights;
}

}  // namespace hearth::cuda
