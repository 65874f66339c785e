// MiniMax-M2: <minimax:tool_call><invoke name="NAME"><parameter name="KEY">VALUE</parameter></invoke> and so on.
#include "text/output/dialects.h"
#include "text/output/tagged_calls.h"

namespace hearth {
namespace {

constexpr TaggedForm kMinimax = {.call_open = "<invoke name=\"",
                                 .name_end = "\">",
                                 .key_open = "<parameter name=\"",
                                 .key_end = "\">",
                                 .value_open = "",
                                 .value_close = "</parameter>",
                                 .call_close = "</invoke>",
                                 .section_close = "</minimax:tool_call>"};

std::unique_ptr<CallReader> tool_call(const ToolSchemas& schemas) {
  return std::make_unique<TaggedCalls>(kMinimax, schemas, false);
}

}  // namespace

AnswerForm minimax_form() {
  return {.openers = {{.marker = "<minimax:tool_call>", .reader = tool_call}}, .closers = {kMinimax.section_close}};
}

}  // namespace hearth
