// Finds a text in another in time that grows with the sum of their lengths; std::string::find takes their product when
// both repeat themselves.
#pragma once

#include <algorithm>
#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace hearth::jinja {

class Search {
 public:
  enum Direction { kForwards, kBackwards };

  Search(std::string_view wanted, Direction direction) : wanted_(wanted) {
    if (direction == kBackwards) std::reverse(wanted_.begin(), wanted_.end());
    // Knuth, Morris, Pratt: borders_[i] is the length of the longest proper prefix that wanted_[0, i] ends with.
    borders_.resize(wanted_.size());
    for (size_t i = 1, length = 0; i < wanted_.size(); ++i) {
      length = longer(length, wanted_[i]);
      borders_[i] = length;
    }
  }

  // Where the first occurrence at or after `from` begins, npos without one. For kForwards.
  size_t find(std::string_view text, size_t from = 0) const {
    size_t end = end_of_match(text.begin() + static_cast<ptrdiff_t>(from), text.end());
    return end == kNone ? kNone : from + end - wanted_.size();
  }
  // Where the last occurrence that ends at or before `end` begins. For kBackwards.
  size_t rfind(std::string_view text, size_t end) const {
    size_t length = end_of_match(text.rend() - static_cast<ptrdiff_t>(end), text.rend());
    return length == kNone ? kNone : end - length;
  }

 private:
  static constexpr size_t kNone = std::string_view::npos;

  // What of wanted_ matches once `c` follows a match of `length`.
  size_t longer(size_t length, char c) const {
    while (length > 0 && wanted_[length] != c) length = borders_[length - 1];
    return wanted_[length] == c ? length + 1 : length;
  }

  template <class Iterator>
  size_t end_of_match(Iterator begin, Iterator end) const {
    if (wanted_.empty()) return 0;
    size_t length = 0;
    for (Iterator at = begin; at != end; ++at) {
      length = longer(length, *at);
      if (length == wanted_.size()) return static_cast<size_t>(at - begin) + 1;
    }
    return kNone;
  }

  std::string wanted_;  // in the order of the search
  std::vector<size_t> borders_;
};

}  // namespace hearth::jinja
