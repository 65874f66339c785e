#include "text/template/lexer.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <optional>

#include "text/template/unicode.h"

namespace hearth::jinja {
namespace {

bool is_digit(char c) { return c >= '0' && c <= '9'; }

// Python's unicode-escape decoding of what stands between the quotes. Empty if an escape is cut short or too large.
std::optional<std::string> unescape(std::string_view raw) {
  std::string out;
  for (size_t pos = 0; pos < raw.size();) {
    if (raw[pos] != '\\' || pos + 1 == raw.size()) {
      out += raw[pos++];
      continue;
    }
    const char kind = raw[pos + 1];
    pos += 2;
    const auto hex = [&](size_t digits) {
      uint32_t value = 0;
      if (raw.size() - pos < digits) return false;
      const char* begin = raw.data() + pos;
      const auto [end, error] = std::from_chars(begin, begin + digits, value, 16);
      if (error != std::errc() || end != begin + digits || value > 0x10FFFF) return false;
      pos += digits;
      append_utf8(out, value);
      return true;
    };
    switch (kind) {
      case '\n':
        break;
      case '\\':
        out += '\\';
        break;
      case '\'':
        out += '\'';
        break;
      case '"':
        out += '"';
        break;
      case 'a':
        out += '\a';
        break;
      case 'b':
        out += '\b';
        break;
      case 'f':
        out += '\f';
        break;
      case 'n':
        out += '\n';
        break;
      case 'r':
        out += '\r';
        break;
      case 't':
        out += '\t';
        break;
      case 'v':
        out += '\v';
        break;
      case 'x':
        if (!hex(2)) return std::nullopt;
        break;
      case 'u':
        if (!hex(4)) return std::nullopt;
        break;
      case 'U':
        if (!hex(8)) return std::nullopt;
        break;
      case 'N':
        return std::nullopt;
      default:
        if (kind >= '0' && kind <= '7') {
          uint32_t value = static_cast<uint32_t>(kind - '0');
          for (int i = 0; i < 2 && pos < raw.size() && raw[pos] >= '0' && raw[pos] <= '7'; ++i) {
            value = value * 8 + static_cast<uint32_t>(raw[pos++] - '0');
          }
          append_utf8(out, value);
        } else if (static_cast<uint8_t>(kind) >= 0x80) {
          // Jinja turns the text to ASCII with backslash escapes first, so the backslash meets another one.
          --pos;
          const uint32_t c = next_code_point(raw, pos);
          out += c < 0x100     ? fmt::format("\\x{:02x}", c)
                 : c < 0x10000 ? fmt::format("\\u{:04x}", c)
                               : fmt::format("\\U{:08x}", c);
        } else {
          out += '\\';
          out += kind;
        }
    }
  }
  return out;
}

class Lexer {
 public:
  explicit Lexer(std::string_view source) {
    source_.reserve(source.size());
    for (size_t i = 0; i < source.size(); ++i) {
      if (source[i] != '\r') {
        source_ += source[i];
      } else {
        source_ += '\n';
        if (i + 1 < source.size() && source[i + 1] == '\n') ++i;
      }
    }
    if (source_.ends_with('\n')) source_.pop_back();
  }

  Result<std::vector<Token>> run() {
    while (pos_ < source_.size() && !error_) lex_data();
    if (error_) return std::move(*error_);
    push(TokenKind::kEnd, "end of template");
    return std::move(tokens_);
  }

 private:
  std::string_view rest() const { return std::string_view(source_).substr(pos_); }
  bool at(std::string_view text) const { return rest().starts_with(text); }

