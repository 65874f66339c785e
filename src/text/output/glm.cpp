// GLM 4.x: <tool_call>NAME, then <arg_key>KEY</arg_key><arg_value>VALUE</arg_value> for each, each on its line or not.
#include "text/output/dialects.h"
#include "text/output/json_or_other.h"
#include "text/output/tagged_calls.h"

namespace hearth {
namespace {

constexpr TaggedForm kGlm = {.call_open = "",
                             .name_end = "",
                             .key_open = "<arg_key>",
                             .key_end = "</arg_key>",
                             .value_open = "<arg_value>",
                             .value_close = "</arg_value>",
                             .call_close = "",
                             .section_close = "</tool_call>"};

std::unique_ptr<CallReader> tool_call(const ToolSchemas& schemas) {
  return std::make_unique<JsonOrOther>(kGlm.section_close, std::make_unique<TaggedCalls>(kGlm, schemas, true));
}

}  // namespace

AnswerForm glm_form() {
  return {.openers = {{.marker = "<tool_call>", .reader = tool_call}},
          .closers = {kGlm.section_close},
          .turn_open = "<|assistant|>"};
}

}  // namespace hearth
