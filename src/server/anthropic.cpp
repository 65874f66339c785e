// POST /v1/messages and /v1/messages/count_tokens: the Anthropic protocol.
#include <chrono>

#include "server/openai.h"

namespace hearth::server {
namespace {

using Clock = std::chrono::steady_clock;

// Claude Code gives up on a stream that has no event for 300 s, and a ping is none to it.
constexpr std::chrono::seconds kRealEventAfter{200};

// Thinking that comes back is not checked, but clients drop what has no signature.
constexpr std::string_view kSignature = "hearth";

// ---- requests ----

Json text_part(std::string text) { return {{"type", "text"}, {"text", std::move(text)}}; }

// What becomes of blocks that are not text.
enum class NotText : uint8_t { kRefuse, kName };

// Adds the texts of one block to a list of parts.
Answer<void> add_parts(const Json& block, const std::string& where, NotText rule, Json& parts) {
  if (!block.is_object()) return invalid(where, "{}: it must be an object, found {}", where, excerpt(block));
  Fields f(block, where);
  const std::string type = f.text("type").value_or("");
  const Json source = type == "document" ? block.value("source", Json()) : Json();
  const Json source_type = source.is_object() ? source.value("type", Json()) : Json();
  if (type == "text") {
    if (!f.has("text")) f.expected("text", "a string");
    parts.push_back(text_part(f.text("text").value_or("")));
  } else if (source_type == "text" && source.value("data", Json()).is_string()) {
    parts.push_back(text_part(source["data"].get<std::string>()));
  } else if (const Json inner = type == "search_result"    ? block.value("content", Json())
                                : source_type == "content" ? source.value("content", Json())
                                                           : Json();
             inner.is_array() || inner.is_string()) {
    if (inner.is_string()) parts.push_back(text_part(inner.get<std::string>()));
    for (size_t i = 0; inner.is_array() && i < inner.size(); ++i) {
      HEARTH_TRY(add_parts(inner[i], fmt::format("{}.content.{}", where, i), rule, parts));
    }
  } else if (rule == NotText::kName) {
    const auto name = f.text("tool_name");
    parts.push_back(text_part(name ? named_part(type, *name) : named_part(type)));
  } else {
    return invalid(where, "{}: a block of the type {} cannot be taken; this server takes text only", where,
                   excerpt(block.value("type", Json())));
  }
  if (f.error()) return *f.error();
  return {};
}

// The parts of a text, a list of blocks, or nothing.
Answer<Json> read_parts(const Json& content, const std::string& where, NotText rule) {
  Json parts = Json::array();
  if (content.is_null()) return parts;
  if (content.is_string()) return Json::array({text_part(content.get<std::string>())});
  if (!content.is_array()) return invalid(where, "{}: it must be a string or a list of blocks", where);
  for (size_t i = 0; i < content.size(); ++i) {
    HEARTH_TRY(add_parts(content[i], fmt::format("{}.{}", where, i), rule, parts));
  }
  return parts;
}

// Results of tools become messages of their own.
Answer<void> add_user(const Json& content, const std::string& where, Json& messages) {
  Json parts = Json::array();
  const auto flush = [&] {
    if (!parts.empty()) messages.push_back({{"role", "user"}, {"content", std::exchange(parts, Json::array())}});
  };
  if (!content.is_array()) {
    HEARTH_ASSIGN(parts, read_parts(content, where, NotText::kRefuse));
    flush();
    return {};
  }
  for (size_t i = 0; i < content.size(); ++i) {
    const std::string here = fmt::format("{}.{}", where, i);
    if (!content[i].is_object() || content[i].value("type", Json()) != "tool_result") {
      HEARTH_TRY(add_parts(content[i], here, NotText::kRefuse, parts));
      continue;
    }
    flush();
    Fields f(content[i], here);
    const std::string id = f.text("tool_use_id").value_or("");
    if (f.error()) return *f.error();
    HEARTH_ASSIGN(Json result, read_parts(content[i].value("content", Json()), here + ".content", NotText::kName));
    messages.push_back({{"role", "tool"}, {"tool_call_id", id}, {"content", std::move(result)}});
  }
  flush();
  return {};
}

Answer<void> add_assistant(const Json& content, const std::string& where, Json& messages) {
  if (!content.is_array() && !content.is_string()) {
    return invalid(where, "{}: it must be a string or a list of blocks", where);
  }
  std::string text, thinking;
  Json calls = Json::array();
  if (content.is_string()) {
    text = content.get<std::string>();
  } else {
    for (size_t i = 0; i < content.size(); ++i) {
      const std::string here = fmt::format("{}.{}", where, i);
      if (!content[i].is_object()) return invalid(here, "{}: it must be an object", here);
      Fields f(content[i], here);
      const std::string type = f.text("type").value_or("");
      if (type == "text") {
        text += f.text("text").value_or("");
      } else if (type == "thinking") {
        thinking += f.text("thinking").value_or("");
      } else if (type == "tool_use") {
        const Json* input = f.object("input");
        calls.push_back({{"id", f.text("id").value_or("")},
                         {"type", "function"},
                         {"function",
                          {{"name", f.text("name").value_or("")},
                           {"arguments", input != nullptr ? dump(*input) : std::string("{}")}}}});
      }  // others are traces of what only Anthropic's servers do
      if (f.error()) return *f.error();
    }
  }
  Json message = {{"role", "assistant"}, {"content", std::move(text)}};
  if (!thinking.empty()) message["reasoning_content"] = std::move(thinking);
  if (!calls.empty()) message["tool_calls"] = std::move(calls);
  messages.push_back(std::move(message));
  return {};
}

Answer<Json> read_messages(const Json& body) {
  Json messages = Json::array();
  if (auto system = body.find("system"); system != body.end() && !system->is_null()) {
    HEARTH_ASSIGN(Json parts, read_parts(*system, "system", NotText::kName));
    if (!parts.empty()) messages.push_back({{"role", "system"}, {"content", std::move(parts)}});
  }
  Fields f(body);
  const Json* list = f.array("messages");
  if (list == nullptr || list->empty()) f.expected("messages", "a list of at least one message");
  if (f.error()) return *f.error();
  for (size_t i = 0; i < list->size(); ++i) {
    const std::string where = fmt::format("messages.{}", i);
    const Json& message = (*list)[i];
    if (!message.is_object()) return invalid(where, "{}: it must be an object, found {}", where, excerpt(message));
    const Json role = message.value("role", Json());
    const Json content = message.value("content", Json());
    const std::string there = where + ".content";
    if (role == "user") {
      HEARTH_TRY(add_user(content, there, messages));
    } else if (role == "assistant") {
      HEARTH_TRY(add_assistant(content, there, messages));
    } else if (role == "system") {
      HEARTH_ASSIGN(Json parts, read_parts(content, there, NotText::kName));
      messages.push_back({{"role", "system"}, {"content", std::move(parts)}});
    } else {
      return invalid(where, "{}.role: it must be user, assistant or system, found {}", where, excerpt(role));
    }
  }
  return messages;
}

// Tools with a schema. Those that Anthropic's servers run have none.
Answer<Json> read_tools(const Json& body) {
  Fields f(body);
  const Json* list = f.array("tools");
  if (f.error()) return *f.error();
  if (list == nullptr) return Json();
  Json tools = Json::array();
  for (size_t i = 0; i < list->size(); ++i) {
    const Json& tool = (*list)[i];
    const std::string where = fmt::format("tools.{}", i);
    if (!tool.is_object()) return invalid(where, "{}: it must be an object, found {}", where, excerpt(tool));
    Fields t(tool, where);
    const Json* schema = t.object("input_schema");
    if (t.error()) return *t.error();
    if (schema == nullptr) continue;
    Json function = {{"name", t.text("name").value_or("")}};
    if (auto description = t.text("description")) function["description"] = *description;
    function["parameters"] = *schema;
    if (t.boolean("strict").value_or(false)) function["strict"] = true;
    if (t.error()) return *t.error();
    tools.push_back({{"type", "function"}, {"function", std::move(function)}});
  }
  return tools;
}

Answer<void> read_tool_choice(const Json& body, ChatRequest& chat) {
  using Kind = ToolChoice::Kind;
  Fields f(body);
  const Json* choice = f.object("tool_choice");
  if (f.error()) return *f.error();
  if (choice == nullptr) return {};
  Fields c(*choice, "tool_choice");
  const std::string type = c.text("type").value_or("");
  chat.parallel_tool_calls = !c.boolean("disable_parallel_tool_use").value_or(false);
  if (type == "any") {
    chat.tool_choice.kind = Kind::kRequired;
  } else if (type == "tool") {
    chat.tool_choice = {.kind = Kind::kNamed, .names = {c.text("name").value_or("")}};
  } else if (type == "none") {
    chat.tool_choice.kind = Kind::kNone;
  } else if (type != "auto") {
    c.expected("type", "auto, any, tool or none");
  }
  if (c.error()) return *c.error();
  return {};
}

struct MessagesCall {
  ChatRequest chat;
  bool stream = false;
  bool thinking = false;  // its blocks are wanted
  bool omitted = false;   // without their text
};

Answer<void> read_thinking(const Json& body, MessagesCall& call) {
  ChatRequest& chat = call.chat;
  chat.thinking = false;
  Fields f(body);
  if (const Json* thinking = f.object("thinking")) {
    Fields t(*thinking, "thinking");
    const std::string type = t.text("type").value_or("");
    if (type != "enabled" && type != "disabled" && type != "adaptive") {
      t.expected("type", "enabled, disabled or adaptive");
    }
    call.thinking = type != "disabled";
    call.omitted = t.text("display").value_or("") == "omitted";
    chat.thinking = call.thinking;
    if (call.thinking) chat.thinking_budget = t.integer("budget_tokens", 0, int64_t{1} << 31);
    if (t.error()) return *t.error();
  }
  if (const Json* config = f.object("output_config")) {
    Fields c(*config, "output_config");
    if (auto effort = c.text("effort"); effort && call.thinking) {
      // Templates know three.
      chat.template_variables["reasoning_effort"] = *effort == "low" || *effort == "medium" ? *effort : "high";
    }
    if (const Json* format = c.object("format")) {
      Fields o(*format, "output_config.format");
      const Json* schema = o.object("schema");
      if (o.text("type") != "json_schema" || schema == nullptr) o.expected("type", "json_schema, with a schema");
      if (o.error()) return *o.error();
      chat.limits.format = GrammarSource{GrammarSource::Kind::kJsonSchema, dump(*schema)};
    }
    if (c.error()) return *c.error();
  }
  if (f.error()) return *f.error();
  return {};
}

// All that makes the prompt.
Answer<MessagesCall> read_prompt(const Json& body) {
  HEARTH_TRY(refuse_unsupported(body));
  MessagesCall call;
  Fields f(body);
  f.integer("max_tokens", 0, int64_t{1} << 31);  // this protocol has no number for "no limit"
  if (f.error()) return *f.error();
  HEARTH_TRY(read_limits(body, call.chat.limits));
  call.chat.limits.n = 1;
  call.chat.template_variables = Json::object();
  HEARTH_TRY(read_thinking(body, call));
  HEARTH_TRY(read_tool_choice(body, call.chat));
  HEARTH_ASSIGN(call.chat.tools, read_tools(body));
  HEARTH_ASSIGN(call.chat.messages, read_messages(body));
  return call;
}

Answer<MessagesCall> read_call(const Json& body) {
  HEARTH_ASSIGN(MessagesCall call, read_prompt(body));
  Fields f(body);
  call.stream = f.boolean("stream").value_or(false);
  call.chat.limits.stop = f.texts("stop_sequences").value_or(std::vector<std::string>());
  if (f.error()) return *f.error();
  return call;
}

// ---- answers ----

std::string_view stop_reason(EndReason reason) {
  switch (reason) {
    case EndReason::kToolCalls:
      return "tool_use";
    case EndReason::kLength:
      return "max_tokens";
    case EndReason::kStopSequence:
      return "stop_sequence";
    default:
      return "end_turn";
  }
}

// Tokens that were read from the cache are not among the input tokens.
Json usage_json(int64_t prompt, int64_t cached, int64_t generated) {
  return {{"input_tokens", prompt - cached},
          {"cache_creation_input_tokens", 0},
          {"cache_read_input_tokens", cached},
          {"output_tokens", generated}};
}

Json error_json(const Exchange& exchange, const ApiError& error) {
  std::string message = error.message;
  std::string_view type = "invalid_request_error";
  switch (error.kind) {
    case Refusal::kContextLength:
      // Clients look for these words.
      message = fmt::format("prompt is too long: {} tokens > {} maximum", error.prompt_tokens, error.context_tokens);
      break;
    case Refusal::kUnauthorized:
      type = "authentication_error";
      break;
    case Refusal::kForbidden:
      type = "permission_error";
      break;
    case Refusal::kNotFound:
      type = "not_found_error";
      break;
    case Refusal::kTimeout:
      type = "timeout_error";
      break;
    case Refusal::kTooLarge:
    case Refusal::kHeadersTooLarge:
      type = "request_too_large";
      break;
    case Refusal::kOverloaded:
      type = "overloaded_error";
      break;
    case Refusal::kInternal:
    case Refusal::kUnavailable:
      type = "api_error";
      break;
    default:
      break;
  }
  return {
      {"type", "error"}, {"error", {{"type", type}, {"message", std::move(message)}}}, {"request_id", exchange.id()}};
}

// Builds the message; while it is streamed, sends what happens to it.
class MessageSink final : public ExchangeSink {
 public:
  MessageSink(Exchange& exchange, const MessagesCall& call, const ChatRun& run)
      : ExchangeSink(exchange), call_(call), last_event_(Clock::now()) {
    message_ = {{"id", random_id("msg_")},  {"type", "message"},
                {"role", "assistant"},      {"model", run.model().id},
                {"content", Json::array()}, {"stop_reason", nullptr},
                {"stop_sequence", nullptr}, {"usage", usage_json(std::ssize(run.prompt()), 0, 0)}};
  }

