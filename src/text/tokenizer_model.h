// What a tokenizer does between special tokens: one implementation per algorithm (bpe.h, bpe_gemma4.h, spm.h).
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <string_view>
#include <vector>

#include "text/bpe_merge.h"

namespace hearth {

// Buffers of one encode call.
struct EncodeScratch {
  MergeScratch merge;
  std::vector<uint32_t> piece_ends;
  std::string normalized, escaped;
};

class TokenizerModel {
 public:
  virtual ~TokenizerModel() = default;

  // Appends the ids of `text`, which holds no special token and is below 4 GiB. `opens` is true at the start of the
  // whole text and after a special token. Never fails: what no token covers becomes byte tokens or the unknown token.
  virtual void encode(std::string_view text, bool opens, EncodeScratch& scratch, std::vector<int32_t>& out) const = 0;
};

// Remembers for each token whether merging its own text gives the token back, found out on first use. A word that is
// such a token needs no merging: most words of ordinary text.
class WholeTokens {
 public:
  explicit WholeTokens(int64_t tokens)
      : states_(std::make_unique<std::atomic<uint8_t>[]>(static_cast<size_t>(tokens))) {}

  // `merges_to_itself()` may run on several threads at once for the same id; it gives the same answer each time.
  template <class Test>
  bool check(int32_t id, Test&& merges_to_itself) const {
    std::atomic<uint8_t>& state = states_[static_cast<size_t>(id)];
    uint8_t known = state.load(std::memory_order_relaxed);
    if (known == kUntested) {
      known = merges_to_itself() ? kWhole : kSplit;
      state.store(known, std::memory_order_relaxed);
    }
    return known == kWhole;
  }

 private:
  enum : uint8_t { kUntested = 0, kWhole, kSplit };
  std::unique_ptr<std::atomic<uint8_t>[]> states_;
};

}  // namespace hearth
