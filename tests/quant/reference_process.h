// A long-lived Python process of tools/reference/, talked to over pipes: the independent side of differential tests.
#pragma once

#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstddef>
#include <optional>
#include <string>
#include <utility>

namespace hearth {

class ReferenceProcess {
 public:
  // nullopt when python3 is not installed.
  static std::optional<ReferenceProcess> start(const std::string& script, const std::string& argument = "") {
    if (std::system("python3 -c '' 2>/dev/null") != 0) return std::nullopt;
    std::signal(SIGPIPE, SIG_IGN);
    int in[2], out[2];
    if (::pipe(in) != 0 || ::pipe(out) != 0) return std::nullopt;
    pid_t pid = ::fork();
    if (pid == 0) {
      ::dup2(in[0], 0);
      ::dup2(out[1], 1);
      for (int fd : {in[0], in[1], out[0], out[1]}) ::close(fd);
      std::string path = std::string(HEARTH_TEST_DATA) + "/../../tools/reference/" + script;
      ::execlp("python3", "python3", path.c_str(), argument.empty() ? nullptr : argument.c_str(), nullptr);
      ::_exit(127);
    }
    ::close(in[0]);
    ::close(out[1]);
    return ReferenceProcess(pid, in[1], out[0]);
  }

  ReferenceProcess(ReferenceProcess&& other) noexcept
      : pid_(std::exchange(other.pid_, -1)), to_(other.to_), from_(other.from_) {}
  ~ReferenceProcess() {
    if (pid_ < 0) return;
    ::close(to_);
    ::close(from_);
    ::waitpid(pid_, nullptr, 0);
  }

  bool write(const void* data, size_t size_bytes) {
    auto* at = static_cast<const char*>(data);
    while (size_bytes > 0) {
      ssize_t n = ::write(to_, at, size_bytes);
      if (n <= 0) return false;
      at += n;
      size_bytes -= static_cast<size_t>(n);
    }
    return true;
  }
  bool read(void* data, size_t size_bytes) {
    auto* at = static_cast<char*>(data);
    while (size_bytes > 0) {
      ssize_t n = ::read(from_, at, size_bytes);
      if (n <= 0) return false;
      at += n;
      size_bytes -= static_cast<size_t>(n);
    }
    return true;
  }

 private:
  ReferenceProcess(pid_t pid, int to, int from) : pid_(pid), to_(to), from_(from) {}
  pid_t pid_;
  int to_, from_;
};

}  // namespace hearth
