// DeepSeek V3.1: <｜tool▁call▁begin｜>NAME<｜tool▁sep｜>{...}<｜tool▁call▁end｜>, in a section. V3 and R1: the kind of
// tool stands before the separator, the name behind it, and the arguments in a code fence.
#include "text/output/dialects.h"
#include "text/output/named_calls.h"

namespace hearth {
namespace {

CallHead head(std::string_view text) {
  while (!text.empty() && is_space(text.back())) text.remove_suffix(1);
  return {.name = std::string(text), .id = {}};
}

constexpr NamedForm kDeepseek = {.call_open = "<｜tool▁call▁begin｜>",
                                 .separator = "<｜tool▁sep｜>",
                                 .call_close = "<｜tool▁call▁end｜>",
                                 .section_close = "<｜tool▁calls▁end｜>",
                                 .head = head,
                                 .name_after_separator = true};

std::unique_ptr<CallReader> section(const ToolSchemas&) { return std::make_unique<NamedCalls>(kDeepseek, false); }
std::unique_ptr<CallReader> call(const ToolSchemas&) { return std::make_unique<NamedCalls>(kDeepseek, true); }

}  // namespace

AnswerForm deepseek_form() {
  return {.openers = {{.marker = "<｜tool▁calls▁begin｜>", .reader = section},
                      {.marker = kDeepseek.call_open, .reader = call}},
          .closers = {kDeepseek.call_close, kDeepseek.section_close}};
}

}  // namespace hearth
