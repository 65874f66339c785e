// Reads grammars in GBNF, the notation of llama.cpp.
#pragma once

#include <string_view>

#include "base/result.h"
#include "text/grammar/rules.h"

namespace hearth::grammar {

// kUsage with the line where reading stopped.
Result<Rules> gbnf_rules(std::string_view text);

}  // namespace hearth::grammar
