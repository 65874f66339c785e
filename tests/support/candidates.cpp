#include "support/candidates.h"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace hearth::testing {

FoundRow find_candidates(std::span<const float> logits, const CandidateRequest& request) {
  FoundRow row;
  row.finite = std::ranges::all_of(logits, [](float logit) { return std::isfinite(logit); });
  if (!row.finite) return row;
  std::vector<int32_t> order(logits.size());
  std::iota(order.begin(), order.end(), 0);
  const auto logit_of = [&](int32_t token) { return logits[static_cast<size_t>(token)]; };
  const auto end = order.begin() + std::min<int64_t>(kCandidates, static_cast<int64_t>(order.size()));
  std::partial_sort(order.begin(), end, order.end(), [&](int32_t a, int32_t b) {
    return logit_of(a) > logit_of(b) || (logit_of(a) == logit_of(b) && a < b);
  });
  row.tokens.assign(order.begin(), end);
  for (int32_t token : row.tokens) row.logits.push_back(logit_of(token));
  for (int32_t token : request.tokens) row.wanted.push_back(logit_of(token));
  for (float logit : logits) {
    const double below = static_cast<double>(logit) - row.logits[0];
    row.sum += std::exp(below);
    row.tempered_sum += std::exp(below / request.temperature);
  }
  return row;
}

}  // namespace hearth::testing
