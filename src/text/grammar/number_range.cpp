#include "text/grammar/number_range.h"

#include <algorithm>
#include <string_view>
#include <utility>
#include <vector>

namespace hearth::grammar {
namespace {

constexpr int64_t kMaxExponent = 300;

class Builder {
 public:
  explicit Builder(Rules& rules) : rules_(rules) {}

  ExprId integer(const Bounds& bounds) {
    if (!bounds.low && !bounds.high) return sequence({rules_.optional(rules_.bytes("-")), unbounded_whole()});
    return in_bounds(bounds, true);
  }

  ExprId number(const Bounds& bounds) {
    if (bounds.low || bounds.high) return in_bounds(bounds, false);
    const ExprId fraction = rules_.optional(sequence({rules_.bytes("."), digits(1, kMaxDigits)}));
    const ExprId exponent = rules_.optional(sequence({chars("eE"), rules_.optional(chars("+-")), digits(1, 2)}));
    return sequence({rules_.optional(rules_.bytes("-")), unbounded_whole(), fraction, exponent});
  }

 private:
  // A bound of magnitudes. Excluded: only what is beyond it.
  struct Limit {
    std::string whole, fraction;
    bool excluded = false;
  };

  ExprId nothing() { return rules_.choice({}); }
  ExprId sequence(std::vector<ExprId> parts) { return rules_.sequence(std::move(parts)); }
  ExprId range(char first, char last) {
    return rules_.chars({{static_cast<uint8_t>(first), static_cast<uint8_t>(last)}});
  }
  ExprId chars(std::string_view set) {
    CharSet ranges;
    for (char c : set) ranges.push_back({static_cast<uint8_t>(c), static_cast<uint8_t>(c)});
    return rules_.chars(normalized(std::move(ranges)));
  }
  ExprId digits(int32_t min, int32_t max) { return rules_.repeat(range('0', '9'), min, max); }
  ExprId unbounded_whole() {
    return rules_.choice({rules_.bytes("0"), sequence({range('1', '9'), digits(0, kMaxDigits - 1)})});
  }

  ExprId in_bounds(const Bounds& bounds, bool whole) {
    std::vector<ExprId> ways;
    const auto limit = [](const Decimal& d, bool excluded) { return Limit{d.whole, d.fraction, excluded}; };
    const Limit zero{"0", "", false};
    const Limit above_zero{"0", "", true};
    const bool low_negative = !bounds.low || (bounds.low->negative && !bounds.low->zero());
    const bool high_negative = bounds.high && bounds.high->negative && !bounds.high->zero();
    if (!high_negative) {
      std::optional<Limit> high;
      if (bounds.high) high = limit(*bounds.high, bounds.high_excluded);
      ways.push_back(magnitude(low_negative ? zero : limit(*bounds.low, bounds.low_excluded), high, whole));
    }
    if (low_negative) {
      std::optional<Limit> farthest;
      if (bounds.low) farthest = limit(*bounds.low, bounds.low_excluded);
      const Limit nearest = high_negative ? limit(*bounds.high, bounds.high_excluded) : above_zero;
      ways.push_back(sequence({rules_.bytes("-"), magnitude(nearest, farthest, whole)}));
    }
    return rules_.choice(std::move(ways));
  }

  static bool less(const std::string& a, const std::string& b) {
    return a.size() != b.size() ? a.size() < b.size() : a < b;
  }
  static std::string plus_one(std::string whole) {
    size_t i = whole.size();
    while (i > 0 && whole[i - 1] == '9') whole[--i] = '0';
    if (i == 0) return "1" + whole;
    ++whole[i - 1];
    return whole;
  }
  static std::string minus_one(std::string whole) {  // of at least 1
    size_t i = whole.size();
    while (whole[i - 1] == '0') whole[--i] = '9';
    --whole[i - 1];
    if (whole.size() > 1 && whole[0] == '0') whole.erase(0, 1);
    return whole;
  }

  ExprId magnitude(const Limit& low, const std::optional<Limit>& high, bool whole) {
    if (whole) {
      const bool up = low.excluded || !low.fraction.empty();
      const std::string first = up ? plus_one(low.whole) : low.whole;
      if (!high) return whole_range(first, most_for(first));
      std::string last = high->whole;
      if (high->excluded && high->fraction.empty()) {
        if (last == "0") return nothing();
        last = minus_one(last);
      }
      return less(last, first) ? nothing() : whole_range(first, last);
    }
    if (high && less(high->whole, low.whole)) return nothing();
    if (high && high->whole == low.whole) {
      return sequence({rules_.bytes(low.whole), fraction(low, high)});
    }
    std::vector<ExprId> ways{sequence({rules_.bytes(low.whole), fraction(low, std::nullopt)})};
    const std::string first = plus_one(low.whole);
    const std::string last = high ? minus_one(high->whole) : most_for(first);
    if (!less(last, first)) {
      ways.push_back(
          sequence({whole_range(first, last), rules_.optional(sequence({rules_.bytes("."), digits(1, kMaxDigits)}))}));
    }
    if (high) ways.push_back(sequence({rules_.bytes(high->whole), fraction(std::nullopt, high)}));
    return rules_.choice(std::move(ways));
  }

  static std::string most_for(const std::string& first) {
    return std::string(std::max<size_t>(kMaxDigits, first.size() + 1), '9');
  }

  // Whole numbers first to last, without leading zeros.
  ExprId whole_range(const std::string& first, const std::string& last) {
    std::vector<ExprId> ways;
    for (size_t n = first.size(); n <= last.size(); ++n) {
      const std::string low = n == first.size() ? first : "1" + std::string(n - 1, '0');
      const std::string high = n == last.size() ? last : std::string(n, '9');
      ways.push_back(same_length(low, high));
    }
    return rules_.choice(std::move(ways));
  }

