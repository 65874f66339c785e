// Answers as models write them, well and badly. parse() checks each at every kind of cut.
#include "answers.h"

namespace hearth {
namespace {

const std::string kOslo = R"({"city": "Oslo"})";

TEST(Hermes, Calls) {
  const Answer one =
      parse("hermes", "Let me look.\n<tool_call>\n{\"name\": \"f\", \"arguments\": " + kOslo + "}\n</tool_call>");
  EXPECT_EQ(one.text, "Let me look.");
  EXPECT_EQ(calls_of(one), "f " + kOslo);
  EXPECT_TRUE(one.calls[0].complete);

  const Answer several =
      parse("hermes",
            "A\n\n<tool_call>{\"name\": \"f\", \"arguments\": {}}</tool_call>\n<tool_call>{\"name\": "
            "\"g\", \"arguments\": {\"x\": [1]}}</tool_call>\nB <tool_call>\n{\"name\": \"h\", "
            "\"arguments\": {}}\n</tool_call>\n");
  EXPECT_EQ(several.log,
            "\nT:A\nC:f \nA:{}\nE:complete\nC:g \nA:{\"x\": [1]}\nE:complete\nT:\nB\nC:h \nA:{}\nE:complete");
}

TEST(Hermes, LenientForms) {
  const std::pair<const char*, const char*> cases[] = {
      {R"(<tool_call>{"name": "f", "arguments": {"a": 1}})", R"(f {"a": 1})"},  // no close tag
      {R"(<tool_call>{"name": "f", "arguments": {"a": 1})", R"(f {"a": 1})"},   // nor the outer bracket
      {R"(<tool_call>{"name": "f", "arguments": {"a": 1}</tool_call>)", R"(f {"a": 1})"},
      {R"(<tool_call>{"name": "f", "arguments": {"a": 1</tool_call>)", R"(f {"a": 1})"},
      {R"(<tool_call>{"name": "f", "arguments": {"a": 1}}}}</tool_call>)", R"(f {"a": 1})"},
      {R"(<tool_call>{"name": "f", "arguments": {"a": 1,},}</tool_call>)", R"(f {"a": 1})"},
      {R"(<tool_call>{"name": "f", "parameters": {"a": 1}}</tool_call>)", R"(f {"a": 1})"},
      {R"(<tool_call>{"arguments": {"a": 1}, "name": "f"}</tool_call>)", R"(f {"a": 1})"},
      {R"(<tool_call>{"arguments": "{\"a\": \"x\\n\"}", "name": "f"}</tool_call>)", R"(f {"a": "x\n"})"},
      {R"(<tool_call>{"name": "f", "arguments": "{\"a\": \"b\"}"}</tool_call>)", R"(f {"a": "b"})"},
      {R"(<tool_call>{"name": "f", "arguments": " {\"a\": [1"}</tool_call>)", R"(f {"a": [1]})"},
      {R"(<tool_call>{"name": "f", "arguments": ""}</tool_call>)", "f {}"},
      {R"(<tool_call>{"name": "f", "arguments": null}</tool_call>)", "f {}"},
      {R"(<tool_call>{"name": "f"}</tool_call>)", "f {}"},
      {R"(<tool_call>{'name': 'f', 'arguments': {'a': 'b'}}</tool_call>)", R"(f {"a": "b"})"},
      {R"(<tool_call>{name: "f", arguments: {a: 1}}</tool_call>)", R"(f {"a": 1})"},
      {R"(<tool_call>{"id": 7, "type": "function", "function": {"name": "f", "arguments": {"a": 1}}}</tool_call>)",
       R"(f {"a": 1})"},
      {R"(<tool_call>{"function": "f", "arguments": {"a": 1}, "x": ["}", {}]}</tool_call>)", R"(f {"a": 1})"},
      {R"(<tool_call>[{"name": "f", "arguments": {}}, {"name": "g", "arguments": {}}]</tool_call>)", "f {}\ng {}"},
      {"<tool_call>{\"name\": \"f\", \"arguments\": {}}\n{\"name\": \"g\", \"arguments\": {}}</tool_call>",
       "f {}\ng {}"},
      {R"(<tool_call>{"name": "f", "arguments": {"a": "</tool_call>"}}</tool_call>)", R"(f {"a": "</tool_call>"})"},
      {R"(<tool_call>{"name": "f", "arguments": {"a": "\n)", R"(f {"a": "\n...)"},
      {R"(<tool_call>{"name": "f", "arguments": {"a")", R"(f {"a"...)"},
      {R"(<tool_call>{"name": "f", "arg)", "f ..."},
      {"<tool_call>\n<function=f>\n<parameter=a>\nx\n</parameter>\n</function>\n</tool_call>", R"(f {"a": "x"})"},
  };
  for (const auto& [text, expected] : cases) {
    const Answer answer = parse("hermes", text);
    EXPECT_EQ(calls_of(answer), expected) << text;
    EXPECT_EQ(answer.text, "") << text;
  }
}

TEST(Hermes, WhatIsNoCallIsText) {
  for (const char* text :
       {"<tool_call>", "<tool_call>\nI would call it.\n</tool_call>", "<tool_call>{\"nam", "<tool_call>{\"name\": \"f",
        "<tool_call>{\"arguments\": {\"a\": 1}}</tool_call>", "<tool_call>{\"name\": \"\"}</tool_call>",
        "<tool_call>{\"name\": \"f\", \"arguments\": [1, 2]}</tool_call>", "<tool_call>[1]</tool_call>",
        "<tool_call>{\"name\": \"f\", \"arguments\": \"Oslo\"}</tool_call>", "<tool_cal", "a <b> c",
        "<tool_call><tool_call>x", "Use <tool_call> and </tool_call>, `<function=`.", "<function=f> is a tag",
        "x <function=a b>"}) {
    const Answer answer = parse("hermes", text);
    EXPECT_EQ(answer.text, text);
    EXPECT_TRUE(answer.calls.empty()) << text;
  }
  // A broken one does not hide the next.
  const Answer second = parse("hermes", "<tool_call>oops <tool_call>{\"name\": \"f\", \"arguments\": {}}</tool_call>");
  EXPECT_EQ(second.text, "<tool_call>oops");
  EXPECT_EQ(calls_of(second), "f {}");
}

TEST(Hermes, CallsStayTextWithoutTools) {
  const std::string text = "<tool_call>\n{\"name\": \"f\", \"arguments\": {}}\n</tool_call>\n";
  for (const char* none : {"", "[]", "null"}) EXPECT_EQ(parse("hermes", text, none).log, "\nT:" + text);
  // Whatever the tools are called.
  EXPECT_EQ(calls_of(parse("hermes", text, R"([{"name": "other"}])")), "f {}");
  EXPECT_EQ(calls_of(parse("hermes", text, "broken")), "f {}");
}

TEST(Hermes, ArgumentsStream) {
  auto parser = make_output_parser(dialect("hermes"), {.tools_json = tools()});
  std::vector<OutputEvent> events;
  parser->push("<tool_call>\n{\"name\": \"f\", \"arguments\": {\"te", events);
  ASSERT_EQ(events.size(), 2u);
  EXPECT_EQ(std::get<ToolCallStart>(events[0]).name, "f");
  EXPECT_EQ(std::get<ToolArgumentsDelta>(events[1]).json, "{\"te");
  EXPECT_TRUE(parser->in_tool_call());
  events.clear();
  parser->push("xt\": \"one two", events);
  EXPECT_EQ(std::get<ToolArgumentsDelta>(events.at(0)).json, "xt\": \"one two");
  events.clear();
  parser->push("\"}}\n</tool_call>Done", events);
  EXPECT_FALSE(parser->in_tool_call());
  EXPECT_EQ(join({ToolCallStart{0, "f", {}}, events.at(0), events.at(1), events.at(2)}).text, "Done");
}

TEST(Reasoning, BeginsInThePromptOrTheAnswer) {
  const std::string body = "Hm.\n\nYes <tool_call>{\"name\": \"f\"}</tool_call>\n</think>\n\nParis.\n";
  const std::string log = "\nR:Hm.\n\nYes <tool_call>{\"name\": \"f\"}</tool_call>\nT:Paris.\n";
  EXPECT_EQ(parse("hermes", body, tools(), "user\n<think>\n").log, log);
  EXPECT_EQ(parse("hermes", body, tools(), "user\n<think>").log, log);
  EXPECT_EQ(parse("hermes", "<think>\n" + body).log, log);
  EXPECT_EQ(parse("llama3", "\n<think>" + body).log, log);
  EXPECT_EQ(parse("generic", "<think>" + body, "").log, log);
  EXPECT_EQ(parse("mistral", "[THINK]Hm.[/THINK]Paris.").log, "\nR:Hm.\nT:Paris.");
  EXPECT_EQ(parse("gemma4", "<|channel>thought\nHm.\n<channel|>Paris.").log, "\nR:Hm.\nT:Paris.");
}

// Some models call before they have closed their reasoning, and say nothing after it.
TEST(Reasoning, ACallAtItsEndIsACall) {
  const struct {
    const char *dialect, *open, *close;
    std::string call;
  } cases[] = {
      {"hermes", "<think>", "</think>", "<tool_call>\n{\"name\": \"f\", \"arguments\": {\"a\": 1}}\n</tool_call>"},
      {"qwen_xml", "<think>", "</think>", "<tool_call><function=f><parameter=a>1</parameter></function></tool_call>"},
      {"glm", "<think>", "</think>", "<tool_call>f\n<arg_key>a</arg_key>\n<arg_value>1</arg_value>\n</tool_call>"},
      {"mistral", "[THINK]", "[/THINK]", "[TOOL_CALLS]f[ARGS]{\"a\": 1}"},
      {"deepseek", "<think>", "</think>",
       "<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>f<｜tool▁sep｜>{\"a\": 1}<｜tool▁call▁end｜><｜tool▁calls▁end｜>"},
      {"minimax", "<think>", "</think>",
       "<minimax:tool_call>\n<invoke name=\"f\">\n<parameter "
       "name=\"a\">1</parameter>\n</invoke>\n</minimax:tool_call>"},
      {"generic", "<think>", "</think>", "<tool_call>{\"name\": \"f\", \"arguments\": {\"a\": 1}}</tool_call>"},
  };
  const std::string schema = tools(R"({"a": {"type": "integer"}})");
  for (const auto& [name, open, close, call] : cases) {
    const std::string thought = std::string(open) + "Hm.\n\n" + call;
    for (const std::string& end : {std::string(), "\n" + std::string(close), std::string(close) + "\n\n"}) {
      EXPECT_EQ(parse(name, thought + end, schema).log, "\nR:Hm.\nC:f \nA:{\"a\": 1}\nE:complete") << name << end;
    }
    EXPECT_EQ(parse(name, call + "\n" + close, schema, open).log, "\nC:f \nA:{\"a\": 1}\nE:complete") << name;
    // What follows shows that it was a thought: text, another call, further reasoning.
    const std::string answered = parse(name, thought + "\n" + close + "\n\nParis.", schema).log;
    EXPECT_EQ(answered, "\nR:Hm.\n\n" + call + "\nT:Paris.") << name;
    const Answer again = parse(name, thought + close + "\n" + call, schema);
    EXPECT_EQ(again.calls.size(), 1u) << name;
    EXPECT_EQ(again.reasoning, "Hm.\n\n" + call) << name;
    EXPECT_EQ(parse(name, thought + "\nOr not?" + close + "Paris.", schema).log,
              "\nR:Hm.\n\n" + call + "\nOr not?\nT:Paris.")
        << name;
    // In the middle of a line, and without tools.
    EXPECT_EQ(parse(name, open + ("Use " + call) + close, schema).log, "\nR:Use " + call) << name;
    EXPECT_EQ(parse(name, thought + close, "").log, "\nR:Hm.\n\n" + call) << name;
    // Cut off.
    const std::string cut = thought.substr(0, thought.find('1') + 1);
    EXPECT_TRUE(parse(name, cut, schema).log.starts_with("\nR:Hm.\nC:f ")) << name;
    EXPECT_TRUE(parse(name, cut, schema).log.ends_with("\nE:cut off")) << name;
  }
  EXPECT_EQ(calls_of(parse("hermes",
                           "<think>\n<tool_call>{\"name\": \"f\"}</tool_call>\n<tool_call>{\"name\": "
                           "\"g\"}</tool_call></think>")),
            "f {}\ng {}");
}

TEST(Reasoning, OnlyWhereItIs) {
  // Empty, closed by the prompt, closed twice, spoken of.
  EXPECT_EQ(parse("hermes", "<think>\n\n</think>\n\nParis.").log, "\nT:Paris.");
  EXPECT_EQ(parse("hermes", "\n\nParis.", tools(), "<think>\n\n</think>\n\n").log, "\nT:Paris.");
  EXPECT_EQ(parse("hermes", "</think>\n\nParis.", tools(), "<think>\n\n</think>\n\n").log, "\nT:Paris.");
  EXPECT_EQ(parse("hermes", "Use <think> tags </think>.").log, "\nT:Use <think> tags </think>.");
  EXPECT_EQ(parse("hermes", "Paris.", tools(), "what does <think> mean?<|im_start|>assistant\n").log, "\nT:Paris.");
  EXPECT_EQ(parse("hermes", "\n\nand so on", tools(), "<|im_start|>assistant\nThe").log, "\nT:\n\nand so on");
  EXPECT_EQ(parse("hermes", "<think>never closed\n").log, "\nR:never closed");
  EXPECT_EQ(parse("hermes", "<think>a</think><think>b</think>c").log, "\nR:a\n\nb\nT:c");
  EXPECT_EQ(parse("hermes", "<thin").log, "\nT:<thin");
  EXPECT_EQ(parse("granite", "<think>Hm.</think><response>It <response> is.</response>").log,
            "\nR:Hm.\nT:It <response> is.");
}

TEST(Reasoning, IsKnownWhileItLasts) {
  auto parser = make_output_parser(dialect("hermes"), {.prompt_text = "<think>\n"});
  std::vector<OutputEvent> events;
  EXPECT_TRUE(parser->in_reasoning());
  parser->push("Hm.</think>", events);
  EXPECT_FALSE(parser->in_reasoning());
}

TEST(Qwen, TypesComeFromTheSchema) {
  const std::string schema = tools(R"({"s": {"type": "string"}, "i": {"type": "integer"}, "n": {"type": "number"},
      "b": {"type": "boolean"}, "o": {"type": "object"}, "a": {"type": "array"}, "z": {"type": ["string", "null"]},
      "u": {"anyOf": [{"type": "integer"}, {"type": "string"}]}, "e": {"enum": ["1", "2"]}, "r": {"$ref": "#/$defs/t"}})");
  const std::pair<std::pair<const char*, const char*>, const char*> cases[] = {
      {{"s", "5"}, R"("5")"},
      {{"s", "{\"a\": 1}"}, R"("{\"a\": 1}")"},
      {{"s", "null"}, R"("null")"},
      {{"s", ""}, R"("")"},
      {{"s", "\n a \n"}, R"("\n a \n")"},
      {{"s", "a\n</parameter>\nb"}, R"("a\n</parameter>\nb")"},
      {{"s", "<parameter=x>"}, R"("<parameter=x>")"},
      {{"i", "5"}, "5"},
      {{"i", " 5 "}, "5"},
      {{"i", "five"}, R"("five")"},
      {{"i", "\"5\""}, R"("5")"},
      {{"i", "None"}, "null"},
      {{"n", "1e3"}, "1e3"},
      {{"b", "true"}, "true"},
      {{"b", "True"}, "true"},
      {{"o", "{\"a\": [1, 2]}"}, R"({"a": [1, 2]})"},
      {{"o", "{'a': True,}"}, R"({"a": true})"},
      {{"o", "{\"a\": 1} x"}, R"("{\"a\": 1} x")"},
      {{"a", "[1,\n 2]"}, "[1,\n 2]"},
      {{"a", "1, 2"}, R"("1, 2")"},
      {{"z", "null"}, "null"},
      {{"z", "None"}, "null"},
      {{"z", "nullify"}, R"("nullify")"},
      {{"z", "7"}, R"("7")"},
      {{"u", "7"}, "7"},
      {{"u", "7 am"}, R"("7 am")"},
      {{"e", "1"}, R"("1")"},
      {{"unknown", "[1]"}, "[1]"},
      {{"unknown", "7"}, "7"},
      {{"unknown", "text"}, R"("text")"},
      {{"unknown", ""}, R"("")"},
      {{"unknown", "\"q\""}, R"("\"q\"")"},
  };
  for (const auto& [parameter, expected] : cases) {
    const std::string key = parameter.first;
    const Answer answer = parse("qwen_xml",
                                "<tool_call>\n<function=f>\n<parameter=" + key + ">\n" + parameter.second +
                                    "\n</parameter>\n</function>\n</tool_call>",
                                schema);
    EXPECT_EQ(calls_of(answer), "f {\"" + key + "\": " + expected + "}");
  }
}

TEST(Qwen, LenientForms) {
  const std::pair<const char*, const char*> cases[] = {
      {"<function=f>\n<parameter=a>\nx\n</parameter>\n</function>", R"(f {"a": "x"})"},
      {"<tool_call><function=f><parameter=a>x</parameter><parameter=b>y</parameter></function></tool_call>",
       R"(f {"a": "x", "b": "y"})"},
      {"<tool_call>\n<function=f>\n<parameter=a>\nx\n</parameter>\n</tool_call>", R"(f {"a": "x"})"},
      {"<tool_call>\n<function=f>\n<parameter=a>\nx\n</function>\n</tool_call>", R"(f {"a": "x"})"},
      {"<tool_call>\n<function=f>\n<parameter=a>\nx\n</parameter>\n<parameter=b>\nlong te",
       R"(f {"a": "x", "b": "long te...)"},
      {"<tool_call>\n<function=f>\n<parameter=a>\nx\n</parameter>\n", R"(f {"a": "x"...)"},
      {"<tool_call>\n<function=f>\n</function>\n</tool_call>", "f {}"},
      {"<tool_call>\n<function=f></tool_call>", "f {}"},
      {"<tool_call>\n<function=f>\n</function>\n<function=g>\n</function>\n</tool_call>", "f {}\ng {}"},
      {"<tool_call>{\"name\": \"f\", \"arguments\": {}}</tool_call>", "f {}"},
  };
  for (const auto& [text, expected] : cases) {
    const Answer answer = parse("qwen_xml", text);
    EXPECT_EQ(calls_of(answer), expected) << text;
    EXPECT_EQ(answer.text, "") << text;
  }
}

TEST(Qwen, StringsStreamAndOthersWait) {
  auto parser = make_output_parser(dialect("qwen_xml"), {.tools_json = tools(R"({"a": {"type": "string"}})")});
  std::vector<OutputEvent> events;
  parser->push("<tool_call>\n<function=f>\n<parameter=a>\n1 \"two\"\nthree", events);
  ASSERT_EQ(events.size(), 2u);
  EXPECT_EQ(std::get<ToolArgumentsDelta>(events[1]).json, R"({"a": "1 \"two\"\nthree)");
}

TEST(Glm, Calls) {
  for (const char* text :
       {"\nLooking.\n<tool_call>f\n<arg_key>a</arg_key>\n<arg_value>x\n</arg_value>\n<arg_key>b</arg_key>\n"
        "<arg_value>2</arg_value>\n</tool_call>",
        "Looking.<tool_call>f<arg_key>a</arg_key><arg_value>x\n</arg_value><arg_key>b</arg_key>"
        "<arg_value>2</arg_value></tool_call>"}) {
    const Answer answer = parse("glm", text, tools(R"({"b": {"type": "number"}})"), "<|assistant|>");
    EXPECT_EQ(answer.text, "Looking.");
    EXPECT_EQ(calls_of(answer), R"(f {"a": "x\n", "b": 2})");
  }
  EXPECT_EQ(calls_of(parse("glm", "<tool_call>f\n</tool_call>\n<tool_call>g</tool_call>")), "f {}\ng {}");
  EXPECT_EQ(calls_of(parse("glm", "<tool_call>f\n<arg_key>a</arg_key>\n<arg_value>abc")), R"(f {"a": "abc...)");
  EXPECT_EQ(parse("glm", "<tool_call>f is called").text, "<tool_call>f is called");
}

TEST(Llama3, TheAnswerIsACall) {
  EXPECT_EQ(calls_of(parse("llama3", R"({"name": "f", "parameters": {"a": 1}})")), R"(f {"a": 1})");
  EXPECT_EQ(
      calls_of(parse("llama3", R"(<|python_tag|>{"name": "f", "parameters": {}}; {"name": "g", "parameters": {}})")),
      "f {}\ng {}");
  EXPECT_EQ(calls_of(parse("llama3", R"({"type": "function", "name": "f", "parameters": {"a": "b"}})")),
            R"(f {"a": "b"})");
  EXPECT_EQ(calls_of(parse("llama3", R"([{"name": "f", "parameters": {}}, {"name": "g", "parameters": {}}])")),
            "f {}\ng {}");
  EXPECT_EQ(calls_of(parse("llama3", R"(I call: {"name": "f", "parameters": {}})")), "f {}");
  for (const char* text :
       {R"({"title": "x", "name": "f", "parameters": {}})", R"({"name": "Bob", "age": 3})", "{}", "[1, 2]",
        R"({"name": "f", "parameters": 3})", "<|python_tag|>print(1)", "{", R"({"name": "f")"}) {
    const Answer answer = parse("llama3", text);
    EXPECT_EQ(answer.text, text);
    EXPECT_TRUE(answer.calls.empty()) << text;
  }
}

TEST(Mistral, BothForms) {
  EXPECT_EQ(calls_of(parse("mistral", R"(Hi. [TOOL_CALLS][{"name": "f", "arguments": {"a": 1}, "id": "abcdefghi"}, )"
                                      R"({"name": "g", "arguments": {}, "id": "123456789"}])")),
            "f {\"a\": 1}\ng {}");
  const Answer named =
      parse("mistral", R"([TOOL_CALLS]f[CALL_ID]abcdefghi[ARGS]{"a": "[TOOL_CALLS]"}[TOOL_CALLS]g[ARGS]{})");
  EXPECT_EQ(calls_of(named), "f {\"a\": \"[TOOL_CALLS]\"}\ng {}");
  EXPECT_EQ(named.calls[0].id, "abcdefghi");
  EXPECT_EQ(calls_of(parse("mistral", R"([TOOL_CALLS]f{"a": 1}[TOOL_CALLS]g[ARGS]{"b")")), "f {\"a\": 1}\ng {\"b\"...");
  for (const char* text : {"[TOOL_CALLS]", "[TOOL_CALLS] is a marker {}", "[TOOL_CALLS]f[ARGS]x", "[TOOL_CA"}) {
    EXPECT_EQ(parse("mistral", text).log, "\nT:" + std::string(text));
  }
}

TEST(Deepseek, BothForms) {
  EXPECT_EQ(parse("deepseek",
                  "Hi.<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>f<｜tool▁sep｜>{\"a\": 1}<｜tool▁call▁end｜>"
                  "<｜tool▁call▁begin｜>g<｜tool▁sep｜>{}<｜tool▁call▁end｜><｜tool▁calls▁end｜>")
                .log,
            "\nT:Hi.\nC:f \nA:{\"a\": 1}\nE:complete\nC:g \nA:{}\nE:complete");
  EXPECT_EQ(calls_of(parse("deepseek",
                           "<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>function<｜tool▁sep｜>f\n```json\n{\"a\": 1}\n"
                           "```<｜tool▁call▁end｜>\n<｜tool▁call▁begin｜>function<｜tool▁sep｜>g\n```json\n{}\n```"
                           "<｜tool▁call▁end｜><｜tool▁calls▁end｜>")),
            "f {\"a\": 1}\ng {}");
  EXPECT_EQ(calls_of(parse("deepseek", "<｜tool▁call▁begin｜>f<｜tool▁sep｜>{\"a\": \"b")), "f {\"a\": \"b...");
  EXPECT_EQ(calls_of(parse("deepseek", "<｜tool▁call▁begin｜>f<｜tool▁sep｜><｜tool▁call▁end｜>")), "f {}");
  EXPECT_EQ(parse("deepseek", "<｜tool▁calls▁begin｜>nothing").text, "<｜tool▁calls▁begin｜>nothing");
}

TEST(Dsml, Calls) {
  for (const char* section : {"tool_calls", "function_calls"}) {
    const std::string name = section;
    EXPECT_EQ(parse("dsml", "Hi.\n\n<｜DSML｜" + name +
                                ">\n<｜DSML｜invoke name=\"f\">\n<｜DSML｜parameter name=\"a\" string=\"true\">5"
                                "</｜DSML｜parameter>\n<｜DSML｜parameter name=\"b\" string=\"false\">{\"x\": "
                                "[5]}</｜DSML｜parameter>\n"
                                "</｜DSML｜invoke>\n<｜DSML｜invoke name=\"g\">\n</｜DSML｜invoke>\n</｜DSML｜" +
                                name + ">")
                  .log,
              "\nT:Hi.\nC:f \nA:{\"a\": \"5\", \"b\": {\"x\": [5]}}\nE:complete\nC:g \nA:{}\nE:complete");
  }
}

TEST(Kimi, Calls) {
  const Answer answer =
      parse("kimi",
            "Hi.<|tool_calls_section_begin|><|tool_call_begin|>functions.f:0<|tool_call_argument_begin|>"
            "{\"a\": 1}<|tool_call_end|><|tool_call_begin|>functions.a:b:12<|tool_call_argument_begin|>"
            "{}<|tool_call_end|><|tool_calls_section_end|>");
  EXPECT_EQ(answer.text, "Hi.");
  EXPECT_EQ(calls_of(answer), "f {\"a\": 1}\na:b {}");
  EXPECT_EQ(answer.calls[0].id, "functions.f:0");
}

TEST(Minimax, Calls) {
  EXPECT_EQ(calls_of(parse("minimax",
                           "\n<minimax:tool_call>\n<invoke name=\"f\">\n<parameter name=\"a\">x\n</parameter>\n"
                           "<parameter name=\"b\">[1]</parameter>\n</invoke>\n<invoke name=\"g\">\n</invoke>\n"
                           "</minimax:tool_call>")),
            "f {\"a\": \"x\\n\", \"b\": [1]}\ng {}");
}

TEST(Lists, NemotronAndGranite) {
  const std::string list = R"([{"name": "f", "arguments": {"a": 1}}, {"name": "g", "arguments": {}}])";
  EXPECT_EQ(calls_of(parse("nemotron", "<TOOLCALL>" + list + "</TOOLCALL>")), "f {\"a\": 1}\ng {}");
  EXPECT_EQ(calls_of(parse("granite", "<|tool_call|>" + list)), "f {\"a\": 1}\ng {}");
  EXPECT_EQ(calls_of(parse(
                "seed", "<seed:tool_call>\n<function=f>\n<parameter=a>x</parameter>\n</function>\n</seed:tool_call>")),
            R"(f {"a": "x"})");
}

TEST(Gemma4, Calls) {
  EXPECT_EQ(parse("gemma4",
                  "Hi.<|tool_call>call:f{city:<|\"|>a \"b\"\n{x:1}<|\"|>,n:-2.5,b:true,z:None,l:[1,<|\"|>x<|\"|>],"
                  "o:{k:<|\"|><|\"|>}}<tool_call|><|tool_call>call:g{}<tool_call|>")
                .log,
            "\nT:Hi.\nC:f \nA:{\"city\":\"a \\\"b\\\"\\n{x:1}\",\"n\":-2.5,\"b\":true,\"z\":null,\"l\":[1,\"x\"],"
            "\"o\":{\"k\":\"\"}}\nE:complete\nC:g \nA:{}\nE:complete");
  EXPECT_EQ(calls_of(parse("gemma4", "<|tool_call>call:f{a:<|\"|>text")), R"(f {"a":"text...)");
  EXPECT_EQ(calls_of(parse("gemma4", "<|tool_call>call:f{a:1<tool_call|>")), R"(f {"a":1})");
  EXPECT_EQ(parse("gemma4", "<|tool_call>nothing").text, "<|tool_call>nothing");
  EXPECT_EQ(parse("gemma4", "a<|channel>thought\nb<channel|>c").log, "\nT:a\nR:b\nT:c");
}

TEST(Harmony, Channels) {
  const std::string prompt = "<|start|>user<|message|>x<|end|><|start|>assistant";
  EXPECT_EQ(
      parse("harmony", "<|channel|>analysis<|message|>Hm.<|end|><|start|>assistant<|channel|>final<|message|>Paris.",
            tools(), prompt)
          .log,
      "\nR:Hm.\nT:Paris.");
  EXPECT_EQ(
      parse(
          "harmony",
          "<|channel|>analysis<|message|>Hm.<|end|><|start|>assistant<|channel|>commentary<|message|>Let me see.<|end|>"
          "<|start|>assistant<|channel|>commentary to=functions.f <|constrain|>json<|message|>{\"a\": 1}<|call|>",
          tools(), prompt)
          .log,
      "\nR:Hm.\nT:Let me see.\nC:f \nA:{\"a\": 1}\nE:complete");
  EXPECT_EQ(calls_of(parse("harmony", " to=functions.f<|channel|>commentary json<|message|>{\"a\": \"<|end|>\"}",
                           tools(), prompt)),
            "f {\"a\": \"<|end|>\"}");
  EXPECT_EQ(calls_of(parse("harmony", "<|channel|>commentary to=functions.f<|message|>{\"a\": \"x", tools(), prompt)),
            "f {\"a\": \"x...");
  EXPECT_EQ(calls_of(parse("harmony", "<|channel|>commentary to=functions.f<|message|>", tools(), prompt)), "f ...");
  EXPECT_EQ(calls_of(parse("harmony", "<|channel|>commentary to=functions.f<|message|><|call|>", tools(), prompt)),
            "f {}");
  EXPECT_EQ(parse("harmony", "<|channel|>commentary to=functions.f<|message|>{}", "", prompt).log, "\nT:{}");
  EXPECT_EQ(parse("harmony", "<|channel|>analysis to=python<|message|>print(1)<|call|>", tools(), prompt).log,
            "\nR:print(1)");
  EXPECT_EQ(parse("harmony", "Just text.", tools(), prompt).log, "\nT:Just text.");
  EXPECT_EQ(parse("harmony", "on.", tools(), prompt + "<|channel|>analysis<|message|>Go ").log, "\nR:on.");
  EXPECT_EQ(parse("harmony", " on.", tools(), prompt + "<|channel|>final<|message|>Go").log, "\nT: on.");
  EXPECT_EQ(
      parse("harmony", "<|channel|>final<|message|>a<|end|><|start|>assistant<|channel|>final<|message|>b", "", prompt)
          .log,
      "\nT:a\n\nb");
}

TEST(Generic, AnyForm) {
  const std::string call = R"({"name": "f", "arguments": {"a": 1}})";
  EXPECT_EQ(calls_of(parse("generic", call)), R"(f {"a": 1})");
  EXPECT_EQ(parse("generic", "Sure:\n```json\n" + call + "\n```\nDone.").log,
            "\nT:Sure:\nC:f \nA:{\"a\": 1}\nE:complete\nT:\nDone.");
  EXPECT_EQ(calls_of(parse("generic", "<tool_call>" + call + "</tool_call>")), R"(f {"a": 1})");
  EXPECT_EQ(calls_of(parse("no such dialect", call)), R"(f {"a": 1})");
  for (const char* text : {"```json\n{\"name\": \"left-pad\", \"arguments\": {}}\n```", "```json\n{\"a\": 1}\n```",
                           "```json", "{\"a\": [1]}", "```js\nx\n```"}) {
    EXPECT_EQ(parse("generic", text).log, "\nT:" + std::string(text));
  }
}

}  // namespace
}  // namespace hearth
