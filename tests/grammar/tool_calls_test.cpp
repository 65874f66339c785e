#include "grammar_support.h"

namespace hearth {
namespace {

constexpr auto kCalls = GrammarSource::Kind::kToolCalls;

std::string request(bool parallel = false, bool opened = false, const std::string& name = "null") {
  return fmt::format(
      R"({{"tools":[{{"type":"function","function":{{"name":"get_weather","parameters":{{"type":"object","properties":)"
      R"({{"city":{{"type":"string"}},"days":{{"type":"integer","minimum":1,"maximum":9}},"unit":{{"enum":["C","F"]}}}},)"
      R"("required":["city"]}}}}}},{{"type":"function","function":{{"name":"get_time"}}}}],"name":{},"parallel":{},"opened":{}}})",
      name, parallel, opened);
}

TEST(ToolCalls, Hermes) {
  const auto grammar = compiled(kCalls, request());
  const std::string call =
      "<tool_call>\n{\"name\": \"get_weather\", \"arguments\": {\"city\": \"Oslo\", \"days\": 3}}\n</tool_call>";
  const std::string time = "<tool_call>\n{\"name\": \"get_time\", \"arguments\": {}}\n</tool_call>";
  EXPECT_TRUE(matches(grammar, call));
  EXPECT_TRUE(matches(grammar, time));
  EXPECT_TRUE(matches(grammar, "<tool_call>{\"name\":\"get_time\",\"arguments\":{}}</tool_call>"));
  for (const char* bad : {
           "",
           "Hello",
           "<tool_call>\n{\"name\": \"get_wind\", \"arguments\": {}}\n</tool_call>",
           "<tool_call>\n{\"name\": \"get_weather\", \"arguments\": {}}\n</tool_call>",
           "<tool_call>\n{\"name\": \"get_weather\", \"arguments\": {\"city\": 1}}\n</tool_call>",
           "<tool_call>\n{\"name\": \"get_weather\", \"arguments\": {\"city\": \"\", \"days\": 10}}\n</tool_call>",
           "<tool_call>\n{\"name\": \"get_time\", \"arguments\": {}}\n",
       }) {
    EXPECT_FALSE(matches(grammar, bad)) << bad;
  }
  EXPECT_FALSE(matches(grammar, call + "\n" + time));
  EXPECT_TRUE(matches(compiled(kCalls, request(true)), call + "\n" + time));
  const auto opened = compiled(kCalls, request(false, true));
  EXPECT_TRUE(matches(opened, call.substr(11)));
  EXPECT_FALSE(matches(opened, call));
  const auto only = compiled(kCalls, request(false, false, "\"get_time\""));
  EXPECT_TRUE(matches(only, time));
  EXPECT_FALSE(matches(only, call));
  EXPECT_TRUE(matches(compiled(kCalls, request(), "generic"), call));
}

TEST(ToolCalls, OrAnAnswerOfAForm) {
  std::string text = request();
  text.insert(text.size() - 1,
              R"(,"or_schema":{"type":"object","properties":{"a":{"type":"integer"}},"required":["a"]})");
  const std::pair<const char*, const char*> dialects[] = {
      {"hermes", "<tool_call>\n{\"name\": \"get_time\", \"arguments\": {}}\n</tool_call>"},
      {"qwen_xml", "<tool_call>\n<function=get_time>\n</function>\n</tool_call>"},
      {"llama3", "{\"name\": \"get_time\", \"parameters\": {}}"},
      {"mistral", "\xFF[TOOL_CALLS][{\"name\": \"get_time\", \"arguments\": {}}]"}};
  for (const auto& [dialect, call] : dialects) {
    const auto grammar = compiled(kCalls, text, dialect);
    EXPECT_TRUE(matches(grammar, call)) << dialect;
    EXPECT_TRUE(matches(grammar, "{\"a\": 5}")) << dialect;
    for (const char* bad : {"", "x", "{\"a\": true}", "{\"b\": 5}"})
      EXPECT_FALSE(matches(grammar, bad)) << dialect << bad;
    EXPECT_FALSE(matches(grammar, std::string("{\"a\": 5}") + call)) << dialect;
  }
  // A grammar's rules may have the names of others.
  std::string gbnf = request();
  gbnf.insert(gbnf.size() - 1, R"(,"or_gbnf":"root ::= \"It is \" call\ncall ::= [0-9]+")");
  for (const auto& [dialect, call] : dialects) {
    const auto grammar = compiled(kCalls, gbnf, dialect);
    EXPECT_TRUE(matches(grammar, call)) << dialect;
    EXPECT_TRUE(matches(grammar, "It is 12")) << dialect;
    for (const char* bad : {"", "It is ", "12", "{\"a\": 5}"}) EXPECT_FALSE(matches(grammar, bad)) << dialect << bad;
  }
  for (const char* bad : {"root ::= other", "root", "other ::= \\\"a\\\""}) {
    std::string wrong = request();
    wrong.insert(wrong.size() - 1, fmt::format(R"(,"or_gbnf":"{}")", bad));
    EXPECT_NE(error_of(kCalls, wrong).find("read the grammar, line 1"), std::string::npos) << bad;
  }
  // What no grammar can say is an error for the answer, while calls do without.
  std::string wrong = request();
  wrong.insert(wrong.size() - 1, R"(,"or_schema":{"not":{}})");
  EXPECT_NE(error_of(kCalls, wrong).find("not"), std::string::npos);
}

// The large sources of each kind ask, and end when the answer is no.
TEST(ToolCalls, NobodyWaitsForACompilation) {
  std::string properties, tools, alternatives;
  for (int i = 0; i < 2000; ++i) {
    properties += fmt::format(R"({}"p{}":{{"type":"string","maxLength":{}}})", i == 0 ? "" : ",", i, i);
    alternatives += fmt::format("\"word{}\" | ", i);
  }
  const std::string schema = "{\"type\":\"object\",\"properties\":{" + properties + "}}";
  for (int i = 0; i < 20; ++i) {
    tools += fmt::format(R"({}{{"type":"function","function":{{"name":"f{}","parameters":{}}}}})", i == 0 ? "" : ",", i,
                         schema);
  }
  for (GrammarSource source :
       {GrammarSource{.kind = GrammarSource::Kind::kJsonSchema, .text = schema},
        GrammarSource{.kind = kCalls, .text = "{\"tools\":[" + tools + "]}"},
        GrammarSource{.kind = GrammarSource::Kind::kGbnf, .text = "root ::= " + alternatives + "\"x\""}}) {
    int64_t asked = 0;
    source.wanted = [&] { return ++asked > 0; };
    ASSERT_TRUE(compile_grammar(source, "hermes", small_tokens()));
    EXPECT_GT(asked, 5);
    for (const int64_t last : {int64_t{1}, asked / 2, asked}) {
      asked = 0;
      source.wanted = [&] { return ++asked < last; };
      const auto grammar = compile_grammar(source, "hermes", small_tokens());
      ASSERT_FALSE(grammar);
      EXPECT_EQ(grammar.error().code, ErrorCode::kCancelled);
      EXPECT_LE(asked, last + 1);
    }
  }
}

TEST(ToolCalls, QwenXml) {
  const auto grammar = compiled(kCalls, request(true), "qwen_xml");
  const std::string call =
      "<tool_call>\n<function=get_weather>\n<parameter=city>\nSt. \"John\"\n</parameter>x\n</parameter>\n"
      "<parameter=days>\n3\n</parameter>\n<parameter=unit>\nC\n</parameter>\n</function>\n</tool_call>";
  const std::string time = "<tool_call>\n<function=get_time>\n</function>\n</tool_call>";
  EXPECT_TRUE(matches(grammar, call));
  EXPECT_TRUE(matches(grammar, call + "\n" + time));
  for (const char* bad : {
           "<tool_call>\n<function=get_weather>\n</function>\n</tool_call>",
           "<tool_call>\n<function=get_weather>\n<parameter=city>\nx\n</parameter>\n<parameter=days>\nx\n</"
           "parameter>\n</function>\n</tool_call>",
           "<tool_call>\n<function=get_weather>\n<parameter=city>\nx\n</parameter>\n<parameter=unit>\nK\n</"
           "parameter>\n</function>\n</tool_call>",
           "<tool_call>\n<function=get_weather>\n<parameter=town>\nx\n</parameter>\n</function>\n</tool_call>",
       }) {
    EXPECT_FALSE(matches(grammar, bad)) << bad;
  }
}

TEST(ToolCalls, Llama3AndMistral) {
  const auto llama = compiled(kCalls, request(), "llama3");
  EXPECT_TRUE(matches(llama, R"({"name": "get_time", "parameters": {}})"));
  EXPECT_FALSE(matches(llama, R"({"name": "get_time", "arguments": {}})"));

  // The vocabulary has the opener as a control token: text that spells it is not the token.
  const auto mistral = compiled(kCalls, request(true), "mistral");
  const std::string list =
      R"([{"name": "get_time", "arguments": {}}, {"name": "get_weather", "arguments": {"city": "x"}, "id": "abcDEF123"}])";
  EXPECT_TRUE(matches(mistral, "\xFF[TOOL_CALLS]" + list));
  EXPECT_FALSE(matches(mistral, "[TOOL_CALLS]" + list));
  GrammarState state(mistral);
  const auto control = static_cast<int32_t>(small_tokens()->vocab_size()) - 2;
  EXPECT_FALSE(state.allows('['));
  expect_mask_equals_brute_force(state, *small_tokens());
  ASSERT_TRUE(state.accept(control));
  EXPECT_TRUE(state.allows('['));
  EXPECT_FALSE(state.allows(control));
  EXPECT_TRUE(matches(compiled(kCalls, request(false, true), "mistral"), R"([{"name": "get_time", "arguments": {}}])"));

  // A vocabulary with [ARGS] writes names and arguments without JSON around them.
  std::vector<std::string> bytes = small_vocabulary();
  for (const char* name : {"\xFF[TOOL_CALLS]", "\xFF[ARGS]"}) bytes.emplace_back(name);
  const auto tokens = std::make_shared<const grammar::TokenTrie>(bytes, std::vector<int32_t>{});
  const auto grammar = compile_grammar({.kind = kCalls, .text = request(true)}, "mistral", tokens);
  ASSERT_TRUE(grammar);
  EXPECT_TRUE(
      matches(*grammar, "\xFF[TOOL_CALLS]get_time\xFF[ARGS]{}\xFF[TOOL_CALLS]get_weather\xFF[ARGS]{\"city\": \"\"}"));
  EXPECT_FALSE(matches(*grammar, "\xFF[TOOL_CALLS]get_rain\xFF[ARGS]{}"));
}

TEST(ToolCalls, StrictToolsFailClosedAndOthersLeaveKeywordsOut) {
  const auto tool = [](bool strict, const char* schema) {
    return fmt::format(R"({{"tools":[{{"type":"function","function":{{"name":"f","strict":{},"parameters":{}}}}}]}})",
                       strict, schema);
  };
  const char* schema =
      R"({"type":"object","properties":{"a":{"type":"array","items":{"type":"integer"},"uniqueItems":true}}})";
  const std::string error = error_of(kCalls, tool(true, schema));
  EXPECT_NE(error.find("tool f at #/properties/a: uniqueItems"), std::string::npos) << error;
  EXPECT_TRUE(matches(compiled(kCalls, tool(false, schema)),
                      "<tool_call>\n{\"name\": \"f\", \"arguments\": {\"a\": [1, 1]}}\n</tool_call>"));
  EXPECT_FALSE(error_of(kCalls, tool(false, R"({"type":"objec"})")).empty());
  EXPECT_FALSE(error_of(kCalls, "{}").empty());
  EXPECT_FALSE(error_of(kCalls, R"({"tools":[]})").empty());
  EXPECT_FALSE(error_of(kCalls, request(false, false, "\"other\"")).empty());
  const auto unknown = compile(kCalls, request(), "harmony");
  ASSERT_FALSE(unknown);
  EXPECT_EQ(unknown.error().code, ErrorCode::kUnsupported);
}

}  // namespace
}  // namespace hearth
