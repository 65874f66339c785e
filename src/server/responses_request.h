// A request of the OpenAI Responses protocol as the neutral layer takes it, and what is needed to answer in the
// client's terms.
#pragma once

#include <map>
#include <string>

#include "server/chat.h"
#include "server/response_store.h"

namespace hearth::server {

// A tool as the client named it. The model sees them all as functions.
struct OfferedTool {
  enum class Kind : uint8_t {
    kFunction,
    kCustom,      // takes a text: the string `input` of the function
    kLocalShell,  // takes a command: a list of strings
  };
  Kind kind = Kind::kFunction;
  std::string name;
  std::string name_space;  // "": none
};

struct ResponsesRequest {
  ChatRequest chat;
  std::map<std::string, OfferedTool> tools;  // by the name that the model sees
  Json input;                                // items, with those of previous responses in front
  Json echo;                                 // fields that the response repeats
  bool stream = false;
  bool store = true;
  bool summary = false;    // reasoning goes out as its summary, because the client asked for one
  bool encrypted = false;  // reasoning goes out in `encrypted_content` too, for clients that send back nothing else
  bool logprobs = false;
};

// Clients send reasoning back in the field `encrypted_content` without looking at it. It is the text behind this mark.
inline constexpr std::string_view kReasoningMark = "hearth-reasoning:";

Answer<ResponsesRequest> read_responses_request(Json body, const ResponseStore& store);

}  // namespace hearth::server
