// Writes GGUF version 3 files: metadata and tensor table first, then the tensors' bytes as a stream.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "base/result.h"
#include "files/replacing_file.h"
#include "quant/format.h"

namespace hearth {

// Describe everything with add() and add_tensor(), then take header() (and pad each tensor's bytes yourself), or let
// GgufFileWriter stream it into a file. Nothing is checked here: tests also write broken files with it.
class GgufBuilder {
 public:
  explicit GgufBuilder(uint32_t alignment = 32) : alignment_(alignment) {}

  // The value type in the file is that of the argument: bool, (u)int8..64, float, double, strings, spans of them.
  // general.alignment is not added by itself; add it when it is not 32.
  template <class T>
  requires std::is_arithmetic_v<T>
  void add(std::string_view key, T value) {
    begin_key(key, type_id<T>());
    put(value);
  }
  void add(std::string_view key, std::string_view value) {
    begin_key(key, kString);
    put_string(value);
  }
  void add(std::string_view key, const char* value) { add(key, std::string_view(value)); }
  template <class T>
  requires std::is_arithmetic_v<T>
  void add(std::string_view key, std::span<const T> values) {
    begin_array(key, type_id<T>(), values.size());
    for (T value : values) put(value);
  }
  void add(std::string_view key, std::span<const std::string> values) {
    begin_array(key, kString, values.size());
    for (const std::string& value : values) put_string(value);
  }

  // `shape` outermost first. Tensors lie in the order of these calls, each padded to the alignment.
  void add_tensor(std::string_view name, FormatId format, std::span<const int64_t> shape);

  // Everything before the data section, padded to the alignment.
  std::string header() const;

  struct Tensor {
    std::string name;
    size_t offset;  // in the data section
    size_t size_bytes;
  };
  std::span<const Tensor> tensors() const { return tensors_; }
  // Padding after a tensor of this many bytes.
  size_t padding(size_t size_bytes) const { return (alignment_ - size_bytes % alignment_) % alignment_; }

 private:
  static constexpr uint32_t kString = 8, kArray = 9;

  template <class T>
  static constexpr uint32_t type_id() {
    if constexpr (std::is_same_v<T, bool>) return 7;
    if constexpr (std::is_same_v<T, float>) return 6;
    if constexpr (std::is_same_v<T, double>) return 12;
    constexpr bool kSigned = std::is_signed_v<T>;
    if constexpr (sizeof(T) == 1) return kSigned ? 1 : 0;
    if constexpr (sizeof(T) == 2) return kSigned ? 3 : 2;
    if constexpr (sizeof(T) == 4) return kSigned ? 5 : 4;
    return kSigned ? 11 : 10;
  }

  template <class T>
  void put(T value) {
    metadata_.append(reinterpret_cast<const char*>(&value), sizeof(T));
  }
  void put_string(std::string_view text);
  void begin_key(std::string_view key, uint32_t type);
  void begin_array(std::string_view key, uint32_t element_type, uint64_t count);

  uint32_t alignment_;
  uint64_t key_count_ = 0;
  std::string metadata_;
  std::string table_;
  std::vector<Tensor> tensors_;
  size_t data_bytes_ = 0;
};

// Writes the header, then each tensor's bytes in any number of pieces, in the order of the table.
class GgufFileWriter {
 public:
  static Result<GgufFileWriter> create(const std::string& path, GgufBuilder builder);

  // The next bytes of the current tensor; the following tensor begins when it is complete.
  Result<void> write(std::span<const std::byte> bytes);
  // Checks that every tensor is complete and gives the file its name. Without it no file is left.
  Result<void> finish();

 private:
  GgufFileWriter(GgufBuilder builder, ReplacingFile file) : builder_(std::move(builder)), file_(std::move(file)) {}

  GgufBuilder builder_;
  ReplacingFile file_;
  size_t tensor_ = 0;         // index of the current tensor
  size_t written_bytes_ = 0;  // of the current tensor
};

}  // namespace hearth
