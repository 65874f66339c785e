#include "files/catalog.h"

#include <fmt/ranges.h>

#include <functional>
#include <utility>

#include "base/check.h"

namespace hearth {

int64_t TensorEntry::elements() const {
  int64_t n = 1;
  for (int64_t dim : shape) n *= dim;
  return n;
}

std::string shape_text(std::span<const int64_t> shape) { return fmt::format("[{}]", fmt::join(shape, ", ")); }

Catalog::Catalog(Metadata metadata, std::vector<TensorEntry> tensors, std::vector<MappedFile> files)
    : metadata_(std::move(metadata)), tensors_(std::move(tensors)), files_(std::move(files)) {
  index_.reserve(tensors_.size());
  for (size_t i = 0; i < tensors_.size(); ++i) {
    const TensorEntry& tensor = tensors_[i];
    std::span<const std::byte> file = files_[static_cast<size_t>(tensor.file_index)].bytes();
    std::less_equal<const std::byte*> before;
    HEARTH_CHECK(tensor.bytes.empty() || (before(file.data(), tensor.bytes.data()) &&
                                          before(tensor.bytes.data() + tensor.bytes.size(), file.data() + file.size())),
                 "tensor {} is not in its file", tensor.name);
    bool inserted = index_.emplace(tensor.name, i).second;
    HEARTH_CHECK(inserted, "tensor {} twice", tensor.name);
    total_bytes_ += tensor.bytes.size();
  }
}

const TensorEntry* Catalog::find(std::string_view name) const {
  auto it = index_.find(name);
  return it == index_.end() ? nullptr : &tensors_[it->second];
}

std::vector<std::string> Catalog::paths() const {
  std::vector<std::string> paths;
  for (const MappedFile& file : files_) paths.push_back(file.path());
  return paths;
}

void Catalog::release(const TensorEntry& tensor) const {
  if (tensor.bytes.empty()) return;
  const MappedFile& file = files_[static_cast<size_t>(tensor.file_index)];
  file.release(static_cast<size_t>(tensor.bytes.data() - file.bytes().data()), tensor.bytes.size());
}

void Catalog::prefetch(const TensorEntry& tensor) const {
  if (tensor.bytes.empty()) return;
  const MappedFile& file = files_[static_cast<size_t>(tensor.file_index)];
  file.prefetch(static_cast<size_t>(tensor.bytes.data() - file.bytes().data()), tensor.bytes.size());
}

}  // namespace hearth
