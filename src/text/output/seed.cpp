// Seed-OSS: <seed:tool_call><function=NAME><parameter=KEY>VALUE</parameter></function></seed:tool_call>.
#include "text/output/dialects.h"
#include "text/output/tagged_calls.h"

namespace hearth {
namespace {

constexpr TaggedForm kSeed = function_tags("</seed:tool_call>", false);

std::unique_ptr<CallReader> tool_call(const ToolSchemas& schemas) {
  return std::make_unique<TaggedCalls>(kSeed, schemas, false);
}

}  // namespace

AnswerForm seed_form() {
  return {.openers = {{.marker = "<seed:tool_call>", .reader = tool_call}}, .closers = {kSeed.section_close}};
}

}  // namespace hearth
