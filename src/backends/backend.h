// What a device must be able to do. The engine and everything above it talk to devices through this header only:
// buffers are opaque, work may complete later and on another thread, and no pointer of a device is ever visible.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <new>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/bandwidth.h"
#include "base/result.h"
#include "graph/graph.h"
#include "plan/plan.h"

namespace hearth {

// Tokens in one page of KV.
inline constexpr int64_t kPageTokens = 16;

enum class KvType { kF32, kF16, kQ8 };
enum class Activations { kDefault, kInt8 };           // kDefault: as exact as the speed of memory allows
enum class WeightLayout { kAuto, kNative, kPlanar };  // quant/layout.h; kAuto: planar where it pays

struct DeviceInfo {
  std::string name;         // "cpu", "reference", "cuda:0"
  std::string description;  // "AVX-512 VNNI, 2 workers"
  int64_t workers = 0;      // CPU threads that compute; 0 where that means nothing
};

struct LoadOptions {
  KvType kv_type = KvType::kF16;
  std::vector<int64_t> kv_pages;  // pages to allocate for each KV group
  Activations activations = Activations::kDefault;
  WeightLayout layout = WeightLayout::kAuto;
  // Called now and then on the loading thread with bytes done and bytes in all.
  std::function<void(size_t done_bytes, size_t total_bytes)> progress;
  // Called for each tensor that the backend has copied: its file's pages may leave memory.
  std::function<void(const TensorEntry&)> release;
};

// The rows of one sequence in a step: rows [first_row, first_row + rows) at positions [position, position + rows).
struct StepSequence {
  int32_t first_row = 0;
  int32_t rows = 0;
  int32_t position = 0;
  // For each KV group, the physical page of each logical page up to the last position of this step. Entry -1: the page
  // lies wholly behind the window and was freed.
  std::vector<std::span<const int32_t>> pages;
};

// How many of the largest logits of a row a device gives, if it gives any, and how many more it can be asked for.
inline constexpr int64_t kCandidates = 64;
inline constexpr int64_t kMaxWantedLogits = 256;
// The sums in Candidates are within this part of themselves.
inline constexpr double kCandidateSumError = 1e-5;

// What to find of a logit row beside its largest logits.
struct CandidateRequest {
  float temperature = 1;            // > 0
  std::span<const int32_t> tokens;  // [<= kMaxWantedLogits]: whose logits are wanted, be they large or not
};

// What a device found of a logit row: enough to draw a token by, nearly always.
struct Candidates {
  std::span<const int32_t> tokens;  // [min(kCandidates, vocab)] by falling logit; of equal ones the smaller token first
  std::span<const float> logits;    // theirs
  std::span<const float> wanted;    // of CandidateRequest::tokens, in their order
  float sum = 0;                    // of exp(logit - logits[0]) over the row
  float tempered_sum = 0;           // of exp((logit - logits[0]) / CandidateRequest::temperature) over the row
  bool finite = false;              // false: a logit is NaN or infinite, and the rest of this means nothing
};

// Everything a step needs beside the plan: the device data of the design. Spans are read during launch() only.
struct StepBatch {
  std::span<const int32_t> tokens;             // [rows]; rows <= bucket.rows
  std::span<const StepSequence> sequences;     // cover all rows in order, without gaps
  std::span<const int32_t> logit_rows;         // [<= plan.logit_rows], ascending
  std::span<const CandidateRequest> requests;  // [logit rows], or empty: each as by default
};

// A plan recorded on a device.
class Executable {
 public:
  virtual ~Executable() = default;
  // Starts the step. The previous launch of any executable of the same model must have been waited for.
  virtual Result<void> launch(const StepBatch& batch) = 0;
  // Blocks until the launched step is complete, or computes it: the caller may be one of the workers. Reports what went
  // wrong in it. Not after a launch() that failed.
  virtual Result<void> wait() = 0;
  // Copies logits of the last step, whole rows of f32 from its logit row `first` on: [out.size() / vocab, vocab]. Only
  // after wait().
  virtual Result<void> read_logits(int64_t first, std::span<float> out) = 0;
  // The same of the hidden states of these rows, as they are before their norm: [out.size() / width, width]. The graph
  // must have them.
  virtual Result<void> read_hidden(int64_t first, std::span<float> out) = 0;
  // What the device found of a logit row of the last step; none: it gives no candidates of any row. Only after wait();
  // the spans hold until the next launch of any executable of the same model.
  virtual std::optional<Candidates> candidates(int64_t /*row*/) const { return std::nullopt; }
};

// A page of KV, and where in the host's memory its bytes are or go.
struct PageCopy {
  int32_t group = 0;
  int32_t page = 0;
  std::byte* bytes = nullptr;  // [page_bytes(group)]
};

// A model's weights and state on a device. Used by one thread at a time (the engine's).
class DeviceModel {
 public:
  virtual ~DeviceModel() = default;
  // Records a plan of the loaded graph. Allocates what the plan needs; fails with kOutOfMemory or kUnsupported.
  virtual Result<std::unique_ptr<Executable>> record(const Plan& plan) = 0;

