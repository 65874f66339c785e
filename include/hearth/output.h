// What a model writes, taken apart: reasoning, text, calls of tools.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

namespace hearth {

struct ReasoningDelta {
  std::string text;
};

struct TextDelta {
  std::string text;
};

// Calls of one answer are numbered 0, 1, ... in the order in which they come; one ends before the next starts.
struct ToolCallStart {
  int32_t index = 0;
  std::string name;
  std::string id;  // as the model wrote it, where its template must get it back; empty: it wrote none
};

// The pieces of one call, joined, are one JSON object, whatever form the model writes arguments in.
struct ToolArgumentsDelta {
  int32_t index = 0;
  std::string json;
};

struct ToolCallEnd {
  int32_t index = 0;
  bool complete = true;  // false: the answer stopped in the middle of it; its JSON is cut off
};

using OutputEvent = std::variant<ReasoningDelta, TextDelta, ToolCallStart, ToolArgumentsDelta, ToolCallEnd>;

struct OutputOptions {
  std::string tools_json;   // the tools of the conversation, as given to Text::render; "": calls stay text
  std::string prompt_text;  // as rendered; its end tells whether the answer begins inside of reasoning
};

// Takes one answer apart as it comes. It never fails: what is not understood is text.
class OutputParser {
 public:
  virtual ~OutputParser() = default;

  // The next stretch of the answer, with the names of control tokens in it (Request::special_text). Appends what is
  // sure to `events`; a marker that is not complete is held back.
  virtual void push(std::string_view text, std::vector<OutputEvent>& events) = 0;
  // The answer is over. Appends what was held back and ends a call that is open.
  virtual void finish(std::vector<OutputEvent>& events) = 0;

  virtual bool in_reasoning() const = 0;
  virtual bool in_tool_call() const = 0;
};

// How a model marks what the parser looks for, for those who steer it. Empty where the model has no such marker.
struct OutputMarkers {
  std::string dialect;          // "hermes", "qwen_xml", "llama3", "mistral", "deepseek", "glm", "harmony", ...
  std::string reasoning_open;   // "<think>"
  std::string reasoning_close;  // "</think>": what ends reasoning early when it is put into the answer
  // What stands in front of a call, for Constraint::after. Empty where nothing tells a call from text that early.
  std::string tool_call_open;
};

}  // namespace hearth
