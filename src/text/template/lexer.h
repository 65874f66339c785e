// Cuts the source of a chat template into tokens; all whitespace control happens here.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "text/template/value.h"

namespace hearth::jinja {

enum class TokenKind {
  kData,
  kVariableBegin,
  kVariableEnd,
  kBlockBegin,
  kBlockEnd,
  kName,
  kString,
  kInteger,
  kFloat,
  kOperator,
  kEnd,
};

struct Token {
  TokenKind kind;
  int line;
  std::string text;  // data, name, unescaped string, operator
  Int integer = 0;
  double real = 0;
};

// The settings are those of Hugging Face's environment: trim_blocks, lstrip_blocks, no keep_trailing_newline. The last
// token is kEnd. Errors name the line.
Result<std::vector<Token>> tokenize(std::string_view source);

// "template line 3: <message>" as an Error.
Error template_error(ErrorCode code, int line, std::string_view message);

}  // namespace hearth::jinja
