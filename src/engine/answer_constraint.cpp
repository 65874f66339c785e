#include "engine/answer_constraint.h"

#include <algorithm>
#include <utility>

namespace hearth {

AnswerConstraint::AnswerConstraint(const Constraint& constraint, const Text& text)
    : text_(text), start_(constraint.grammar), after_(constraint.after), repeats_(constraint.repeats) {
  if (after_.empty()) place_.grammar = start_;
}

bool AnswerConstraint::allows(int32_t token) const {
  if (!complete() && text_.ends_generation(token)) return false;
  if (place_.grammar && !repeats_) return place_.grammar->allows(token);
  Place copy = place_;
  return advance(copy, token);
}

void AnswerConstraint::accept(int32_t token) { advance(place_, token); }

bool AnswerConstraint::mask(std::span<uint64_t> bits) {
  // In a grammar that repeats, a token with its end and free text behind it is left out: there are others.
  if (place_.grammar) return place_.grammar->mask(bits);
  // Only a token that has the end of `after` in it can be wrong; that happens once an answer, if at all.
  std::ranges::fill(bits, 0);
  bool any = false;
  const int64_t tokens = std::min(text_.vocab_size(), static_cast<int64_t>(64 * bits.size()));
  for (int64_t token = 0; token < tokens; ++token) {
    if (!allows(static_cast<int32_t>(token))) continue;
    bits[static_cast<size_t>(token) / 64] |= uint64_t{1} << (token % 64);
    any = true;
  }
  return any;
}

bool AnswerConstraint::advance(Place& place, int32_t token) const {
  if (!place.grammar) return watch(place, text_.piece(token, true));
  if (!repeats_) return place.grammar->accept(token);
  const std::string_view bytes = start_.token_bytes(token);
  return bytes.empty() ? place.grammar->accept(token) : feed(place, bytes);
}

bool AnswerConstraint::watch(Place& place, std::string_view text) const {
  place.tail += text;
  const size_t found = place.tail.find(after_);
  if (found == std::string::npos) {
    if (place.tail.size() >= after_.size()) place.tail.erase(0, place.tail.size() - (after_.size() - 1));
    return true;
  }
  const std::string rest = place.tail.substr(found + after_.size());
  place.tail.clear();
  place.grammar = start_;
  return feed(place, rest);
}

bool AnswerConstraint::feed(Place& place, std::string_view bytes) const {
  if (!repeats_) return bytes.empty() || place.grammar->accept_bytes(bytes);
  for (size_t i = 0; i < bytes.size(); ++i) {
    if (!place.grammar->accept_bytes(bytes.substr(i, 1))) return false;
    if (!place.grammar->complete()) continue;
    place.grammar.reset();
    return watch(place, bytes.substr(i + 1));
  }
  return true;
}

}  // namespace hearth
