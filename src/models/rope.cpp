#include "models/rope.h"

#include <algorithm>
#include <cmath>
#include <numbers>

namespace hearth {

std::vector<double> rope_frequencies(int64_t dims, double base, std::span<const float> factors, double linear_factor) {
  std::vector<double> frequency(static_cast<size_t>(dims / 2));
  for (size_t j = 0; j < frequency.size(); ++j) {
    double exponent = -2.0 * static_cast<double>(j) / static_cast<double>(dims);
    frequency[j] = std::pow(base, exponent) / (factors.empty() ? 1.0 : factors[j]) / linear_factor;
  }
  return frequency;
}

void apply_yarn(std::vector<double>& frequency, double base, const YarnScaling& yarn) {
  double dims = 2.0 * static_cast<double>(frequency.size());
  // The pair whose wavelength makes `beta` turns over the original context.
  auto correction = [&](double beta) {
    return dims * std::log(yarn.original_context / (beta * 2 * std::numbers::pi)) / (2 * std::log(base));
  };
  double low = std::max(0.0, std::floor(correction(yarn.beta_fast)));
  double high = std::min(dims - 1, std::ceil(correction(yarn.beta_slow)));
  for (size_t j = 0; j < frequency.size(); ++j) {
    double ramp = (static_cast<double>(j) - low) / std::max(0.001, high - low);
    double keep = 1 - std::clamp(ramp, 0.0, 1.0);
    frequency[j] = frequency[j] / yarn.factor * (1 - keep) + frequency[j] * keep;
  }
}

Result<Rope> read_rope(GraphBuilder& b, int64_t head_dim, RopePairing pairing) {
  Rope rope{.pairing = pairing};
  HEARTH_ASSIGN(rope.dims, b.integer_or("rope.dimension_count", head_dim, 2, head_dim));
  if (rope.dims % 2)
    return fail(ErrorCode::kInvalidInput, "metadata key {}: {} is odd", b.key("rope.dimension_count"), rope.dims);
  HEARTH_ASSIGN(double base, b.positive_or("rope.freq_base", 10000.0));
  HEARTH_ASSIGN(std::string_view type, b.metadata().string_or(b.key("rope.scaling.type"), "linear"));
  HEARTH_ASSIGN(double factor, b.metadata().real_or(b.key("rope.scaling.factor"), 0.0));
  if (factor == 0) {
    HEARTH_ASSIGN(factor, b.metadata().real_or(b.key("rope.scale_linear"), 0.0));
  }
  if (factor == 0) factor = 1;  // writers put 0 for "none"
  if (!(factor >= 1e-3 && factor <= 1e6)) {
    return fail(ErrorCode::kInvalidInput, "metadata key {}: {} is not a scaling factor", b.key("rope.scaling.factor"),
                factor);
  }
  HEARTH_ASSIGN(double attention_factor, b.positive_or("rope.scaling.attn_factor", 1.0));

  std::vector<float> factors;
  if (b.find("rope_freqs.weight")) {
    HEARTH_ASSIGN(factors, b.read_vector("rope_freqs.weight", rope.dims / 2));
    if (!std::ranges::all_of(factors, [](float f) { return std::isfinite(f) && f > 0; })) {
      return fail(ErrorCode::kInvalidInput, "tensor rope_freqs.weight holds factors that are not positive numbers");
    }
  }

  if (type == "none") factor = 1;
  rope.frequency = rope_frequencies(rope.dims, base, factors, type == "linear" ? factor : 1.0);
  rope.magnitude = static_cast<float>(attention_factor);
  if (type == "yarn") {
    HEARTH_ASSIGN(int64_t context, b.integer("context_length", 1, int64_t{1} << 40));
    HEARTH_ASSIGN(double original, b.positive_or("rope.scaling.original_context_length", static_cast<double>(context)));
    apply_yarn(rope.frequency, base, {.factor = factor, .original_context = original});
    if (factor > 1) rope.magnitude *= static_cast<float>(1 + 0.1 * std::log(factor));
  } else if (type != "linear" && type != "none") {
    return fail(ErrorCode::kUnsupported,
                "metadata key {}: rope scaling \"{}\" is not supported; none, linear and yarn are",
                b.key("rope.scaling.type"), type);
  }
  return rope;
}

}  // namespace hearth
