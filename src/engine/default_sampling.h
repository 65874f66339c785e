// What a model file recommends for sampling.
#pragma once

#include "files/metadata.h"
#include "hearth/sampling.h"

namespace hearth {

// From the keys general.sampling.* that converters copy from generation_config.json: temp, top_k, top_p, min_p,
// xtc_probability, xtc_threshold, penalty_last_n, penalty_repeat. Fields that such a file leaves out are off, and its
// temperature 1, as the publisher's own library has them. A file without any of these keys gets Hearth's defaults:
// temperature 0.8, top_k 40, top_p 0.95, min_p 0.05. They are advice, so that keys with impossible values are ignored.
SamplingOptions default_sampling(const Metadata& metadata);

}  // namespace hearth
