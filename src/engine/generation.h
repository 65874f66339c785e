// The queue of events between the engine thread and whoever asked, and the bell that wakes the engine and knows whether
// it works.
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <limits>
#include <memory>
#include <mutex>
#include <vector>

#include "hearth/engine.h"

namespace hearth {

// Wakes the engine thread when it has nothing to do, and tells the others how long it got nothing done when it has.
// Outlives the engine when a Generation does.
class Doorbell {
 public:
  // There is something to do.
  void ring();

  // Engine thread: has nothing to do; blocks until it rang since the last wait.
  void wait();
  // Engine thread: got something done.
  void progress();
  // Engine thread: from now on a silence of more than that is a stall.
  void set_patience(double seconds);

  // Since the last progress or the ring that ended a wait, whichever was later; 0 while the engine waits for a ring.
  double quiet_seconds() const;
  // Whoever waits looks at least once a second; so does a server that cares.
  bool stalled() const;
  // What everybody is told who waits for a stalled engine.
  Error error() const;
  // After this long a look at stalled() tells something new, at the earliest.
  std::chrono::duration<double> until_stall() const;

 private:
  using Clock = std::chrono::steady_clock;
  double quiet() const;  // quiet_seconds(), with mutex_ held

  mutable std::mutex mutex_;  // guards all below
  std::condition_variable condition_;
  bool rung_ = false;
  bool waiting_ = false;
  static constexpr std::chrono::seconds kPause{5};
  mutable Clock::time_point busy_since_ = Clock::now();
  mutable Clock::time_point last_look_ = Clock::now();
  double patience_ = std::numeric_limits<double>::infinity();
};

struct Generation::State {
  explicit State(std::shared_ptr<Doorbell> bell) : doorbell(std::move(bell)) {}

  // Engine thread. After Done or Failed nothing follows.
  void push(Event event);
  bool cancelled() const { return cancel_requested.load(std::memory_order_relaxed); }
  // How many PromptLogits nobody has taken yet: they are large, so that the engine stops at a few.
  int64_t unread_logits() const { return logits_waiting.load(std::memory_order_relaxed); }

  std::shared_ptr<Doorbell> doorbell;
  std::atomic<bool> cancel_requested{false};
  std::atomic<int64_t> logits_waiting{0};

  std::mutex mutex;
  std::condition_variable ready;
  std::vector<Event> incoming;  // guarded by mutex

  // Used by the reader alone; its memory is swapped with `incoming`, so that both keep their capacity.
  std::vector<Event> outgoing;
  size_t next = 0;
  bool finished = false;
};

}  // namespace hearth
