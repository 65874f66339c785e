// Traces of agent sessions: what clients sent, when, and what they made of their history. docs/agent-traces.md has the
// format.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.h"
#include "server/json.h"

namespace hearth::cli {

using server::Json;

// What a session has said so far, in the form of the OpenAI protocol.
struct History {
  std::string system;
  Json messages = Json::array();
  Json tools = Json::array();
};

struct TraceRequest {
  int64_t line = 0;  // of the file, from 1
  int64_t session = 0;
  double at_seconds = 0;     // not before this, counted from the start
  double think_seconds = 0;  // after the session's previous answer
  // Sessions, and how many of their requests must have been answered.
  std::vector<std::pair<int64_t, int64_t>> wait_for;
  Json edits = Json::array();
  Json tools;  // null: those of the request before
  int64_t max_tokens = 0;
  Json extra = Json::object();  // more fields of the body
  Json answer;                  // the message that the session goes on with; null: none
};

struct Trace {
  std::vector<std::string> sessions;
  std::vector<TraceRequest> requests;  // in the order of the file
};

// All of it is checked, edits too: errors name `path` and the line.
Result<Trace> read_trace(const std::string& path, std::string_view text);

// Makes the history what the request is to send. Never fails for the requests of a trace that was read, in their order.
Result<void> edit(History& history, const TraceRequest& request);

}  // namespace hearth::cli
