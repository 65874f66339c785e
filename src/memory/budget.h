// Decides before anything is loaded whether a model fits, and how many tokens of KV it gets.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>

#include "base/result.h"
#include "memory/host_memory.h"

namespace hearth {

// The most tokens of KV that a model gets when the user does not say: long enough for an agent's prompt, and half of
// what a model with a 64K context would take.
inline constexpr int64_t kDefaultContextTokens = 32768;
// The fewest that are worth starting with when the user does not say.
inline constexpr int64_t kLeastContextTokens = 2048;

struct BudgetRequest {
  size_t weights_bytes = 0;    // what the weights take while the model runs, mapped or copied
  size_t workspace_bytes = 0;  // activations, logits, the program itself
  size_t cache_bytes = 0;      // of this memory, for what the prefix cache has no room for elsewhere (--cache-ram)
  std::function<size_t(int64_t tokens)> kv_bytes;
  // The same with the smaller KV type; empty: there is none or it is chosen already.
  std::function<size_t(int64_t tokens)> small_kv_bytes;
  std::string small_kv_flag = "--kv-type q8";
  int64_t context_tokens = 0;   // as the user asked; 0: decide
  int64_t trained_context = 0;  // of the model; 0: unknown
  int64_t granularity = 16;     // context sizes are multiples of this
  size_t available_bytes = 0;
  bool limited = false;  // a control group sets the limit: said in the message
  std::string device;    // whose memory it is, as --device names it: "cuda:0"; empty: the host's
};

struct Budget {
  int64_t context_tokens = 0;
  size_t kv_bytes = 0;
  size_t need_bytes = 0;  // all of the request and KV
};

// An explicit context is taken, or refused when there is no room for it; one beyond the trained context is memory for
// more sequences, none of which is longer than that. Else it is the smallest of the trained context,
// kDefaultContextTokens, and what fits into half of the memory that weights and workspace leave; kLeastContextTokens
// may take all of it. Fails with kOutOfMemory: need, have, and the flag that fits.
Result<Budget> plan_budget(const BudgetRequest& request);

// Host memory that a GPU's prefix cache gets when the user does not say, if that is at most a quarter of what is
// available: a few long conversations of a model that such a machine runs well.
inline constexpr size_t kDefaultHostCacheBytes = size_t{8} << 30;

// The host memory for pages of KV that a device with memory of its own has no room for: as the user asked, if it is
// available, else kOutOfMemory.
Result<size_t> plan_host_cache(std::optional<size_t> asked_bytes, const HostMemory& memory);

// "3.4 GiB", "120 MiB"
std::string bytes_text(size_t bytes);

}  // namespace hearth
