#include "text/grammar/json_schema.h"

#include <algorithm>
#include <cmath>
#include <deque>
#include <map>
#include <optional>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <utility>

#include "base/utf8.h"
#include "text/grammar/automaton.h"
#include "text/grammar/number_range.h"
#include "text/grammar/pattern.h"
#include "text/grammar/schema_merge.h"

namespace hearth::grammar {
namespace {

constexpr int kMaxNesting = 200;   // of brackets, and so of schemas
constexpr int kMaxMembers = 4096;  // of one object: they are looked up one by one
constexpr int64_t kMaxSchemas = 300'000;
constexpr int kMaxReferences = 32;  // "$ref" to "$ref"
constexpr size_t kMaxPrefixItems = 256;
constexpr int64_t kMaxCount = 1'000'000'000;

// Looks at a JSON text without keeping it.
class Limits final : public nlohmann::json_sax<Json> {
 public:
  std::string problem;

  bool null() override { return true; }
  bool boolean(bool) override { return true; }
  bool number_integer(number_integer_t) override { return true; }
  bool number_unsigned(number_unsigned_t) override { return true; }
  bool number_float(number_float_t, const string_t&) override { return true; }
  bool string(string_t&) override { return true; }
  bool binary(binary_t&) override { return true; }
  bool start_object(size_t) override { return open(); }
  bool key(string_t&) override {
    if (++members_.back() <= kMaxMembers) return true;
    problem = fmt::format("it has an object of more than {} members", kMaxMembers);
    return false;
  }
  bool end_object() override { return close(); }
  bool start_array(size_t) override { return open(); }
  bool end_array() override { return close(); }
  bool parse_error(size_t position, const std::string&, const nlohmann::detail::exception&) override {
    problem = fmt::format("it is not JSON at byte {}", position);
    return false;
  }

 private:
  bool open() {
    members_.push_back(0);
    if (members_.size() <= kMaxNesting) return true;
    problem = fmt::format("it is nested more than {} levels deep", kMaxNesting);
    return false;
  }
  bool close() {
    members_.pop_back();
    return true;
  }
  std::vector<int> members_;
};

std::string_view format_pattern(std::string_view format) {
#define HEARTH_DATE                                                                                      \
  "[0-9]{4}-((0[13578]|1[02])-(0[1-9]|[12][0-9]|3[01])|(0[469]|11)-(0[1-9]|[12][0-9]|30)|" /* no leap */ \
  "02-(0[1-9]|1[0-9]|2[0-8]))"
#define HEARTH_TIME "([01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9](\\.[0-9]{1,6})?(Z|[+-]([01][0-9]|2[0-3]):[0-5][0-9])"
  static const std::map<std::string_view, std::string_view> kPatterns = {
      {"date", "^" HEARTH_DATE "$"},
      {"time", "^" HEARTH_TIME "$"},
      {"date-time", "^" HEARTH_DATE "T" HEARTH_TIME "$"},
      {"duration", "^P(T[0-9]{1,6}[HMS]|[0-9]{1,6}[YMWD](T[0-9]{1,6}[HMS])?)$"},
      {"uuid", "^[0-9a-fA-F]{8}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{12}$"},
      {"email",
       "^[A-Za-z0-9_+-]{1,64}(\\.[A-Za-z0-9_+-]{1,64})*@[A-Za-z0-9]{1,63}(-[A-Za-z0-9]{1,63})*"
       "(\\.[A-Za-z0-9]{1,63}(-[A-Za-z0-9]{1,63})*)+$"},
      {"hostname", "^[A-Za-z0-9]{1,63}(-[A-Za-z0-9]{1,63})*(\\.[A-Za-z0-9]{1,63}(-[A-Za-z0-9]{1,63})*)*$"},
      {"ipv4", "^((25[0-5]|2[0-4][0-9]|1?[0-9]?[0-9])\\.){3}(25[0-5]|2[0-4][0-9]|1?[0-9]?[0-9])$"},
      {"ipv6", "^([0-9a-fA-F]{1,4}:){7}[0-9a-fA-F]{1,4}$"},
      {"uri", "^[a-zA-Z][a-zA-Z0-9+.-]{0,20}:[A-Za-z0-9/?#@!$&'()*+,;=:._~%-]+$"},
  };
#undef HEARTH_DATE
#undef HEARTH_TIME
  const auto it = kPatterns.find(format);
  return it == kPatterns.end() ? std::string_view() : it->second;
}

std::string json_text(std::string_view text) { return Json(text).dump(); }

const Json* find(const Json& object, std::string_view key) {
  if (!object.is_object()) return nullptr;
  const auto it = object.find(std::string(key));
  return it == object.end() ? nullptr : &*it;
}

bool has_any(const Json& schema, std::initializer_list<std::string_view> keys) {
  return std::ranges::any_of(keys, [&](std::string_view key) { return find(schema, key) != nullptr; });
}

}  // namespace

Result<Json> parse_json(std::string_view text, std::string_view what) {
  Limits limits;
  if (!Json::sax_parse(text, &limits)) return fail(ErrorCode::kUsage, "read {}: {}", what, limits.problem);
  Json value = Json::parse(text, nullptr, false);
  if (value.is_discarded()) return fail(ErrorCode::kUsage, "read {}: it is not JSON", what);
  return value;
}

// What all documents of one grammar share.
struct SchemaCompiler::Library {
  explicit Library(Rules& r) : rules(r) {}

