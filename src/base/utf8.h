// UTF-8 in both directions; tolerant of invalid bytes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace hearth {

inline constexpr std::string_view kReplacementCharacter = "\xEF\xBF\xBD";  // U+FFFD

// One step through a byte string. When `valid` is false, `length` bytes (at least one) form a maximal invalid
// subsequence in the sense of Unicode 3.9 (table 3-8), which a lossy reader replaces by one U+FFFD.
struct Utf8Char {
  uint32_t code_point = 0;
  size_t length = 0;
  bool valid = false;
};

// Reads the character at `pos`, which must be inside the text.
Utf8Char read_utf8(std::string_view text, size_t pos);

// `code_point` must be a scalar value.
void append_utf8(std::string& out, uint32_t code_point);

// The length of the longest prefix that is ASCII, and of that which is valid UTF-8.
size_t ascii_prefix(std::string_view text);
size_t valid_utf8_prefix(std::string_view text);

// How many bytes at the end (0 to 3) are the beginning of a character that more bytes could complete.
size_t incomplete_utf8_tail(std::string_view text);

// The text with every maximal invalid subsequence replaced by U+FFFD.
std::string lossy_utf8(std::string_view text);

}  // namespace hearth
