// Rotation frequencies from a checkpoint's metadata: base, linear and YaRN scaling, llama3 factors.
#pragma once

#include <span>

#include "graph/graph.h"
#include "models/builder.h"

namespace hearth {

struct YarnScaling {
  double factor = 1;            // s
  double original_context = 0;  // O
  double beta_fast = 32;
  double beta_slow = 1;
};

// frequency[j] = base^(-2j/dims) / factors[j] / linear_factor. `factors` may be empty.
std::vector<double> rope_frequencies(int64_t dims, double base, std::span<const float> factors, double linear_factor);

// Blends interpolated and original frequencies by wavelength (YaRN, https://arxiv.org/abs/2309.00071 section 3.2; the
// ramp ends are rounded outwards as the published models expect).
void apply_yarn(std::vector<double>& frequency, double base, const YarnScaling& yarn);

// The rope of an architecture from its keys rope.freq_base, rope.dimension_count and rope.scaling.*, and from the
// tensor rope_freqs.weight when the file has it (llama3 scaling is baked into it).
Result<Rope> read_rope(GraphBuilder& b, int64_t head_dim, RopePairing pairing);

}  // namespace hearth
