// Brings a client's conversation into the form that a chat template takes, and renders it.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

#include "base/result.h"
#include "text/template/chat_template.h"
#include "text/template/template_traits.h"

namespace hearth {

// OpenAI's messages -> messages of the template. In this order:
//  1. Content that is a list of text parts becomes one string (parts joined by a newline) unless the template takes
//  only
//     parts; then strings become parts. Other kinds of part (images) stay as they are if the template takes parts.
//  2. `developer` becomes `system` unless it is the first message and the template knows it. System messages at the
//     start become one, joined by a blank line.
//  3. A system message further on stays if the template shows it there. Otherwise its text goes to the end of the user
//     message before it; behind an answer or the results of calls it begins a user message, which is the next one if
//     that follows at once. The same happens to the first one if the template has no system role. So it has the same
//     place in every later turn.
//  4. Neighbouring messages of the user (or of the assistant, without calls) become one if the template refuses them;
//     so do the result of a call and the user message behind it.
//  5. Arguments of calls become the object (or string) that the template wants; ids are shortened to nine letters and
//     digits if it insists; null or missing content becomes "" if it cannot take it.
//  6. Reasoning, under whatever name, goes where the template reads it.
// kInvalidInput for messages that are not a list of objects with a role, and for parts that the template cannot take.
Result<nlohmann::ordered_json> normalise_messages(const nlohmann::ordered_json& messages, const TemplateTraits& traits);

struct ConversationRequest {
  nlohmann::ordered_json messages;                                      // as the client sent them
  nlohmann::ordered_json tools = nullptr;                               // or an array
  nlohmann::ordered_json variables = nlohmann::ordered_json::object();  // further variables of the template
  std::optional<bool> think = {};                                       // unset: the template's default
  bool add_generation_prompt = true;
  bool continue_final_message = true;  // an assistant message at the end is continued, not answered
};

// The prompt. A final assistant message is a prefill: the prompt ends with its text, inside the assistant's turn and
// after its reasoning. kUnsupported when `think` is given and the template has no switch for it.
Result<Rendered> render_conversation(const ChatTemplate& chat_template, const TemplateTraits& traits,
                                     const ConversationRequest& request, const TemplateOptions& options);

}  // namespace hearth
