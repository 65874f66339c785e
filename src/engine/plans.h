// The recorded plans of a model, one per bucket: made when first needed and kept.
#pragma once

#include <memory>
#include <vector>

#include "backends/backend.h"
#include "base/result.h"
#include "plan/plan.h"

namespace hearth {

class Plans {
 public:
  // Graph and device must outlive the plans. `deterministic`: as in Plan.
  Plans(const Graph& graph, DeviceModel& device, bool deterministic)
      : graph_(graph), device_(device), deterministic_(deterministic) {}

  // Fails as DeviceModel::record does; the next call tries again.
  Result<Executable*> get(Bucket bucket);

 private:
  struct Recorded {
    std::unique_ptr<Plan> plan;
    std::unique_ptr<Executable> executable;
  };
  const Graph& graph_;
  DeviceModel& device_;
  bool deterministic_;
  std::vector<Recorded> recorded_;  // a handful
};

}  // namespace hearth
