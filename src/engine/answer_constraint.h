// A Constraint at work on one answer: which tokens it allows now.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "hearth/grammar.h"
#include "hearth/text.h"
#include "text/grammar/grammar.h"

namespace hearth {

class AnswerConstraint {
 public:
  // `text` outlives it.
  AnswerConstraint(const Constraint& constraint, const Text& text);

  bool allows(int32_t token) const;
  void accept(int32_t token);  // one that is allowed
  // Sets the bits of the allowed tokens and clears the others. False when none is allowed.
  bool mask(std::span<uint64_t> bits);
  // The answer may end here: not before the text that a grammar applies from.
  bool complete() const { return place_.grammar ? place_.grammar->complete() : repeats_; }

 private:
  struct Place {
    std::optional<GrammarState> grammar;  // none: the answer is free
    std::string tail;                     // of free text: what may be the beginning of `after`
  };
  // Each false when the grammar forbids it; the place is worthless then.
  bool advance(Place& place, int32_t token) const;
  bool watch(Place& place, std::string_view text) const;
  bool feed(Place& place, std::string_view bytes) const;

  const Text& text_;
  GrammarState start_;
  std::string after_;
  bool repeats_;
  Place place_;
};

}  // namespace hearth