  Rules& rules;
  int32_t space_rule = -1, value_rule = -1;
  ExprId json_character = -1;

  ExprId space() {
    if (space_rule < 0) {
      // At most one line end with an indentation: an answer does not stay in white space.
      const ExprId blanks = rules.repeat(rules.chars({{' ', ' '}}), 0, 40);
      const ExprId tabs = rules.repeat(rules.chars({{'\t', '\t'}}), 1, 12);
      space_rule = rules.add_rule(
          "space", rules.optional(rules.choice(
                       {rules.bytes(" "), rules.sequence({rules.bytes("\n"), rules.choice({blanks, tabs})})})));
    }
    return rules.rule(space_rule);
  }
  ExprId colon() { return rules.sequence({rules.bytes(":"), rules.optional(rules.bytes(" "))}); }
  ExprId comma() { return rules.sequence({rules.bytes(","), space()}); }

  // Characters, and the quotation mark behind them.
  ExprId string_rest(int32_t min, int32_t max) {
    if (json_character < 0) json_character = json_char(rules);
    return rules.sequence({rules.counted(json_character, min, max), rules.bytes("\"")});
  }
  ExprId string(int32_t min, int32_t max) { return rules.sequence({rules.bytes("\""), string_rest(min, max)}); }

  ExprId object(ExprId fields) {
    return rules.sequence({rules.bytes("{"), space(), fields, space(), rules.bytes("}")});
  }

  ExprId array(ExprId elements) {
    return rules.sequence({rules.bytes("["), space(), elements, space(), rules.bytes("]")});
  }

  // min to max of the same kind. `item` is cheap to repeat.
  ExprId list(ExprId item, int32_t min, int32_t max) {
    if (max == 0) return rules.bytes("");
    const ExprId more =
        rules.repeat(rules.sequence({comma(), item}), std::max(0, min - 1), max == kUnbounded ? kUnbounded : max - 1);
    const ExprId all = rules.sequence({item, more});
    return min == 0 ? rules.optional(all) : all;
  }

  ExprId any_value() {
    if (value_rule < 0) {
      value_rule = rules.add_rule("json");
      const ExprId value = rules.rule(value_rule);
      const ExprId pair = rules.sequence({string(0, kUnbounded), colon(), value});
      rules.rules[static_cast<size_t>(value_rule)].body = rules.choice(
          {object(rules.fields(comma(), {}, {}, pair)), array(list(value, 0, kUnbounded)), string(0, kUnbounded),
           number_in(rules, {}), rules.bytes("true"), rules.bytes("false"), rules.bytes("null")});
    }
    return rules.rule(value_rule);
  }
};

// One schema and what its references reach.
class SchemaCompiler::Document {
 public:
  Document(Library& library, const Json& root, std::string_view where, const SchemaOptions& options)
      : lib_(library), rules_(library.rules), root_(root), where_(where), options_(options) {}

  Result<ExprId> compile() {
    HEARTH_ASSIGN(ExprId expr, schema(root_, "#", 0));
    HEARTH_TRY(finish());
    return expr;
  }

  Result<std::vector<Property>> properties() {
    HEARTH_ASSIGN(Json flat, flattened(root_, "#"));
    std::vector<Property> out;
    if (!flat.is_object()) return out;
    HEARTH_TRY(check_keywords(flat, "#"));
    HEARTH_ASSIGN(auto required, required_names(flat, "#"));
    const Json* named = find(flat, "properties");
    if (named && named->is_object()) {
      for (const auto& [name, value] : named->items()) {
        const std::string path = "#/properties/" + name;
        Property property{.name = name, .required = required.erase(name) > 0};
        HEARTH_ASSIGN(Json flat_value, flattened(value, path));
        property.text = may_be_text(flat_value, 0);
        if (!property.text) {
          HEARTH_ASSIGN(property.json, schema(value, path, 1));
        } else if (const Json* choices = find(flat_value, "enum"); choices && choices->is_array()) {
          for (const Json& choice : *choices) {
            if (choice.is_string()) property.choices.push_back(choice.get<std::string>());
          }
        } else if (const Json* only = find(flat_value, "const"); only && only->is_string()) {
          property.choices.push_back(only->get<std::string>());
        } else if (!options_.lenient && has_any(flat_value, {"pattern", "minLength", "maxLength"})) {
          return error(path, "pattern, minLength and maxLength", "cannot hold for text that is not quoted");
        }
        out.push_back(std::move(property));
      }
    }
    for (const std::string& name : required_order_) {
      if (required.contains(name)) out.push_back({.name = name, .required = true, .text = true});
    }
    HEARTH_TRY(finish());
    return out;
  }

