// Mistral: [TOOL_CALLS][{"name": ..., "arguments": {...}, "id": ...}], later [TOOL_CALLS]NAME[CALL_ID]ID[ARGS]{...} for
// each call, the id left out in the newest.
#include "text/output/dialects.h"
#include "text/output/json_or_other.h"
#include "text/output/named_calls.h"

namespace hearth {
namespace {

CallHead head(std::string_view text) {
  constexpr std::string_view kId = "[CALL_ID]";
  const size_t id = text.find(kId);
  std::string_view name = text.substr(0, id);
  while (!name.empty() && is_space(name.back())) name.remove_suffix(1);
  // A name is one word; more is text that only looks like a call.
  if (name.find(' ') != std::string_view::npos) return {};
  return {.name = std::string(name),
          .id = std::string(id == std::string_view::npos ? "" : text.substr(id + kId.size()))};
}

constexpr NamedForm kMistral = {
    .call_open = "[TOOL_CALLS]", .separator = "[ARGS]", .call_close = "", .section_close = "", .head = head};

std::unique_ptr<CallReader> calls(const ToolSchemas&) {
  return std::make_unique<JsonOrOther>("", std::make_unique<NamedCalls>(kMistral, true));
}

}  // namespace

AnswerForm mistral_form() { return {.openers = {{.marker = kMistral.call_open, .reader = calls}}, .closers = {}}; }

}  // namespace hearth
