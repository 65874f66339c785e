// Python's str operations on texts that know their origin; shared by methods and filters.
#pragma once

#include <optional>
#include <string_view>
#include <vector>

#include "text/template/interpreter.h"
#include "text/template/unicode.h"

namespace hearth::jinja {

enum class Side { kLeft, kRight, kBoth };

// The class of a character is looked up in a table, which takes about as long as copying this many.
inline constexpr size_t kClassWork = 8;

// Without `set`: whitespace.
Value strip(Interpreter& interpreter, const Text& text, Side side, std::optional<std::string_view> set);
Value map_case(Interpreter& interpreter, const Text& text, CaseKind kind);
Value capitalize(Interpreter& interpreter, const Text& text);
// str.title(): a letter is a title letter unless it follows a cased one.
Value title(Interpreter& interpreter, const Text& text);
Value replace(Interpreter& interpreter, const Text& text, const Text& from, const Text& to, Int count);
// At most `limit` cuts (negative: all), from the left or the right; no separator means runs of whitespace.
std::vector<Value> split(Interpreter& interpreter, const Text& text, std::optional<std::string_view> separator,
                         Int limit, bool from_right);
std::vector<Value> split_lines(Interpreter& interpreter, const Text& text, bool keep_ends);
Value pad(Interpreter& interpreter, const Text& text, Int width, std::string_view fill, Side text_side);
Value escape(Interpreter& interpreter, const Value& value);
// str.islower() for kLower, str.isupper() for kUpper.
bool is_case(Interpreter& interpreter, std::string_view text, CharClass wanted);

}  // namespace hearth::jinja
