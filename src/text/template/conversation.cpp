#include "text/template/conversation.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <map>
#include <optional>

namespace hearth {
namespace {

using Json = nlohmann::ordered_json;

Error invalid(std::string message) { return {ErrorCode::kInvalidInput, "messages: " + std::move(message)}; }

std::string role_of(const Json& message) { return message["role"].get<std::string>(); }

bool is_text_part(const Json& part) {
  return part.is_string() || (part.is_object() && part.contains("text") && part["text"].is_string() &&
                              (!part.contains("type") || part["type"] == "text" || part["type"] == "input_text" ||
                               part["type"] == "output_text"));
}

std::string part_text(const Json& part) {
  return part.is_string() ? part.get<std::string>() : part["text"].get<std::string>();
}

Json text_part(const std::string& text) { return Json{{"type", "text"}, {"text", text}}; }

// b after a, with a blank line between texts.
Json joined(const Json& a, const Json& b) {
  if (a.is_null() || a == "" || a == Json::array()) return b;
  if (b.is_null() || b == "" || b == Json::array()) return a;
  if (a.is_string() && b.is_string()) return a.get<std::string>() + "\n\n" + b.get<std::string>();
  Json out = a.is_string() ? Json::array({text_part(a.get<std::string>())}) : a;
  if (b.is_string()) {
    out.push_back(text_part(b.get<std::string>()));
  } else {
    for (const Json& part : b) out.push_back(part);
  }
  return out;
}

Json content_of(const Json& message) { return message.contains("content") ? message["content"] : Json(""); }

Result<Json> normalise_content(Json content, const TemplateTraits& traits, size_t index) {
  const bool only_parts = traits.content_parts && !traits.string_content;
  if (content.is_string())
    return only_parts ? Json::array({text_part(content.get<std::string>())}) : std::move(content);
  if (content.is_null()) return content;
  if (!content.is_array()) {
    return invalid(fmt::format("the content of message {} is {}; a string or a list of parts would work", index,
                               content.type_name()));
  }
  if (!std::all_of(content.begin(), content.end(), is_text_part)) {
    if (traits.content_parts) return content;
    return invalid(
        fmt::format("message {} has a part that is not text, and this model's template takes only text", index));
  }
  if (only_parts) {
    for (Json& part : content) part = text_part(part_text(part));
    return content;
  }
  std::string text;
  for (const Json& part : content) {
    if (!text.empty()) text += "\n";
    text += part_text(part);
  }
  return Json(text);
}

// Nine letters and digits that stand for `id` (FNV-1a, base 36).
std::string short_id(const std::string& id) {
  if (id.size() == 9 && std::all_of(id.begin(), id.end(), [](unsigned char c) { return std::isalnum(c) != 0; }))
    return id;
  uint64_t hash = 14695981039346656037u;
  for (unsigned char c : id) hash = (hash ^ c) * 1099511628211u;
  std::string out;
  for (int i = 0; i < 9; ++i, hash /= 36) out += "0123456789abcdefghijklmnopqrstuvwxyz"[hash % 36];
  return out;
}

void normalise_calls(Json& message, const TemplateTraits& traits) {
  if (traits.short_call_ids && message.contains("tool_call_id") && message["tool_call_id"].is_string()) {
    message["tool_call_id"] = short_id(message["tool_call_id"].get<std::string>());
  }
  if (!message.contains("tool_calls")) return;
  if (!message["tool_calls"].is_array() || message["tool_calls"].empty()) {
    message.erase("tool_calls");
    return;
  }
  for (Json& call : message["tool_calls"]) {
    if (!call.is_object()) continue;
    if (traits.short_call_ids && call.contains("id") && call["id"].is_string()) {
      call["id"] = short_id(call["id"].get<std::string>());
    }
    if (!call.contains("function") || !call["function"].is_object() || !call["function"].contains("arguments"))
      continue;
    Json& arguments = call["function"]["arguments"];
    if (traits.string_arguments && !arguments.is_string()) {
      arguments = arguments.dump(-1, ' ', false, Json::error_handler_t::replace);
    } else if (!traits.string_arguments && arguments.is_string()) {
      const auto& text = arguments.get_ref<const std::string&>();
      // What a model wrote may be broken JSON; then the template gets it as it is.
      Json parsed = text.empty() ? Json::object() : Json::parse(text, nullptr, false);
      if (!parsed.is_discarded()) arguments = std::move(parsed);
    }
  }
}

void move_reasoning(Json& message, const TemplateTraits& traits) {
  if (role_of(message) != "assistant" || traits.reasoning_field.empty() || message.contains(traits.reasoning_field))
    return;
  for (const char* field : {"reasoning_content", "reasoning", "thinking"}) {
    if (!message.contains(field) || !message[field].is_string()) continue;
    Json text = message[field];
    message.erase(field);
    message[traits.reasoning_field] = std::move(text);
    return;
  }
}

// Rules 2 and 3 of normalise_messages().
Json place_system_messages(Json messages, const TemplateTraits& traits) {
  Json out = Json::array();
  Json pending;         // text that has no place yet
  bool leading = true;  // there was nothing but system messages
  // Where the text goes depends on what stands before it alone: it must not move when the conversation goes on, or
  // everything behind it would be read again. Only from between a call and its results it moves behind those.
  const auto place = [&](Json* next) {
    if (pending.is_null()) return;
    if (traits.system_anywhere && !out.empty()) {
      out.push_back(Json{{"role", "system"}, {"content", pending}});
    } else if (!out.empty() && role_of(out.back()) == "user") {
      out.back()["content"] = joined(content_of(out.back()), pending);
    } else if (next != nullptr && role_of(*next) == "user") {
      (*next)["content"] = joined(pending, content_of(*next));
    } else {
      out.push_back(Json{{"role", "user"}, {"content", pending}});
    }
    pending = nullptr;
  };
  for (Json& message : messages) {
    // Templates that know developers know one, in front.
    if (role_of(message) == "developer" && !(traits.developer_role && out.empty())) message["role"] = "system";
    const bool system = role_of(message) == "system";
    leading = leading && (system || role_of(message) == "developer");
    if (leading && (traits.system_role || !system)) {
      if (out.empty()) {
        out.push_back(std::move(message));
      } else {
        out.back()["content"] = joined(content_of(out.back()), content_of(message));
      }
    } else if (system) {
      pending = joined(pending, content_of(message));
    } else {
      if (role_of(message) != "tool") place(&message);
      out.push_back(std::move(message));
    }
  }
  place(nullptr);
  return out;
}

// Rule 4.
Json merge_repeated(Json messages, const TemplateTraits& traits) {
  Json out = Json::array();
  for (Json& message : messages) {
    const std::string role = role_of(message);
    const bool mergeable = !traits.repeated_roles && !out.empty() && role_of(out.back()) == role &&
                           (role == "user" || (role == "assistant" && !message.contains("tool_calls") &&
                                               !out.back().contains("tool_calls")));
    const bool refused = !traits.user_after_tool && role == "user" && !out.empty() && role_of(out.back()) == "tool";
    if (mergeable || refused) {
      out.back()["content"] = joined(content_of(out.back()), content_of(message));
    } else {
      out.push_back(std::move(message));
    }
  }
  return out;
}

// Where text ends that `marker` was put behind, in a rendering; everything from there on is cut off.
bool cut_at(Rendered& rendered, const std::string& marker) {
  for (size_t i = rendered.segments.size(); i-- > 0;) {
    const size_t at = rendered.segments[i].text.rfind(marker);
    if (at == std::string::npos) continue;
    rendered.segments[i].text.resize(at);
    rendered.segments.resize(at == 0 ? i : i + 1);
    return true;
  }
  return false;
}

// Takes back a reasoning block that the template opened right before the text that is to be continued: that text is
// the answer, not a thought.
void drop_open_reasoning(Rendered& rendered) {
  if (rendered.segments.empty()) return;
  const size_t last = rendered.segments.size() - 1;
  Segment& before = rendered.segments[rendered.segments[last].trusted || last == 0 ? last : last - 1];
  if (!before.trusted) return;
  const size_t end = before.text.find_last_not_of(" \n") + 1;
  for (std::string_view opener : {"<think>", "[THINK]", "<|START_THINKING|>", "<seed:think>"}) {
    if (!std::string_view(before.text).substr(0, end).ends_with(opener)) continue;
    before.text.resize(end - opener.size());
    return;
  }
}

}  // namespace

Result<Json> normalise_messages(const Json& messages, const TemplateTraits& traits) {
  if (!messages.is_array()) return invalid(fmt::format("found {}; a list would work", messages.type_name()));
  Json out = Json::array();
  for (size_t i = 0; i < messages.size(); ++i) {
    Json message = messages[i];
    if (!message.is_object() || !message.contains("role") || !message["role"].is_string()) {
      return invalid(fmt::format("message {} is not an object with a role", i));
    }
    if (message.contains("content")) {
      auto content = normalise_content(std::move(message["content"]), traits, i);
      if (!content) return std::move(content).error();
      message["content"] = std::move(*content);
    }
    out.push_back(std::move(message));
  }
  out = place_system_messages(std::move(out), traits);
  if (!traits.repeated_roles || !traits.user_after_tool) out = merge_repeated(std::move(out), traits);
  for (Json& message : out) {
    normalise_calls(message, traits);
    move_reasoning(message, traits);
    const bool empty = !message.contains("content") || message["content"].is_null();
    if (empty && !(traits.null_content && message.contains("tool_calls"))) message["content"] = "";
  }
  return out;
}

Result<Rendered> render_conversation(const ChatTemplate& chat_template, const TemplateTraits& traits,
                                     const ConversationRequest& request, const TemplateOptions& options) {
  auto messages = normalise_messages(request.messages, traits);
  if (!messages) return std::move(messages).error();
  Json context = request.variables.is_object() ? request.variables : Json::object();
  if (request.think) {
    if (traits.thinking_variable.empty()) {
      return Error{ErrorCode::kUnsupported,
                   "thinking cannot be switched on or off: this model's template reads no variable for it; leave the "
                   "switch out"};
    }
    context[traits.thinking_variable] = *request.think;
  }
  if (request.tools.is_array() && !request.tools.empty()) context["tools"] = request.tools;
  const bool prefill = request.continue_final_message && request.add_generation_prompt && !messages->empty() &&
                       role_of(messages->back()) == "assistant" && !messages->back().contains("tool_calls") &&
                       messages->back()["content"].is_string();
  context["messages"] = std::move(*messages);
  context["add_generation_prompt"] = request.add_generation_prompt && !prefill;
  if (!prefill) return chat_template.render(context, options);

  // The template may put anything behind the message, and trim it. A marker at the end of the text shows where it ends.
  Json& last = context["messages"].back();
  const std::string content = last["content"].get<std::string>();
  std::string marker = "hearthprefillend";
  while (context["messages"].dump(-1, ' ', false, Json::error_handler_t::replace).find(marker) != std::string::npos) {
    marker += "q";
  }
  last["content"] = content + marker;
  auto rendered = chat_template.render(context, options);
  if (rendered && !cut_at(*rendered, marker)) {
    return Error{ErrorCode::kUnsupported,
                 "continuing the assistant's last message: this model's template does not show it; leave it out"};
  }
  if (rendered) drop_open_reasoning(*rendered);
  return rendered;
}

}  // namespace hearth
