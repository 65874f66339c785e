#include "text/grammar/gbnf.h"

#include <algorithm>
#include <ranges>
#include <string>
#include <unordered_map>
#include <utility>

#include "base/utf8.h"

namespace hearth::grammar {
namespace {

constexpr int kMaxNesting = 100;
constexpr int32_t kMaxRepeat = 1'000'000;

bool is_name_char(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' || c == '_';
}

class Parser {
 public:
  Parser(Rules& rules, std::string_view text) : rules_(rules), first_(std::ssize(rules.rules)), text_(text) {}

  // The index of the rule root.
  Result<int32_t> parse() {
    skip_space(true);
    while (pos_ < text_.size()) {
      HEARTH_TRY(parse_rule());
      skip_space(true);
    }
    const auto root = names_.find("root");
    if (root == names_.end()) return error("there is no rule root; answers start at it");
    for (const Rules::Rule& rule : rules_.rules | std::views::drop(first_)) {  // in the order of their first use
      if (rule.body < 0) return error("the rule {} is used, but not defined", rule.name);
    }
    return root->second;
  }

 private:
  template <class... Args>
  Error error(fmt::format_string<Args...> format, Args&&... args) const {
    const auto line = 1 + std::ranges::count(text_.substr(0, std::min(pos_, text_.size())), '\n');
    return fail(ErrorCode::kUsage, "read the grammar, line {}: {}", line,
                fmt::format(format, std::forward<Args>(args)...));
  }

  bool at(char c) const { return pos_ < text_.size() && text_[pos_] == c; }

  void skip_space(bool lines) {
    while (pos_ < text_.size()) {
      const char c = text_[pos_];
      if (c == '#') {
        while (pos_ < text_.size() && text_[pos_] != '\n' && text_[pos_] != '\r') ++pos_;
      } else if (c == ' ' || c == '\t' || (lines && (c == '\n' || c == '\r'))) {
        ++pos_;
      } else {
        break;
      }
    }
  }

  std::string_view name() {
    const size_t begin = pos_;
    while (pos_ < text_.size() && is_name_char(text_[pos_])) ++pos_;
    return text_.substr(begin, pos_ - begin);
  }

  int32_t rule_index(std::string_view name) {
    const auto [it, inserted] = names_.try_emplace(std::string(name), static_cast<int32_t>(rules_.rules.size()));
    if (inserted) rules_.add_rule(std::string(name));
    return it->second;
  }

  Result<void> parse_rule() {
    const std::string_view rule_name = name();
    if (rule_name.empty()) {
      return error("expected the name of a rule, such as root ::= \"yes\" | \"no\"; found '{}'",
                   lossy_utf8(text_.substr(pos_, 1)));
    }
    skip_space(false);
    if (text_.substr(pos_, 3) != "::=") {
      return error("expected ::= behind the name {}, found '{}'", rule_name, lossy_utf8(text_.substr(pos_, 1)));
    }
    pos_ += 3;
    skip_space(true);
    const int32_t index = rule_index(rule_name);
    if (rules_.rules[static_cast<size_t>(index)].body >= 0) return error("the rule {} is defined twice", rule_name);
    HEARTH_ASSIGN(ExprId body, parse_choice(false, 0));
    rules_.rules[static_cast<size_t>(index)].body = body;
    if (pos_ < text_.size() && !at('\n') && !at('\r')) {
      return error("unexpected '{}' in the rule {}", lossy_utf8(text_.substr(pos_, 1)), rule_name);
    }
    return {};
  }

  Result<ExprId> parse_choice(bool nested, int depth) {
    if (depth > kMaxNesting) return error("groups are nested more than {} deep", kMaxNesting);
    std::vector<ExprId> parts;
    while (true) {
      HEARTH_ASSIGN(ExprId part, parse_sequence(nested, depth));
      parts.push_back(part);
      // A line that begins with | goes on with the rule.
      const size_t before = pos_;
      skip_space(true);
      if (!at('|')) {
        if (!nested) pos_ = before;
        break;
      }
      ++pos_;
      skip_space(true);
    }
    return rules_.choice(std::move(parts));
  }

  Result<ExprId> parse_sequence(bool nested, int depth) {
    std::vector<ExprId> parts;
    while (true) {
      skip_space(nested);
      if (pos_ >= text_.size()) break;
      const char c = text_[pos_];
      ExprId part = -1;
      if (c == '"') {
        HEARTH_ASSIGN(part, parse_literal());
      } else if (c == '[') {
        HEARTH_ASSIGN(part, parse_class());
      } else if (c == '.') {
        ++pos_;
        part = rules_.chars(normalized({{0, kLastChar}}));
      } else if (c == '(') {
        ++pos_;
        HEARTH_ASSIGN(part, parse_choice(true, depth + 1));
        skip_space(true);
        if (!at(')')) return error("a group ( has no )");
        ++pos_;
      } else if (is_name_char(c)) {
        // The name of the next rule ends this one.
        const size_t begin = pos_;
        const std::string_view rule = name();
        const size_t end = pos_;
        skip_space(false);
        if (text_.substr(pos_, 3) == "::=") {
          pos_ = begin;
          return error("the rule {} must begin on its own line", rule);
        }
        pos_ = end;
        part = rules_.rule(rule_index(rule));
      } else {
        break;
      }
      HEARTH_ASSIGN(part, parse_repeats(part));
      parts.push_back(part);
    }
    if (parts.empty()) return rules_.bytes("");
    return rules_.sequence(std::move(parts));
  }

