// Anonymous memory of the CPU backend: big zeroed buffers.
#pragma once

#include <cstddef>

#include "base/result.h"

namespace hearth::cpu {

// Zero-filled pages, aligned to 2 MiB when that big; they take memory when first touched.
class Buffer {
 public:
  Buffer() = default;
  // `huge`: ask for huge pages. Fails with kOutOfMemory and names `what`.
  static Result<Buffer> allocate(size_t size_bytes, bool huge, const char* what);
  Buffer(Buffer&& other) noexcept;
  Buffer& operator=(Buffer&& other) noexcept;
  ~Buffer();

  std::byte* data() const { return data_; }
  size_t size_bytes() const { return size_; }

 private:
  void* mapping_ = nullptr;
  size_t mapping_bytes_ = 0;
  std::byte* data_ = nullptr;
  size_t size_ = 0;
};

}  // namespace hearth::cpu
