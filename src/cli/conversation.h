// A conversation as the commands keep it, and as JSON for templates and files.
#pragma once

#include <nlohmann/json.hpp>

#include <string>
#include <vector>

#include "base/result.h"

namespace hearth::cli {

struct Message {
  std::string role;
  std::string content;
  std::string reasoning;  // of an assistant, apart from its content
};

struct Conversation {
  std::string system;
  std::vector<Message> messages;

  // {"messages": [...]} in the fields of the OpenAI chat protocol.
  std::string to_json() const;
  static Result<Conversation> from_json(std::string_view text);
};

// Where a text stops being JSON and why, for a message; "" when it is JSON.
std::string json_error(std::string_view text);

// Splits what a model wrote into reasoning (<think> ... </think>) and content. A template that opens the block itself
// leaves only the closing tag in the text.
Message assistant_message(std::string_view text);

}  // namespace hearth::cli
