// Ids of conversations that the model has read and written. What it wrote rarely tokenizes to the ids that were sampled
// when a client sends it back as text; with the same ids its KV pages are found again.
#pragma once

#include <cstdint>
#include <list>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "text/tokenizer.h"

namespace hearth {

// Safe from any thread; tokenizing blocks nobody.
class KnownTexts {
 public:
  // Holds at most `max_bytes`, in two ages like the prefix cache: short texts that nothing continued go before long
  // ones and those that did go on, each by last use. The latter have at most three quarters, the oldest of them age
  // first.
  explicit KnownTexts(size_t max_bytes) : max_bytes_(max_bytes) {}

  // Remembers a conversation; one that is its beginning is replaced.
  void add(std::span<const int32_t> ids, const Tokenizer& tokenizer);

  // The ids of the segments' joined text: those of the known conversation that shares the longest beginning with it, up
  // to a special token, and what Tokenizer::encode makes of the rest. A special token is taken over only where all of
  // its text is trusted.
  std::vector<int32_t> encode(std::span<const TextSegment> segments, const Tokenizer& tokenizer);

  size_t bytes() const;
  size_t max_bytes() const { return max_bytes_; }

 private:
  // A special token in a known text.
  struct Special {
    size_t byte, length;  // of its text
    size_t index;         // among the ids
  };
  struct Entry {
    std::string text;
    std::vector<int32_t> ids;
    std::vector<Special> specials;
    size_t bytes() const {
      return sizeof(Entry) + text.size() + ids.size() * sizeof(int32_t) + specials.size() * sizeof(Special);
    }
  };
  struct Age {
    std::list<std::shared_ptr<const Entry>> texts;  // the latest first
    size_t bytes = 0;
  };

  // The entry that shares the longest beginning with the text, now the latest; its length is `common`. nullptr: none.
  std::shared_ptr<const Entry> find(std::string_view text, size_t& common);

  const size_t max_bytes_;
  mutable std::mutex mutex_;
  Age brief_, kept_;  // guarded by mutex_
};

}  // namespace hearth
