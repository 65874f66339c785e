// What model files contain, whatever their type: metadata, and for each tensor its format, shape and bytes.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "base/mapped_file.h"
#include "files/metadata.h"
#include "quant/format.h"

namespace hearth {

struct TensorEntry {
  std::string name;
  FormatId format = FormatId::kF32;
  std::vector<int64_t> shape;  // outermost first: [rows, cols] of a matrix, whose rows are contiguous; may be empty
  std::span<const std::byte> bytes;  // in the mapped file, any alignment the file has
  int file_index = 0;                // into Catalog::paths()

  int64_t elements() const;
};

// "[4096, 5120]", for messages and listings.
std::string shape_text(std::span<const int64_t> shape);

// Owns the mapped files, so views stay valid as long as the catalog lives; moving it keeps them valid.
class Catalog {
 public:
  // `tensors` in file order; their bytes must lie in `files` and their names be unique (checked: a bug otherwise).
  Catalog(Metadata metadata, std::vector<TensorEntry> tensors, std::vector<MappedFile> files);
  Catalog(Catalog&&) = default;
  Catalog& operator=(Catalog&&) = default;

  const Metadata& metadata() const { return metadata_; }
  std::span<const TensorEntry> tensors() const { return tensors_; }
  // nullptr when there is none.
  const TensorEntry* find(std::string_view name) const;
  // Sum of the tensors' bytes.
  size_t total_bytes() const { return total_bytes_; }
  std::vector<std::string> paths() const;

  // Tells the kernel that the tensor will not be read soon (its pages leave memory and come back when touched), or that
  // it will be.
  void release(const TensorEntry& tensor) const;
  void prefetch(const TensorEntry& tensor) const;

 private:
  Metadata metadata_;
  std::vector<TensorEntry> tensors_;
  std::vector<MappedFile> files_;
  std::unordered_map<std::string_view, size_t> index_;  // keys view the names in tensors_
  size_t total_bytes_ = 0;
};

}  // namespace hearth