 private:
  template <class... Args>
  Error error(std::string_view path, std::string_view keyword, fmt::format_string<Args...> format,
              Args&&... args) const {
    return fail(ErrorCode::kUsage, "{} at {}: {} {}", where_, path, keyword,
                fmt::format(format, std::forward<Args>(args)...));
  }

  // Compiles what references have asked for; a queue, so that long chains need no stack.
  Result<void> finish() {
    for (size_t i = 0; i < wanted_.size(); ++i) {
      const auto [rule, target, path] = wanted_[i];
      HEARTH_ASSIGN(ExprId body, schema(*target, path, 0));
      rules_.rules[static_cast<size_t>(rule)].body = body;
    }
    return {};
  }

  Result<const Json*> resolve(const Json& reference, const std::string& path) {
    if (!reference.is_string()) return error(path, "$ref", "must be a string");
    const auto& text = reference.get_ref<const std::string&>();
    const auto known = targets_.find(text);
    if (known != targets_.end()) return known->second;
    if (!text.starts_with('#')) return error(path, "$ref", "'{}' is outside of the schema; only #/... works", text);
    std::string pointer;
    for (size_t i = 1; i < text.size(); ++i) {
      if (text[i] == '%' && i + 2 < text.size() && std::isxdigit(static_cast<uint8_t>(text[i + 1])) &&
          std::isxdigit(static_cast<uint8_t>(text[i + 2]))) {
        pointer.push_back(static_cast<char>(std::stoi(text.substr(i + 1, 2), nullptr, 16)));
        i += 2;
      } else {
        pointer.push_back(text[i]);
      }
    }
    const Json* target = nullptr;
    try {
      const Json::json_pointer parsed(pointer);
      if (root_.contains(parsed)) target = &root_.at(parsed);
    } catch (const nlohmann::json::exception&) {
      return error(path, "$ref", "'{}' is no JSON pointer", text);
    }
    if (!target) return error(path, "$ref", "'{}' names nothing in the schema", text);
    targets_[text] = target;
    return target;
  }

  Result<void> count_schema(const std::string& path) {
    if (++schemas_ > kMaxSchemas) return error(path, "the schema", "is too large once it is written out");
    if (schemas_ % 64 == 0 && rules_.cancelled()) return nobody_waits();
    return {};
  }

  // The schema with "$ref" and "allOf" at its top resolved.
  Result<Json> flattened(const Json& schema, const std::string& path, int depth = 0) {
    if (depth > kMaxReferences) return error(path, "$ref", "leads to itself, or through too many others");
    HEARTH_TRY(count_schema(path));
    if (!schema.is_object() || !has_any(schema, {"$ref", "allOf"})) return schema;
    Json rest = Json::object();
    for (const auto& [key, value] : schema.items()) {
      if (key != "$ref" && key != "allOf") rest[key] = value;
    }
    std::vector<const Json*> parts;
    if (const Json* reference = find(schema, "$ref")) {
      HEARTH_ASSIGN(const Json* target, resolve(*reference, path));
      parts.push_back(target);
    }
    if (const Json* all = find(schema, "allOf")) {
      if (!all->is_array()) return error(path, "allOf", "must be an array");
      for (const Json& part : *all) parts.push_back(&part);
    }
    for (const Json* part : parts) {
      HEARTH_ASSIGN(Json flat, flattened(*part, path, depth + 1));
      auto merged = merge_schemas(rest, flat);
      if (!merged) return error(path, "allOf or $ref:", "{}", merged.error().message);
      // What was joined may have brought an allOf.
      HEARTH_ASSIGN(rest, flattened(*merged, path, depth + 1));
    }
    return rest;
  }

  Result<void> check_keywords(const Json& schema, const std::string& path) const {
    if (options_.lenient) return {};
    for (const auto& [key, value] : schema.items()) {
      static constexpr std::string_view kUnsupported[] = {
          "not",        "if",          "dependentRequired", "dependentSchemas", "dependencies", "contains",
          "multipleOf", "uniqueItems", "propertyNames",     "$dynamicRef",      "$recursiveRef"};
      if (std::ranges::find(kUnsupported, key) == std::end(kUnsupported)) continue;
      if (key == "uniqueItems" && value == Json(false)) continue;
      if (key == "multipleOf" && value == Json(1) && types_of(schema) == std::vector<std::string>{"integer"}) continue;
      return error(path, key, "is not supported");
    }
    return {};
  }

