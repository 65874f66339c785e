// Reads grammars in GBNF, the notation of llama.cpp.
#pragma once

#include <string_view>

#include "base/result.h"
#include "text/grammar/rules.h"

namespace hearth::grammar {

// kUsage with the line where reading stopped.
Result<Rules> gbnf_rules(std::string_view text);
// Adds the rules of the text to `rules` and gives its root. They see none of the others.
Result<ExprId> add_gbnf(Rules& rules, std::string_view text);

}  // namespace hearth::grammar
