#include "engine/device_check.h"

#include <algorithm>
#include <cmath>
#include <span>
#include <vector>

#include "engine/plans.h"

namespace hearth {
namespace {

Result<std::vector<double>> log_probabilities(const Graph& graph, DeviceModel& model) {
  Plans plans(graph, model, /*deterministic=*/false);
  HEARTH_ASSIGN(Executable * executable, plans.get(bucket_for(PlanKind::kDecode, 1)));
  const int32_t token = 1, row = 0, page = 0;  // any token will do
  StepSequence sequence{.rows = 1};
  sequence.pages.assign(graph.kv_groups.size(), std::span(&page, 1));
  HEARTH_TRY(executable->launch(
      {.tokens = std::span(&token, 1), .sequences = std::span(&sequence, 1), .logit_rows = std::span(&row, 1)}));
  HEARTH_TRY(executable->wait());
  std::vector<float> logits(static_cast<size_t>(graph.value(graph.logits).cols));
  HEARTH_TRY(executable->read_logits(0, logits));
  const double most = *std::ranges::max_element(logits);
  double sum = 0;
  for (float logit : logits) sum += std::exp(static_cast<double>(logit) - most);
  if (!std::isfinite(sum)) return fail(ErrorCode::kInternal, "the logits of one token are not finite");
  std::vector<double> result;
  for (float logit : logits) result.push_back(static_cast<double>(logit) - most - std::log(sum));
  return result;
}

}  // namespace

Result<double> device_divergence(const Graph& graph, DeviceModel& reference, DeviceModel& device) {
  HEARTH_ASSIGN(const std::vector<double> p, log_probabilities(graph, reference));
  HEARTH_ASSIGN(const std::vector<double> q, log_probabilities(graph, device));
  double divergence = 0;
  for (size_t i = 0; i < p.size(); ++i) divergence += std::exp(p[i]) * (p[i] - q[i]);
  return divergence;
}

}  // namespace hearth