  Result<ExprId> schema(const Json& schema, const std::string& path, int depth) {
    if (depth > kMaxNesting) return error(path, "the schema", "is nested more than {} levels deep", kMaxNesting);
    HEARTH_TRY(count_schema(path));
    if (schema.is_boolean()) return schema.get<bool>() ? lib_.any_value() : rules_.choice({});
    if (!schema.is_object()) return error(path, "a schema", "must be an object or a boolean");
    HEARTH_TRY(check_keywords(schema, path));
    if (const Json* reference = find(schema, "$ref")) {
      const auto others = std::ranges::count_if(
          schema.items(), [](const auto& item) { return is_assertion(item.key()) && item.key() != "$ref"; });
      if (others == 0) return reference_to(*reference, path);
    }
    // One part and notes around it, as generators of schemas write references: it may be recursive.
    if (const Json* all = find(schema, "allOf"); all && all->is_array() && all->size() == 1) {
      const auto others = std::ranges::count_if(
          schema.items(), [](const auto& item) { return is_assertion(item.key()) && item.key() != "allOf"; });
      if (others == 0) return this->schema((*all)[0], path + "/allOf/0", depth + 1);
    }
    if (has_any(schema, {"$ref", "allOf"})) {
      HEARTH_ASSIGN(Json flat, flattened(schema, path));
      return this->schema(flat, path, depth + 1);
    }
    for (const char* key : {"anyOf", "oneOf"}) {
      if (find(schema, key)) return branches(schema, key, path, depth);
    }
    if (has_any(schema, {"enum", "const"})) return values(schema, path);
    return typed(schema, path, depth);
  }

  Result<ExprId> reference_to(const Json& reference, const std::string& path) {
    HEARTH_ASSIGN(const Json* target, resolve(reference, path));
    const auto [it, inserted] = rules_of_.try_emplace(target, -1);
    if (inserted) {
      const auto name = reference.get<std::string>();
      it->second = rules_.add_rule(name);
      wanted_.push_back({it->second, target, name});
    }
    return rules_.rule(it->second);
  }

  Result<ExprId> branches(const Json& schema, const char* key, const std::string& path, int depth) {
    Json rest = schema;
    const Json list = rest[key];
    rest.erase(key);
    if (!list.is_array() || list.empty()) return error(path, key, "must be an array that is not empty");
    const bool alone = std::ranges::none_of(rest.items(), [](const auto& item) { return is_assertion(item.key()); });
    std::vector<ExprId> ways;
    std::vector<Json> flat;
    const bool exclusive = std::string_view(key) == "oneOf" && !options_.lenient && list.size() > 1;
    for (size_t i = 0; i < list.size(); ++i) {
      const std::string branch_path = fmt::format("{}/{}/{}", path, key, i);
      if (exclusive) {
        HEARTH_ASSIGN(Json branch, flattened(list[i], branch_path));
        if (!alone) {
          auto merged = merge_schemas(rest, branch);
          if (!merged) return error(branch_path, "with what is beside it:", "{}", merged.error().message);
          branch = std::move(*merged);
        }
        for (const Json& other : flat) {
          if (surely_disjoint(other, branch)) continue;
          return error(branch_path, key,
                       "may hold for the same value as another branch; types, a required constant or anyOf would work");
        }
        flat.push_back(std::move(branch));
      }
      if (alone) {
        HEARTH_ASSIGN(ExprId way, this->schema(list[i], branch_path, depth + 1));
        ways.push_back(way);
        continue;
      }
      HEARTH_ASSIGN(Json branch, flattened(list[i], branch_path));
      auto merged = merge_schemas(rest, branch);
      if (!merged) return error(branch_path, "with what is beside it:", "{}", merged.error().message);
      HEARTH_ASSIGN(ExprId way, this->schema(*merged, branch_path, depth + 1));
      ways.push_back(way);
    }
    return rules_.choice(std::move(ways));
  }

  // A value as it stands.
  ExprId literal(const Json& value) {
    if (value.is_array()) {
      std::vector<ExprId> parts;
      for (const Json& v : value) {
        if (!parts.empty()) parts.push_back(lib_.comma());
        parts.push_back(literal(v));
      }
      return parts.empty() ? rules_.bytes("[]") : lib_.array(rules_.sequence(std::move(parts)));
    }
    if (value.is_object()) {
      std::vector<ExprId> parts;
      for (const auto& [key, v] : value.items()) {
        if (!parts.empty()) parts.push_back(lib_.comma());
        parts.push_back(rules_.sequence({rules_.bytes(json_text(key)), lib_.colon(), literal(v)}));
      }
      return parts.empty() ? rules_.bytes("{}") : lib_.object(rules_.sequence(std::move(parts)));
    }
    return rules_.bytes(value.dump());
  }

  Result<ExprId> values(const Json& schema, const std::string& path) {
    std::vector<Json> candidates;
    if (const Json* only = find(schema, "const")) {
      candidates.push_back(*only);
    } else {
      const Json* list = find(schema, "enum");
      if (!list->is_array()) return error(path, "enum", "must be an array");
      candidates.assign(list->begin(), list->end());
    }
    std::vector<ExprId> ways;
    for (const Json& value : candidates) {
      auto allowed = allows_value(without_enum(schema), value);
      if (!allowed && !options_.lenient) return error(path, "enum:", "{}", allowed.error().message);
      if (!allowed || *allowed) ways.push_back(literal(value));
    }
    return rules_.choice(std::move(ways));
  }