  void begin() {
    exchange_.header("Cache-Control", "no-cache");
    exchange_.begin(200, "text/event-stream; charset=utf-8");
    send({{"type", "message_start"}, {"message", message_}});
  }

  void tell(int64_t, const ChatEvent& event) override {
    std::visit([&]<class T>(const T& e) { on(e); }, event);
  }

  void fail(const ApiError& error) {
    send(error_json(exchange_, error));
    exchange_.end();
  }

  const Json& message() const { return message_; }

 protected:
  void keepalive() override {
    if (Clock::now() - last_event_ < kRealEventAfter) {
      write_event(exchange_, {{"type", "ping"}});
    } else if (open_) {
      send_delta("");
    } else {
      open(call_.thinking ? "thinking" : "text");
    }
  }

 private:
  void on(const PromptProgress&) {}
  void on(const PromptScores&) {}
  void on(const TokenScores&) {}
  void on(const ReasoningDelta& e) {
    if (!call_.thinking) return;
    open("thinking");
    if (!call_.omitted) add(e.text);
  }
  void on(const TextDelta& e) {
    open("text");
    add(e.text);
  }
  void on(const CallStart& e) {
    close();
    // With the beginning that clients know, unless the model gave it: its template must get that back.
    constexpr std::string_view kOurs = "call_";
    const std::string id = e.id.starts_with(kOurs) ? "toolu_" + e.id.substr(kOurs.size()) : e.id;
    open_block("tool_use", {{"type", "tool_use"}, {"id", id}, {"name", e.name}, {"input", Json::object()}});
  }
  void on(const ToolArgumentsDelta& e) { add(e.json); }
  void on(const ToolCallEnd&) { close(); }
  void on(const AnswerDone& e) {
    close();
    if (e.reason == EndReason::kCancelled) return;  // an error follows
    const bool stopped = e.reason == EndReason::kStopSequence;
    Json end = {{"stop_reason", stop_reason(e.reason)}, {"stop_sequence", stopped ? Json(e.stop_sequence) : Json()}};
    Json usage = usage_json(e.usage.prompt_tokens, e.usage.cached_tokens, e.usage.generated_tokens);
    message_.update(end);
    message_["usage"] = usage;
    send({{"type", "message_delta"}, {"delta", std::move(end)}, {"usage", std::move(usage)}});
    send({{"type", "message_stop"}});
    if (call_.stream) exchange_.end();
  }

