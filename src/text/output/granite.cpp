// Granite 3: <|tool_call|>[{"name": ..., "arguments": {...}}]; an answer that follows reasoning in <response> tags.
// Phi-4 mini closes its calls with <|/tool_call|>.
#include "text/output/dialects.h"
#include "text/output/json_calls.h"

namespace hearth {
namespace {

constexpr std::string_view kClose = "<|/tool_call|>";

std::unique_ptr<CallReader> tool_call(const ToolSchemas&) { return std::make_unique<JsonCalls>(kClose); }

}  // namespace

AnswerForm granite_form() {
  return {.openers = {{.marker = "<|tool_call|>", .reader = tool_call}},
          .closers = {kClose},
          .wrapper = {.open = "<response>", .close = "</response>"}};
}

}  // namespace hearth