  static Json without_enum(const Json& schema) {
    Json rest = Json::object();
    for (const auto& [key, value] : schema.items()) {
      if (key == "enum" && schema.contains("const") && value.is_array()) rest[key] = value;
      if (key != "enum" && key != "const" && is_assertion(key)) rest[key] = value;
    }
    return rest;
  }

  Result<ExprId> typed(const Json& schema, const std::string& path, int depth) {
    std::vector<std::string> types = types_of(schema);
    if (const Json* type = find(schema, "type"); type && types.empty()) {
      return error(path, "type", "must be a string or an array of strings that is not empty");
    }
    if (types.empty()) {
      // Without a type all keywords of one kind leave the other kinds free: one kind of value is enough.
      if (has_any(schema, {"properties", "required", "additionalProperties", "patternProperties", "minProperties",
                           "maxProperties"})) {
        types.push_back("object");
      }
      if (has_any(schema, {"items", "prefixItems", "minItems", "maxItems"})) types.push_back("array");
      if (has_any(schema, {"pattern", "minLength", "maxLength", "format"})) types.push_back("string");
      if (has_any(schema, {"minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum"})) types.push_back("number");
      if (types.empty()) return lib_.any_value();
    }
    if (const Json* nullable = find(schema, "nullable"); nullable && *nullable == Json(true)) types.push_back("null");
    std::vector<ExprId> ways;
    for (const std::string& type : types) {
      if (type == "integer" && std::ranges::find(types, "number") != types.end()) continue;
      Result<ExprId> way = error(path, "type", "'{}' is unknown", type);
      if (type == "object") {
        way = object(schema, path, depth);
      } else if (type == "array") {
        way = array(schema, path, depth);
      } else if (type == "string") {
        way = string(schema, path);
      } else if (type == "number" || type == "integer") {
        way = number(schema, path, type == "integer");
      } else if (type == "boolean") {
        way = rules_.choice({rules_.bytes("true"), rules_.bytes("false")});
      } else if (type == "null") {
        way = rules_.bytes("null");
      }
      if (!way) return std::move(way).error();
      ways.push_back(*way);
    }
    return rules_.choice(std::move(ways));
  }

  // A count such as minItems; `missing` when it is not there.
  Result<int64_t> count(const Json& schema, const char* key, const std::string& path, int64_t missing) const {
    const Json* value = find(schema, key);
    if (!value) return missing;
    const double number = value->is_number() ? value->get<double>() : -1;
    if (!(number >= 0) || number != std::floor(number)) return error(path, key, "must be a whole number from 0 on");
    if (number > static_cast<double>(kMaxCount)) {
      if (missing == kUnbounded) return int64_t{kUnbounded};
      return error(path, key, "is more than {}", kMaxCount);
    }
    return static_cast<int64_t>(number);
  }

  Result<std::unordered_set<std::string>> required_names(const Json& schema, const std::string& path) {
    std::unordered_set<std::string> names;
    required_order_.clear();
    const Json* required = find(schema, "required");
    if (!required) return names;
    if (required->is_boolean() && options_.lenient) return names;
    if (!required->is_array()) return error(path, "required", "must be an array of names");
    for (const Json& name : *required) {
      if (!name.is_string()) return error(path, "required", "must be an array of names");
      if (names.insert(name.get<std::string>()).second) required_order_.push_back(name.get<std::string>());
    }
    return names;
  }

  ExprId field(const std::string& name, ExprId value) {
    return rules_.sequence({rules_.bytes(json_text(name)), lib_.colon(), value});
  }

