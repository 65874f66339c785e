// Signals as events that the main thread asks for, Ctrl-C above all.
#pragma once

#include <csignal>
#include <initializer_list>
#include <utility>
#include <vector>

namespace hearth::cli {

// While one lives, the named signals wait in a queue until take() returns them, whichever thread the system interrupted
// with them. Those that the process ignores stay ignored. Objects may nest; all share the one queue.
class Signals {
 public:
  // kOnce: a second signal of the kind has its default effect, which ends a program that does not react to the first.
  enum Mode { kAlways, kOnce };
  explicit Signals(std::initializer_list<int> signals, Mode mode = kAlways);
  // What still waits then takes the effect that it had before.
  ~Signals();
  Signals(const Signals&) = delete;
  Signals& operator=(const Signals&) = delete;

  // The signal that has waited longest, 0 if none does.
  static int take();
  static bool waiting();
  // For poll(): readable while a signal waits.
  static int fd();

 private:
  std::vector<std::pair<int, struct sigaction>> previous_;
};

// While one lives, Ctrl-C ends nothing but waits until take() tells of it.
class Interrupt {
 public:
  explicit Interrupt(Signals::Mode mode = Signals::kAlways) : signals_({SIGINT}, mode) {}
  // True once for each Ctrl-C.
  bool take() { return Signals::take() == SIGINT; }

 private:
  Signals signals_;
};

// Lets a signal that was caught have its default effect: it ends or stops the process. Returns when it was continued.
void raise_default(int signal);

}  // namespace hearth::cli
