// Garbage: no crash, no lost text, no more than linear time.
#include <ctime>

#include "answers.h"

namespace hearth {
namespace {

const std::vector<std::string> kDialects = {"deepseek", "dsml",    "gemma4",   "generic",  "glm",
                                            "granite",  "harmony", "hermes",   "kimi",     "llama3",
                                            "minimax",  "mistral", "nemotron", "qwen_xml", "seed"};

// Pieces of all forms, broken and whole.
const std::vector<std::string> kPieces = {"<think>",
                                          "</think>",
                                          "<tool_call>",
                                          "</tool_call>",
                                          "\n",
                                          " ",
                                          "{\"name\": \"f\", \"arguments\": {",
                                          "\"a\": ",
                                          "\"x\"",
                                          "}",
                                          "}}",
                                          "{",
                                          "[",
                                          "]",
                                          ",",
                                          ":",
                                          "\"",
                                          "'",
                                          "\\",
                                          "\\u12",
                                          "\\ud83d",
                                          "1.5",
                                          "true",
                                          "<function=f>",
                                          "</function>",
                                          "<parameter=a>",
                                          "</parameter>",
                                          "f",
                                          "name",
                                          "\"name\"",
                                          "\"arguments\"",
                                          "\"parameters\"",
                                          "<arg_key>",
                                          "</arg_key>",
                                          "<arg_value>",
                                          "</arg_value>",
                                          "[TOOL_CALLS]",
                                          "[ARGS]",
                                          "[CALL_ID]",
                                          "[THINK]",
                                          "[/THINK]",
                                          "<TOOLCALL>",
                                          "</TOOLCALL>",
                                          "<|tool_call|>",
                                          "<|python_tag|>",
                                          "<｜tool▁calls▁begin｜>",
                                          "<｜tool▁call▁begin｜>",
                                          "<｜tool▁sep｜>",
                                          "<｜tool▁call▁end｜>",
                                          "<｜tool▁calls▁end｜>",
                                          "```json",
                                          "```",
                                          "<｜DSML｜tool_calls>",
                                          "<｜DSML｜invoke name=\"",
                                          "\">",
                                          "<｜DSML｜parameter name=\"",
                                          "\" string=\"true\">",
                                          "</｜DSML｜parameter>",
                                          "</｜DSML｜invoke>",
                                          "<|tool_calls_section_begin|>",
                                          "<|tool_call_begin|>",
                                          "functions.f:0",
                                          "<|tool_call_argument_begin|>",
                                          "<|tool_call_end|>",
                                          "<minimax:tool_call>",
                                          "<invoke name=\"",
                                          "</invoke>",
                                          "<parameter name=\"",
                                          "<|tool_call>",
                                          "call:f{",
                                          "<|\"|>",
                                          "<tool_call|>",
                                          "<|channel>thought",
                                          "<channel|>",
                                          "<|channel|>",
                                          "<|message|>",
                                          "<|start|>assistant",
                                          "<|end|>",
                                          "<|call|>",
                                          "to=",
                                          "functions.f",
                                          "analysis",
                                          "commentary",
                                          "final",
                                          "<|constrain|>",
                                          "json",
                                          "<response>",
                                          "</response>",
                                          "é",
                                          "<",
                                          "<|",
                                          "{\"name\""};

TEST(Robustness, RandomPiecesAreTheSameHoweverTheyAreCut) {
  std::mt19937 random(1);
  const std::string prompts[] = {"", "<think>\n", "<|start|>assistant", "</think>\n"};
  for (int round = 0; round < 6000; ++round) {
    std::string text;
    for (size_t n = 1 + random() % 12; n > 0; --n) text += kPieces[random() % kPieces.size()];
    const std::string name = kDialects[random() % kDialects.size()];
    parse(name, text, random() % 8 == 0 ? "" : tools(), prompts[random() % std::size(prompts)]);
    if (HasFailure()) FAIL() << name << "\n" << text;
  }
}

TEST(Robustness, RandomBytesAreTextAndNeverCrash) {
  std::mt19937 random(2);
  for (int round = 0; round < 3000; ++round) {
    std::string text = round % 3 == 0 ? kPieces[random() % kPieces.size()] : "";
    std::string noise;
    for (size_t n = random() % 200; n > 0; --n) noise += static_cast<char>(random());
    const std::string name = kDialects[random() % kDialects.size()];
    for (size_t size : {1u, 7u, 1000u}) join(events_of(dialect(name), {.tools_json = tools()}, text + noise, {size}));
    // Without a byte that begins markup or JSON all of it is text.
    std::erase_if(noise, [](char c) { return c == '<' || c == '{' || c == '[' || c == '`' || c == 't' || c == '\n'; });
    noise = "x" + noise + "x";
    EXPECT_EQ(join(events_of(dialect(name), {.tools_json = tools()}, noise, {3})).text, noise);
  }
}

// Words between the pieces come out somewhere, and each once.
TEST(Robustness, NoWordIsLost) {
  std::mt19937 random(3);
  const std::vector<std::string> pieces = {"<tool_call>",
                                           "</tool_call>",
                                           "<tool_call>{\"name\": \"f\", \"arguments\": {}}</tool_call>",
                                           "<tool_call>{",
                                           "[TOOL_CALLS]",
                                           "<TOOLCALL>",
                                           "<｜tool▁calls▁begin｜>",
                                           "<|tool_call>call:",
                                           "<tool_call>f\n",
                                           "<function=",
                                           "<think>",
                                           "</think>",
                                           "{\"name\": ",
                                           "```json\n",
                                           "\n",
                                           "<|tool_call|>",
                                           "<minimax:tool_call>\n",
                                           "<|tool_call_begin|>",
                                           "<|python_tag|>"};
  for (int round = 0; round < 4000; ++round) {
    std::string text;
    const int words = 1 + static_cast<int>(random() % 6);
    for (int i = 0; i < words; ++i) {
      text += pieces[random() % pieces.size()] + " word" + std::to_string(i) + ". ";
    }
    const std::string name = kDialects[random() % kDialects.size()];
    if (name == "harmony") continue;
    const std::string log = parse(name, text).log;
    for (int i = 0; i < words; ++i) {
      const std::string word = "word" + std::to_string(i) + ".";
      ASSERT_NE(log.find(word), std::string::npos) << name << " lost " << word << "\n" << text << "\n---" << log;
      ASSERT_EQ(log.find(word), log.rfind(word)) << name << " repeats " << word << "\n" << text << "\n---" << log;
    }
  }
}

// Byte by byte, what each parser looks longest at. Quadratic time would be many seconds for a quarter of a megabyte.
void expect_linear(size_t size, double seconds_each) {
  const std::string patterns[] = {"<",
                                  "<tool_call>",
                                  "<tool_call>{\"arguments\": {\"a\": \"",
                                  "\n",
                                  " ",
                                  "a",
                                  "1",
                                  "{",
                                  "[",
                                  "\"",
                                  "\\u",
                                  "</parameter>",
                                  "\n</parameter>\n",
                                  "<tool_call>\n<function=f>\n<parameter=a>\n",
                                  "`",
                                  "[TOOL_CALLS]f",
                                  "<|tool_call>call:f{a:<|\"|>",
                                  "<|channel|>commentary to=functions.f<|message|>{",
                                  "<think>\n",
                                  "{\"name\": \"f\", \"arguments\": {}}\n",
                                  "<｜tool▁calls▁begin｜>",
                                  "<tool_call>f\n<arg_key>a</arg_key>"};
  const std::string prefixes[] = {"", "<tool_call>\n<function=f>\n<parameter=a>\n",
                                  "<tool_call>{\"arguments\": {\"a\": \"",
                                  "<tool_call>{\"name\": \"f\", \"arguments\": {\"a\": "};
  size_t i = 0;
  for (const std::string& prefix : prefixes) {
    for (const std::string& pattern : patterns) {
      std::string text = prefix;
      while (text.size() < size) text += pattern;
      const std::string name = prefix.empty() ? kDialects[i++ % kDialects.size()] : "generic";
      const std::clock_t start = std::clock();
      auto parser = make_output_parser(dialect(name), {.tools_json = tools()});
      std::vector<OutputEvent> events;
      for (char c : text) {
        events.clear();
        parser->push({&c, 1}, events);
      }
      parser->finish(events);
      const double seconds = static_cast<double>(std::clock() - start) / CLOCKS_PER_SEC;
      ASSERT_LT(seconds, seconds_each) << name << ": " << prefix << pattern;
    }
  }
}

TEST(Robustness, TimeIsLinear) { expect_linear(size_t{1} << 18, 2); }
TEST(Robustness, TimeOfMegabytesIsLinear_slow) { expect_linear(size_t{10} << 20, 60); }

}  // namespace
}  // namespace hearth
