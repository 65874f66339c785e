// Small model files for tests: random weights of any format, metadata and tensors that a test may change or remove
// before the file is written.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "files/catalog.h"
#include "models/family.h"

namespace hearth::testing {

// A path in the temporary folder; the file is removed with the object.
class TempFile {
 public:
  explicit TempFile(std::string_view suffix = ".gguf");
  ~TempFile();
  TempFile(TempFile&& other) noexcept : path_(std::exchange(other.path_, {})) {}
  TempFile& operator=(TempFile&& other) noexcept {
    std::swap(path_, other.path_);
    return *this;
  }
  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

// What a GGUF file is made of.
struct TinyFile {
  struct Tensor {
    std::string name;
    FormatId format = FormatId::kF32;
    std::vector<int64_t> shape;
    std::vector<float> values;  // before quantization
  };
  std::vector<std::pair<std::string, MetadataValue>> metadata;
  std::vector<Tensor> tensors;

  void set(std::string_view key, MetadataValue value);  // adds or replaces
  void remove(std::string_view key);
  Tensor& tensor(std::string_view name);  // must exist
  void remove_tensor(std::string_view name);
  void write(const std::string& path) const;
};

struct TinyModelOptions {
  std::string architecture = "llama";  // or mistral, qwen2, qwen3: decides biases and head norms
  int64_t layers = 2;
  int64_t width = 64;
  int64_t ff_width = 96;
  int64_t heads = 4;
  int64_t kv_heads = 2;
  int64_t head_dim = 16;
  int64_t vocab = 300;  // with a tokenizer: at least 257
  int64_t window = 0;
  int64_t context = 512;
  bool tied = false;
  bool tokenizer = true;             // byte-level BPE without merges; token 256 ends a text
  FormatId format = FormatId::kF32;  // of the matrices; vectors are F32
  float gain = 1.0f;                 // how much a layer adds to its residual
  uint32_t seed = 1;
};

TinyFile tiny_file(const TinyModelOptions& options);

// A tiny model on disk, opened.
struct TinyModel {
  TempFile file;
  Catalog catalog;
  ModelGraph model;  // no pass has run
};
TinyModel make_tiny_model(const TinyModelOptions& options);

}  // namespace hearth::testing
