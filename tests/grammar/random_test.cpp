// Random schemas and random models: whatever tokens are drawn from the masks, the answer parses and a validator written
// for the tests alone accepts it.
#include <cmath>
#include <nlohmann/json.hpp>
#include <regex>

#include "../text/vocab_files.h"
#include "grammar_support.h"

namespace hearth {
namespace {

using Json = nlohmann::ordered_json;

// ---- the validator ----

bool valid(const Json& root, const Json& schema, const Json& value);

bool is_type(const Json& value, const std::string& type) {
  if (type == "integer") return value.is_number() && std::floor(value.get<double>()) == value.get<double>();
  if (type == "number") return value.is_number();
  if (type == "string") return value.is_string();
  if (type == "boolean") return value.is_boolean();
  if (type == "null") return value.is_null();
  if (type == "array") return value.is_array();
  return type == "object" && value.is_object();
}

int64_t characters(const std::string& text) {
  int64_t count = 0;
  for (char c : text) count += (c & 0xC0) != 0x80;
  return count;
}

bool valid_string(const Json& schema, const std::string& text) {
  if (schema.contains("minLength") && characters(text) < schema["minLength"]) return false;
  if (schema.contains("maxLength") && characters(text) > schema["maxLength"]) return false;
  return !schema.contains("pattern") || std::regex_search(text, std::regex(schema["pattern"].get<std::string>()));
}

bool valid_number(const Json& schema, double number) {
  if (schema.contains("minimum") && number < schema["minimum"]) return false;
  if (schema.contains("maximum") && number > schema["maximum"]) return false;
  if (schema.contains("exclusiveMinimum") && number <= schema["exclusiveMinimum"]) return false;
  return !schema.contains("exclusiveMaximum") || number < schema["exclusiveMaximum"];
}

bool valid_array(const Json& root, const Json& schema, const Json& value) {
  if (schema.contains("minItems") && value.size() < schema["minItems"]) return false;
  if (schema.contains("maxItems") && value.size() > schema["maxItems"]) return false;
  size_t first = 0;
  if (schema.contains("prefixItems")) {
    first = schema["prefixItems"].size();
    for (size_t i = 0; i < std::min(first, value.size()); ++i) {
      if (!valid(root, schema["prefixItems"][i], value[i])) return false;
    }
  }
  for (size_t i = first; i < value.size() && schema.contains("items"); ++i) {
    if (!valid(root, schema["items"], value[i])) return false;
  }
  return true;
}

bool valid_object(const Json& root, const Json& schema, const Json& value) {
  if (schema.contains("required")) {
    for (const Json& name : schema["required"]) {
      if (!value.contains(name.get<std::string>())) return false;
    }
  }
  for (const auto& [name, member] : value.items()) {
    const bool named = schema.contains("properties") && schema["properties"].contains(name);
    if (named && !valid(root, schema["properties"][name], member)) return false;
    if (!named && schema.contains("additionalProperties") && !valid(root, schema["additionalProperties"], member)) {
      return false;
    }
  }
  return true;
}

bool valid(const Json& root, const Json& schema, const Json& value) {
  if (schema.is_boolean()) return schema.get<bool>();
  if (schema.contains("$ref")) {
    const auto pointer = schema["$ref"].get<std::string>().substr(1);
    if (!valid(root, root.at(Json::json_pointer(pointer)), value)) return false;
  }
  if (schema.contains("type")) {
    const Json& type = schema["type"];
    bool any = type.is_string() && is_type(value, type);
    if (type.is_array()) {
      for (const Json& t : type) any = any || is_type(value, t);
    }
    if (!any) return false;
  }
  const auto count = [&](const char* key) {
    int n = 0;
    for (const Json& branch : schema[key]) n += valid(root, branch, value);
    return n;
  };
  if (schema.contains("anyOf") && count("anyOf") == 0) return false;
  if (schema.contains("oneOf") && count("oneOf") != 1) return false;
  if (schema.contains("allOf") && count("allOf") != static_cast<int>(schema["allOf"].size())) return false;
  if (schema.contains("const") && schema["const"] != value) return false;
  if (schema.contains("enum") && std::ranges::find(schema["enum"], value) == schema["enum"].end()) return false;
  if (value.is_string()) return valid_string(schema, value);
  if (value.is_number()) return valid_number(schema, value);
  if (value.is_array()) return valid_array(root, schema, value);
  return !value.is_object() || valid_object(root, schema, value);
}

// ---- random schemas ----

class SchemaMaker {
 public:
  explicit SchemaMaker(uint32_t seed) : random_(seed) {}

  Json make() {
    Json defs = Json::object();
    defs["leaf"] = leaf();
    // Recursive, and can end.
    defs["tree"] = {
        {"type", "object"},
        {"properties",
         {{"v", leaf()}, {"kids", {{"type", "array"}, {"items", {{"$ref", "#/$defs/tree"}}}, {"maxItems", 3}}}}},
        {"required", {"v"}}};
    Json schema = any(0);
    if (schema.is_boolean()) schema = Json::object();
    schema["$defs"] = defs;
    return schema;
  }

