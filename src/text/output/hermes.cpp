// Hermes and Qwen: <tool_call>{"name": ..., "arguments": {...}}</tool_call>. Qwen3-Coder and Qwen3.5:
// <tool_call><function=NAME><parameter=KEY>VALUE</parameter></function></tool_call>, sometimes without its first tag.
#include "text/output/dialects.h"
#include "text/output/json_or_other.h"
#include "text/output/tagged_calls.h"

namespace hearth {
namespace {

constexpr TaggedForm kXml = function_tags("</tool_call>", true);

std::unique_ptr<CallReader> tool_call(const ToolSchemas& schemas) {
  return std::make_unique<JsonOrOther>(kXml.section_close, std::make_unique<TaggedCalls>(kXml, schemas, false));
}

std::unique_ptr<CallReader> function(const ToolSchemas& schemas) {
  return std::make_unique<TaggedCalls>(kXml, schemas, true);
}

}  // namespace

AnswerForm hermes_form() {
  return {.openers = {{.marker = "<tool_call>", .reader = tool_call}, {.marker = kXml.call_open, .reader = function}},
          .closers = {"</tool_call>", "</function>"}};
}

}  // namespace hearth