  void advance(size_t end) {
    line_ += static_cast<int>(std::count(source_.begin() + static_cast<std::ptrdiff_t>(pos_),
                                         source_.begin() + static_cast<std::ptrdiff_t>(end), '\n'));
    pos_ = end;
  }
  size_t skip_spaces(size_t from) const {
    while (from < source_.size()) {
      size_t next = from;
      if (!is_space(next_code_point(source_, next))) break;
      from = next;
    }
    return from;
  }
  Token& push(TokenKind kind, std::string text) {
    tokens_.push_back({kind, line_, std::move(text)});
    return tokens_.back();
  }
  void fail(std::string_view message) {
    if (!error_) error_ = template_error(ErrorCode::kInvalidInput, line_, message);
  }

  // If `from` (just behind "{%") begins "- raw -%}", the position behind it.
  std::optional<size_t> raw_tag(size_t from, std::string_view word, bool trim_newline) const {
    if (from < source_.size() && (source_[from] == '-' || source_[from] == '+')) ++from;
    from = skip_spaces(from);
    if (source_.compare(from, word.size(), word) != 0) return std::nullopt;
    from = skip_spaces(from + word.size());
    if (source_.compare(from, 3, "-%}") == 0) return skip_spaces(from + 3);
    if (trim_newline && source_.compare(from, 3, "+%}") == 0) return from + 3;
    if (source_.compare(from, 2, "%}") != 0) return std::nullopt;
    from += 2;
    return trim_newline && from < source_.size() && source_[from] == '\n' ? from + 1 : from;
  }

  // The end of the data in front of a tag at `tag`, whose sign is at tag + 2.
  size_t strip_before(size_t begin, size_t tag, bool is_variable) const {
    const char sign = tag + 2 < source_.size() ? source_[tag + 2] : '\0';
    if (sign == '-') {
      size_t end = tag;
      while (end > begin) {
        const size_t previous = previous_code_point(source_, end);
        size_t next = previous;
        if (previous < begin || !is_space(next_code_point(source_, next))) break;
        end = previous;
      }
      return end;
    }
    if (sign == '+' || is_variable) return tag;
    const size_t newline = std::string_view(source_).substr(begin, tag - begin).rfind('\n');
    if (newline == std::string_view::npos && !line_starting_) return tag;
    const size_t line_begin = newline == std::string_view::npos ? begin : begin + newline + 1;
    return skip_spaces(line_begin) >= tag ? line_begin : tag;
  }

  void push_data(size_t begin, size_t end) {
    if (end > begin) push(TokenKind::kData, source_.substr(begin, end - begin));
  }

  void lex_data() {
    const size_t begin = pos_;
    size_t tag = begin;
    for (;; ++tag) {
      tag = source_.find('{', tag);
      if (tag == std::string::npos || tag + 1 >= source_.size()) {
        push_data(begin, source_.size());
        pos_ = source_.size();
        return;
      }
      const char second = source_[tag + 1];
      if (second == '{' || second == '%' || second == '#') break;
    }
    const char kind = source_[tag + 1];
    push_data(begin, strip_before(begin, tag, kind == '{'));
    advance(tag);
    const bool has_sign = tag + 2 < source_.size() && (source_[tag + 2] == '-' || source_[tag + 2] == '+');
    if (kind == '#') {
      lex_comment(tag + 2 + (has_sign ? 1 : 0));
    } else if (kind == '%') {
      if (const auto end = raw_tag(tag + 2, "raw", false)) {
        lex_raw(*end);
      } else {
        push(TokenKind::kBlockBegin, "{%");
        advance(tag + 2 + (has_sign ? 1 : 0));
        lex_code(false);
      }
    } else {
      push(TokenKind::kVariableBegin, "{{");
      advance(tag + 2 + (has_sign ? 1 : 0));
      lex_code(true);
    }
    line_starting_ = pos_ > 0 && source_[pos_ - 1] == '\n';
  }

  void lex_comment(size_t from) {
    if (from >= source_.size()) return advance(from);  // Jinja does not mind either
    const size_t close = source_.find("#}", from);
    if (close == std::string::npos) return fail("the comment that begins with {# is never closed with #}");
    size_t end = close + 2;
    const char sign = close > from ? source_[close - 1] : '\0';
    if (sign == '-') {
      end = skip_spaces(end);
    } else if (sign != '+' && end < source_.size() && source_[end] == '\n') {
      ++end;
    }
    advance(end);
  }

