#include "engine/generation.h"

#include <algorithm>
#include <chrono>
#include <limits>
#include <utility>

namespace hearth {

void Doorbell::ring() {
  {
    std::lock_guard lock(mutex_);
    rung_ = true;
  }
  condition_.notify_one();
}

void Doorbell::wait() {
  std::unique_lock lock(mutex_);
  condition_.wait(lock, [&] { return rung_; });
  rung_ = false;
}

void Generation::State::push(Event event) {
  if (std::holds_alternative<PromptLogits>(event)) logits_waiting.fetch_add(1, std::memory_order_relaxed);
  {
    std::lock_guard lock(mutex);
    incoming.push_back(std::move(event));
  }
  ready.notify_one();
}

Generation::Generation(std::shared_ptr<State> state) : state_(std::move(state)) {}
Generation::Generation(Generation&&) noexcept = default;

Generation& Generation::operator=(Generation&& other) noexcept {
  if (this != &other) {
    if (state_) cancel();
    state_ = std::move(other.state_);
  }
  return *this;
}

Generation::~Generation() {
  if (state_) cancel();
}

std::optional<Event> Generation::next() { return next_within(std::numeric_limits<double>::infinity()); }

std::optional<Event> Generation::next_within(double seconds) {
  State& state = *state_;
  if (state.finished) return std::nullopt;
  if (state.next == state.outgoing.size()) {
    state.outgoing.clear();
    state.next = 0;
    std::unique_lock lock(state.mutex);
    const auto some = [&] { return !state.incoming.empty(); };
    constexpr double kForever = 1e9;  // clocks cannot add much more
    if (seconds > kForever) {
      state.ready.wait(lock, some);
    } else if (!state.ready.wait_for(lock, std::chrono::duration<double>(std::max(0.0, seconds)), some)) {
      return std::nullopt;
    }
    state.outgoing.swap(state.incoming);
  }
  Event event = std::move(state.outgoing[state.next++]);
  if (std::holds_alternative<PromptLogits>(event)) {
    state.logits_waiting.fetch_sub(1, std::memory_order_relaxed);
    state.doorbell->ring();
  }
  state.finished = std::holds_alternative<Done>(event) || std::holds_alternative<Failed>(event);
  return event;
}

bool Generation::finished() const { return state_->finished; }

void Generation::cancel() {
  if (state_->cancel_requested.exchange(true, std::memory_order_relaxed)) return;
  state_->doorbell->ring();
}

}  // namespace hearth
