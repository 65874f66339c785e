#include "text/grammar/schema_merge.h"

#include <algorithm>
#include <cmath>
#include <utility>

namespace hearth::grammar {
namespace {

constexpr size_t kMaxProduct = 64;  // of the branches of two anyOf

Json both(const Json& a, const Json& b) {
  if (a == b || b == Json(true)) return a;
  if (a == Json(true)) return b;
  return Json{{"allOf", Json::array({a, b})}};
}

const Json* find(const Json& object, const char* key) {
  if (!object.is_object()) return nullptr;
  const auto it = object.find(key);
  return it == object.end() ? nullptr : &*it;
}

bool array_has(const Json& array, const Json& value) { return std::ranges::find(array, value) != array.end(); }

// A property that one side does not name falls under what it says of others.
Json side(const Json& schema, const std::string& name) {
  if (const Json* properties = find(schema, "properties"); properties && properties->is_object()) {
    if (const auto it = properties->find(name); it != properties->end()) return *it;
  }
  const Json* others = find(schema, "additionalProperties");
  return others ? *others : Json(true);
}

void merge_properties(const Json& a, const Json& b, Json& out) {
  Json properties = Json::object();
  for (const Json* s : {&a, &b}) {
    const Json* named = find(*s, "properties");
    if (!named || !named->is_object()) continue;
    for (const auto& [name, schema] : named->items()) {
      if (!properties.contains(name)) properties[name] = both(side(a, name), side(b, name));
    }
  }
  if (!properties.empty()) out["properties"] = std::move(properties);
  const Json* x = find(a, "additionalProperties");
  const Json* y = find(b, "additionalProperties");
  if (x && y) {
    out["additionalProperties"] = *x == Json(false) || *y == Json(false) ? Json(false) : both(*x, *y);
  } else if (x || y) {
    out["additionalProperties"] = x ? *x : *y;
  }
}

std::vector<std::string> common_types(const std::vector<std::string>& a, const std::vector<std::string>& b) {
  std::vector<std::string> out;
  for (const std::string& type : a) {
    if (std::ranges::find(b, type) != b.end()) {
      out.push_back(type);
    } else if (type == "integer" && std::ranges::find(b, "number") != b.end()) {
      out.push_back(type);
    } else if (type == "number" && std::ranges::find(b, "integer") != b.end()) {
      out.push_back("integer");
    }
  }
  return out;
}

// The values that a schema names one by one.
std::vector<Json> values_of(const Json& schema) {
  if (const Json* value = find(schema, "const")) return {*value};
  const Json* values = find(schema, "enum");
  if (values && values->is_array()) return {values->begin(), values->end()};
  return {};
}

bool requires_property(const Json& schema, const std::string& name) {
  const Json* required = find(schema, "required");
  return required && required->is_array() && array_has(*required, Json(name));
}

// Values of `a` never match `b`: they lack, or have, a property.
bool never_matches(const Json& a, const Json& b) {
  const Json* ours = find(a, "properties");
  const Json* theirs = find(b, "properties");
  if (const Json* required = find(b, "required"); required && required->is_array()) {
    const Json* others = find(a, "additionalProperties");
    const bool open = find(a, "patternProperties") || (others ? *others != Json(false) : ours == nullptr);
    for (const Json& name : *required) {
      if (!name.is_string() || open) continue;
      const bool can_have = (ours && ours->is_object() && ours->contains(name.get<std::string>())) ||
                            requires_property(a, name.get<std::string>());
      if (!can_have) return true;
    }
  }
  if (const Json* required = find(a, "required"); required && required->is_array()) {
    const Json* others = find(b, "additionalProperties");
    for (const Json& name : *required) {
      if (!name.is_string()) continue;
      const auto key = name.get<std::string>();
      const bool known = theirs && theirs->is_object() && theirs->contains(key);
      if (!known && others && *others == Json(false) && !find(b, "patternProperties")) return true;
      if (known && ours && ours->is_object() && ours->contains(key) && surely_disjoint((*ours)[key], (*theirs)[key])) {
        return true;
      }
    }
  }
  return false;
}

}  // namespace

bool is_assertion(std::string_view keyword) {
  static constexpr std::string_view kKeywords[] = {"type",
                                                   "properties",
                                                   "required",
                                                   "additionalProperties",
                                                   "patternProperties",
                                                   "minProperties",
                                                   "maxProperties",
                                                   "items",
                                                   "prefixItems",
                                                   "additionalItems",
                                                   "minItems",
                                                   "maxItems",
                                                   "enum",
                                                   "const",
                                                   "anyOf",
                                                   "oneOf",
                                                   "allOf",
                                                   "$ref",
                                                   "minLength",
                                                   "maxLength",
                                                   "pattern",
                                                   "format",
                                                   "minimum",
                                                   "maximum",
                                                   "exclusiveMinimum",
                                                   "exclusiveMaximum",
                                                   "nullable",
                                                   "not",
                                                   "if",
                                                   "then",
                                                   "else",
                                                   "dependentRequired",
                                                   "dependentSchemas",
                                                   "dependencies",
                                                   "contains",
                                                   "multipleOf",
                                                   "uniqueItems",
                                                   "propertyNames"};
  return std::ranges::find(kKeywords, keyword) != std::end(kKeywords);
}

std::vector<std::string> types_of(const Json& schema) {
  std::vector<std::string> types;
  const Json* type = find(schema, "type");
  if (!type) return types;
  if (type->is_string()) types.push_back(type->get<std::string>());
  if (type->is_array()) {
    for (const Json& t : *type) {
      if (t.is_string()) types.push_back(t.get<std::string>());
    }
  }
  return types;
}

bool has_type(const Json& value, std::string_view type) {
  if (type == "object") return value.is_object();
  if (type == "array") return value.is_array();
  if (type == "string") return value.is_string();
  if (type == "boolean") return value.is_boolean();
  if (type == "null") return value.is_null();
  if (type == "number") return value.is_number();
  if (type == "integer") {
    return value.is_number_integer() ||
           (value.is_number_float() && value.get<double>() == std::floor(value.get<double>()));
  }
  return false;
}

int64_t length_of(std::string_view text) {
  return std::ranges::count_if(text, [](char c) { return (static_cast<uint8_t>(c) & 0xC0) != 0x80; });
}

Result<bool> allows_value(const Json& schema, const Json& value) {
  const auto types = types_of(schema);
  if (!types.empty() && std::ranges::none_of(types, [&](const std::string& t) { return has_type(value, t); })) {
    const Json* nullable = find(schema, "nullable");
    if (!(value.is_null() && nullable && *nullable == Json(true))) return false;
  }
  for (const auto& [key, limit] : schema.items()) {
    if (key == "const" && limit != value) return false;
    if (key == "enum" && limit.is_array() && !array_has(limit, value)) return false;
    if (!is_assertion(key) || key == "type" || key == "const" || key == "enum" || key == "nullable") continue;
    if (value.is_number() && limit.is_number()) {
      const double v = value.get<double>(), l = limit.get<double>();
      if ((key == "minimum" && v < l) || (key == "maximum" && v > l) || (key == "exclusiveMinimum" && v <= l) ||
          (key == "exclusiveMaximum" && v >= l)) {
        return false;
      }
    }
    if (value.is_string() && limit.is_number_integer()) {
      const int64_t length = length_of(value.get_ref<const std::string&>());
      if ((key == "minLength" && length < limit.get<int64_t>()) ||
          (key == "maxLength" && length > limit.get<int64_t>())) {
        return false;
      }
    }
    const bool decided =
        key == "minimum" || key == "maximum" || key == "exclusiveMinimum" || key == "exclusiveMaximum" ||
        key == "minLength" || key == "maxLength" || key == "format" || (key == "pattern" && !value.is_string()) ||
        (value.is_primitive() && (key == "properties" || key == "required" || key == "items" ||
                                  key == "additionalProperties" || key == "minItems" || key == "maxItems"));
    if (!decided) return fail(ErrorCode::kUsage, "{} beside enum or const cannot be checked", key);
  }
  return true;
}

Result<Json> merge_schemas(const Json& a, const Json& b) {
  if (a == Json(false) || b == Json(false)) return Json(false);
  if (a == Json(true) || a == b) return b;
  if (b == Json(true)) return a;
  if (!a.is_object() || !b.is_object()) return fail(ErrorCode::kUsage, "a schema is an object or a boolean");
  Json out = a;
  for (const auto& [key, value] : b.items()) {
    if (key == "properties" || key == "additionalProperties") continue;
    const auto it = out.find(key);
    if (it == out.end()) {
      out[key] = value;
      continue;
    }
    if (*it == value || !is_assertion(key)) continue;
    Json& mine = *it;
    if (key == "type") {
      const auto types = common_types(types_of(a), types_of(b));
      if (types.empty()) return Json(false);
      mine = types;
    } else if (key == "required" || key == "allOf") {
      if (!mine.is_array() || !value.is_array()) return fail(ErrorCode::kUsage, "{} must be an array", key);
      for (const Json& v : value) {
        if (!array_has(mine, v)) mine.push_back(v);
      }
    } else if (key == "enum") {
      if (!mine.is_array() || !value.is_array()) return fail(ErrorCode::kUsage, "{} must be an array", key);
      Json common = Json::array();
      for (const Json& v : mine) {
        if (array_has(value, v)) common.push_back(v);
      }
      if (common.empty()) return Json(false);
      mine = std::move(common);
    } else if (key == "const") {
      return Json(false);
    } else if (key.starts_with("min") || key == "exclusiveMinimum") {
      if (!mine.is_number() || !value.is_number()) return fail(ErrorCode::kUsage, "{} must be a number", key);
      if (mine < value) mine = value;
    } else if (key.starts_with("max") || key == "exclusiveMaximum") {
      if (!mine.is_number() || !value.is_number()) return fail(ErrorCode::kUsage, "{} must be a number", key);
      if (mine > value) mine = value;
    } else if (key == "items" && !mine.is_array() && !value.is_array()) {
      mine = both(mine, value);
    } else if (key == "nullable") {
      mine = mine == Json(true) && value == Json(true);
    } else if (key == "anyOf" || key == "oneOf") {
      if (!mine.is_array() || !value.is_array()) return fail(ErrorCode::kUsage, "{} must be an array", key);
      if (mine.size() * value.size() > kMaxProduct) {
        return fail(ErrorCode::kUsage, "two {} of {} and {} branches together are too many", key, mine.size(),
                    value.size());
      }
      Json product = Json::array();
      for (const Json& x : mine) {
        for (const Json& y : value) product.push_back(both(x, y));
      }
      mine = std::move(product);
    } else {
      return fail(ErrorCode::kUsage, "two different {} cannot be joined", key);
    }
  }
  if (a.contains("properties") || b.contains("properties") || b.contains("additionalProperties")) {
    if ((a.contains("patternProperties") || b.contains("patternProperties")) &&
        a.value("patternProperties", Json()) != b.value("patternProperties", Json())) {
      return fail(ErrorCode::kUsage, "patternProperties cannot be joined with other properties");
    }
    merge_properties(a, b, out);
  }
  return out;
}

bool surely_disjoint(const Json& a, const Json& b) {
  if (a == Json(false) || b == Json(false)) return true;
  if (!a.is_object() || !b.is_object()) return false;
  const bool nullable =
      a.value("nullable", Json(false)) == Json(true) || b.value("nullable", Json(false)) == Json(true);
  const auto values_a = values_of(a), values_b = values_of(b);
  if (!nullable && !values_a.empty() && !values_b.empty()) {
    return std::ranges::none_of(values_a,
                                [&](const Json& v) { return std::ranges::find(values_b, v) != values_b.end(); });
  }
  const auto types_a = types_of(a), types_b = types_of(b);
  if (!nullable && !values_a.empty() && !types_b.empty()) {
    return std::ranges::none_of(values_a, [&](const Json& v) {
      return std::ranges::any_of(types_b, [&](const std::string& t) { return has_type(v, t); });
    });
  }
  if (!nullable && !values_b.empty() && !types_a.empty()) {
    return std::ranges::none_of(values_b, [&](const Json& v) {
      return std::ranges::any_of(types_a, [&](const std::string& t) { return has_type(v, t); });
    });
  }
  if (types_a.empty() || types_b.empty()) return false;
  const auto common = common_types(types_a, types_b);
  if (common.empty()) return !nullable;
  if (common != std::vector<std::string>{"object"} || nullable) return false;
  return never_matches(a, b) && never_matches(b, a);
}

}  // namespace hearth::grammar