  void lex_raw(size_t from) {
    advance(from);
    if (pos_ >= source_.size()) return;  // Jinja does not mind either
    line_starting_ = source_[pos_ - 1] == '\n';
    for (size_t tag = pos_;; ++tag) {
      tag = source_.find("{%", tag);
      if (tag == std::string::npos) return fail("{% raw %} is never closed with {% endraw %}");
      const auto end = raw_tag(tag + 2, "endraw", true);
      if (!end) continue;
      push_data(pos_, strip_before(pos_, tag, false));
      advance(*end);
      return;
    }
  }

  // Tokens up to and with the closing }} or %}.
  void lex_code(bool variable) {
    std::string open;  // brackets
    const std::string_view close = variable ? "}}" : "%}";
    const int first_line = line_;
    while (!error_) {
      if (pos_ >= source_.size()) {
        line_ = first_line;
        return fail(fmt::format("the tag that begins with {} is never closed with {}", variable ? "{{" : "{%", close));
      }
      if (open.empty()) {
        const bool minus = source_[pos_] == '-' && source_.compare(pos_ + 1, 2, close) == 0;
        const bool plus = !variable && source_[pos_] == '+' && source_.compare(pos_ + 1, 2, close) == 0;
        if (minus || plus || at(close)) {
          push(variable ? TokenKind::kVariableEnd : TokenKind::kBlockEnd, std::string(close));
          size_t end = pos_ + (minus || plus ? 3 : 2);
          if (minus) {
            end = skip_spaces(end);
          } else if (!plus && !variable && end < source_.size() && source_[end] == '\n') {
            ++end;
          }
          return advance(end);
        }
      }
      const size_t after_spaces = skip_spaces(pos_);
      if (after_spaces > pos_) {
        advance(after_spaces);
      } else if (is_digit(source_[pos_])) {
        lex_number();
      } else if (source_[pos_] == '\'' || source_[pos_] == '"') {
        lex_string();
      } else if (!lex_name()) {
        lex_operator(open);
      }
    }
  }

  // digits, each group after the first led by one underscore; returns the end
  size_t digits_end(size_t from) const {
    while (from < source_.size() && (is_digit(source_[from]) || (source_[from] == '_' && from + 1 < source_.size() &&
                                                                 is_digit(source_[from + 1])))) {
      ++from;
    }
    return from;
  }

  void lex_number() {
    const auto get = [&](size_t i) { return i < source_.size() ? source_[i] : '\0'; };
    size_t end = digits_end(pos_);
    bool is_float = false;
    if (pos_ == 0 || source_[pos_ - 1] != '.') {
      if (get(end) == '.' && is_digit(get(end + 1))) {
        is_float = true;
        end = digits_end(end + 1);
      }
      if (get(end) == 'e' || get(end) == 'E') {
        const size_t digits = end + (get(end + 1) == '+' || get(end + 1) == '-' ? 2 : 1);
        if (is_digit(get(digits))) {
          is_float = true;
          end = digits_end(digits);
        }
      }
    }
    if (is_float) {
      std::string text = source_.substr(pos_, end - pos_);
      std::erase(text, '_');
      push(TokenKind::kFloat, text).real = std::strtod(text.c_str(), nullptr);
      return advance(end);
    }
    int base = 10;
    const char marker = static_cast<char>(get(pos_ + 1) | 0x20);
    if (source_[pos_] == '0' && (marker == 'x' || marker == 'o' || marker == 'b')) {
      base = marker == 'x' ? 16 : marker == 'o' ? 8 : 2;
      const auto valid = [&](char c) {
        const int value = is_digit(c) ? c - '0' : (c | 0x20) >= 'a' && (c | 0x20) <= 'f' ? (c | 0x20) - 'a' + 10 : 99;
        return value < base;
      };
      size_t scan = pos_ + 2;
      while (valid(get(scan)) || (get(scan) == '_' && valid(get(scan + 1)))) ++scan;
      if (scan > pos_ + 2) {
        end = scan;
      } else {
        base = 10;
        end = pos_ + 1;
      }
    } else if (source_[pos_] == '0') {
      end = pos_ + 1;
      while (get(end) == '0' || (get(end) == '_' && get(end + 1) == '0')) ++end;
    }
    std::string text = source_.substr(pos_, end - pos_);
    std::erase(text, '_');
    Int value = 0;
    for (char c : text.substr(base == 10 ? 0 : 2)) {
      const int digit = is_digit(c) ? c - '0' : (c | 0x20) - 'a' + 10;
      if (__builtin_mul_overflow(value, Int{base}, &value) || __builtin_add_overflow(value, Int{digit}, &value)) {
        return fail(fmt::format("the integer {} does not fit 128 bits", text));
      }
    }
    push(TokenKind::kInteger, text).integer = value;
    advance(end);
  }