  // A block of thinking or text, unless one of the same kind is open.
  void open(std::string_view type) {
    if (open_ && message_["content"].back()["type"] == type) return;
    close();
    Json block = {{"type", type}, {type, ""}};
    if (type == "thinking") block["signature"] = "";
    open_block(type, std::move(block));
  }

  void open_block(std::string_view type, Json block) {
    field_ = type == "tool_use" ? "partial_json" : type;
    content_.clear();
    open_ = true;
    ++index_;
    message_["content"].push_back(block);
    send({{"type", "content_block_start"}, {"index", index_}, {"content_block", std::move(block)}});
  }

  void add(const std::string& piece) {
    if (piece.empty()) return;
    content_ += piece;
    send_delta(piece);
  }

  void send_delta(std::string piece) {
    const std::string type = field_ == "partial_json" ? "input_json_delta" : field_ + "_delta";
    send({{"type", "content_block_delta"}, {"index", index_}, {"delta", {{"type", type}, {field_, std::move(piece)}}}});
  }

  void close() {
    if (!open_) return;
    Json& block = message_["content"].back();
    if (field_ == "partial_json") {
      Json input = Json::parse(content_, nullptr, /*allow_exceptions=*/false);
      // A call that was cut off is nothing that a client could do.
      if (input.is_object()) {
        block["input"] = std::move(input);
      } else {
        message_["content"].erase(message_["content"].size() - 1);
      }
    } else {
      block[field_] = content_;
    }
    if (field_ == "thinking") {
      block["signature"] = kSignature;
      send({{"type", "content_block_delta"},
            {"index", index_},
            {"delta", {{"type", "signature_delta"}, {"signature", kSignature}}}});
    }
    send({{"type", "content_block_stop"}, {"index", index_}});
    open_ = false;
  }

