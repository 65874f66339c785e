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
  // Forgets what was used longest ago when there are more than 64, or when texts and ids take more than `max_bytes`.
  explicit KnownTexts(size_t max_bytes) : max_bytes_(max_bytes) {}

  // Remembers a conversation; one that is its beginning is replaced.
  void add(std::span<const int32_t> ids, const Tokenizer& tokenizer);

  // The ids of the segments' joined text: those of the known conversation that shares the longest beginning with it, up
  // to a special token, and what Tokenizer::encode makes of the rest. A special token is taken over only where all of
  // its text is trusted.
  std::vector<int32_t> encode(std::span<const TextSegment> segments, const Tokenizer& tokenizer);

  size_t bytes() const;

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
    size_t bytes() const { return text.size() + ids.size() * sizeof(int32_t) + specials.size() * sizeof(Special); }
  };

  // The entry that shares the longest beginning with the text, now the latest; its length is `common`. nullptr: none.
  std::shared_ptr<const Entry> find(std::string_view text, size_t& common);

  const size_t max_bytes_;
  mutable std::mutex mutex_;
  size_t bytes_ = 0;                                 // this and entries_: guarded by mutex_
  std::list<std::shared_ptr<const Entry>> entries_;  // the latest first
};

}  // namespace hearth
