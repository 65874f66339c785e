#include "server/watchdog.h"

#include "base/result.h"

namespace hearth::server {

bool Watchdog::look() {
  const auto now = std::chrono::steady_clock::now();
  for (const Models::State& state : models_.states()) {
    const EngineStats stats = state.model ? state.model->engine->stats() : EngineStats();
    const auto known = stalled_since_.find(state.id);
    if (stats.stalled && known == stalled_since_.end()) {
      const std::chrono::duration<double> quiet(stats.quiet_seconds);
      stalled_since_[state.id] = now - std::chrono::duration_cast<std::chrono::steady_clock::duration>(quiet);
      tell_(
          fmt::format("{} stalls: it got nothing done for {:.0f} s, since it began to {}; {} and {} end with an error",
                      state.id, quiet.count(), stats.task, counted(stats.active_sequences, "answer"),
                      counted(stats.queued_requests, "waiting request")));
    } else if (!stats.stalled && known != stalled_since_.end()) {
      const std::chrono::duration<double> stalled = now - known->second;
      tell_(fmt::format("{} goes on after {:.0f} s", state.id, stalled.count()));
      stalled_since_.erase(known);
    }
  }
  return stalled_since_.empty();
}

}  // namespace hearth::server
