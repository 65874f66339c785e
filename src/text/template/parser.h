// Turns the source of a chat template into its syntax tree.
#pragma once

#include <string_view>

#include "base/result.h"
#include "text/template/ast.h"

namespace hearth::jinja {

// Nesting of expressions and blocks beyond which a template is refused.
inline constexpr int kMaxParseDepth = 200;
inline constexpr int kMaxExpressionHeight = 400;

// Refuses unknown tags, filters and tests with their line and the list of what exists. As in Jinja, an unknown filter
// directly inside an `if` is an error only once it is reached.
Result<Template> parse_template(std::string_view source);

}  // namespace hearth::jinja
