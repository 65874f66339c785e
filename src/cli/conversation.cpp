#include "cli/conversation.h"

namespace hearth::cli {

using nlohmann::ordered_json;

std::string Conversation::to_json() const {
  ordered_json list = ordered_json::array();
  if (!system.empty()) list.push_back({{"role", "system"}, {"content", system}});
  for (const Message& message : messages) {
    ordered_json entry = {{"role", message.role}, {"content", message.content}};
    if (!message.reasoning.empty()) entry["reasoning_content"] = message.reasoning;
    list.push_back(std::move(entry));
  }
  ordered_json document = {{"messages", std::move(list)}};
  // What a model wrote until it was cut off may end within a character: that is repaired rather than refused.
  return document.dump(2, ' ', false, ordered_json::error_handler_t::replace);
}

Result<Conversation> Conversation::from_json(std::string_view text) {
  if (std::string error = json_error(text); !error.empty()) {
    return fail(ErrorCode::kInvalidInput, "the conversation is not JSON: {}", error);
  }
  ordered_json document = ordered_json::parse(text, nullptr, /*allow_exceptions=*/false);
  if (!document.is_object() || !document.contains("messages") || !document["messages"].is_array()) {
    return fail(ErrorCode::kInvalidInput,
                "expected a conversation, {{\"messages\": [{{\"role\": ..., \"content\": ...}}]}}");
  }
  for (const auto& [name, value] : document.items()) {
    if (name != "messages") {
      return fail(ErrorCode::kUnsupported, "the conversation has \"{}\" beside its messages, which a chat cannot hold",
                  name);
    }
  }
  Conversation conversation;
  for (const ordered_json& entry : document["messages"]) {
    // What a chat cannot hold is refused: saving it again would lose it.
    for (const auto& [name, value] : entry.items()) {
      bool known = name == "role" || name == "content" || name == "reasoning_content";
      if (!entry.is_object() || !known || !value.is_string()) {
        return fail(ErrorCode::kUnsupported,
                    "the conversation has a message with a \"{}\" that a chat cannot hold; it takes role, "
                    "content and reasoning_content, all of them text",
                    name);
      }
    }
    auto field = [&](const char* name) {
      return entry.is_object() && entry.contains(name) && entry[name].is_string() ? entry[name].get<std::string>() : "";
    };
    Message message{.role = field("role"), .content = field("content"), .reasoning = field("reasoning_content")};
    if (message.role == "system" && conversation.messages.empty()) {
      conversation.system += (conversation.system.empty() ? "" : "\n\n") + message.content;
    } else if (message.role == "user" || message.role == "assistant") {
      conversation.messages.push_back(std::move(message));
    } else {
      return fail(ErrorCode::kUnsupported,
                  "a message of the role \"{}\" cannot be chatted with; system (first), user and assistant can",
                  message.role);
    }
  }
  return conversation;
}

std::string json_error(std::string_view text) {
  try {
    // The callback keeps nothing, so that this takes no memory.
    auto keep = [](int, ordered_json::parse_event_t, ordered_json&) { return false; };
    [[maybe_unused]] ordered_json nothing = ordered_json::parse(text, keep);
    return "";
  } catch (const ordered_json::exception& error) {
    // "[json.exception.parse_error.101] parse error at line 2, column 7: ..."
    std::string_view what = error.what();
    size_t begin = what.find("] ");
    return std::string(begin == std::string_view::npos ? what : what.substr(begin + 2));
  }
}

Message assistant_message(std::string_view text) {
  constexpr std::string_view kOpen = "<think>", kClose = "</think>";
  auto trim = [](std::string_view s) {
    while (!s.empty() && (s.front() == '\n' || s.front() == ' ')) s.remove_prefix(1);
    while (!s.empty() && (s.back() == '\n' || s.back() == ' ')) s.remove_suffix(1);
    return std::string(s);
  };
  Message message{.role = "assistant"};
  size_t close = text.find(kClose);
  size_t open = text.find(kOpen);
  if (close != std::string_view::npos) {
    size_t begin = open < close ? open + kOpen.size() : 0;
    message.reasoning = trim(text.substr(begin, close - begin));
    message.content = trim(text.substr(close + kClose.size()));
  } else if (open != std::string_view::npos && trim(text.substr(0, open)).empty()) {
    message.reasoning = trim(text.substr(open + kOpen.size()));  // cut off while thinking
  } else {
    message.content = trim(text);
  }
  return message;
}

}  // namespace hearth::cli
