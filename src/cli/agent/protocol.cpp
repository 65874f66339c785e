#include "cli/agent/protocol.h"

namespace hearth::cli {
namespace {

// A member, or null, of what may be no object at all.
const Json& member(const Json& object, std::string_view name) {
  static const Json none;
  if (!object.is_object()) return none;
  const auto it = object.find(name);
  return it == object.end() ? none : *it;
}

bool has_text(const Json& value) { return value.is_string() && !value.get_ref<const std::string&>().empty(); }

void take_count(const Json& value, int64_t& count) {
  if (value.is_number_integer()) count = value.get<int64_t>();
}

void take_ids(const Json& value, std::vector<int32_t>& ids) {
  if (!value.is_array()) return;
  for (const Json& id : value) {
    if (id.is_number_integer()) ids.push_back(id.get<int32_t>());
  }
}

Result<Json> parse_event(std::string_view data) {
  if (server::Answer<Json> json = server::parse_json(data)) return *std::move(json);
  return fail(ErrorCode::kInvalidInput, "an event of the stream is not a JSON object: {}", data.substr(0, 80));
}

Error reported(const Json& error) {
  const Json& message = member(error, "message");
  return fail(ErrorCode::kIo, "the server ended the stream with an error: {}",
              message.is_string() ? message.get<std::string>() : server::excerpt(error));
}

// ---- OpenAI ----

Json openai_body(const History& history, const std::string& model, int64_t max_tokens) {
  Json body = {{"model", model},
               {"stream", true},
               {"stream_options", {{"include_usage", true}}},
               {"max_tokens", max_tokens},
               {"temperature", 0}};
  Json messages = Json::array();
  if (!history.system.empty()) messages.push_back({{"role", "system"}, {"content", history.system}});
  for (const Json& message : history.messages) messages.push_back(message);
  body["messages"] = std::move(messages);
  if (!history.tools.empty()) body["tools"] = history.tools;
  return body;
}

class OpenAiStream final : public AnswerStream {
 public:
  Result<Step> event(std::string_view, std::string_view data) override {
    if (data == "[DONE]") {
      finished_ = true;
      return Step{.done = true};
    }
    HEARTH_ASSIGN(const Json json, parse_event(data));
    if (const Json& error = member(json, "error"); !error.is_null()) return reported(error);
    const Json& usage = member(json, "usage");
    take_count(member(usage, "prompt_tokens"), counts_.prompt);
    take_count(member(usage, "completion_tokens"), counts_.generated);
    take_count(member(member(json, "timings"), "cache_n"), counts_.cached);
    take_count(member(member(usage, "prompt_tokens_details"), "cached_tokens"), counts_.cached);
    take_ids(member(json, "prompt_token_ids"), counts_.prompt_ids);
    Step step;
    const Json& choices = member(json, "choices");
    if (!choices.is_null() && !choices.is_array()) {
      return fail(ErrorCode::kInvalidInput, "an event of the stream has choices that are no list: {}",
                  server::excerpt(choices));
    }
    if (choices.empty()) return step;
    take_ids(member(choices[0], "token_ids"), counts_.answer_ids);
    const Json& delta = member(choices[0], "delta");
    step.tokens = has_text(member(delta, "content")) || has_text(member(delta, "reasoning_content")) ||
                  has_text(member(delta, "reasoning")) || !member(delta, "tool_calls").empty();
    if (member(choices[0], "finish_reason").is_string()) finished_ = true;
    return step;
  }
  bool finished() const override { return finished_; }

