#include "cli/agent/trace.h"

#include <algorithm>
#include <limits>
#include <map>

namespace hearth::cli {
namespace {

using server::Answer;
using server::Fields;

Error wrong(std::string_view message) { return fail(ErrorCode::kInvalidInput, "{}", message); }

// The first unknown name, so that a mistyped field is not silently left out.
Result<void> only(const Json& object, std::initializer_list<std::string_view> names) {
  for (const auto& [name, value] : object.items()) {
    if (std::ranges::find(names, name) == names.end()) {
      return fail(ErrorCode::kInvalidInput, "there is no field \"{}\" here; known are {}", name,
                  fmt::join(names, ", "));
    }
  }
  return {};
}

Result<void> check_message(const Json& message) {
  if (!message.is_object()) return wrong("a message must be an object");
  Fields f(message, "message");
  const std::string role = f.text("role").value_or("");
  if (f.error()) return wrong(f.error()->message);
  if (role != "system" && role != "user" && role != "assistant" && role != "tool") {
    return fail(ErrorCode::kInvalidInput, "message.role must be system, user, assistant or tool, found \"{}\"", role);
  }
  const Json* content = f.get("content");
  if (content != nullptr && !content->is_string() && !content->is_array()) {
    return wrong("message.content must be text or a list of parts");
  }
  if (const Json* calls = f.array("tool_calls")) {
    for (const Json& call : *calls) {
      const Json function = call.is_object() ? call.value("function", Json()) : Json();
      if (!function.is_object() || !function.value("name", Json()).is_string() ||
          !function.value("arguments", Json()).is_string()) {
        return wrong("message.tool_calls must have function.name and function.arguments, both text");
      }
    }
  }
  if (role == "tool") f.text("tool_call_id");
  f.text("reasoning_content");
  if (f.error()) return wrong(f.error()->message);
  return {};
}

// Where an edit points: from 0, or from -1 at the end backwards.
Result<size_t> place(Fields& f, const Json& messages, int64_t count) {
  const auto index = f.integer("index", std::numeric_limits<int32_t>::min(), std::numeric_limits<int32_t>::max());
  if (!index) return wrong(f.error() ? f.error()->message : "the edit needs an index");
  const int64_t size = std::ssize(messages), first = *index < 0 ? *index + size : *index;
  if (first < 0 || first > size - count) {
    return fail(ErrorCode::kInvalidInput, "index {}: the history has {} messages there", *index, size);
  }
  return static_cast<size_t>(first);
}

Result<void> apply(const Json& edit, History& history) {
  if (!edit.is_object()) return wrong("an edit must be an object");
  Fields f(edit, "edit");
  const std::string op = f.text("op").value_or("");
  Json& messages = history.messages;
  if (op == "append") {
    HEARTH_TRY(only(edit, {"op", "message"}));
    const Json* message = f.object("message");
    if (message == nullptr) return wrong("append needs a message");
    HEARTH_TRY(check_message(*message));
    messages.push_back(*message);
  } else if (op == "replace") {
    HEARTH_TRY(only(edit, {"op", "index", "message"}));
    HEARTH_ASSIGN(const size_t index, place(f, messages, 1));
    const Json* message = f.object("message");
    if (message == nullptr) return wrong("replace needs a message");
    HEARTH_TRY(check_message(*message));
    messages[index] = *message;
  } else if (op == "drop") {
    HEARTH_TRY(only(edit, {"op", "index", "count"}));
    const int64_t count = f.integer("count", 1, std::numeric_limits<int32_t>::max()).value_or(1);
    HEARTH_ASSIGN(const size_t index, place(f, messages, count));
    const auto first = messages.begin() + static_cast<int64_t>(index);
    messages.erase(first, first + count);
  } else if (op == "system") {
    HEARTH_TRY(only(edit, {"op", "text"}));
    history.system = f.text("text").value_or("");
  } else {
    return fail(ErrorCode::kInvalidInput, "edit.op must be append, replace, drop or system, found \"{}\"", op);
  }
  if (f.error()) return wrong(f.error()->message);
  return {};
}

// The names of sessions and how many requests of each have been read.
struct Seen {
  Trace& trace;
  std::map<std::string, int64_t> numbers;
  std::vector<int64_t> requests;

