// What a device must find of a logit row, computed the plain way.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "backends/backend.h"

namespace hearth::testing {

struct FoundRow {
  std::vector<int32_t> tokens;
  std::vector<float> logits;
  std::vector<float> wanted;
  double sum = 0;
  double tempered_sum = 0;
  bool finite = false;

  Candidates view() const {
    return {.tokens = tokens,
            .logits = logits,
            .wanted = wanted,
            .sum = static_cast<float>(sum),
            .tempered_sum = static_cast<float>(tempered_sum),
            .finite = finite};
  }
};

// Where a logit is not finite, only that is said.
FoundRow find_candidates(std::span<const float> logits, const CandidateRequest& request);

}  // namespace hearth::testing
