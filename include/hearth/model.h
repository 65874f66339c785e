// A loaded model: its weights on a device, its vocabulary and its chat template.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "hearth/error.h"
#include "hearth/sampling.h"

namespace hearth {

class Text;

inline constexpr int64_t kMaxThreads = 1024;
inline constexpr int64_t kMaxContextTokens = int64_t{1} << 30;

struct ModelOptions {
  // "cpu", "reference", "cuda" (the GPU with the most free memory), "cuda:1"; "auto": a GPU when there is one and the
  // model with its KV fits, else the CPU. An ISA that is asked for means the CPU.
  std::string device = "cpu";
  int64_t threads = 0;  // up to kMaxThreads; 0: physical cores, affinity and cgroup quota decide
  std::string isa;      // CPU only; "": the best there is
  // Tokens of KV shared by all sequences, up to kMaxContextTokens. 0: the smallest of the model's context, 32768, and
  // what fits into half of the memory that the weights leave.
  int64_t context_tokens = 0;
  // Bytes of host memory for what the prefix cache has no room for on the device. None: up to 8 GiB, and a quarter of
  // what is available; 0 for devices whose memory is the host's.
  std::optional<size_t> host_cache_bytes;
  std::string kv_type = "f16";               // "f32", "f16", "q8"
  std::string activations = "default";       // "default": as exact as memory speed allows; "int8": the faster option
  std::string layout = "auto";               // "auto", "native" (zero copy), "planar" (repacked at load)
  std::vector<std::string> disabled_passes;  // graph fusions by name; "all"
  std::string chat_template;                 // source that replaces the file's; empty: the file's
  // Called now and then while loading, on the calling thread.
  std::function<void(size_t done_bytes, size_t total_bytes)> progress;
};

struct ModelInfo {
  std::string path;
  std::string name;
  std::string architecture;
  std::string device;       // name and description of the device that runs it
  std::string activations;  // "int8" when that was asked for and changes products, else "default"
  // What the user should know of the options: why "auto" took which device when there was a choice, and what changes
  // nothing.
  std::vector<std::string> notes;
  int64_t threads = 0;  // workers of a CPU device, else 0
  int64_t parameters = 0;
  int64_t vocab_size = 0;
  int64_t embedding_width = 0;    // numbers in an embedding
  bool makes_embeddings = false;  // the file says how: embeddings are what the model was trained for
  int64_t trained_context = 0;    // tokens the model was made for
  int64_t context_tokens = 0;     // tokens of KV that were allocated
  int64_t sequence_tokens = 0;    // the longest sequence, prompt and answer: at most the two above
  size_t file_bytes = 0;          // of all tensors
  size_t kv_bytes = 0;
  size_t host_cache_bytes = 0;  // of host memory that the prefix cache may take beside them
  // Weight bytes that one decoded token reads: every matrix once, a table that is only gathered not at all.
  size_t bytes_per_token = 0;
  // From the model's metadata; else temperature 0.8, top_k 40, top_p 0.95, min_p 0.05.
  SamplingOptions default_sampling;
};

// The values that options of ModelOptions know by name, for those who ask users for them. Of devices, "cuda:N" beside
// these.
struct OptionNames {
  std::vector<std::string_view> devices, isas, kv_types, activations, layouts, passes;
};
const OptionNames& option_names();

// Shared by the engine and everyone who needs the text side; immutable after open.
class Model {
 public:
  // Opens a GGUF file (any part of a split one). Checks memory before anything is loaded: kOutOfMemory says need, have
  // and the flag that fits.
  static Result<std::shared_ptr<Model>> open(const std::string& path, const ModelOptions& options);
  ~Model();

  const ModelInfo& info() const;
  const Text& text() const;
  // Bytes per second at which the memory that holds the weights can be read: the ceiling of decode speed. Measured for
  // about `seconds`; not while an engine computes.
  Result<double> read_bandwidth(double seconds = 0.3);
  // Bytes of keys and values that a token at this position reads: those of all positions that it sees.
  size_t kv_bytes_read(int64_t position) const;
  // Computes one token on the device and on the reference backend, which takes a second or two for every billion
  // parameters. Returns the Kullback-Leibler divergence of the two distributions in nats, about 1e-6 when all is well.
  // Fails with kUsage while an engine runs.
  Result<double> check_device();

  struct Impl;
  Impl& impl() { return *impl_; }

 private:
  explicit Model(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace hearth
