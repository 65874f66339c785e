#include "engine/default_sampling.h"

#include <cmath>
#include <limits>

#include "engine/sampler.h"

namespace hearth {
namespace {

// Changes one field, unless the key is missing, of another type, or gives options that no request could have.
template <class T>
bool take(const Metadata& metadata, const char* key, SamplingOptions& options, T SamplingOptions::*field) {
  const auto value = metadata.real(key);
  if (!value) return false;
  if (!(std::abs(*value) < 1e9)) return false;
  SamplingOptions changed = options;
  changed.*field = static_cast<T>(*value);
  if (!check_sampling(changed, std::numeric_limits<int32_t>::max())) return false;
  options = changed;
  return true;
}

}  // namespace

SamplingOptions default_sampling(const Metadata& metadata) {
  SamplingOptions options{.temperature = 1};
  int taken = 0;
  taken += take(metadata, "general.sampling.temp", options, &SamplingOptions::temperature);
  taken += take(metadata, "general.sampling.top_k", options, &SamplingOptions::top_k);
  taken += take(metadata, "general.sampling.top_p", options, &SamplingOptions::top_p);
  taken += take(metadata, "general.sampling.min_p", options, &SamplingOptions::min_p);
  taken += take(metadata, "general.sampling.xtc_probability", options, &SamplingOptions::xtc_probability);
  taken += take(metadata, "general.sampling.xtc_threshold", options, &SamplingOptions::xtc_threshold);
  taken += take(metadata, "general.sampling.penalty_last_n", options, &SamplingOptions::penalty_last_n);
  taken += take(metadata, "general.sampling.penalty_repeat", options, &SamplingOptions::repetition_penalty);
  if (taken > 0) return options;
  return {.top_k = 40, .top_p = 0.95f, .min_p = 0.05f, .temperature = 0.8f};
}

}  // namespace hearth
