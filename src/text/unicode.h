// The few code point classes that tokenizers need, and NFC; tolerant of invalid bytes.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace hearth {

// The property White_Space.
bool is_white_space(uint32_t code_point);

// Normalization form C of every valid part; invalid bytes stay as they are. Linear up to the sorting of combining
// marks (n log n). `scratch` holds the result when it differs from the input; the view is to one of the two.
std::string_view to_nfc(std::string_view text, std::string& scratch);

}  // namespace hearth
