// Code points as Python's str sees them: lenient UTF-8, character classes and case mappings.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace hearth::jinja {

enum CharClass : uint16_t {
  kAlpha = 1 << 0,
  kDecimal = 1 << 1,
  kDigit = 1 << 2,
  kNumeric = 1 << 3,
  kLower = 1 << 4,
  kUpper = 1 << 5,
  kTitlecase = 1 << 6,
  kSpace = 1 << 7,
  kPrintable = 1 << 8,
  kCaseIgnorable = 1 << 9,
  kIdentifierStart = 1 << 10,
  kIdentifierPart = 1 << 11,
  kCased = kLower | kUpper | kTitlecase,
};

enum class CaseKind : uint8_t { kUpper, kLower, kTitle };

// The classes of a code point as a mask of CharClass.
uint16_t char_class(char32_t c);
inline bool is_space(char32_t c) { return (char_class(c) & kSpace) != 0; }

// Bytes of the code point that begins at text[pos]. A byte that begins no valid sequence counts as a code point of its
// own, so that any string of bytes has a length and can be cut without losing anything.
size_t code_point_bytes(std::string_view text, size_t pos);

// The code point at text[pos], U+FFFD for a stray byte; moves pos behind it.
char32_t next_code_point(std::string_view text, size_t& pos);

// The start of the code point that ends just before text[pos]; pos > 0.
size_t previous_code_point(std::string_view text, size_t pos);

void append_utf8(std::string& out, char32_t c);

// Appends the full (up to three code points) mapping of one code point; the final sigma rule is the caller's.
void append_case_mapped(std::string& out, char32_t c, CaseKind kind);

int64_t count_code_points(std::string_view text);

}  // namespace hearth::jinja
