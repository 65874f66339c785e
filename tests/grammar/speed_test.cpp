// Limits of time, measured in CPU seconds of the thread.
#include <algorithm>
#include <nlohmann/json.hpp>

#include "../text/vocab_files.h"
#include "grammar_support.h"

namespace hearth {
namespace {

using Json = nlohmann::ordered_json;
using Kind = GrammarSource::Kind;

// 200 tools with about 1 MB of schema.
std::string large_tools() {
  Json tools = Json::array();
  std::mt19937 random(1);
  for (int t = 0; t < 200; ++t) {
    Json properties = Json::object();
    for (int p = 0; p < 24; ++p) {
      Json schema = {{"description", std::string(60, 'd')}};
      switch (p % 6) {
        case 0:
          schema["type"] = "string";
          schema["maxLength"] = 100000;
          break;
        case 1:
          schema["type"] = "integer";
          schema["minimum"] = 0;
          schema["maximum"] = static_cast<int64_t>(random() % 100000);
          break;
        case 2:
          schema["enum"] = {"alpha", "beta", fmt::format("gamma{}", random() % 1000)};
          break;
        case 3:
          schema["type"] = "array";
          schema["items"] = {{"type", "string"}, {"minLength", 1}};
          break;
        case 4:
          schema["$ref"] = "#/$defs/point";
          break;
        default:
          schema["anyOf"] = {{{"type", "string"}, {"pattern", "^[a-z]+-[0-9]{1,8}$"}}, {{"type", "null"}}};
      }
      properties[fmt::format("property_{}_{}", p, random() % 100)] = schema;
    }
    Json parameters = {{"type", "object"},
                       {"properties", properties},
                       {"required", {properties.begin().key()}},
                       {"additionalProperties", false},
                       {"$defs",
                        {{"point",
                          {{"type", "object"},
                           {"properties", {{"x", {{"type", "number"}}}, {"y", {{"type", "number"}}}}},
                           {"required", {"x", "y"}}}}}}};
    tools.push_back({{"type", "function"},
                     {"function",
                      {{"name", fmt::format("tool_number_{}", t)},
                       {"description", std::string(1500, 'd')},
                       {"strict", true},
                       {"parameters", parameters}}}});
  }
  return Json{{"tools", tools}, {"parallel", true}}.dump();
}

double quantile(std::vector<double> values, double q) {
  std::ranges::sort(values);
  return values[static_cast<size_t>(q * static_cast<double>(values.size() - 1))];
}

struct Walk {
  std::vector<double> masks;  // seconds
  std::string text;
};

// A model that likes short words, and closes now and then.
void take_walk(const std::shared_ptr<const Grammar>& grammar, uint32_t seed, int tokens_wanted, Walk& walk) {
  const grammar::TokenTrie& tokens = grammar->tokens();
  std::mt19937 random(seed);
  GrammarState state(grammar);
  std::vector<uint64_t> bits(tokens.words());
  for (int i = 0; i < tokens_wanted; ++i) {
    const double begin = cpu_seconds();
    if (!state.mask(bits)) break;
    walk.masks.push_back(cpu_seconds() - begin);
    std::vector<int32_t> allowed;
    for (int32_t t = 0; t < tokens.vocab_size(); ++t) {
      if (bit(bits, t) && !tokens.is_end(t)) allowed.push_back(t);
    }
    if (allowed.empty()) break;
    int32_t token = allowed[random() % allowed.size()];
    if (random() % 4 == 0) {
      for (int32_t t : allowed) {
        if (tokens.bytes(t) == "\"" || tokens.bytes(t) == "\",") token = t;
      }
    }
    ASSERT_TRUE(state.accept(token));
  }
}

TEST(Speed, ToolsOfOneMegabyteAreReadyInASecond_slow) {
  HEARTH_REAL_TOKENIZER(tokenizer, "qwen2");
  const std::string tools = large_tools();
  EXPECT_GT(tools.size(), 1'000'000u);
  const double begin = cpu_seconds();
  const auto tokens = grammar::TokenTrie::create(*tokenizer);
  const double built = cpu_seconds();
  const auto grammar = compile_grammar({.kind = Kind::kToolCalls, .text = tools}, "hermes", tokens);
  const double done = cpu_seconds();
  ASSERT_TRUE(grammar) << grammar.error().message;
  fmt::print("vocabulary of {}: {:.0f} ms; {} bytes of tools: {:.0f} ms, {} KB of states\n", tokens->vocab_size(),
             1e3 * (built - begin), tools.size(), 1e3 * (done - built), (*grammar)->size_bytes() >> 10);
  EXPECT_LT(done - begin, 1.0);
  Walk walk;
  for (uint32_t seed = 0; seed < 10; ++seed) take_walk(*grammar, seed, 100, walk);
  fmt::print("{} masks: p50 {:.0f} us, p99 {:.0f} us, most {:.0f} us\n", walk.masks.size(),
             1e6 * quantile(walk.masks, 0.5), 1e6 * quantile(walk.masks, 0.99), 1e6 * quantile(walk.masks, 1));
  EXPECT_LT(quantile(walk.masks, 0.5), 100e-6);
  EXPECT_LT(quantile(walk.masks, 0.99), 2e-3);
}

TEST(Speed, MasksAreFastOnTheFirstVisit_slow) {
  HEARTH_REAL_TOKENIZER(tokenizer, "qwen2");
  const auto tokens = grammar::TokenTrie::create(*tokenizer);
  const std::pair<Kind, std::string> sources[] = {
      {Kind::kJson, ""},
      {Kind::kJsonObject, ""},
      {Kind::kJsonSchema,
       R"({"type":"object","properties":{"title":{"type":"string","maxLength":60},"tags":{"type":"array","items":{"type":"string",)"
       R"("minLength":3,"maxLength":20}},"date":{"type":"string","format":"date-time"},"id":{"type":"string","pattern":"^[A-Za-z0-9_-]{1,64}$"},)"
       R"("size":{"type":"number","minimum":0},"mail":{"type":"string","format":"email"},"kind":{"enum":["a","b","c"]}},)"
       R"("required":["title","tags","date","id","size","mail","kind"],"additionalProperties":{"type":"string"}})"},
      {Kind::kGbnf, "root ::= line+\nline ::= [^\\n]{1,200} \"\\n\""},
      {Kind::kGbnf,
       "root ::= \"{\" ws string ws \":\" ws string ws \"}\"\nstring ::= \"\\\"\" ([^\"\\\\\\x00-\\x1F] | \"\\\\\" "
       "[\"\\\\/bfnrt])* \"\\\"\"\nws ::= [ \\t\\n]*"},
  };
  for (const auto& [kind, text] : sources) {
    Walk walk;
    for (uint32_t seed = 0; seed < 5; ++seed) {
      const auto grammar = compile_grammar({.kind = kind, .text = text}, "", tokens);  // again: nothing is known
      ASSERT_TRUE(grammar) << grammar.error().message;
      take_walk(*grammar, seed, 200, walk);
    }
    fmt::print("{} masks: p50 {:.0f} us, p99 {:.0f} us, most {:.0f} us  {}\n", walk.masks.size(),
               1e6 * quantile(walk.masks, 0.5), 1e6 * quantile(walk.masks, 0.99), 1e6 * quantile(walk.masks, 1),
               text.substr(0, 60));
    EXPECT_LT(quantile(walk.masks, 0.5), 100e-6) << text;
    EXPECT_LT(quantile(walk.masks, 0.99), 2e-3) << text;
  }
}

}  // namespace
}  // namespace hearth