  // Pages of KV as bytes. What they mean is the backend's own business; the same graph, KV type and backend understand
  // them. Not while a step runs; all is copied on return. After an error the targets hold anything.
  virtual size_t page_bytes(int32_t group) const = 0;
  virtual Result<void> read_pages(std::span<const PageCopy> pages) const = 0;
  virtual Result<void> write_pages(std::span<const PageCopy> pages) = 0;
  // Memory of the host that pages are copied from and to fastest. Not initialized, and taken as it is touched where
  // that can be; nullptr: there is none. It must not outlive the model's backend.
  virtual std::shared_ptr<std::byte[]> host_memory(size_t bytes) {
    return std::shared_ptr<std::byte[]>(new (std::nothrow) std::byte[bytes]);
  }
};

class Backend {
 public:
  virtual ~Backend() = default;
  virtual const DeviceInfo& info() const = 0;
  // Bytes of one page of the group (all its layers, keys and values) with this type.
  virtual size_t page_bytes(const KvGroup& group, KvType type) const = 0;
  // Bytes beyond the file's own pages that loading the weights takes (repacked copies).
  virtual size_t weight_bytes(const Graph& graph, WeightLayout layout) const = 0;
  // Products with weights of this format heed Activations::kInt8.
  virtual bool takes_int8(FormatId /*format*/) const { return false; }
  // Memory of the device that weights, KV and activations can take now; nothing: they take the host's.
  virtual std::optional<size_t> available_bytes() const { return std::nullopt; }
  // Bytes that recorded plans of these buckets take beside weights and KV. Fails when the device cannot run them,
  // before anything is loaded.
  virtual Result<size_t> workspace_bytes(const Graph& graph, const LoadOptions& options,
                                         std::span<const Bucket> buckets) {
    static_cast<void>(options);
    size_t bytes = 0;
    for (const Bucket& bucket : buckets) {
      for (size_t arena : make_single_lane_plan(graph, bucket).arena_bytes) bytes += arena;
    }
    return bytes;
  }
  // Bytes per second at which the memory that holds the weights can be read; measured for about `seconds`.
  virtual Result<double> read_bandwidth(double seconds) { return measure_read_bandwidth(info().workers, seconds); }
  // Makes the graph's weights usable and allocates its KV pages. Graph and catalog must outlive the result.
  virtual Result<std::unique_ptr<DeviceModel>> load(const Graph& graph, const LoadOptions& options) = 0;
};

struct BackendOptions {
  int64_t threads = 0;              // at most kMaxThreads; 0: physical cores, affinity and cgroup quota decide
  std::optional<int> device_index;  // GPUs only: which one; none: that with the most free memory
  std::string isa;                  // CPU only: one of cpu_isa_names(); "": the best that this machine has
};

// One factory per backend; a backend that is not built links a stub that says so (backends/absent).
Result<std::unique_ptr<Backend>> make_reference_backend(const BackendOptions& options);
Result<std::unique_ptr<Backend>> make_cpu_backend(const BackendOptions& options);
Result<std::unique_ptr<Backend>> make_cuda_backend(const BackendOptions& options);
Result<std::unique_ptr<Backend>> make_vulkan_backend(const BackendOptions& options);

// The instruction sets that the CPU backend is compiled for, the best first, whether this machine has them or not.
std::vector<std::string_view> cpu_isa_names();

// By one of these names, or one of several GPUs: "cuda:1". Fails with kUsage on another name or an impossible option,
// kNotFound where this build or machine has no such device at all.
std::vector<std::string_view> backend_names();
Result<std::unique_ptr<Backend>> make_backend(std::string_view name, const BackendOptions& options);

}  // namespace hearth