 private:
  uint32_t pick(uint32_t n) { return random_() % n; }

  Json leaf() {
    switch (pick(12)) {
      case 0:
        return {{"type", "boolean"}};
      case 1:
        return {{"type", "null"}};
      case 2: {
        const int64_t low = static_cast<int64_t>(pick(2000)) - 1000;
        return {{"type", "integer"}, {"minimum", low}, {"maximum", low + pick(3000)}};
      }
      case 3: {
        const double low = (static_cast<double>(pick(20000)) - 10000) / 100;
        Json schema = {{"type", "number"}};
        schema[pick(2) ? "minimum" : "exclusiveMinimum"] = low;
        if (pick(2)) schema[pick(2) ? "maximum" : "exclusiveMaximum"] = low + 0.5 + pick(1000) / 8.0;
        return schema;
      }
      case 4: {
        const uint32_t low = pick(5);
        return {{"type", "string"}, {"minLength", low}, {"maxLength", low + pick(70)}};
      }
      case 5: {
        static const char* kPatterns[] = {"^[a-c]{2,5}$",    "^(yes|no)+$", "x[0-9]",
                                          "^\\w+-\\d{1,3}$", "^[^a-z]*q",   "d$"};
        return {{"type", "string"}, {"pattern", kPatterns[pick(6)]}};
      }
      case 6:
        return {{"enum", {"red", "green", 5, nullptr, "re\"d", {1, 2}}}};
      case 7:
        return {{"const", pick(2) ? Json("only") : Json{{"k", {1, "x"}}}}};
      case 8:
        return {{"type", {"integer", "null", "string"}}};
      case 9:
        return {{"type", "integer"},
                {pick(2) ? "exclusiveMinimum" : "exclusiveMaximum", static_cast<int64_t>(pick(200)) - 100}};
      case 10:
        return pick(8) ? Json{{"type", "number"}} : Json(true);
      default:
        return {{"type", "string"}};
    }
  }

  Json object(int depth) {
    Json schema = {{"type", "object"}, {"properties", Json::object()}, {"required", Json::array()}};
    const uint32_t count = pick(6);
    for (uint32_t i = 0; i < count; ++i) {
      static const char* kNames[] = {"a", "ab", "name", "x y", "\u00e9t\u00e9", "q\"uote"};
      schema["properties"][kNames[i]] = any(depth + 1);
      if (pick(2)) schema["required"].push_back(kNames[i]);
    }
    if (pick(4) == 0) schema["additionalProperties"] = any(depth + 1);
    if (pick(4) == 0) schema["additionalProperties"] = false;
    return schema;
  }

  Json any(int depth) {
    if (depth > 3 || pick(3) == 0) return leaf();
    switch (pick(8)) {
      case 0: {
        Json schema = {{"type", "array"}, {"items", any(depth + 1)}};
        if (pick(2)) schema["minItems"] = pick(4);
        if (pick(2)) schema["maxItems"] = 4 + pick(100);
        return schema;
      }
      case 1: {
        Json schema = {{"type", "array"}, {"prefixItems", {any(depth + 1), leaf()}}, {"minItems", pick(3)}};
        if (pick(2)) schema["items"] = leaf();
        return schema;
      }
      case 2:
        return {{"anyOf", {any(depth + 1), any(depth + 1), leaf()}}};
      case 3:
        return {{"oneOf", {{{"type", "string"}, {"maxLength", pick(9)}}, {{"type", "integer"}}, object(depth + 1)}}};
      case 4:
        return {{"$ref", pick(2) ? "#/$defs/leaf" : "#/$defs/tree"}};
      case 5: {
        Json extra = {{"type", "object"}, {"properties", {{"extra", leaf()}}}, {"required", {"extra"}}};
        return {{"allOf", {object(depth + 1), extra}}};
      }
      default:
        return object(depth);
    }
  }

