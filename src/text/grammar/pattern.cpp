#include "text/grammar/pattern.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "base/utf8.h"

namespace hearth::grammar {
namespace {

// Of all patterns of a schema: a byte can become some kilobytes.
constexpr size_t kMaxPatternBytes = size_t{64} << 10;
constexpr int kMaxNesting = 100;
constexpr int32_t kMaxRepeat = 1'000'000;

CharSet digits() { return {{'0', '9'}}; }
CharSet word_chars() { return {{'0', '9'}, {'A', 'Z'}, {'_', '_'}, {'a', 'z'}}; }
CharSet spaces() {
  return normalized({{'\t', '\r'},
                     {' ', ' '},
                     {0xA0, 0xA0},
                     {0x1680, 0x1680},
                     {0x2000, 0x200A},
                     {0x2028, 0x2029},
                     {0x202F, 0x202F},
                     {0x205F, 0x205F},
                     {0x3000, 0x3000},
                     {0xFEFF, 0xFEFF}});
}

// Lengths in characters.
struct Part {
  ExprId expr = -1;
  int64_t min = 0;
  int64_t max = 0;
  ExprId repeated = -1;  // the part is a repetition of this one set of characters
};

class Parser {
 public:
  Parser(Rules& rules, std::string_view text) : rules_(rules), text_(text) {}

  Result<Pattern> parse() {
    HEARTH_ASSIGN(Part part, parse_choice(0));
    if (pos_ < text_.size()) return error("an unexpected )");
    return Pattern{.expr = part.expr, .min_length = part.min, .max_length = part.max, .repeated = part.repeated};
  }

 private:
  template <class... Args>
  Error error(fmt::format_string<Args...> format, Args&&... args) const {
    return fail(ErrorCode::kUsage, "the pattern '{}' has {}", lossy_utf8(text_.substr(0, 200)),
                fmt::format(format, std::forward<Args>(args)...));
  }

  bool at(char c) const { return pos_ < text_.size() && text_[pos_] == c; }

  static Part joined(const Part& a, const Part& b, ExprId expr) {
    return {.expr = expr,
            .min = std::min<int64_t>(a.min + b.min, INT32_MAX),
            .max = a.max == kUnbounded || b.max == kUnbounded ? kUnbounded : a.max + b.max};
  }

  Part any_text() {
    return {.expr = rules_.repeat(json_chars(rules_, normalized({{0, kLastChar}})), 0, kUnbounded), .max = kUnbounded};
  }

  // Alternatives of the whole pattern may have ^ and $ at their ends; where they are missing, any text may stand.
  Result<Part> parse_choice(int depth) {
    if (depth > kMaxNesting) return error("groups nested more than {} deep", kMaxNesting);
    std::vector<Part> parts;
    while (true) {
      HEARTH_ASSIGN(Part part, parse_sequence(depth));
      parts.push_back(part);
      if (!at('|')) break;
      ++pos_;
    }
    if (parts.size() == 1) return parts[0];
    Part all = parts[0];
    std::vector<ExprId> exprs;
    for (const Part& part : parts) {
      exprs.push_back(part.expr);
      all.min = std::min(all.min, part.min);
      all.max = all.max == kUnbounded || part.max == kUnbounded ? kUnbounded : std::max(all.max, part.max);
    }
    all.expr = rules_.choice(std::move(exprs));
    all.repeated = -1;
    return all;
  }

  Result<Part> parse_sequence(int depth) {
    std::vector<Part> parts;
    bool begins = depth > 0;
    bool ends = depth > 0;
    if (at('^')) {
      if (depth > 0) return error("a ^ inside of a group, which is not supported");
      begins = true;
      ++pos_;
    }
    while (pos_ < text_.size() && !at('|') && !at(')')) {
      if (at('$')) {
        ++pos_;
        if (depth > 0 || (pos_ < text_.size() && !at('|'))) {
          return error("a $ that is not at the end, which is not supported");
        }
        ends = true;
        break;
      }
      HEARTH_ASSIGN(Part part, parse_repeated(depth));
      parts.push_back(part);
    }
    if (!begins) parts.insert(parts.begin(), any_text());
    if (!ends) parts.push_back(any_text());
    if (parts.size() == 1) return parts[0];
    Part all{.expr = rules_.bytes("")};
    std::vector<ExprId> exprs;
    for (const Part& part : parts) {
      exprs.push_back(part.expr);
      all = joined(all, part, -1);
    }
    all.expr = exprs.empty() ? rules_.bytes("") : rules_.sequence(std::move(exprs));
    return all;
  }

