// Models whose template shows no form of calls: a JSON object with name and arguments, in <tool_call> tags, in a code
// fence or alone.
#include "text/output/dialects.h"
#include "text/output/json_calls.h"

namespace hearth {
namespace {

// What stands in a fence may be an example, so the tool must be known.
std::unique_ptr<CallReader> fenced(const ToolSchemas& schemas) {
  return std::make_unique<JsonCalls>("```", EnvelopeOptions{.bare = true, .known = &schemas});
}
std::unique_ptr<CallReader> bare(const ToolSchemas&) {
  return std::make_unique<JsonCalls>("", EnvelopeOptions{.bare = true});
}

}  // namespace

AnswerForm generic_form() {
  AnswerForm form = hermes_form();
  form.openers.push_back({.marker = "```json", .reader = fenced});
  form.openers.push_back({.marker = "{", .reader = bare, .at_start = true, .kept = true});
  form.openers.push_back({.marker = "[", .reader = bare, .at_start = true, .kept = true});
  return form;
}

}  // namespace hearth