  std::mt19937 random_;
};

// ---- random models ----

// A token that brings the end nearer, if there is one: in a string, its end or what the patterns above want.
int32_t closing(const grammar::TokenTrie& tokens, const std::vector<int32_t>& allowed, bool in_string,
                std::mt19937& random) {
  const auto find = [&](std::string_view bytes) {
    const auto found = std::ranges::find_if(
        allowed, [&](int32_t t) { return bytes.empty() ? tokens.is_end(t) : tokens.bytes(t) == bytes; });
    return found == allowed.end() ? -1 : *found;
  };
  static constexpr std::string_view kOutside[] = {"", "}", "]", "0", "null", "\""};
  static constexpr std::string_view kWanted[] = {"x", "0", "1", "q", "d", "y", "n", "o", "a", "-"};
  if (in_string) {
    if (const int32_t token = find("\""); token >= 0) return token;
    if (const int32_t token = find(kWanted[random() % std::size(kWanted)]); token >= 0) return token;
  } else {
    for (std::string_view bytes : kOutside) {
      if (const int32_t token = find(bytes); token >= 0) return token;
    }
  }
  return allowed[random() % allowed.size()];
}

// Draws from the mask: at first all tokens are alike, after a while closing() decides.
std::string sample(const std::shared_ptr<const Grammar>& grammar, std::mt19937& random, int free_tokens,
                   int64_t* steps) {
  const grammar::TokenTrie& tokens = grammar->tokens();
  GrammarState state(grammar);
  std::vector<uint64_t> bits(tokens.words());
  std::vector<int32_t> allowed;
  std::string text;
  bool in_string = false, escaped = false;
  for (int i = 0; i < free_tokens + 3000; ++i) {
    if (!state.mask(bits)) {
      ADD_FAILURE() << "nothing may follow " << text;
      break;
    }
    ++*steps;
    allowed.clear();
    for (size_t w = 0; w < bits.size(); ++w) {
      for (uint64_t word = bits[w]; word != 0; word &= word - 1) {
        allowed.push_back(static_cast<int32_t>(64 * w) + std::countr_zero(word));
      }
    }
    int32_t token = allowed[random() % allowed.size()];
    if (i >= free_tokens) token = closing(tokens, allowed, in_string, random);
    if (tokens.is_end(token)) return text;
    if (!state.accept(token)) {
      ADD_FAILURE() << "the mask has token " << token << ", but it is not accepted behind " << text;
      break;
    }
    for (char c : tokens.bytes(token)) {
      if (in_string && !escaped && c == '\\') {
        escaped = true;
        continue;
      }
      if (c == '"' && !escaped) in_string = !in_string;
      escaped = false;
    }
    text += tokens.bytes(token);
  }
  ADD_FAILURE() << "no end: " << text.substr(0, 500);
  return text;
}

void check_random_schemas(const std::shared_ptr<const grammar::TokenTrie>& tokens, uint32_t first, uint32_t count,
                          int samples, int free_tokens) {
  std::mt19937 random(first);
  int64_t steps = 0;
  uint32_t impossible = 0;
  for (uint32_t seed = first; seed < first + count; ++seed) {
    const Json schema = SchemaMaker(seed).make();
    const auto grammar = compile_grammar({.kind = GrammarSource::Kind::kJsonSchema, .text = schema.dump()}, "", tokens);
    const auto failed_for = [&](const char* reason) {
      return !grammar && grammar.error().message.find(reason) != std::string::npos;
    };
    if (failed_for("no text can ever match") || failed_for("beside minLength") || failed_for("cannot be joined")) {
      ++impossible;  // such as additionalProperties: false, or another pattern, in one half of an allOf
      continue;
    }
    ASSERT_TRUE(grammar) << grammar.error().message << "\n" << schema.dump(1);
    for (int i = 0; i < samples; ++i) {
      const std::string text = sample(*grammar, random, free_tokens >> (i % 3), &steps);
      const Json value = Json::parse(text, nullptr, false);
      ASSERT_FALSE(value.is_discarded()) << schema.dump(1) << "\n" << text;
      ASSERT_TRUE(valid(schema, schema, value)) << schema.dump(1) << "\n" << text;
    }
  }
  EXPECT_LT(impossible, count / 10);
}

TEST(RandomSchemas, OutputValidates) { check_random_schemas(small_tokens(), 1, 200, 3, 40); }

TEST(RandomSchemas, OutputValidates_slow) { check_random_schemas(small_tokens(), 1000, 1000, 8, 60); }

TEST(RandomSchemas, OutputOfARealVocabularyValidates_slow) {
  HEARTH_REAL_TOKENIZER(tokenizer, "qwen2");
  check_random_schemas(grammar::TokenTrie::create(*tokenizer), 5000, 300, 3, 30);
}

TEST(RandomSchemas, MasksAreTheAllowedTokens) {
  std::mt19937 random(3);
  for (uint32_t seed = 20000; seed < 20030; ++seed) {
    const Json schema = SchemaMaker(seed).make();
    const auto grammar = compile(GrammarSource::Kind::kJsonSchema, schema.dump());
    if (!grammar) continue;
    GrammarState state(*grammar);
    std::vector<uint64_t> bits(small_tokens()->words());
    for (int i = 0; i < 30; ++i) {
      expect_mask_equals_brute_force(state, *small_tokens());
      state.mask(bits);
      std::vector<int32_t> allowed;
      for (int32_t t = 0; t < small_tokens()->vocab_size(); ++t) {
        if (bit(bits, t) && !small_tokens()->is_end(t)) allowed.push_back(t);
      }
      if (allowed.empty()) break;
      ASSERT_TRUE(state.accept(allowed[random() % allowed.size()]));
    }
  }
}

}  // namespace
}  // namespace hearth
