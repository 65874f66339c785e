#include "cli/interrupt.h"

#include <fcntl.h>
#include <poll.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>

namespace hearth::cli {
namespace {

// The queue: a pipe of signal numbers that is never closed, so that a handler may run at any time.
std::atomic<int> read_end = -1, write_end = -1;

extern "C" void remember(int signal) {
  int saved_errno = errno;
  auto byte = static_cast<unsigned char>(signal);
  // A full pipe has thousands that wait: one less is no loss.
  [[maybe_unused]] ssize_t written = ::write(write_end, &byte, 1);
  errno = saved_errno;
}

bool open_queue() {
  if (write_end >= 0) return true;
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC | O_NONBLOCK) != 0) return false;
  read_end = ends[0];
  write_end = ends[1];
  return true;
}

}  // namespace

Signals::Signals(std::initializer_list<int> signals, Mode mode) {
  if (!open_queue()) return;  // no descriptor is left: signals do what they always do
  for (int signal : signals) {
    struct sigaction action {
    }, previous{};
    sigaction(signal, nullptr, &previous);
    if (previous.sa_handler == SIG_IGN) continue;
    action.sa_handler = remember;
    action.sa_flags = SA_RESTART | (mode == kOnce ? static_cast<int>(SA_RESETHAND) : 0);
    sigaction(signal, &action, nullptr);
    previous_.emplace_back(signal, previous);
  }
}

Signals::~Signals() {
  for (const auto& [signal, previous] : previous_) sigaction(signal, &previous, nullptr);
  std::vector<int> waiting;
  while (int signal = take()) waiting.push_back(signal);
  for (int signal : waiting) std::raise(signal);
}

int Signals::take() {
  unsigned char byte = 0;
  return ::read(read_end, &byte, 1) == 1 ? byte : 0;
}

bool Signals::waiting() {
  pollfd wait{.fd = read_end, .events = POLLIN};
  return ::poll(&wait, 1, 0) == 1;
}

int Signals::fd() { return read_end; }

void raise_default(int signal) {
  struct sigaction action {
  }, previous{};
  action.sa_handler = SIG_DFL;
  sigaction(signal, &action, &previous);
  std::raise(signal);
  sigaction(signal, &previous, nullptr);
}

}  // namespace hearth::cli