  Result<ExprId> parse_repeats(ExprId part) {
    for (int count = 0; pos_ < text_.size(); ++count) {
      const char c = text_[pos_];
      if (c != '*' && c != '+' && c != '?' && c != '{') break;
      if (count >= kMaxNesting) return error("more than {} repetitions of the same thing", kMaxNesting);
      ++pos_;
      if (c == '*') {
        part = rules_.repeat(part, 0, kUnbounded);
      } else if (c == '+') {
        part = rules_.repeat(part, 1, kUnbounded);
      } else if (c == '?') {
        part = rules_.repeat(part, 0, 1);
      } else {
        HEARTH_ASSIGN(part, parse_braces(part));
      }
    }
    return part;
  }

  // Behind "{": m}, m,} or m,n}.
  Result<ExprId> parse_braces(ExprId part) {
    skip_space(false);
    HEARTH_ASSIGN(int32_t min, parse_number());
    int32_t max = min;
    skip_space(false);
    if (at(',')) {
      ++pos_;
      skip_space(false);
      max = kUnbounded;
      if (!at('}')) {
        HEARTH_ASSIGN(max, parse_number());
        skip_space(false);
      }
    }
    if (!at('}')) return error("a repetition looks like {{3}}, {{3,}} or {{3,5}}");
    ++pos_;
    if (max != kUnbounded && max < min) return error("a repetition of {} to {} times is impossible", min, max);
    return rules_.repeat(part, min, max);
  }

  Result<int32_t> parse_number() {
    int64_t value = -1;
    while (pos_ < text_.size() && text_[pos_] >= '0' && text_[pos_] <= '9') {
      value = std::max<int64_t>(value, 0) * 10 + (text_[pos_++] - '0');
      if (value > kMaxRepeat) return error("a repetition of more than {} times", kMaxRepeat);
    }
    if (value < 0) return error("a repetition looks like {{3}}, {{3,}} or {{3,5}}");
    return static_cast<int32_t>(value);
  }

  // One character of a literal or a class.
  Result<uint32_t> parse_char() {
    if (pos_ >= text_.size()) return error("the text ends inside of a literal or class");
    if (text_[pos_] == '\\') {
      ++pos_;
      const char c = pos_ < text_.size() ? text_[pos_++] : '\0';
      switch (c) {
        case 'n':
          return uint32_t{'\n'};
        case 'r':
          return uint32_t{'\r'};
        case 't':
          return uint32_t{'\t'};
        case 'x':
          return parse_hex(2);
        case 'u':
          return parse_hex(4);
        case 'U':
          return parse_hex(8);
        case '\\':
        case '"':
        case '[':
        case ']':
        case '-':
        case '^':
        case '/':
        case '\'':
          return static_cast<uint32_t>(c);
        default:
          return error("\\{} is no escape; known are \\n \\r \\t \\\\ \\\" \\[ \\] \\xHH \\uHHHH \\UHHHHHHHH",
                       lossy_utf8(std::string(1, c)));
      }
    }
    const Utf8Char c = read_utf8(text_, pos_);
    if (!c.valid) return error("byte {} is not UTF-8", pos_);
    pos_ += c.length;
    return c.code_point;
  }

  Result<uint32_t> parse_hex(int digits) {
    uint32_t value = 0;
    for (int i = 0; i < digits; ++i, ++pos_) {
      const char c = pos_ < text_.size() ? text_[pos_] : '\0';
      const int digit = c >= '0' && c <= '9'   ? c - '0'
                        : c >= 'a' && c <= 'f' ? c - 'a' + 10
                        : c >= 'A' && c <= 'F' ? c - 'A' + 10
                                               : -1;
      if (digit < 0) return error("an escape has fewer than {} hexadecimal digits", digits);
      value = value << 4 | static_cast<uint32_t>(digit);
    }
    if (value > kLastChar || (value >= 0xD800 && value <= 0xDFFF)) return error("U+{:04X} is no character", value);
    return value;
  }

  Result<ExprId> parse_literal() {
    ++pos_;
    std::string bytes;
    while (!at('"')) {
      HEARTH_ASSIGN(uint32_t c, parse_char());
      append_utf8(bytes, c);
    }
    ++pos_;
    return rules_.bytes(bytes);
  }

  Result<ExprId> parse_class() {
    ++pos_;
    const bool negated = at('^');
    if (negated) ++pos_;
    CharSet ranges;
    while (!at(']')) {
      HEARTH_ASSIGN(uint32_t first, parse_char());
      uint32_t last = first;
      if (at('-') && text_.substr(pos_, 2) != "-]") {
        ++pos_;
        HEARTH_ASSIGN(last, parse_char());
        if (last < first) return error("a range of characters goes from U+{:04X} down to U+{:04X}", first, last);
      }
      ranges.push_back({first, last});
    }
    ++pos_;
    ranges = normalized(std::move(ranges));
    return rules_.chars(negated ? inverted(ranges) : std::move(ranges));
  }

  Rules& rules_;
  ptrdiff_t first_;  // of the rules that are this grammar's
  std::string_view text_;
  size_t pos_ = 0;
  std::unordered_map<std::string, int32_t> names_;
};

}  // namespace

Result<ExprId> add_gbnf(Rules& rules, std::string_view text) {
  HEARTH_ASSIGN(const int32_t root, Parser(rules, text).parse());
  return rules.rule(root);
}

Result<Rules> gbnf_rules(std::string_view text) {
  Rules rules;
  HEARTH_ASSIGN(rules.root, Parser(rules, text).parse());
  return rules;
}

}  // namespace hearth::grammar
