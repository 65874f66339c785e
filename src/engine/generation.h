// The queue of events between the engine thread and whoever asked, and the bell that wakes the engine.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <memory>
#include <mutex>
#include <vector>

#include "hearth/engine.h"

namespace hearth {

// Wakes the engine thread when it has nothing to do. Outlives the engine when a Generation does.
class Doorbell {
 public:
  void ring();
  // Blocks until it rang since the last wait.
  void wait();

 private:
  std::mutex mutex_;
  std::condition_variable condition_;
  bool rung_ = false;
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
