#include "text/template/text_functions.h"

#include <algorithm>

#include "text/template/search.h"

namespace hearth::jinja {
namespace {

constexpr char32_t kSigma = 0x3A3;
constexpr char32_t kFinalSigma = 0x3C2;

// Unicode's final sigma rule: a cased letter before, none after, ignorable characters in between.
bool is_final_sigma(std::string_view text, size_t begin, size_t end) {
  bool before = false;
  for (size_t pos = begin; pos > 0;) {
    pos = previous_code_point(text, pos);
    size_t next = pos;
    const uint16_t mask = char_class(next_code_point(text, next));
    if ((mask & kCaseIgnorable) != 0) continue;
    before = (mask & kCased) != 0;
    break;
  }
  if (!before) return false;
  for (size_t pos = end; pos < text.size();) {
    const uint16_t mask = char_class(next_code_point(text, pos));
    if ((mask & kCaseIgnorable) == 0) return (mask & kCased) == 0;
  }
  return true;
}

// Calls kind_of(code point) for each code point and maps it; every piece keeps its origin.
template <class KindOf>
Value map_code_points(Interpreter& interpreter, const Text& text, KindOf kind_of) {
  if (!interpreter.charge(text.bytes.size() * kClassWork)) return {};
  TextBuilder builder;
  size_t hint = 0;
  std::string mapped;
  for (size_t pos = 0; pos < text.bytes.size();) {
    const size_t begin = pos;
    const char32_t c = next_code_point(text.bytes, pos);
    const std::optional<CaseKind> kind = kind_of(c);
    mapped.clear();
    if (!kind) {
      mapped.assign(text.bytes, begin, pos - begin);
    } else if (c == kSigma && *kind == CaseKind::kLower && is_final_sigma(text.bytes, begin, pos)) {
      append_utf8(mapped, kFinalSigma);
    } else if (c == 0xFFFD) {
      mapped.assign(text.bytes, begin, pos - begin);  // perhaps a stray byte
    } else {
      append_case_mapped(mapped, c, *kind);
    }
    builder.append(mapped, trusted_at(text, begin, hint));
  }
  return interpreter.text(std::move(builder), text.markup);
}

}  // namespace

Value strip(Interpreter& interpreter, const Text& text, Side side, std::optional<std::string_view> set) {
  std::vector<char32_t> wanted;
  if (set) {
    if (!interpreter.charge(set->size() * kClassWork)) return {};
    for (size_t pos = 0; pos < set->size();) wanted.push_back(next_code_point(*set, pos));
    std::sort(wanted.begin(), wanted.end());
  }
  const auto strips = [&](char32_t c) {
    return set ? std::binary_search(wanted.begin(), wanted.end(), c) : is_space(c);
  };
  const std::string& bytes = text.bytes;
  size_t begin = 0;
  size_t end = bytes.size();
  while (side != Side::kRight && begin < end) {
    size_t next = begin;
    if (!strips(next_code_point(bytes, next))) break;
    begin = next;
  }
  while (side != Side::kLeft && begin < end) {
    const size_t previous = previous_code_point(bytes, end);
    size_t next = previous;
    if (!strips(next_code_point(bytes, next))) break;
    end = previous;
  }
  interpreter.charge((bytes.size() - (end - begin)) * kClassWork);
  return interpreter.substring(text, begin, end);
}

Value map_case(Interpreter& interpreter, const Text& text, CaseKind kind) {
  return map_code_points(interpreter, text, [&](char32_t) { return std::optional(kind); });
}

Value capitalize(Interpreter& interpreter, const Text& text) {
  bool first = true;
  return map_code_points(interpreter, text, [&](char32_t) {
    return std::optional(std::exchange(first, false) ? CaseKind::kTitle : CaseKind::kLower);
  });
}

Value title(Interpreter& interpreter, const Text& text) {
  bool after_cased = false;
  return map_code_points(interpreter, text, [&](char32_t c) {
    const bool after = std::exchange(after_cased, (char_class(c) & kCased) != 0);
    return std::optional(after ? CaseKind::kLower : CaseKind::kTitle);
  });
}

Value replace(Interpreter& interpreter, const Text& text, const Text& from, const Text& to, Int count) {
  if (!interpreter.charge(text.bytes.size() + from.bytes.size())) return {};
  TextBuilder builder;
  size_t begin = 0;
  size_t pos = 0;
  const auto put = [&](size_t cut) {
    builder.append_range(text, begin, cut);
    builder.append(to);
    --count;
    return interpreter.check_growth(to.bytes.size(), builder.size_bytes());
  };
  if (from.bytes.empty()) {
    while (count != 0) {
      if (!put(pos)) break;
      begin = pos;
      if (pos >= text.bytes.size()) break;
      pos += code_point_bytes(text.bytes, pos);
    }
  } else {
    const Search search(from.bytes, Search::kForwards);
    while (count != 0 && (pos = search.find(text.bytes, pos)) != std::string::npos) {
      if (!put(pos)) break;
      pos += from.bytes.size();
      begin = pos;
    }
  }
  builder.append_range(text, begin, text.bytes.size());
  return interpreter.text(std::move(builder), text.markup);
}

std::vector<Value> split(Interpreter& interpreter, const Text& text, std::optional<std::string_view> separator,
                         Int limit, bool from_right) {
  if (!interpreter.charge(separator ? text.bytes.size() + separator->size() : text.bytes.size() * kClassWork))
    return {};
  const std::string& bytes = text.bytes;
  std::vector<std::pair<size_t, size_t>> parts;
  if (limit < 0) limit = static_cast<Int>(bytes.size()) + 1;
  if (separator) {
    if (separator->empty()) {
      interpreter.fail("split() with an empty separator");
      return {};
    }
    if (from_right) {
      size_t end = bytes.size();
      const Search search(*separator, Search::kBackwards);
      while (limit-- > 0) {
        const size_t cut = search.rfind(bytes, end);
        if (cut == std::string::npos) break;
        parts.emplace_back(cut + separator->size(), end);
        end = cut;
      }
      parts.emplace_back(0, end);
    } else {
      size_t begin = 0;
      const Search search(*separator, Search::kForwards);
      while (limit-- > 0) {
        const size_t cut = search.find(bytes, begin);
        if (cut == std::string::npos) break;
        parts.emplace_back(begin, cut);
        begin = cut + separator->size();
      }
      parts.emplace_back(begin, bytes.size());
    }
  } else if (from_right) {
    size_t end = bytes.size();
    const auto space_before = [&](size_t pos) {
      size_t at = previous_code_point(bytes, pos);
      return is_space(next_code_point(bytes, at));
    };
    while (true) {
      while (end > 0 && space_before(end)) end = previous_code_point(bytes, end);
      if (end == 0) break;
      size_t begin = end;
      if (limit-- > 0) {
        while (begin > 0 && !space_before(begin)) begin = previous_code_point(bytes, begin);
      } else {
        begin = 0;
      }
      parts.emplace_back(begin, end);
      end = begin;
    }
  } else {
    size_t begin = 0;
    const auto space_at = [&](size_t pos) { return is_space(next_code_point(bytes, pos)); };
    while (true) {
      while (begin < bytes.size() && space_at(begin)) begin += code_point_bytes(bytes, begin);
      if (begin >= bytes.size()) break;
      size_t end = begin;
      if (limit-- > 0) {
        while (end < bytes.size() && !space_at(end)) end += code_point_bytes(bytes, end);
      } else {
        end = bytes.size();
      }
      parts.emplace_back(begin, end);
      begin = end;
    }
  }
  if (from_right) std::reverse(parts.begin(), parts.end());
  std::vector<Value> out;
  for (const auto& [begin, end] : parts) {
    if (!interpreter.charge()) break;
    out.push_back(interpreter.substring(text, begin, end));
  }
  return out;
}

std::vector<Value> split_lines(Interpreter& interpreter, const Text& text, bool keep_ends) {
  interpreter.charge(text.bytes.size());
  std::vector<Value> out;
  size_t begin = 0;
  for (size_t pos = 0; pos < text.bytes.size() && interpreter.ok();) {
    const size_t end = pos;
    const char32_t c = next_code_point(text.bytes, pos);
    const bool line_end =
        (c >= '\n' && c <= '\r') || (c >= 0x1C && c <= 0x1E) || c == 0x85 || c == 0x2028 || c == 0x2029;
    if (!line_end) continue;
    if (c == '\r' && pos < text.bytes.size() && text.bytes[pos] == '\n') ++pos;
    out.push_back(interpreter.substring(text, begin, keep_ends ? pos : end));
    begin = pos;
  }
  if (begin < text.bytes.size()) out.push_back(interpreter.substring(text, begin, text.bytes.size()));
  return out;
}

Value pad(Interpreter& interpreter, const Text& text, Int width, std::string_view fill, Side text_side) {
  if (!interpreter.charge(text.bytes.size())) return {};
  const Int missing = width - Int{count_code_points(text.bytes)};
  TextBuilder builder;
  if (missing <= 0) {
    builder.append(text);
    return interpreter.text(std::move(builder), text.markup);
  }
  if (missing > (Int{1} << 60)) return interpreter.fail("a text padded to {} characters", width);
  if (!interpreter.check_size(missing * static_cast<Int>(fill.size()))) return {};
  // str.center puts the odd one on the left if the width is odd.
  const Int left = text_side == Side::kLeft    ? Int{0}
                   : text_side == Side::kRight ? missing
                                               : missing / 2 + (missing & width & 1);
  for (Int i = 0; i < left; ++i) builder.append(fill, true);
  builder.append(text);
  for (Int i = left; i < missing; ++i) builder.append(fill, true);
  return interpreter.text(std::move(builder), text.markup);
}

Value escape(Interpreter& interpreter, const Value& value) {
  const TextPtr text = interpreter.str(value);
  if (text->markup) return Value(text);
  // Adding to an empty markup text escapes.
  return interpreter.binary(Operator::kAdd, interpreter.text(TextBuilder(), true), Value(text));
}

bool is_case(Interpreter& interpreter, std::string_view text, CharClass wanted) {
  if (!interpreter.charge(text.size() * kClassWork)) return false;
  bool found = false;
  for (size_t pos = 0; pos < text.size();) {
    const uint16_t mask = char_class(next_code_point(text, pos));
    if ((mask & kCased & ~wanted) != 0) return false;
    found |= (mask & wanted) != 0;
  }
  return found;
}

}  // namespace hearth::jinja
