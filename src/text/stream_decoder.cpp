#include "text/stream_decoder.h"

#include <algorithm>
#include <utility>

#include "base/utf8.h"

namespace hearth {

std::string Utf8Stream::push(std::string_view bytes) {
  held_.append(bytes);
  size_t tail = incomplete_utf8_tail(held_);
  std::string out = lossy_utf8(std::string_view(held_).substr(0, held_.size() - tail));
  held_.erase(0, held_.size() - tail);
  return out;
}

std::string Utf8Stream::finish() { return lossy_utf8(std::exchange(held_, {})); }

Result<StopMatcher> StopMatcher::create(std::vector<std::string> stops) {
  StopMatcher matcher;
  for (std::string& stop : stops) {
    if (stop.empty()) return fail(ErrorCode::kUsage, "a stop string is empty; leave it out or give it some text");
    Pattern pattern{std::move(stop), {}, 0};
    pattern.border.assign(pattern.text.size() + 1, 0);
    for (size_t i = 1, k = 0; i < pattern.text.size(); ++i) {
      while (k > 0 && pattern.text[i] != pattern.text[k]) k = pattern.border[k];
      if (pattern.text[i] == pattern.text[k]) ++k;
      pattern.border[i + 1] = k;
    }
    matcher.patterns_.push_back(std::move(pattern));
  }
  return matcher;
}

StopMatcher::Output StopMatcher::push(std::string_view text) {
  if (stop_index_ >= 0) return {.text = {}, .stop_index = stop_index_};
  const size_t old_size = held_.size();
  held_.append(text);
  for (size_t i = 0; i < text.size(); ++i) {
    size_t longest = 0;
    for (size_t p = 0; p < patterns_.size(); ++p) {
      Pattern& pattern = patterns_[p];
      while (pattern.matched > 0 && text[i] != pattern.text[pattern.matched])
        pattern.matched = pattern.border[pattern.matched];
      if (text[i] == pattern.text[pattern.matched]) ++pattern.matched;
      if (pattern.matched == pattern.text.size() && pattern.matched > longest) {
        longest = pattern.matched;
        stop_index_ = static_cast<int64_t>(p);
      }
    }
    if (stop_index_ >= 0) {
      std::string safe = held_.substr(0, old_size + i + 1 - longest);
      held_.clear();
      return {.text = std::move(safe), .stop_index = stop_index_};
    }
  }
  size_t keep = 0;
  for (const Pattern& pattern : patterns_) keep = std::max(keep, pattern.matched);
  std::string safe = held_.substr(0, held_.size() - keep);
  held_.erase(0, held_.size() - keep);
  return {.text = std::move(safe)};
}

std::string StopMatcher::finish() {
  for (Pattern& pattern : patterns_) pattern.matched = 0;
  return std::exchange(held_, {});
}

}  // namespace hearth
