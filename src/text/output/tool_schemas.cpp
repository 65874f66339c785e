#include "text/output/tool_schemas.h"

#include <nlohmann/json.hpp>

namespace hearth {
namespace {

using Json = nlohmann::json;

constexpr int kMaxDepth = 8;  // of references and alternatives

const Json* find(const Json& object, const char* key) {
  if (!object.is_object()) return nullptr;
  const auto it = object.find(key);
  return it == object.end() ? nullptr : &*it;
}

JsonTypes named_type(const Json& name) {
  if (name == "string") return kStringType;
  if (name == "number" || name == "integer") return kNumberType;
  if (name == "boolean") return kBooleanType;
  if (name == "null") return kNullType;
  if (name == "array") return kArrayType;
  if (name == "object") return kObjectType;
  return 0;
}

JsonTypes type_of(const Json& value) {
  if (value.is_string()) return kStringType;
  if (value.is_number()) return kNumberType;
  if (value.is_boolean()) return kBooleanType;
  if (value.is_null()) return kNullType;
  return value.is_array() ? kArrayType : kObjectType;
}

// "#/$defs/Name" in `root`.
const Json* resolve(const Json& root, const std::string& reference) {
  if (!reference.starts_with("#/")) return nullptr;
  const Json* at = &root;
  for (size_t begin = 2; begin <= reference.size() && at != nullptr;) {
    const size_t end = std::min(reference.find('/', begin), reference.size());
    at = find(*at, reference.substr(begin, end - begin).c_str());
    begin = end + 1;
  }
  return at;
}

JsonTypes types_of(const Json& schema, const Json& root, int depth) {
  if (depth == kMaxDepth || !schema.is_object()) return 0;
  JsonTypes types = 0;
  if (const Json* type = find(schema, "type")) {
    if (type->is_array()) {
      for (const Json& name : *type) types |= named_type(name);
    } else {
      types |= named_type(*type);
    }
  }
  if (const Json* reference = find(schema, "$ref"); types == 0 && reference != nullptr && reference->is_string()) {
    if (const Json* target = resolve(root, reference->get<std::string>())) types |= types_of(*target, root, depth + 1);
  }
  if (const Json* constant = find(schema, "const"); types == 0 && constant != nullptr) types |= type_of(*constant);
  if (const Json* values = find(schema, "enum"); types == 0 && values != nullptr && values->is_array()) {
    for (const Json& value : *values) types |= type_of(value);
  }
  for (const char* key : {"anyOf", "oneOf", "allOf"}) {
    const Json* alternatives = find(schema, key);
    if (types != 0 || alternatives == nullptr || !alternatives->is_array()) continue;
    for (const Json& alternative : *alternatives) {
      const JsonTypes those = types_of(alternative, root, depth + 1);
      // One that says nothing allows everything; in allOf it just says nothing.
      types |= those == 0 && std::string_view(key) != "allOf" ? kAnyType : those;
    }
  }
  if (const Json* nullable = find(schema, "nullable"); types != 0 && nullable != nullptr && *nullable == true) {
    types |= kNullType;
  }
  return types;
}

}  // namespace

ToolSchemas::ToolSchemas(std::string_view tools_json) {
  const Json tools = Json::parse(tools_json, nullptr, false);
  any_ = !tools_json.empty() && !(tools.is_array() && tools.empty()) && !tools.is_null();
  if (!tools.is_array()) return;
  for (const Json& tool : tools) {
    const Json* function = find(tool, "function");
    if (function == nullptr) function = &tool;
    const Json* name = find(*function, "name");
    if (name == nullptr || !name->is_string()) continue;
    auto& parameters = tools_[name->get<std::string>()];
    const Json* schema = find(*function, "parameters");
    if (schema == nullptr) schema = find(*function, "input_schema");
    if (schema == nullptr) continue;
    const Json* properties = find(*schema, "properties");
    if (properties == nullptr || !properties->is_object()) continue;
    for (const auto& [key, property] : properties->items()) parameters[key] = types_of(property, *schema, 0);
  }
}

JsonTypes ToolSchemas::types(const std::string& tool, const std::string& parameter) const {
  const auto parameters = tools_.find(tool);
  if (parameters == tools_.end()) return 0;
  const auto types = parameters->second.find(parameter);
  return types == parameters->second.end() ? JsonTypes{0} : types->second;
}

}  // namespace hearth