  ExprId same_length(std::string_view low, std::string_view high) {
    if (low.empty()) return rules_.bytes("");
    const auto n = static_cast<int32_t>(low.size());
    if (low.find_first_not_of('0') == low.npos && high.find_first_not_of('9') == high.npos) return digits(n, n);
    if (low[0] == high[0]) {
      return sequence({range(low[0], low[0]), same_length(low.substr(1), high.substr(1))});
    }
    const std::string nines(low.size() - 1, '9');
    const std::string zeros(low.size() - 1, '0');
    std::vector<ExprId> ways;
    ways.push_back(sequence({range(low[0], low[0]), same_length(low.substr(1), nines)}));
    if (low[0] + 1 < high[0]) {
      ways.push_back(
          sequence({range(static_cast<char>(low[0] + 1), static_cast<char>(high[0] - 1)), digits(n - 1, n - 1)}));
    }
    ways.push_back(sequence({range(high[0], high[0]), same_length(zeros, high.substr(1))}));
    return rules_.choice(std::move(ways));
  }

  // Nothing, or a point and digits: fractions from that of `low` to that of `high`.
  ExprId fraction(const std::optional<Limit>& low, const std::optional<Limit>& high) {
    std::optional<std::string> least, most;
    if (low && (!low->fraction.empty() || low->excluded)) least = low->fraction;
    if (high) most = high->fraction;
    low_excluded_ = low && low->excluded;
    high_excluded_ = high && high->excluded;
    const size_t longest = std::max(least ? least->size() : 0, most ? most->size() : 0);
    std::vector<ExprId> ways;
    if (may_end(least, most)) ways.push_back(rules_.bytes(""));
    ways.push_back(sequence({rules_.bytes("."), digits_from(least, most, longest + kMaxDigits)}));
    return rules_.choice(std::move(ways));
  }

  // Zeros may follow for ever: the rest is as good as 0.
  bool may_end(const std::optional<std::string>& least, const std::optional<std::string>& most) const {
    if (least && (!least->empty() || low_excluded_)) return false;
    return !(most && most->empty() && high_excluded_);
  }

  // At least one and at most `left` digits, not below `least` nor above `most` (nullopt: any).
  ExprId digits_from(const std::optional<std::string>& least, const std::optional<std::string>& most, size_t left) {
    if (left == 0) return nothing();
    if (!least && !most) return digits(1, static_cast<int32_t>(left));
    if (least && least->empty() && !low_excluded_) return digits_from(std::nullopt, most, left);
    const char low = !least ? '\0' : least->empty() ? '0' : (*least)[0];  // '\0': below every digit
    const char high = !most ? '\x7F' : most->empty() ? '0' : (*most)[0];  // '\x7F': above every digit
    std::vector<ExprId> ways;
    const auto add = [&](ExprId digit, const std::optional<std::string>& l, const std::optional<std::string>& m) {
      std::vector<ExprId> rest;
      if (may_end(l, m)) rest.push_back(rules_.bytes(""));
      rest.push_back(digits_from(l, m, left - 1));
      ways.push_back(sequence({digit, rules_.choice(std::move(rest))}));
    };
    const auto after = [](const std::string& s) { return s.empty() ? s : s.substr(1); };
    if (low == high) {
      add(range(low, low), after(*least), after(*most));
      return ways[0];
    }
    if (low > high) return nothing();
    if (least) add(range(low, low), after(*least), std::nullopt);
    const char first = std::max<char>('0', static_cast<char>(low + 1));
    const char last = std::min<char>('9', static_cast<char>(high - 1));
    if (first <= last) add(range(first, last), std::nullopt, std::nullopt);
    if (most) add(range(high, high), std::nullopt, after(*most));
    return rules_.choice(std::move(ways));
  }

  Rules& rules_;
  bool low_excluded_ = false, high_excluded_ = false;
};

}  // namespace

std::optional<Decimal> parse_decimal(std::string_view text) {
  Decimal out;
  if (text.starts_with('-')) {
    out.negative = true;
    text.remove_prefix(1);
  }
  int64_t exponent = 0;
  if (const size_t e = text.find_first_of("eE"); e != text.npos) {
    std::string_view digits = text.substr(e + 1);
    const bool negative = digits.starts_with('-');
    if (digits.starts_with('-') || digits.starts_with('+')) digits.remove_prefix(1);
    for (char c : digits) exponent = std::min<int64_t>(exponent * 10 + (c - '0'), 10 * kMaxExponent);
    if (negative) exponent = -exponent;
    text = text.substr(0, e);
  }
  if (exponent > kMaxExponent || exponent < -kMaxExponent) return std::nullopt;
  const size_t point = text.find('.');
  std::string digits(text.substr(0, point));
  auto place = static_cast<int64_t>(digits.size()) + exponent;  // of the point
  if (point != text.npos) digits += text.substr(point + 1);
  if (place < 0) {
    digits.insert(0, static_cast<size_t>(-place), '0');
    place = 0;
  }
  if (place > static_cast<int64_t>(digits.size())) digits.append(static_cast<size_t>(place) - digits.size(), '0');
  out.whole = digits.substr(0, static_cast<size_t>(place));
  out.fraction = digits.substr(static_cast<size_t>(place));
  out.whole.erase(0, std::min(out.whole.find_first_not_of('0'), out.whole.size()));
  if (out.whole.empty()) out.whole = "0";
  while (out.fraction.ends_with('0')) out.fraction.pop_back();
  return out;
}

ExprId integer_in(Rules& rules, const Bounds& bounds) { return Builder(rules).integer(bounds); }
ExprId number_in(Rules& rules, const Bounds& bounds) { return Builder(rules).number(bounds); }

}  // namespace hearth::grammar
