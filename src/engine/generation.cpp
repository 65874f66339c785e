#include "engine/generation.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "base/result.h"

namespace hearth {

void Doorbell::ring() {
  {
    std::lock_guard lock(mutex_);
    if (waiting_ && !rung_) busy_since_ = Clock::now();
    rung_ = true;
  }
  condition_.notify_one();
}

void Doorbell::wait() {
  std::unique_lock lock(mutex_);
  waiting_ = true;
  condition_.wait(lock, [&] { return rung_; });
  waiting_ = rung_ = false;
}

void Doorbell::progress() {
  std::lock_guard lock(mutex_);
  busy_since_ = Clock::now();
}

void Doorbell::set_patience(double seconds) {
  std::lock_guard lock(mutex_);
  patience_ = seconds;
}

double Doorbell::quiet() const {
  if (waiting_ && !rung_) return 0;
  return std::chrono::duration<double>(Clock::now() - busy_since_).count();
}

double Doorbell::quiet_seconds() const {
  std::lock_guard lock(mutex_);
  return quiet();
}

bool Doorbell::stalled() const {
  std::lock_guard lock(mutex_);
  // Nobody looked for a while: the whole process stood still (stopped, frozen, in a debugger), and begins again.
  const Clock::time_point now = Clock::now();
  if (now - std::exchange(last_look_, now) > kPause) busy_since_ = std::max(busy_since_, now);
  return quiet() > patience_;
}

Error Doorbell::error() const {
  return fail(ErrorCode::kStalled,
              "wait for the engine: it got nothing done for {:.0f} s; try again later, or restart it", quiet_seconds());
}

std::chrono::duration<double> Doorbell::until_stall() const {
  std::lock_guard lock(mutex_);
  return std::chrono::duration<double>(std::clamp(patience_ - quiet(), 0.001, 1.0));
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
    const auto start = std::chrono::steady_clock::now();
    std::unique_lock lock(state.mutex);
    while (state.incoming.empty()) {
      if (state.doorbell->stalled()) {
        cancel();
        state.finished = true;
        return Failed{.error = state.doorbell->error()};
      }
      const std::chrono::duration<double> waited = std::chrono::steady_clock::now() - start;
      const double left = seconds - waited.count();
      if (!(left > 0)) return std::nullopt;  // also for NaN
      state.ready.wait_for(lock, std::min(std::chrono::duration<double>(left), state.doorbell->until_stall()));
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
