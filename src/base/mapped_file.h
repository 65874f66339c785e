// A whole file mapped read-only. The mapping lives as long as the object; views into it must not outlive it. Reading a
// part that the file lost meanwhile (it was truncated, its disk failed) is a SIGBUS: exit_when_files_shrink().
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "base/result.h"

namespace hearth {

class MappedFile {
 public:
  // Fails with kNotFound, kIo, or kInvalidInput (not a regular file, empty).
  static Result<MappedFile> open(const std::string& path);

  MappedFile(MappedFile&& other) noexcept;
  MappedFile& operator=(MappedFile&& other) noexcept;
  ~MappedFile();

  std::span<const std::byte> bytes() const { return {data_, size_}; }
  const std::string& path() const { return path_; }

  // Tells the kernel that [offset, offset + size) will not be read soon: its pages are released.
  void release(size_t offset, size_t size) const;
  // Asks for [offset, offset + size) to be read ahead.
  void prefetch(size_t offset, size_t size) const;

 private:
  MappedFile(std::string path, const std::byte* data, size_t size) : path_(std::move(path)), data_(data), size_(size) {}

  std::string path_;
  const std::byte* data_ = nullptr;
  size_t size_ = 0;
};

// For programs: from now on, reading a mapped part that its file no longer has prints one line with the file's name and
// ends the process with status 1. Any other SIGBUS does what it did before.
void exit_when_files_shrink();

}  // namespace hearth
