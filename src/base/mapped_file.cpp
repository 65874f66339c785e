#include "base/mapped_file.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <cstring>
#include <utility>

namespace hearth {
namespace {

// Where files are mapped, for a signal handler: it may interrupt anything, so that it reads no object. A mapping beyond
// the last place is not there, and its loss is a plain SIGBUS.
struct Place {
  std::atomic<bool> taken{false};
  std::atomic<uintptr_t> begin{0}, end{0};
  std::array<char, 512> path;  // cut off if longer
};
std::array<Place, 64> places;

void enter(const std::string& path, const std::byte* data, size_t size) {
  for (Place& place : places) {
    if (place.taken.exchange(true)) continue;
    place.path[path.copy(place.path.data(), place.path.size() - 1)] = '\0';
    place.begin = reinterpret_cast<uintptr_t>(data);
    place.end = reinterpret_cast<uintptr_t>(data) + size;
    return;
  }
}

void leave(const std::byte* data) {
  for (Place& place : places) {
    if (!place.taken || place.begin != reinterpret_cast<uintptr_t>(data)) continue;
    place.begin = place.end = 0;
    place.taken = false;
    return;
  }
}

struct sigaction before_bus_error;
std::atomic_flag lost_a_file;

void on_bus_error(int signal, siginfo_t* info, void*) {
  auto address = reinterpret_cast<uintptr_t>(info->si_addr);
  const bool is_fault = info->si_code > 0;  // not sent by somebody
  for (const Place& place : places) {
    if (!is_fault || address < place.begin || address >= place.end) continue;
    // Another thread may be saying it already.
    if (lost_a_file.test_and_set()) ::pause();
    char line[640] = "hearth: ";
    std::strcat(line, place.path.data());
    std::strcat(line, " became shorter while it was in use, or its disk failed: cannot go on without it\n");
    // Nobody is left to hear of a failed write.
    [[maybe_unused]] ssize_t written = ::write(STDERR_FILENO, line, std::strlen(line));
    ::_exit(1);
  }
  ::sigaction(signal, &before_bus_error, nullptr);  // the read is tried again, and fails as it would have
}

}  // namespace

void exit_when_files_shrink() {
  struct sigaction action {};
  action.sa_sigaction = on_bus_error;
  action.sa_flags = SA_SIGINFO;
  ::sigaction(SIGBUS, &action, &before_bus_error);
}

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
  enter(path, static_cast<const std::byte*>(data), size);
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
  if (!data_) return;
  leave(data_);
  ::munmap(const_cast<std::byte*>(data_), size_);
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