  Result<ExprId> object(const Json& schema, const std::string& path, int depth) {
    HEARTH_ASSIGN(auto required, required_names(schema, path));
    const std::vector<std::string> required_order = required_order_;
    HEARTH_ASSIGN(int64_t least, count(schema, "minProperties", path, 0));
    HEARTH_ASSIGN(int64_t most, count(schema, "maxProperties", path, kUnbounded));
    const Json* named = find(schema, "properties");
    if (named && !named->is_object()) return error(path, "properties", "must be an object");
    const Json* patterns = find(schema, "patternProperties");
    if (patterns && !patterns->is_object()) return error(path, "patternProperties", "must be an object");
    if (patterns && patterns->empty()) patterns = nullptr;
    const Json* others = find(schema, "additionalProperties");

    struct Field {
      std::string name;
      ExprId expr;
      bool required;
    };
    std::vector<Field> fields;
    if (named) {
      for (const auto& [name, value] : named->items()) {
        HEARTH_ASSIGN(ExprId expr, this->schema(value, path + "/properties/" + name, depth + 1));
        fields.push_back({name, field(name, expr), required.contains(name)});
        required.erase(name);
      }
    }
    // Names that are required and not described.
    for (const std::string& name : required_order) {
      if (!required.contains(name)) continue;
      if (patterns) return error(path, "patternProperties", "beside required names that properties lacks");
      ExprId value = lib_.any_value();
      if (others) {
        HEARTH_ASSIGN(value, this->schema(*others, path + "/additionalProperties", depth + 1));
      }
      fields.push_back({name, field(name, value), true});
    }

    ExprId rest = -1;
    if (patterns) {
      HEARTH_ASSIGN(rest, pattern_fields(*patterns, named, others, path, depth));
    } else if (others ? *others != Json(false) : fields.empty()) {
      ExprId value = lib_.any_value();
      if (others) {
        HEARTH_ASSIGN(value, this->schema(*others, path + "/additionalProperties", depth + 1));
      }
      std::vector<std::string> names;
      for (const Field& f : fields) names.push_back(f.name);
      rest = rules_.sequence({names.empty() ? lib_.string(0, kUnbounded) : other_name(names), lib_.colon(), value});
    }

    if (fields.empty() && rest >= 0 && (least > 0 || most != kUnbounded)) {
      // A name may come twice: then there are fewer.
      if (least > 1 && !options_.lenient)
        return error(path, "minProperties", "of more than 1 beside names that are free");
      if (most != kUnbounded && most < least) return rules_.choice({});
      const ExprId pair = rules_.rule(rules_.add_rule(path, rest));
      return lib_.object(lib_.list(pair, static_cast<int32_t>(least), static_cast<int32_t>(most)));
    }
    // Bounds on the number of properties: fewer are optional.
    auto must = static_cast<int64_t>(std::ranges::count_if(fields, [](const Field& f) { return f.required; }));
    for (Field& f : fields) {
      if (must >= least) break;
      if (!f.required) ++must;
      f.required = true;
    }
    if (must < least && !options_.lenient) return error(path, "minProperties", "is more than properties has");
    if (most != kUnbounded) {
      if (must > most) return rules_.choice({});
      std::erase_if(fields, [&, free = most - must](const Field& f) mutable { return !f.required && free-- <= 0; });
      rest = -1;
    }
    std::vector<ExprId> exprs;
    std::vector<bool> needed;
    for (const Field& f : fields) {
      exprs.push_back(f.expr);
      needed.push_back(f.required);
    }
    if (exprs.empty() && rest < 0) return rules_.bytes("{}");
    return lib_.object(rules_.fields(lib_.comma(), exprs, needed, rest));
  }

  Result<ExprId> pattern_fields(const Json& patterns, const Json* named, const Json* others, const std::string& path,
                                int depth) {
    const std::string here = path + "/patternProperties";
    if (patterns.size() > 1) return error(path, "patternProperties", "with more than one pattern is not supported");
    if (others && *others != Json(false) && !options_.lenient) {
      return error(path, "patternProperties", "beside additionalProperties other than false is not supported");
    }
    if (named && !named->empty() && !options_.lenient) {
      return error(path, "patternProperties", "beside properties is not supported");
    }
    const auto item = patterns.items().begin();
    auto pattern = parse_pattern(rules_, item.key());
    if (!pattern) return error(here, "pattern:", "{}", pattern.error().message);
    HEARTH_ASSIGN(ExprId value, schema(item.value(), here + "/" + item.key(), depth + 1));
    return rules_.sequence({rules_.bytes("\""), pattern->expr, rules_.bytes("\""), lib_.colon(), value});
  }

  // A string that is none of `names`, and is not spelled with an escape as long as it could become one.
  ExprId other_name(const std::vector<std::string>& names) {
    struct Node {
      std::map<uint32_t, int32_t> next;
      bool ends = false;
    };
    std::vector<Node> trie(1);
    for (const std::string& name : names) {
      int32_t at = 0;
      for (size_t pos = 0; pos < name.size();) {
        const Utf8Char c = read_utf8(name, pos);
        pos += c.length;
        const auto [it, inserted] = trie[static_cast<size_t>(at)].next.try_emplace(c.code_point, -1);
        if (inserted) {
          const auto created = static_cast<int32_t>(trie.size());
          it->second = created;
          at = created;
          trie.emplace_back();
        } else {
          at = it->second;
        }
      }
      trie[static_cast<size_t>(at)].ends = true;
    }
    static const CharSet kPlain = inverted(normalized({{0, 0x1F}, {'"', '"'}, {'\\', '\\'}}));
    // Children come after their parents: from the back, each finds its own done.
    std::vector<int32_t> rule_of(trie.size(), -1);
    for (size_t n = trie.size(); n-- > 0;) {
      const Node& node = trie[n];
      std::vector<ExprId> ways;
      CharSet known;
      for (const auto& [c, child] : node.next) {
        std::string spelled = json_text(utf8(c));
        known.push_back({c, c});
        ways.push_back(rules_.sequence(
            {rules_.bytes(spelled.substr(1, spelled.size() - 2)), rules_.rule(rule_of[static_cast<size_t>(child)])}));
      }
      if (!node.ends) ways.push_back(rules_.bytes("\""));
      ways.push_back(rules_.sequence({rules_.chars(intersection(kPlain, inverted(normalized(std::move(known))))),
                                      lib_.string_rest(0, kUnbounded)}));
      rule_of[n] = rules_.add_rule("name", rules_.choice(std::move(ways)));
    }
    return rules_.sequence({rules_.bytes("\""), rules_.rule(rule_of[0])});
  }

