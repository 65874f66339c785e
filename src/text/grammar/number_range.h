// Decimal numbers within bounds, as expressions.
#pragma once

#include <optional>
#include <string>

#include "text/grammar/rules.h"

namespace hearth::grammar {

// A bound in plain decimal digits: "-12.5" is {true, "12", "5"}.
struct Decimal {
  bool negative = false;
  std::string whole = "0";  // no leading zeros but for "0" itself
  std::string fraction;     // no trailing zeros
  bool zero() const { return whole == "0" && fraction.empty(); }
};

// Reads what JSON calls a number; nullopt when its exponent is so large that nobody means it.
std::optional<Decimal> parse_decimal(std::string_view text);

struct Bounds {
  std::optional<Decimal> low, high;
  bool low_excluded = false, high_excluded = false;
};

// Numbers have at most this many digits before and behind the point, unless a bound has more: an answer must end.
inline constexpr int32_t kMaxDigits = 16;

// Without bounds numbers may have exponents.
ExprId integer_in(Rules& rules, const Bounds& bounds);
ExprId number_in(Rules& rules, const Bounds& bounds);

}  // namespace hearth::grammar