  void lex_string() {
    const char quote = source_[pos_];
    size_t end = pos_ + 1;
    while (end < source_.size() && source_[end] != quote) end += source_[end] == '\\' ? 2 : 1;
    if (end >= source_.size()) return fail(fmt::format("a string that begins with {} is never closed", quote));
    auto text = unescape(std::string_view(source_).substr(pos_ + 1, end - pos_ - 1));
    if (!text) return fail("a string has a broken escape; \\xHH, \\uHHHH, \\UHHHHHHHH and octal are supported");
    push(TokenKind::kString, std::move(*text));
    advance(end + 1);
  }

  bool lex_name() {
    size_t end = pos_;
    while (end < source_.size()) {
      size_t next = end;
      const uint16_t needed = end == pos_ ? kIdentifierStart : kIdentifierPart;
      if ((char_class(next_code_point(source_, next)) & needed) == 0) break;
      end = next;
    }
    if (end == pos_) return false;
    push(TokenKind::kName, source_.substr(pos_, end - pos_));
    advance(end);
    return true;
  }

  void lex_operator(std::string& open) {
    constexpr std::string_view kOperators[] = {"//", "**", "==", "!=", ">=", "<=", "+", "-", "/", "*", "%", "~", "[",
                                               "]",  "(",  ")",  "{",  "}",  ">",  "<", "=", ".", ":", "|", ",", ";"};
    const auto* found = std::find_if(std::begin(kOperators), std::end(kOperators), [&](auto op) { return at(op); });
    if (found == std::end(kOperators)) {
      return fail(
          fmt::format("unexpected character {}", string_repr(rest().substr(0, code_point_bytes(source_, pos_)))));
    }
    const char c = found->front();
    if (c == '(' || c == '[' || c == '{') {
      open += c == '(' ? ')' : c == '[' ? ']' : '}';
    } else if (c == ')' || c == ']' || c == '}') {
      if (open.empty()) return fail(fmt::format("unexpected '{}'", c));
      if (open.back() != c) return fail(fmt::format("unexpected '{}', expected '{}'", c, open.back()));
      open.pop_back();
    }
    push(TokenKind::kOperator, std::string(*found));
    advance(pos_ + found->size());
  }

  std::string source_;
  size_t pos_ = 0;
  int line_ = 1;
  bool line_starting_ = true;
  std::vector<Token> tokens_;
  std::optional<Error> error_;
};

}  // namespace

Error template_error(ErrorCode code, int line, std::string_view message) {
  return {code, fmt::format("chat template line {}: {}", line, message)};
}

Result<std::vector<Token>> tokenize(std::string_view source) { return Lexer(source).run(); }

}  // namespace hearth::jinja