  static std::string utf8(uint32_t c) {
    std::string out;
    append_utf8(out, c);
    return out;
  }

  Result<ExprId> array(const Json& schema, const std::string& path, int depth) {
    HEARTH_ASSIGN(int64_t least, count(schema, "minItems", path, 0));
    HEARTH_ASSIGN(int64_t most, count(schema, "maxItems", path, kUnbounded));
    if (most != kUnbounded && most < least) return rules_.choice({});
    const Json* first = find(schema, "prefixItems");
    const Json* items = find(schema, "items");
    std::string first_path = path + "/prefixItems";
    if (items && items->is_array()) {  // drafts before 2020-12
      first = items;
      first_path = path + "/items";
      items = find(schema, "additionalItems");
    }
    if (first && !first->is_array()) return error(path, "prefixItems", "must be an array");
    if (first && first->size() > kMaxPrefixItems)
      return error(path, "prefixItems", "has more than {}", kMaxPrefixItems);

    const auto fixed = first ? static_cast<int64_t>(first->size()) : 0;
    ExprId after = -1;  // items behind the first ones
    if (items ? *items != Json(false) : fixed == 0) {
      ExprId item = lib_.any_value();
      if (items) {
        HEARTH_ASSIGN(item, this->schema(*items, path + "/items", depth + 1));
      }
      after = rules_.at(item).kind == Expr::Kind::kRule ? item : rules_.rule(rules_.add_rule(path + "/items", item));
    }
    if (fixed == 0) {
      if (after < 0) return least > 0 ? rules_.choice({}) : rules_.bytes("[]");
      return lib_.array(lib_.list(after, static_cast<int32_t>(least), static_cast<int32_t>(most)));
    }
    if (after < 0 && least > fixed) return rules_.choice({});
    // From the back: what may follow the first n items.
    ExprId rest = rules_.bytes("");
    if (after >= 0 && (most == kUnbounded || most > fixed)) {
      rest = rules_.repeat(rules_.sequence({lib_.comma(), after}),
                           static_cast<int32_t>(std::max<int64_t>(0, least - fixed)),
                           static_cast<int32_t>(most == kUnbounded ? kUnbounded : most - fixed));
    }
    for (int64_t i = fixed; i-- > 0;) {
      if (most != kUnbounded && i >= most) continue;
      HEARTH_ASSIGN(ExprId item,
                    this->schema((*first)[static_cast<size_t>(i)], fmt::format("{}/{}", first_path, i), depth + 1));
      rest = i == 0 ? rules_.sequence({item, rest}) : rules_.sequence({lib_.comma(), item, rest});
      if (i >= least) rest = rules_.optional(rest);
    }
    return lib_.array(rest);
  }

  Result<ExprId> string(const Json& schema, const std::string& path) {
    HEARTH_ASSIGN(int64_t least, count(schema, "minLength", path, 0));
    HEARTH_ASSIGN(int64_t most, count(schema, "maxLength", path, kUnbounded));
    if (most != kUnbounded && most < least) return rules_.choice({});
    std::string_view text;
    if (const Json* pattern = find(schema, "pattern")) {
      if (!pattern->is_string()) return error(path, "pattern", "must be a string");
      text = pattern->get_ref<const std::string&>();
    } else if (const Json* format = find(schema, "format"); format && format->is_string()) {
      text = format_pattern(format->get_ref<const std::string&>());
    }
    const auto min = static_cast<int32_t>(least), max = static_cast<int32_t>(most);
    if (text.empty()) return lib_.string(min, max);
    auto pattern = parse_pattern(rules_, text);
    if (!pattern) {
      if (options_.lenient) return lib_.string(min, max);
      return error(path, "pattern:", "{}", pattern.error().message);
    }
    const bool fits = pattern->min_length >= least &&
                      (most == kUnbounded || (pattern->max_length != kUnbounded && pattern->max_length <= most));
    ExprId body = pattern->expr;
    if (!fits && pattern->repeated >= 0) {
      const int64_t low = std::max(least, pattern->min_length);
      const int64_t high = most == kUnbounded                  ? pattern->max_length
                           : pattern->max_length == kUnbounded ? most
                                                               : std::min(most, pattern->max_length);
      if (high != kUnbounded && high < low) return rules_.choice({});
      body = rules_.repeat(pattern->repeated, static_cast<int32_t>(low), static_cast<int32_t>(high));
    } else if (!fits && !options_.lenient) {
      return error(path, "pattern or format", "beside minLength or maxLength that it does not satisfy by itself");
    }
    return rules_.sequence({rules_.bytes("\""), body, rules_.bytes("\"")});
  }

