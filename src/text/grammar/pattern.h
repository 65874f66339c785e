// The regular expressions of JSON Schema ("pattern"), as expressions over the characters of a JSON string.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "base/result.h"
#include "text/grammar/rules.h"

namespace hearth::grammar {

struct Pattern {
  ExprId expr = -1;
  // Of the strings that match.
  int64_t min_length = 0;
  int64_t max_length = kUnbounded;
  // The pattern is ^C{m,n}$ for one set of characters: then `repeated` is C.
  ExprId repeated = -1;
};

// Reads a pattern of ECMA-262 without look-around, back references and word boundaries; ^ and $ may only stand at the
// ends of alternatives. kUsage for the rest.
Result<Pattern> parse_pattern(Rules& rules, std::string_view pattern);

// One character of `set` as a JSON string spells it.
ExprId json_chars(Rules& rules, const CharSet& set);

}  // namespace hearth::grammar
