#include "memory/budget.h"

#include <algorithm>

#include "base/checked_math.h"

namespace hearth {
namespace {

// The most tokens, a multiple of the granularity and at most `most`, whose KV takes at most `bytes`; 0 when none.
int64_t fitting_tokens(const std::function<size_t(int64_t)>& kv_bytes, size_t bytes, int64_t most,
                       int64_t granularity) {
  int64_t low = 0;  // in units of the granularity; fits
  int64_t high = most / granularity;
  while (low < high) {
    const int64_t middle = (low + high + 1) / 2;
    if (kv_bytes(middle * granularity) <= bytes) {
      low = middle;
    } else {
      high = middle - 1;
    }
  }
  return low * granularity;
}

}  // namespace

std::string bytes_text(size_t bytes) {
  const double mib = static_cast<double>(bytes) / (1024.0 * 1024.0);
  return mib >= 1024 ? fmt::format("{:.1f} GiB", mib / 1024) : fmt::format("{:.0f} MiB", mib);
}

Result<Budget> plan_budget(const BudgetRequest& request) {
  const size_t fixed_bytes = request.weights_bytes + request.workspace_bytes + request.cache_bytes;
  const size_t left_bytes = request.available_bytes - std::min(request.available_bytes, fixed_bytes);
  const int64_t granularity = request.granularity;

  int64_t tokens = round_up(request.context_tokens, granularity);
  if (request.context_tokens == 0) {
    int64_t most = kDefaultContextTokens;
    if (request.trained_context > 0) most = std::min(most, round_up(request.trained_context, granularity));
    tokens = std::max(fitting_tokens(request.kv_bytes, left_bytes / 2, most, granularity),
                      std::min(most, kLeastContextTokens));
  }
  const size_t kv_bytes = request.kv_bytes(tokens);
  if (fixed_bytes <= request.available_bytes && kv_bytes <= left_bytes) {
    return Budget{.context_tokens = tokens, .kv_bytes = kv_bytes, .need_bytes = fixed_bytes + kv_bytes};
  }

  std::string advice;
  if (request.small_kv_bytes && request.small_kv_bytes(tokens) <= left_bytes) advice = request.small_kv_flag;
  if (const int64_t fits = fitting_tokens(request.kv_bytes, left_bytes, tokens, granularity); fits >= 256) {
    advice += fmt::format("{}-c {}", advice.empty() ? "" : " or ", fits);
  } else if (request.small_kv_bytes && advice.empty()) {
    const int64_t fits_small = fitting_tokens(request.small_kv_bytes, left_bytes, tokens, granularity);
    if (fits_small >= 256) advice = fmt::format("{} -c {}", request.small_kv_flag, fits_small);
  }
  if (advice.empty() && fixed_bytes + kv_bytes - request.cache_bytes <= request.available_bytes) {
    advice = "a smaller --cache-ram";
  }
  advice = advice.empty() ? "a smaller model or a smaller quantization of this one would fit" : advice + " would fit";
  if (!request.device.empty()) advice += "; --device cpu would use the processor instead";
  return fail(ErrorCode::kOutOfMemory,
              "the model needs {} (weights {}, KV for {} tokens {}, workspace {}{}), but {}{} are available{}; {}",
              bytes_text(fixed_bytes + kv_bytes), bytes_text(request.weights_bytes), tokens, bytes_text(kv_bytes),
              bytes_text(request.workspace_bytes),
              request.cache_bytes > 0 ? ", prefix cache " + bytes_text(request.cache_bytes) : "",
              bytes_text(request.available_bytes), request.device.empty() ? "" : " of " + request.device,
              request.limited ? " (the limit of this control group)" : "", advice);
}

Result<size_t> plan_host_cache(std::optional<size_t> asked_bytes, const HostMemory& memory) {
  if (!asked_bytes) return std::min(kDefaultHostCacheBytes, memory.available_bytes / 4);
  if (*asked_bytes <= memory.available_bytes) return *asked_bytes;
  return fail(ErrorCode::kOutOfMemory,
              "the prefix cache shall have {} of host memory, but {} are available{}; a smaller --cache-ram would fit",
              bytes_text(*asked_bytes), bytes_text(memory.available_bytes),
              memory.limited ? " (the limit of this control group)" : "");
}

}  // namespace hearth
