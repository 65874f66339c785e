// Llama 3: the whole answer is {"name": ..., "parameters": {...}}, perhaps behind <|python_tag|>, several with a
// semicolon between them.
#include "text/output/dialects.h"
#include "text/output/json_calls.h"

namespace hearth {
namespace {

std::unique_ptr<CallReader> tagged(const ToolSchemas&) { return std::make_unique<JsonCalls>(""); }
std::unique_ptr<CallReader> bare(const ToolSchemas&) {
  return std::make_unique<JsonCalls>("", EnvelopeOptions{.bare = true});
}

}  // namespace

AnswerForm llama3_form() {
  return {.openers = {{.marker = "<|python_tag|>", .reader = tagged},
                      {.marker = "{", .reader = bare, .at_start = true, .kept = true},
                      {.marker = "[", .reader = bare, .at_start = true, .kept = true},
                      {.marker = "{\"name\"", .reader = bare, .kept = true}},
          .closers = {}};
}

}  // namespace hearth
