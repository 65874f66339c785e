// Recognizes files that are not GGUF, so that the error can say what they are and what would help.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <string_view>

namespace hearth {

// For bytes that do not begin with "GGUF": "this is a ...; what would work".
std::string describe_foreign_file(std::span<const std::byte> file);

// Text from a file, safe to print: control bytes and bytes outside ASCII as \xNN, cut after 80 characters.
std::string printable(std::string_view text);

}  // namespace hearth