  int64_t number(const std::string& name) {
    const auto [at, added] = numbers.emplace(name, std::ssize(trace.sessions));
    if (added) {
      trace.sessions.push_back(name);
      requests.push_back(0);
    }
    return at->second;
  }
};

Result<TraceRequest> read_request(std::string_view line, Seen& seen) {
  Answer<Json> parsed = server::parse_json(line);
  if (!parsed) return wrong(parsed.error().message.substr(std::string_view("the body ").size()));
  Json& json = *parsed;
  HEARTH_TRY(only(json, {"session", "at", "think", "wait_for", "edits", "tools", "max_tokens", "extra", "answer"}));
  Fields f(json);
  constexpr double kMostSeconds = 86400;
  TraceRequest request;
  request.at_seconds = f.number("at", 0, kMostSeconds).value_or(0);
  request.think_seconds = f.number("think", 0, kMostSeconds).value_or(0);
  request.max_tokens = f.integer("max_tokens", 1, 1 << 24).value_or(0);
  const std::string name = f.text("session").value_or("");
  const std::vector<std::string> others = f.texts("wait_for").value_or(std::vector<std::string>());
  const Json* edits = f.array("edits");
  const Json* tools = f.array("tools");
  const Json* extra = f.object("extra");
  const Json* answer = f.object("answer");
  if (f.error()) return wrong(f.error()->message);
  if (name.empty()) return wrong("session is missing: the name of the session that the request belongs to");
  if (request.max_tokens == 0) return wrong("max_tokens is missing");
  for (const std::string& other : others) {
    const auto found = seen.numbers.find(other);
    if (found == seen.numbers.end() || other == name) {
      return fail(ErrorCode::kInvalidInput, "wait_for: \"{}\" is no other session of the lines before", other);
    }
    request.wait_for.emplace_back(found->second, seen.requests[static_cast<size_t>(found->second)]);
  }
  if (tools != nullptr) {
    for (const Json& tool : *tools) {
      const Json function = tool.is_object() ? tool.value("function", Json()) : Json();
      if (!function.is_object() || !function.value("name", Json()).is_string()) {
        return wrong("tools: each must be {\"type\": \"function\", \"function\": {\"name\": ...}}");
      }
    }
    request.tools = *tools;
  }
  if (edits != nullptr) request.edits = *edits;
  if (extra != nullptr) request.extra = *extra;
  if (answer != nullptr) {
    HEARTH_TRY(check_message(*answer));
    if ((*answer)["role"] != "assistant") return wrong("answer.role must be assistant");
    request.answer = *answer;
  }
  request.session = seen.number(name);
  ++seen.requests[static_cast<size_t>(request.session)];
  return request;
}

}  // namespace

Result<void> edit(History& history, const TraceRequest& request) {
  for (const Json& one : request.edits) HEARTH_TRY(apply(one, history));
  if (!request.tools.is_null()) history.tools = request.tools;
  return {};
}

Result<Trace> read_trace(const std::string& path, std::string_view text) {
  Trace trace;
  Seen seen{.trace = trace, .numbers = {}, .requests = {}};
  std::vector<History> histories;
  for (int64_t number = 1; !text.empty(); ++number) {
    const size_t end = std::min(text.find('\n'), text.size());
    const std::string_view line = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    if (line.find_first_not_of(" \t\r") == std::string_view::npos) continue;
    const auto here = [&](Error error) {
      return std::move(error).with_context(fmt::format("{} line {}", path, number));
    };
    Result<TraceRequest> request = read_request(line, seen);
    if (!request) return here(std::move(request).error());
    request->line = number;
    histories.resize(trace.sessions.size());
    History& history = histories[static_cast<size_t>(request->session)];
    if (auto ok = edit(history, *request); !ok) return here(std::move(ok).error());
    if (history.messages.empty()) return here(wrong("the session has no message to send yet"));
    if (!request->answer.is_null()) history.messages.push_back(request->answer);
    trace.requests.push_back(*std::move(request));
  }
  if (trace.requests.empty()) return fail(ErrorCode::kInvalidInput, "{}: the trace has no request", path);
  return trace;
}

}  // namespace hearth::cli
