// Kimi-K2: <|tool_call_begin|>functions.NAME:INDEX<|tool_call_argument_begin|>{...}<|tool_call_end|>, in a section.
#include "text/output/dialects.h"
#include "text/output/named_calls.h"

namespace hearth {
namespace {

CallHead head(std::string_view text) {
  while (!text.empty() && is_space(text.back())) text.remove_suffix(1);
  while (!text.empty() && is_space(text.front())) text.remove_prefix(1);
  std::string_view name = text;
  if (name.starts_with("functions.")) name.remove_prefix(10);
  // The index may be missing, and a name may have colons.
  const size_t colon = name.rfind(':');
  if (colon != std::string_view::npos && name.find_first_not_of("0123456789", colon + 1) == std::string_view::npos) {
    name = name.substr(0, colon);
  }
  return {.name = std::string(name), .id = name == text ? std::string() : std::string(text)};
}

constexpr NamedForm kKimi = {.call_open = "<|tool_call_begin|>",
                             .separator = "<|tool_call_argument_begin|>",
                             .call_close = "<|tool_call_end|>",
                             .section_close = "<|tool_calls_section_end|>",
                             .head = head};

std::unique_ptr<CallReader> section(const ToolSchemas&) { return std::make_unique<NamedCalls>(kKimi, false); }
std::unique_ptr<CallReader> call(const ToolSchemas&) { return std::make_unique<NamedCalls>(kKimi, true); }

}  // namespace

AnswerForm kimi_form() {
  return {.openers = {{.marker = "<|tool_calls_section_begin|>", .reader = section},
                      {.marker = kKimi.call_open, .reader = call}},
          .closers = {kKimi.call_close, kKimi.section_close}};
}

}  // namespace hearth
