#include "backends/cpu/memory.h"

#include <sys/mman.h>

#include <cerrno>
#include <cstdint>
#include <cstring>
#include <utility>

#include "base/checked_math.h"

namespace hearth::cpu {
namespace {

constexpr size_t kHugePage = size_t{2} << 20;

}  // namespace

Result<Buffer> Buffer::allocate(size_t size_bytes, bool huge, const char* what) {
  Buffer buffer;
  if (size_bytes == 0) return buffer;
  size_t extra = size_bytes >= kHugePage ? kHugePage : 0;
  auto total = checked_add(size_bytes, extra);
  void* p = total ? mmap(nullptr, *total, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0) : MAP_FAILED;
  if (p == MAP_FAILED) {
    return fail(ErrorCode::kOutOfMemory, "allocating {} MB for {}: {}", size_bytes >> 20, what, std::strerror(errno));
  }
  buffer.mapping_ = p;
  buffer.mapping_bytes_ = *total;
  auto address = reinterpret_cast<uintptr_t>(p);
  if (extra > 0) address = round_up<uintptr_t>(address, kHugePage);
  buffer.data_ = reinterpret_cast<std::byte*>(address);
  buffer.size_ = size_bytes;
  if (huge && extra > 0) madvise(buffer.data_, size_bytes, MADV_HUGEPAGE);  // only speed depends on it
  return buffer;
}

Buffer::Buffer(Buffer&& other) noexcept { *this = std::move(other); }

Buffer& Buffer::operator=(Buffer&& other) noexcept {
  std::swap(mapping_, other.mapping_);
  std::swap(mapping_bytes_, other.mapping_bytes_);
  std::swap(data_, other.data_);
  std::swap(size_, other.size_);
  return *this;
}

Buffer::~Buffer() {
  if (mapping_) munmap(mapping_, mapping_bytes_);
}

}  // namespace hearth::cpu
