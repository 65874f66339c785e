// Calls of tools in the form of a model's dialect, as rules: names are those of the tools, arguments follow the schema
// of each.
#pragma once

#include <functional>
#include <string_view>

#include "base/result.h"
#include "text/grammar/rules.h"
#include "text/grammar/token_trie.h"

namespace hearth::grammar {

// `request` as GrammarSource::kToolCalls describes it. kUnsupported: a dialect that has no grammar here.
Result<Rules> tool_call_rules(std::string_view request, std::string_view dialect, const TokenTrie& tokens,
                              std::function<bool()> wanted = {});

}  // namespace hearth::grammar
