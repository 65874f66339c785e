#include "engine/plans.h"

namespace hearth {

Result<Executable*> Plans::get(Bucket bucket) {
  for (const Recorded& recorded : recorded_) {
    if (recorded.plan->bucket == bucket) return recorded.executable.get();
  }
  auto plan = std::make_unique<Plan>(make_single_lane_plan(graph_, bucket));
  plan->deterministic = deterministic_;
  HEARTH_ASSIGN(auto executable, device_.record(*plan));
  recorded_.push_back({.plan = std::move(plan), .executable = std::move(executable)});
  return recorded_.back().executable.get();
}

}  // namespace hearth
