// DeepSeek V3.2 and V4: <｜DSML｜invoke name="NAME"> with <｜DSML｜parameter name="KEY" string="true">VALUE, in a
// section.
#include "text/output/dialects.h"
#include "text/output/tagged_calls.h"

namespace hearth {
namespace {

constexpr TaggedForm kDsml = {.call_open = "<｜DSML｜invoke name=\"",
                              .name_end = "\">",
                              .key_open = "<｜DSML｜parameter name=\"",
                              .key_end = "\">",
                              .value_open = "",
                              .value_close = "</｜DSML｜parameter>",
                              .call_close = "</｜DSML｜invoke>",
                              .section_close = "</｜DSML｜tool_calls>"};

std::unique_ptr<CallReader> tool_calls(const ToolSchemas& schemas) {
  return std::make_unique<TaggedCalls>(kDsml, schemas, false);
}

std::unique_ptr<CallReader> function_calls(const ToolSchemas& schemas) {
  TaggedForm form = kDsml;
  form.section_close = "</｜DSML｜function_calls>";
  return std::make_unique<TaggedCalls>(form, schemas, false);
}

}  // namespace

AnswerForm dsml_form() {
  return {.openers = {{.marker = "<｜DSML｜tool_calls>", .reader = tool_calls},
                      {.marker = "<｜DSML｜function_calls>", .reader = function_calls}},
          .closers = {"</｜DSML｜tool_calls>", "</｜DSML｜function_calls>"}};
}

}  // namespace hearth