 private:
  bool finished_ = false;
};

// ---- Anthropic ----

// The blocks of one message.
Json blocks_of(const Json& message) {
  Json blocks = Json::array();
  const Json& role = member(message, "role");
  const Json& content = member(message, "content");
  if (role == "tool") {
    Json block = {{"type", "tool_result"}, {"tool_use_id", member(message, "tool_call_id")}};
    block["content"] = content.is_null() ? Json("") : content;
    blocks.push_back(std::move(block));
    return blocks;
  }
  if (const Json& reasoning = member(message, "reasoning_content"); has_text(reasoning)) {
    blocks.push_back({{"type", "thinking"}, {"thinking", reasoning}, {"signature", ""}});
  }
  if (has_text(content)) blocks.push_back({{"type", "text"}, {"text", content}});
  if (content.is_array()) {
    for (const Json& part : content) blocks.push_back(part);
  }
  for (const Json& call : member(message, "tool_calls")) {
    const Json& function = member(call, "function");
    server::Answer<Json> input = server::parse_json(function["arguments"].get_ref<const std::string&>());
    blocks.push_back({{"type", "tool_use"},
                      {"id", member(call, "id")},
                      {"name", function["name"]},
                      {"input", input ? *std::move(input) : Json::object()}});
  }
  return blocks;
}

Json anthropic_body(const History& history, const std::string& model, int64_t max_tokens) {
  Json body = {{"model", model}, {"stream", true}, {"max_tokens", max_tokens}, {"temperature", 0}};
  if (!history.system.empty()) {
    body["system"] =
        Json::array({Json{{"type", "text"}, {"text", history.system}, {"cache_control", {{"type", "ephemeral"}}}}});
  }
  Json messages = Json::array();
  for (const Json& message : history.messages) {
    // Results of tools are what the user says, and turns alternate: neighbours of one role become one message.
    const Json role = message["role"] == "tool" ? Json("user") : message["role"];
    if (messages.empty() || messages.back()["role"] != role) {
      messages.push_back({{"role", role}, {"content", Json::array()}});
    }
    for (Json& block : blocks_of(message)) messages.back()["content"].push_back(std::move(block));
  }
  body["messages"] = std::move(messages);
  for (const Json& tool : history.tools) {
    const Json& function = tool["function"];
    Json entry = {{"name", function["name"]}};
    if (function.contains("description")) entry["description"] = function["description"];
    entry["input_schema"] = function.value("parameters", Json{{"type", "object"}});
    body["tools"].push_back(std::move(entry));
  }
  return body;
}

class AnthropicStream final : public AnswerStream {
 public:
  Result<Step> event(std::string_view, std::string_view data) override {
    HEARTH_ASSIGN(const Json json, parse_event(data));
    const Json& type = member(json, "type");
    Step step;
    if (type == "error") return reported(member(json, "error"));
    if (type == "message_start") take_usage(member(member(json, "message"), "usage"));
    if (type == "content_block_start") step.tokens = member(member(json, "content_block"), "type") == "tool_use";
    if (type == "content_block_delta") {
      const Json& delta = member(json, "delta");
      step.tokens = has_text(member(delta, "text")) || has_text(member(delta, "thinking")) ||
                    has_text(member(delta, "partial_json"));
    }
    if (type == "message_delta") take_usage(member(json, "usage"));
    if (type == "message_stop") step.done = finished_ = true;
    return step;
  }
  bool finished() const override { return finished_; }

 private:
  // The protocol counts what was cached apart from the rest of the prompt.
  void take_usage(const Json& usage) {
    take_count(member(usage, "input_tokens"), input_);
    take_count(member(usage, "cache_read_input_tokens"), counts_.cached);
    take_count(member(usage, "cache_creation_input_tokens"), created_);
    take_count(member(usage, "output_tokens"), counts_.generated);
    if (input_ >= 0) counts_.prompt = input_ + created_ + std::max<int64_t>(counts_.cached, 0);
  }

  int64_t input_ = -1, created_ = 0;
  bool finished_ = false;
};

}  // namespace

const AgentProtocol kOpenAi = {.name = "openai", .path = "/v1/chat/completions", .body = openai_body, .stream = [] {
                                 return std::unique_ptr<AnswerStream>(std::make_unique<OpenAiStream>());
                               }};
const AgentProtocol kAnthropic = {.name = "anthropic", .path = "/v1/messages", .body = anthropic_body, .stream = [] {
                                    return std::unique_ptr<AnswerStream>(std::make_unique<AnthropicStream>());
                                  }};

}  // namespace hearth::cli