  Result<Part> parse_repeated(int depth) {
    HEARTH_ASSIGN(Part part, parse_atom(depth));
    for (int count = 0; pos_ < text_.size(); ++count) {
      int32_t min = 0, max = kUnbounded;
      if (at('*')) {
        ++pos_;
      } else if (at('+')) {
        ++pos_;
        min = 1;
      } else if (at('?')) {
        ++pos_;
        max = 1;
      } else if (at('{')) {
        HEARTH_TRY(parse_braces(min, max));
      } else {
        break;
      }
      if (count > 0) return error("a repetition of a repetition; put a group around the inner one");
      if (at('?')) ++pos_;  // lazy: the same strings
      const bool chars = part.repeated == part.expr && part.repeated >= 0;
      Part repeated{.expr = rules_.repeat(part.expr, min, max)};
      repeated.min = std::min<int64_t>(part.min * min, INT32_MAX);
      repeated.max = max == kUnbounded || part.max == kUnbounded ? (part.max == 0 ? 0 : kUnbounded)
                                                                 : std::min<int64_t>(part.max * max, INT32_MAX);
      if (chars) repeated.repeated = part.expr;
      part = repeated;
    }
    return part;
  }

  Result<void> parse_braces(int32_t& min, int32_t& max) {
    ++pos_;
    const auto number = [&]() -> int64_t {
      int64_t value = -1;
      while (pos_ < text_.size() && text_[pos_] >= '0' && text_[pos_] <= '9') {
        value = std::min<int64_t>(std::max<int64_t>(value, 0) * 10 + (text_[pos_++] - '0'), kMaxRepeat + 1);
      }
      return value;
    };
    const int64_t least = number();
    int64_t most = least;
    if (at(',')) {
      ++pos_;
      most = at('}') ? kUnbounded : number();
      if (most < 0 && !at('}')) return error("a broken repetition {{");
    }
    if (least < 0 || !at('}')) return error("a broken repetition {{");
    ++pos_;
    if (least > kMaxRepeat || most > kMaxRepeat) return error("a repetition of more than {} times", kMaxRepeat);
    if (most != kUnbounded && most < least) return error("a repetition of {} to {} times", least, most);
    min = static_cast<int32_t>(least);
    max = static_cast<int32_t>(most);
    return {};
  }

  Part one_of(const CharSet& set) {
    const ExprId expr = json_chars(rules_, set);
    return {.expr = expr, .min = 1, .max = 1, .repeated = expr};
  }

  Result<Part> parse_atom(int depth) {
    const char c = text_[pos_];
    switch (c) {
      case '(': {
        ++pos_;
        if (at('?')) {
          if (text_.substr(pos_, 2) != "?:") return error("a group (?, which is not supported beside (?:");
          pos_ += 2;
        }
        HEARTH_ASSIGN(Part part, parse_choice(depth + 1));
        if (!at(')')) return error("a group without )");
        ++pos_;
        part.repeated = -1;
        return part;
      }
      case '[': {
        HEARTH_ASSIGN(CharSet set, parse_class());
        return one_of(set);
      }
      case '.':
        ++pos_;
        return one_of(inverted(normalized({{'\n', '\n'}, {'\r', '\r'}, {0x2028, 0x2029}})));
      case '\\': {
        ++pos_;
        HEARTH_ASSIGN(CharSet set, parse_escape(false));
        return one_of(set);
      }
      case '*':
      case '+':
      case '?':
      case '{':
        return error("a repetition {} of nothing", c);
      case '^':
        return error("a ^ that is not at the beginning, which is not supported");
      default: {
        const Utf8Char read = read_utf8(text_, pos_);
        if (!read.valid) return error("invalid UTF-8");
        pos_ += read.length;
        return one_of({{read.code_point, read.code_point}});
      }
    }
  }