  void send(const Json& event) {
    last_event_ = Clock::now();
    if (call_.stream) write_event(exchange_, event);
  }

  const MessagesCall& call_;
  Json message_;
  bool open_ = false;    // the last block of the message
  int64_t index_ = -1;   // of that block in the stream
  std::string field_;    // of its deltas
  std::string content_;  // so far
  Clock::time_point last_event_;
};

Answer<void> answer_messages(Exchange& exchange, const Models& models) {
  exchange.header("request-id", exchange.id());
  HEARTH_ASSIGN(Json body, body_of(exchange));
  HEARTH_ASSIGN(std::shared_ptr<ServedModel> model, model_for(exchange, models, body));
  HEARTH_ASSIGN(MessagesCall call, read_call(body));
  call.chat.limits.wanted = wanted_by(exchange);
  HEARTH_ASSIGN(std::unique_ptr<ChatRun> run, ChatRun::chat(model, std::move(call.chat)));
  MessageSink sink(exchange, call, *run);
  if (call.stream) sink.begin();
  Answer<void> result = run->run(sink);
  note_run(exchange, *run, result);
  if (call.stream) {
    if (!result) sink.fail(result.error());
    return {};
  }
  if (!result) return result;
  respond_json(exchange, 200, sink.message());
  return {};
}

Answer<void> count_tokens(Exchange& exchange, const Models& models) {
  exchange.header("request-id", exchange.id());
  HEARTH_ASSIGN(Json body, body_of(exchange));
  HEARTH_ASSIGN(std::shared_ptr<ServedModel> model, model_for(exchange, models, body));
  HEARTH_ASSIGN(MessagesCall call, read_prompt(body));
  HEARTH_ASSIGN(Prompt prompt, render_chat(*model, std::move(call.chat)));
  respond_json(exchange, 200, {{"input_tokens", prompt.tokens.size()}});
  return {};
}

}  // namespace

void anthropic_error(Exchange& exchange, const ApiError& error) {
  const int status = error.kind == Refusal::kOverloaded ? 529 : http_status(error.kind);
  respond_json(exchange, status, error_json(exchange, error));
}

void add_anthropic(Server& server, Models& models) {
  server.add({"POST", "/v1/messages", [&models](Exchange& exchange) { return answer_messages(exchange, models); }});
  server.add(
      {"POST", "/v1/messages/count_tokens", [&models](Exchange& exchange) { return count_tokens(exchange, models); }});
}

}  // namespace hearth::server
