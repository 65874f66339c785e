// What several JSON Schemas say together, as one schema; and whether two can hold for the same value.
#pragma once

#include <nlohmann/json.hpp>
#include <string_view>

#include "base/result.h"

namespace hearth::grammar {

using Json = nlohmann::ordered_json;

// Keywords that say something about values; all others are notes.
bool is_assertion(std::string_view keyword);

// Both are objects or booleans without "$ref". kUsage names the keyword that cannot be joined.
Result<Json> merge_schemas(const Json& a, const Json& b);

// Is a value of the schema, as this grammar would write it, never valid under the other, and the other way round? False
// when that is not sure. Both without "$ref".
bool surely_disjoint(const Json& a, const Json& b);

// Does a value (of an enum) satisfy the plain keywords of the schema? kUsage: some keyword cannot be decided.
Result<bool> allows_value(const Json& schema, const Json& value);

// The values of "type" as a list; empty: none is named.
std::vector<std::string> types_of(const Json& schema);
bool has_type(const Json& value, std::string_view type);

// Characters, not bytes.
int64_t length_of(std::string_view text);

}  // namespace hearth::grammar