  Result<ExprId> number(const Json& schema, const std::string& path, bool whole) {
    Bounds bounds;
    const auto value = [&](const char* key) -> Result<std::optional<Decimal>> {
      const Json* limit = find(schema, key);
      if (!limit || limit->is_boolean()) return std::optional<Decimal>();
      if (!limit->is_number()) return error(path, key, "must be a number");
      auto decimal = parse_decimal(limit->dump());
      if (!decimal) return error(path, key, "is too far from everyday numbers");
      return decimal;
    };
    HEARTH_ASSIGN(bounds.low, value("minimum"));
    HEARTH_ASSIGN(bounds.high, value("maximum"));
    HEARTH_ASSIGN(auto above, value("exclusiveMinimum"));
    HEARTH_ASSIGN(auto below, value("exclusiveMaximum"));
    const auto number_of = [&](const char* key) { return schema[key].get<double>(); };
    // Draft 4: exclusiveMinimum: true makes minimum exclusive.
    if (const Json* flag = find(schema, "exclusiveMinimum"); flag && *flag == Json(true)) bounds.low_excluded = true;
    if (const Json* flag = find(schema, "exclusiveMaximum"); flag && *flag == Json(true)) bounds.high_excluded = true;
    if (above && (!bounds.low || number_of("exclusiveMinimum") >= number_of("minimum"))) {
      bounds.low = above;
      bounds.low_excluded = true;
    }
    if (below && (!bounds.high || number_of("exclusiveMaximum") <= number_of("maximum"))) {
      bounds.high = below;
      bounds.high_excluded = true;
    }
    return whole ? integer_in(rules_, bounds) : number_in(rules_, bounds);
  }

  // May a value be a string?
  bool may_be_text(const Json& schema, int depth) {
    if (!schema.is_object()) return schema != Json(false);
    if (depth > 20) return true;
    for (const char* key : {"anyOf", "oneOf"}) {
      const Json* list = find(schema, key);
      if (!list || !list->is_array()) continue;
      return std::ranges::any_of(*list, [&](const Json& branch) {
        auto flat = flattened(branch, "#");
        return !flat || may_be_text(*flat, depth + 1);
      });
    }
    if (const Json* only = find(schema, "const")) return only->is_string();
    if (const Json* list = find(schema, "enum"); list && list->is_array()) {
      return std::ranges::any_of(*list, [](const Json& v) { return v.is_string(); });
    }
    const auto types = types_of(schema);
    if (!types.empty()) return std::ranges::find(types, "string") != types.end();
    return !has_any(schema, {"properties", "items", "minimum", "maximum", "additionalProperties"});
  }

  struct Wanted {
    int32_t rule;
    const Json* target;
    std::string path;
  };
  Library& lib_;
  Rules& rules_;
  const Json& root_;
  std::string where_;
  SchemaOptions options_;
  std::vector<std::string> required_order_;  // of the last required_names()
  std::deque<Wanted> wanted_;
  std::unordered_map<const Json*, int32_t> rules_of_;
  std::unordered_map<std::string, const Json*> targets_;
  int64_t schemas_ = 0;
};

SchemaCompiler::SchemaCompiler(Rules& rules) : library_(std::make_unique<Library>(rules)) {}
SchemaCompiler::~SchemaCompiler() = default;

Result<ExprId> SchemaCompiler::compile(const Json& document, std::string_view where, const SchemaOptions& options) {
  return Document(*library_, document, where, options).compile();
}

Result<std::vector<SchemaCompiler::Property>> SchemaCompiler::properties(const Json& document, std::string_view where,
                                                                         const SchemaOptions& options) {
  return Document(*library_, document, where, options).properties();
}

ExprId SchemaCompiler::white_space() { return library_->space(); }

Result<Rules> json_schema_rules(std::string_view schema, std::function<bool()> wanted) {
  HEARTH_ASSIGN(Json document, parse_json(schema, "the JSON schema"));
  Rules rules;
  rules.wanted = std::move(wanted);
  const int32_t root = rules.add_rule("root");
  SchemaCompiler compiler(rules);
  HEARTH_ASSIGN(ExprId body, compiler.compile(document, "the JSON schema", {}));
  // Models like to begin on a new line.
  const ExprId line = rules.bytes("\n");
  rules.rules[static_cast<size_t>(root)].body = rules.sequence(
      {rules.optional(rules.choice({rules.bytes(" "), rules.sequence({line, rules.optional(line)})})), body});
  rules.root = root;
  return rules;
}

}  // namespace hearth::grammar
