#include "support/tiny_file.h"

#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <random>

#include "base/check.h"
#include "files/gguf.h"
#include "files/gguf_writer.h"
#include "quant/encode.h"

namespace hearth::testing {

TempFile::TempFile(std::string_view suffix) {
  path_ = (std::filesystem::temp_directory_path() / "hearth-test-XXXXXX").string().append(suffix);
  int fd = mkstemps(path_.data(), static_cast<int>(suffix.size()));
  HEARTH_CHECK(fd >= 0, "cannot make {}", path_);
  close(fd);
}

TempFile::~TempFile() {
  if (!path_.empty()) std::filesystem::remove(path_);
}

void TinyFile::set(std::string_view key, MetadataValue value) {
  auto it = std::ranges::find(metadata, key, [](const auto& pair) -> std::string_view { return pair.first; });
  if (it != metadata.end()) {
    it->second = std::move(value);
  } else {
    metadata.emplace_back(key, std::move(value));
  }
}

void TinyFile::remove(std::string_view key) {
  HEARTH_CHECK(std::erase_if(metadata, [&](const auto& pair) { return pair.first == key; }) == 1, "no key {}", key);
}

TinyFile::Tensor& TinyFile::tensor(std::string_view name) {
  auto it = std::ranges::find(tensors, name, &Tensor::name);
  HEARTH_CHECK(it != tensors.end(), "no tensor {}", name);
  return *it;
}

void TinyFile::remove_tensor(std::string_view name) {
  HEARTH_CHECK(std::erase_if(tensors, [&](const Tensor& t) { return t.name == name; }) == 1, "no tensor {}", name);
}

void TinyFile::write(const std::string& path) const {
  GgufBuilder builder;
  for (const auto& [key, value] : metadata) {
    std::visit(
        [&](const auto& v) {
          using T = std::decay_t<decltype(v)>;
          if constexpr (std::is_same_v<T, double>) {
            builder.add(key, static_cast<float>(v));
          } else if constexpr (std::is_same_v<T, int64_t>) {
            if (v >= 0 && v <= UINT32_MAX) {
              builder.add(key, static_cast<uint32_t>(v));
            } else {
              builder.add(key, v);
            }
          } else if constexpr (std::is_same_v<T, std::vector<int64_t>>) {
            std::vector<int32_t> narrow(v.begin(), v.end());
            builder.add(key, std::span<const int32_t>(narrow));
          } else if constexpr (std::is_same_v<T, std::vector<float>>) {
            builder.add(key, std::span<const float>(v));
          } else if constexpr (std::is_same_v<T, std::vector<std::string>>) {
            builder.add(key, std::span<const std::string>(v));
          } else {
            builder.add(key, v);
          }
        },
        value);
  }
  for (const Tensor& tensor : tensors) builder.add_tensor(tensor.name, tensor.format, tensor.shape);
  auto writer = GgufFileWriter::create(path, std::move(builder));
  HEARTH_CHECK(writer, "{}", writer.error().message);
  for (const Tensor& tensor : tensors) {
    auto cols = static_cast<size_t>(tensor.shape.back());
    std::vector<std::byte> row(row_bytes(tensor.format, tensor.shape.back()));
    for (size_t at = 0; at < tensor.values.size(); at += cols) {
      encode_row(tensor.format, std::span(tensor.values).subspan(at, cols), row.data());
      auto ok = writer->write(row);
      HEARTH_CHECK(ok, "{}", ok.error().message);
    }
  }
  auto ok = writer->finish();
  HEARTH_CHECK(ok, "{}", ok.error().message);
}

namespace {

// The printable stand-in of each byte in byte-level vocabularies, as UTF-8.
std::vector<std::string> byte_letters() {
  std::vector<std::string> letters;
  int next = 256;
  for (int byte = 0; byte < 256; ++byte) {
    bool printable = (byte >= 33 && byte < 127) || (byte >= 161 && byte != 173);
    int code = printable ? byte : next++;
    if (code < 128) {
      letters.emplace_back(1, static_cast<char>(code));
    } else {
      letters.push_back({static_cast<char>(0xc0 | (code >> 6)), static_cast<char>(0x80 | (code & 0x3f))});
    }
  }
  return letters;
}

}  // namespace

TinyFile tiny_file(const TinyModelOptions& o) {
  TinyFile file;
  std::mt19937 rng(o.seed);
  std::normal_distribution<float> normal;
  auto matrix = [&](std::string name, int64_t rows, int64_t cols, double deviation) {
    TinyFile::Tensor& t = file.tensors.emplace_back();
    t = {.name = std::move(name), .format = o.format, .shape = {rows, cols}};
    for (int64_t i = 0; i < rows * cols; ++i) t.values.push_back(normal(rng) * static_cast<float>(deviation));
  };
  auto vector = [&](std::string name, int64_t cols, double mean, double deviation) {
    TinyFile::Tensor& t = file.tensors.emplace_back();
    t = {.name = std::move(name), .shape = {cols}};
    for (int64_t i = 0; i < cols; ++i) t.values.push_back(static_cast<float>(mean + deviation * normal(rng)));
  };
  auto projection = [&](const std::string& name, int64_t rows, int64_t cols, double gain) {
    matrix(name + ".weight", rows, cols, gain / std::sqrt(static_cast<double>(cols)));
  };

  const std::string& a = o.architecture;
  file.set("general.architecture", a);
  file.set("general.name", "tiny " + a);
  file.set(a + ".block_count", o.layers);
  file.set(a + ".context_length", o.context);
  file.set(a + ".embedding_length", o.width);
  file.set(a + ".feed_forward_length", o.ff_width);
  file.set(a + ".attention.head_count", o.heads);
  file.set(a + ".attention.head_count_kv", o.kv_heads);
  file.set(a + ".attention.key_length", o.head_dim);
  file.set(a + ".attention.value_length", o.head_dim);
  file.set(a + ".attention.layer_norm_rms_epsilon", 1e-5);
  file.set(a + ".rope.freq_base", 10000.0);
  file.set(a + ".rope.dimension_count", o.head_dim);
  if (o.window > 0) file.set(a + ".attention.sliding_window", o.window);
  if (o.tokenizer) {
    std::vector<std::string> tokens = byte_letters();
    std::vector<int64_t> types(256, 1);
    tokens.emplace_back("<|end|>");
    types.push_back(3);
    while (static_cast<int64_t>(tokens.size()) < o.vocab) {
      tokens.push_back("unused" + std::to_string(tokens.size()));
      types.push_back(1);
    }
    file.set("tokenizer.ggml.model", "gpt2");
    file.set("tokenizer.ggml.pre", a == "qwen2" || a == "qwen3" ? "qwen2" : "llama-bpe");
    file.set("tokenizer.ggml.tokens", tokens);
    file.set("tokenizer.ggml.token_type", types);
    // An array without elements has no type, so there is one merge, and it never applies.
    file.set("tokenizer.ggml.merges", std::vector<std::string>{"<|end|> <|end|>"});
    file.set("tokenizer.ggml.bos_token_id", int64_t{256});
    file.set("tokenizer.ggml.eos_token_id", int64_t{256});
    file.set("tokenizer.ggml.add_bos_token", false);
  }

  matrix("token_embd.weight", o.vocab, o.width, 0.5);
  for (int64_t layer = 0; layer < o.layers; ++layer) {
    std::string at = fmt::format("blk.{}.", layer);
    vector(at + "attn_norm.weight", o.width, 1.0, 0.2);
    projection(at + "attn_q", o.heads * o.head_dim, o.width, 1.0);
    projection(at + "attn_k", o.kv_heads * o.head_dim, o.width, 1.0);
    projection(at + "attn_v", o.kv_heads * o.head_dim, o.width, 1.0);
    if (a == "qwen2") {
      vector(at + "attn_q.bias", o.heads * o.head_dim, 0.0, 0.5);
      vector(at + "attn_k.bias", o.kv_heads * o.head_dim, 0.0, 0.5);
      vector(at + "attn_v.bias", o.kv_heads * o.head_dim, 0.0, 0.5);
    }
    if (a == "qwen3") {
      vector(at + "attn_q_norm.weight", o.head_dim, 1.0, 0.2);
      vector(at + "attn_k_norm.weight", o.head_dim, 1.0, 0.2);
    }
    projection(at + "attn_output", o.width, o.heads * o.head_dim, o.gain);
    vector(at + "ffn_norm.weight", o.width, 1.0, 0.2);
    projection(at + "ffn_gate", o.ff_width, o.width, 1.2);
    projection(at + "ffn_up", o.ff_width, o.width, 1.2);
    projection(at + "ffn_down", o.width, o.ff_width, o.gain);
  }
  vector("output_norm.weight", o.width, 1.0, 0.2);
  if (!o.tied) projection("output", o.vocab, o.width, 2.0);
  return file;
}

TinyModel make_tiny_model(const TinyModelOptions& options) {
  TempFile file;
  tiny_file(options).write(file.path());
  auto catalog = open_gguf(file.path());
  HEARTH_CHECK(catalog, "{}", catalog.error().message);
  auto model = build_graph(*catalog);
  HEARTH_CHECK(model, "{}", model.error().message);
  return {.file = std::move(file), .catalog = std::move(*catalog), .model = std::move(*model)};
}

}  // namespace hearth::testing
