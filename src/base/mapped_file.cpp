#include "base/mapped_file.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <utility>

namespace hearth {

Result<MappedFile> MappedFile::open(const std::string& path) {
  // Not blocking: opening a pipe would wait for a writer before it can be refused.
  int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
  if (fd < 0) {
    ErrorCode code = errno == ENOENT ? ErrorCode::kNotFound : ErrorCode::kIo;
    return fail(code, "cannot open {}: {}", path, std::strerror(errno));
  }
  struct stat st {};
  if (::fstat(fd, &st) != 0 || !S_ISREG(st.st_mode)) {
    ::close(fd);
    return fail(ErrorCode::kInvalidInput, "cannot read {}: it is not a regular file", path);
  }
  if (st.st_size == 0) {
    ::close(fd);
    return fail(ErrorCode::kInvalidInput, "cannot read {}: the file is empty", path);
  }
  auto size = static_cast<size_t>(st.st_size);
  void* data = ::mmap(nullptr, size, PROT_READ, MAP_SHARED, fd, 0);
  int map_errno = errno;
  ::close(fd);
  if (data == MAP_FAILED) return fail(ErrorCode::kIo, "cannot map {}: {}", path, std::strerror(map_errno));
  return MappedFile(path, static_cast<const std::byte*>(data), size);
}

MappedFile::MappedFile(MappedFile&& other) noexcept
    : path_(std::move(other.path_)), data_(std::exchange(other.data_, nullptr)), size_(std::exchange(other.size_, 0)) {}

MappedFile& MappedFile::operator=(MappedFile&& other) noexcept {
  std::swap(path_, other.path_);
  std::swap(data_, other.data_);
  std::swap(size_, other.size_);
  return *this;
}

MappedFile::~MappedFile() {
  if (data_) ::munmap(const_cast<std::byte*>(data_), size_);
}

static void advise(const std::byte* data, size_t file_size, size_t offset, size_t size, int advice) {
  auto page = static_cast<size_t>(::sysconf(_SC_PAGESIZE));
  if (offset >= file_size) return;
  size_t begin = offset / page * page;
  size_t end = size > file_size - offset ? file_size : offset + size;
  ::madvise(const_cast<std::byte*>(data) + begin, end - begin, advice);
}

void MappedFile::release(size_t offset, size_t size) const { advise(data_, size_, offset, size, MADV_DONTNEED); }
void MappedFile::prefetch(size_t offset, size_t size) const { advise(data_, size_, offset, size, MADV_WILLNEED); }

}  // namespace hearth
