// Generated tokens to text as they come: whole UTF-8 characters only, and nothing that a stop string may still claim.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace hearth {

// Bytes to valid UTF-8. A character whose last bytes are still to come is held back (at most three bytes); every
// maximal invalid subsequence becomes one U+FFFD. The joined output does not depend on how the input is cut.
class Utf8Stream {
 public:
  std::string push(std::string_view bytes);
  std::string finish();  // what was held back, as U+FFFD; the stream then begins anew

 private:
  std::string held_;
};

// Looks for stop strings in a stream of text. Of several it takes the one that is complete first, and the longest of
// those that end at the same byte. The joined output does not depend on how the input is cut.
class StopMatcher {
 public:
  // kUsage for an empty stop string.
  static Result<StopMatcher> create(std::vector<std::string> stops);

  struct Output {
    std::string text;         // safe to show: no stop string begins in it
    int64_t stop_index = -1;  // of the stop string that was found; -1 = none so far
    bool stopped() const { return stop_index >= 0; }
  };

  // Text up to the stop string, which is not part of it; what follows the stop string is dropped, as are later pushes.
  Output push(std::string_view text);

  // At the end of the stream: what was held back because it might have begun a stop string.
  std::string finish();

 private:
  // Knuth-Morris-Pratt, one per stop string.
  struct Pattern {
    std::string text;
    std::vector<size_t> border;  // of each prefix: the longest proper prefix that is its suffix too
    size_t matched = 0;          // bytes at the end of the stream that are a prefix of `text`
  };
  std::vector<Pattern> patterns_;
  std::string held_;
  int64_t stop_index_ = -1;
};

}  // namespace hearth