  Result<CharSet> parse_escape(bool in_class) {
    if (pos_ >= text_.size()) return error("a \\ at its end");
    const char c = text_[pos_++];
    const auto one = [](uint32_t character) { return CharSet{{character, character}}; };
    switch (c) {
      case 'd':
        return digits();
      case 'D':
        return inverted(digits());
      case 'w':
        return word_chars();
      case 'W':
        return inverted(word_chars());
      case 's':
        return spaces();
      case 'S':
        return inverted(spaces());
      case 'n':
        return one('\n');
      case 'r':
        return one('\r');
      case 't':
        return one('\t');
      case 'f':
        return one('\f');
      case 'v':
        return one('\v');
      case 'x':
      case 'u': {
        const size_t count = c == 'x' ? 2 : 4;
        uint32_t value = 0;
        for (size_t i = 0; i < count; ++i, ++pos_) {
          const char h = pos_ < text_.size() ? text_[pos_] : '\0';
          const int digit = h >= '0' && h <= '9'   ? h - '0'
                            : h >= 'a' && h <= 'f' ? h - 'a' + 10
                            : h >= 'A' && h <= 'F' ? h - 'A' + 10
                                                   : -1;
          if (digit < 0) return error("a broken escape \\{}", c);
          value = value << 4 | static_cast<uint32_t>(digit);
        }
        if (value >= 0xD800 && value <= 0xDFFF) return error("a surrogate, which is not supported");
        return one(value);
      }
      default:
        if (in_class && c == 'b') return one('\b');
        if ((c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z')) {
          return error("an escape \\{}, which is not supported", c);
        }
        if (static_cast<uint8_t>(c) >= 0x80) return error("an escaped character beyond ASCII");
        return one(static_cast<uint8_t>(c));
    }
  }

  Result<CharSet> parse_class() {
    ++pos_;
    const bool negated = at('^');
    if (negated) ++pos_;
    CharSet ranges;
    while (true) {
      if (pos_ >= text_.size()) return error("a class without ]");
      if (at(']')) break;
      HEARTH_ASSIGN(CharSet first, parse_class_atom());
      const bool single = first.size() == 1 && first[0].first == first[0].last;
      if (single && at('-') && pos_ + 1 < text_.size() && text_[pos_ + 1] != ']') {
        const size_t before = pos_++;
        HEARTH_ASSIGN(CharSet last, parse_class_atom());
        if (last.size() == 1 && last[0].first == last[0].last) {
          if (last[0].first < first[0].first) return error("a class with a range that goes down");
          ranges.push_back({first[0].first, last[0].first});
          continue;
        }
        pos_ = before;  // as in [a-\d]: the three stand for themselves
      }
      ranges.insert(ranges.end(), first.begin(), first.end());
    }
    ++pos_;
    ranges = normalized(std::move(ranges));
    return negated ? inverted(ranges) : ranges;
  }

  Result<CharSet> parse_class_atom() {
    if (pos_ >= text_.size()) return error("a class without ]");
    if (at('\\')) {
      ++pos_;
      return parse_escape(true);
    }
    const Utf8Char read = read_utf8(text_, pos_);
    if (!read.valid) return error("invalid UTF-8");
    pos_ += read.length;
    return CharSet{{read.code_point, read.code_point}};
  }

  Rules& rules_;
  std::string_view text_;
  size_t pos_ = 0;
};

}  // namespace

ExprId json_chars(Rules& rules, const CharSet& set) {
  static const CharSet kPlain = inverted(normalized({{0, 0x1F}, {'"', '"'}, {'\\', '\\'}}));
  std::vector<ExprId> ways;
  if (CharSet plain = intersection(set, kPlain); !plain.empty()) ways.push_back(rules.chars(std::move(plain)));
  static constexpr std::pair<uint32_t, std::string_view> kEscapes[] = {
      {'"', "\\\""}, {'\\', "\\\\"}, {'\n', "\\n"}, {'\r', "\\r"}, {'\t', "\\t"}, {'\b', "\\b"}, {'\f', "\\f"}};
  for (const auto& [character, spelled] : kEscapes) {
    if (contains(set, character)) ways.push_back(rules.bytes(spelled));
  }
  return rules.choice(std::move(ways));
}

Result<Pattern> parse_pattern(Rules& rules, std::string_view pattern) {
  rules.pattern_bytes += pattern.size();
  if (rules.pattern_bytes > kMaxPatternBytes) {
    return fail(ErrorCode::kUsage, "the patterns have more than {} bytes in all; fewer or shorter ones would work",
                kMaxPatternBytes);
  }
  return Parser(rules, pattern).parse();
}

}  // namespace hearth::grammar
