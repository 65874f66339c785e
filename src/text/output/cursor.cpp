#include "text/output/cursor.h"

#include <algorithm>
#include <array>

namespace hearth {

void Cursor::append(std::string_view text) {
  // What was read goes once it is more than what was not, so that every byte is moved a bounded number of times.
  const size_t read = std::min(at_, hold_);
  if (read > text_.size() / 2) {
    text_.erase(0, read);
    at_ -= read;
    if (hold_ != kNothing) hold_ -= read;
  }
  text_.append(text);
}

void Cursor::skip_space() {
  while (at_ < text_.size() && is_space(text_[at_])) ++at_;
}

Cursor::Match Cursor::match(std::string_view literal, size_t offset) const {
  const std::string_view there = rest().substr(std::min(offset, rest().size()));
  if (there.starts_with(literal)) return Match::kYes;
  return !ended_ && literal.starts_with(there) ? Match::kPartial : Match::kNo;
}

Cursor::Match Cursor::take(std::string_view literal) {
  const Match found = match(literal);
  if (found == Match::kYes) skip(literal.size());
  return found;
}

Cursor::Found Cursor::find(std::span<const std::string_view> markers) const {
  std::array<bool, 256> begins{};
  for (std::string_view marker : markers) begins[static_cast<unsigned char>(marker[0])] = true;
  const std::string_view text = rest();
  for (size_t i = 0; i < text.size(); ++i) {
    if (!begins[static_cast<unsigned char>(text[i])]) continue;
    int best = -1;
    for (size_t m = 0; m < markers.size(); ++m) {
      const Match found = match(markers[m], i);
      if (found == Match::kPartial) return {.before = i};
      if (found == Match::kYes && (best < 0 || markers[m].size() > markers[static_cast<size_t>(best)].size())) {
        best = static_cast<int>(m);
      }
    }
    if (best >= 0) return {.before = i, .index = best};
  }
  return {.before = text.size()};
}

std::string Cursor::take_held() {
  if (hold_ == kNothing) return {};
  std::string held = text_.substr(hold_, at_ - hold_);
  release();
  return held;
}

}  // namespace hearth
