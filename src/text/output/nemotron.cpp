// Nemotron Nano v2: <TOOLCALL>[{"name": ..., "arguments": {...}}, ...]</TOOLCALL>.
#include "text/output/dialects.h"
#include "text/output/json_calls.h"

namespace hearth {
namespace {

constexpr std::string_view kClose = "</TOOLCALL>";

std::unique_ptr<CallReader> tool_call(const ToolSchemas&) { return std::make_unique<JsonCalls>(kClose); }

}  // namespace

AnswerForm nemotron_form() { return {.openers = {{.marker = "<TOOLCALL>", .reader = tool_call}}, .closers = {kClose}}; }

}  // namespace hearth
