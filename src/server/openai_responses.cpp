// POST /v1/responses and what was answered there before: the OpenAI Responses protocol.
#include <algorithm>
#include <charconv>
#include <ctime>

#include "server/openai.h"
#include "server/responses_request.h"

namespace hearth::server {
namespace {

Json usage_of(const AnswerUsage& usage) {
  return {{"input_tokens", usage.prompt_tokens},
          {"input_tokens_details", {{"cached_tokens", usage.cached_tokens}}},
          {"output_tokens", usage.generated_tokens},
          {"output_tokens_details", {{"reasoning_tokens", usage.reasoning_tokens}}},
          {"total_tokens", usage.prompt_tokens + usage.generated_tokens}};
}

// The text that the model gave a custom tool: its string `input`, or whatever it wrote instead.
std::string custom_input(const std::string& arguments) {
  const Json json = Json::parse(arguments, nullptr, /*allow_exceptions=*/false);
  if (!json.is_object()) return arguments;
  const Json input = json.value("input", json.size() == 1 ? json.front() : Json());
  return input.is_string() ? input.get<std::string>() : arguments;
}

Json shell_action(const std::string& arguments) {
  const Json json = Json::parse(arguments, nullptr, /*allow_exceptions=*/false);
  Json action = {{"type", "exec"}, {"command", Json::array()}, {"env", Json::object()}};
  if (!json.is_object()) return action;
  const Json command = json.value("command", Json());
  if (command.is_string()) action["command"] = Json::array({"sh", "-c", command});
  if (command.is_array()) {
    for (const Json& word : command) action["command"].push_back(word.is_string() ? word : Json(dump(word)));
  }
  for (const char* name : {"working_directory", "timeout_ms"}) action[name] = json.value(name, Json());
  return action;
}

// Builds the response; while it is streamed, sends what happens to it.
class ResponseSink final : public ExchangeSink {
 public:
  ResponseSink(Exchange& exchange, const ResponsesRequest& request, const std::string& model)
      : ExchangeSink(exchange), request_(request) {
    response_ = {{"id", random_id("resp_")}, {"object", "response"},    {"created_at", std::time(nullptr)},
                 {"status", "in_progress"},  {"error", nullptr},        {"incomplete_details", nullptr},
                 {"model", model},           {"output", Json::array()}, {"usage", nullptr}};
    response_.update(request.echo);
  }

  void begin() {
    exchange_.header("Cache-Control", "no-cache");
    exchange_.begin(200, "text/event-stream; charset=utf-8");
    send({{"type", "response.created"}, {"response", response_}});
    send({{"type", "response.in_progress"}, {"response", response_}});
  }

  void tell(int64_t, const ChatEvent& event) override {
    std::visit([&]<class T>(const T& e) { on(e); }, event);
  }

  void finish(const AnswerUsage& usage) {
    response_["usage"] = usage_of(usage);
    response_["status"] = length_ ? "incomplete" : "completed";
    if (length_) response_["incomplete_details"] = {{"reason", "max_output_tokens"}};
  }

  void end() { end(length_ ? "response.incomplete" : "response.completed"); }

  void fail(const ApiError& error) {
    Json told = openai_error_json(error)["error"];
    response_["status"] = "failed";
    response_["error"] = {{"code", told["code"].is_null() ? Json("server_error") : told["code"]},
                          {"message", told["message"]}};
    exchange_.close_after();  // clients wait for the end of the connection after this
    end("response.failed");
  }

  const Json& response() const { return response_; }

 protected:
  // Without what makes it long.
  void keepalive() override {
    Json short_form = response_;
    short_form["output"] = Json::array();
    short_form["tools"] = Json::array();
    short_form["instructions"] = nullptr;
    send({{"type", "response.in_progress"}, {"response", std::move(short_form)}});
  }

 private:
  enum class Open : uint8_t { kNothing, kReasoning, kMessage, kCall };

  void on(const PromptProgress&) {}
  void on(const PromptScores&) {}
  void on(const TokenScores& e) { scores_.push_back(token_scores_json(e)); }
  void on(const ReasoningDelta& e) {
    if (open_ != Open::kReasoning) open_reasoning();
    text_ += e.text;
    at_part(request_.summary ? "response.reasoning_summary_text.delta" : "response.reasoning_text.delta",
            {{"delta", e.text}});
  }
  void on(const TextDelta& e) {
    if (open_ != Open::kMessage) open_message();
    text_ += e.text;
    Json pending = std::exchange(scores_, Json::array());
    for (const Json& score : pending) logprobs_.push_back(score);
    at_part("response.output_text.delta", {{"delta", e.text}, {"logprobs", std::move(pending)}});
  }
  void on(const CallStart& e) {
    close();
    open_ = Open::kCall;
    const auto it = request_.tools.find(e.name);
    tool_ = it != request_.tools.end() ? it->second : OfferedTool{.name = e.name};
    switch (tool_.kind) {
      case OfferedTool::Kind::kFunction:
        item_ = {{"id", random_id("fc_")}, {"type", "function_call"}, {"status", "in_progress"},
                 {"call_id", e.id},        {"name", tool_.name},      {"arguments", ""}};
        if (!tool_.name_space.empty()) item_["namespace"] = tool_.name_space;
        break;
      case OfferedTool::Kind::kCustom:
        item_ = {{"id", random_id("ctc_")}, {"type", "custom_tool_call"}, {"status", "in_progress"},
                 {"call_id", e.id},         {"name", tool_.name},         {"input", ""}};
        break;
      case OfferedTool::Kind::kLocalShell:
        item_ = {{"id", random_id("lsh_")},
                 {"type", "local_shell_call"},
                 {"status", "in_progress"},
                 {"call_id", e.id},
                 {"action", shell_action("")}};
        break;
    }
    add_item();
  }
  void on(const ToolArgumentsDelta& e) {
    text_ += e.json;
    if (tool_.kind == OfferedTool::Kind::kFunction) {
      at_item("response.function_call_arguments.delta", {{"delta", e.json}});
    }
  }
  void on(const ToolCallEnd& e) { close(e.complete); }
  void on(const AnswerDone& e) {
    length_ = e.reason == EndReason::kLength;
    close(!length_ && e.reason != EndReason::kCancelled);
  }

  void open_reasoning() {
    close();
    open_ = Open::kReasoning;
    item_ = {{"id", random_id("rs_")}, {"type", "reasoning"}, {"summary", Json::array()}};
    add_item();
    part_ = {{"type", request_.summary ? "summary_text" : "reasoning_text"}, {"text", ""}};
    at_part(request_.summary ? "response.reasoning_summary_part.added" : "response.content_part.added",
            {{"part", part_}});
  }

  void open_message() {
    close();
    open_ = Open::kMessage;
    item_ = {{"id", random_id("msg_")},
             {"type", "message"},
             {"status", "in_progress"},
             {"role", "assistant"},
             {"content", Json::array()}};
    add_item();
    part_ = {{"type", "output_text"}, {"text", ""}, {"annotations", Json::array()}, {"logprobs", Json::array()}};
    at_part("response.content_part.added", {{"part", part_}});
  }

  void add_item() {
    text_.clear();
    send({{"type", "response.output_item.added"}, {"output_index", index()}, {"item", item_}});
  }

  // Ends the item that is open. `complete`: false when the answer ended in the middle of it.
  void close(bool complete = true) {
    const Open what = std::exchange(open_, Open::kNothing);
    if (what == Open::kNothing) return;
    if (what == Open::kReasoning) close_reasoning();
    if (what == Open::kMessage) close_message();
    if (what == Open::kCall) close_call();
    if (what != Open::kReasoning) item_["status"] = complete ? "completed" : "incomplete";
    send({{"type", "response.output_item.done"}, {"output_index", index()}, {"item", item_}});
    response_["output"].push_back(std::move(item_));
  }

  void close_reasoning() {
    part_["text"] = text_;
    if (request_.summary) {
      at_part("response.reasoning_summary_text.done", {{"text", text_}});
      at_part("response.reasoning_summary_part.done", {{"part", part_}});
    } else {
      at_part("response.reasoning_text.done", {{"text", text_}});
      at_part("response.content_part.done", {{"part", part_}});
    }
    item_[request_.summary ? "summary" : "content"] = Json::array({part_});
    if (request_.encrypted) item_["encrypted_content"] = std::string(kReasoningMark) + text_;
  }

  void close_message() {
    Json logprobs = std::exchange(logprobs_, Json::array());
    at_part("response.output_text.done", {{"text", text_}, {"logprobs", logprobs}});
    part_["text"] = text_;
    part_["logprobs"] = std::move(logprobs);
    at_part("response.content_part.done", {{"part", part_}});
    item_["content"] = Json::array({part_});
  }

  void close_call() {
    switch (tool_.kind) {
      case OfferedTool::Kind::kFunction:
        item_["arguments"] = text_;
        at_item("response.function_call_arguments.done", {{"name", tool_.name}, {"arguments", text_}});
        break;
      case OfferedTool::Kind::kCustom: {
        const std::string input = custom_input(text_);
        item_["input"] = input;
        at_item("response.custom_tool_call_input.delta", {{"delta", input}});
        at_item("response.custom_tool_call_input.done", {{"input", input}});
        break;
      }
      case OfferedTool::Kind::kLocalShell:
        item_["action"] = shell_action(text_);
        break;
    }
  }

  size_t index() const { return response_["output"].size(); }

  void at_item(std::string_view type, Json fields) {
    Json event = {{"type", type}, {"item_id", item_["id"]}, {"output_index", index()}};
    event.update(fields);
    send(std::move(event));
  }

  void at_part(std::string_view type, Json fields) {
    fields[type.starts_with("response.reasoning_summary") ? "summary_index" : "content_index"] = 0;
    at_item(type, std::move(fields));
  }

  void end(std::string_view type) {
    send({{"type", type}, {"response", response_}});
    exchange_.end();
  }

  void send(Json event) {
    if (!request_.stream) return;
    event["sequence_number"] = sequence_++;
    write_event(exchange_, event);
  }

  const ResponsesRequest& request_;
  Json response_;
  Open open_ = Open::kNothing;
  Json item_;                      // that is open, the next of the output
  Json part_;                      // of it
  OfferedTool tool_;               // that is called
  std::string text_;               // of the item so far: reasoning, text, or arguments
  Json scores_ = Json::array();    // of tokens that wait for their text
  Json logprobs_ = Json::array();  // of the message so far
  bool length_ = false;
  int64_t sequence_ = 0;
};

// Items of clients may have no type and no id; those that are asked for again have.
void name_items(Json& items) {
  for (Json& item : items) {
    Json& type = item["type"];
    if (type.is_null()) type = "message";
    const Json id = item.value("id", Json());
    if (!id.is_string()) item["id"] = random_id(type == "message" ? "msg_" : "item_");
  }
}

Answer<void> answer_responses(Exchange& exchange, const Models& models, ResponseStore& store) {
  HEARTH_ASSIGN(Json body, body_of(exchange));
  HEARTH_ASSIGN(std::shared_ptr<ServedModel> model, model_for(exchange, models, body));
  HEARTH_ASSIGN(ResponsesRequest request, read_responses_request(std::move(body), store));
  request.chat.limits.wanted = wanted_by(exchange);
  auto run = ChatRun::chat(model, std::move(request.chat));
  ResponseSink sink(exchange, request, model->id);
  if (!run) {
    // Codex makes its history shorter only when a stream tells it to.
    if (!request.stream || run.error().kind != Refusal::kContextLength) return std::move(run).error();
    exchange.note_text("error", run.error().message);
    sink.begin();
    sink.fail(run.error());
    return {};
  }
  if (request.stream) sink.begin();
  Answer<void> result = (*run)->run(sink);
  note_run(exchange, **run, result);
  if (!result) {
    if (!request.stream) return result;
    sink.fail(result.error());
    return {};
  }
  sink.finish((*run)->usage());
  // Before the client hears of the end and asks for it.
  if (request.store) {
    name_items(request.input);
    store.put(sink.response()["id"], {.response = sink.response(), .input = std::move(request.input)});
  }
  if (request.stream) {
    sink.end();
  } else {
    respond_json(exchange, 200, sink.response());
  }
  return {};
}

// "resp_..." of /v1/responses/resp_.../input_items
std::shared_ptr<const StoredResponse> stored(const Exchange& exchange, const ResponseStore& store, std::string& rest) {
  std::string id = exchange.request().path.substr(std::string_view("/v1/responses/").size());
  if (const size_t slash = id.find('/'); slash != std::string::npos) {
    rest = id.substr(slash);
    id.resize(slash);
  }
  return store.get(id);
}

ApiError no_such_response(const Exchange& exchange) {
  return refuse(Refusal::kNotFound, fmt::format("there is nothing at {}; responses are kept in memory for a while, and "
                                                "only those that were not asked for with store: false",
                                                exchange.request().path));
}

// A page of the items that a response was an answer to: ?limit=20&order=desc&after=ID
Answer<Json> page_of(const HttpRequest& request, const Json& items) {
  const std::string order = in_query(request, "order"), after = in_query(request, "after");
  const std::string limit = in_query(request, "limit");
  constexpr int64_t kMost = 100;
  int64_t most = 20;
  const auto [end, error] = std::from_chars(limit.data(), limit.data() + limit.size(), most);
  if (!limit.empty() && (error != std::errc() || end != limit.data() + limit.size() || most < 1 || most > kMost)) {
    return invalid("limit", "limit: it must be a whole number from 1 to {}, found {}", kMost, excerpt(Json(limit)));
  }
  if (!order.empty() && order != "asc" && order != "desc") {
    return invalid("order", "order: it must be asc or desc, found {}", excerpt(Json(order)));
  }
  std::vector<const Json*> ordered;
  for (const Json& item : items) ordered.push_back(&item);
  if (order != "asc") std::ranges::reverse(ordered);
  auto first = ordered.begin();
  if (!after.empty()) {
    first = std::ranges::find_if(ordered, [&](const Json* item) { return (*item)["id"] == after; });
    if (first == ordered.end()) {
      return invalid("after", "after: this response has no item with the id {}", excerpt(Json(after)));
    }
    ++first;
  }
  const auto last = first + std::min<int64_t>(most, ordered.end() - first);
  Json page = Json::array();
  for (auto it = first; it != last; ++it) page.push_back(**it);
  const Json first_id = page.empty() ? Json() : page.front()["id"], last_id = page.empty() ? Json() : page.back()["id"];
  return Json{{"object", "list"},
              {"data", std::move(page)},
              {"first_id", first_id},
              {"last_id", last_id},
              {"has_more", last != ordered.end()}};
}

Answer<void> get_response(Exchange& exchange, const ResponseStore& store) {
  std::string rest;
  const auto found = stored(exchange, store, rest);
  if (!found || (!rest.empty() && rest != "/input_items")) return no_such_response(exchange);
  if (rest.empty()) {
    respond_json(exchange, 200, found->response);
    return {};
  }
  HEARTH_ASSIGN(const Json page, page_of(exchange.request(), found->input));
  respond_json(exchange, 200, page);
  return {};
}

Answer<void> delete_response(Exchange& exchange, ResponseStore& store) {
  std::string rest;
  const auto found = stored(exchange, store, rest);
  if (!found || !rest.empty()) return no_such_response(exchange);
  const Json id = found->response["id"];
  store.erase(id.get_ref<const std::string&>());
  respond_json(exchange, 200, {{"id", id}, {"object", "response"}, {"deleted", true}});
  return {};
}

Answer<void> count_input(Exchange& exchange, const Models& models, const ResponseStore& store) {
  HEARTH_ASSIGN(Json body, body_of(exchange));
  HEARTH_ASSIGN(std::shared_ptr<ServedModel> model, model_for(exchange, models, body));
  HEARTH_ASSIGN(ResponsesRequest request, read_responses_request(std::move(body), store));
  HEARTH_ASSIGN(Prompt prompt, render_chat(*model, std::move(request.chat)));
  respond_json(exchange, 200, {{"object", "response.input_tokens"}, {"input_tokens", prompt.tokens.size()}});
  return {};
}

}  // namespace

void add_openai_responses(Server& server, Models& models, std::shared_ptr<ResponseStore> store) {
  for (const char* path : {"/v1/responses", "/responses"}) {
    server.add(
        {"POST", path, [&models, store](Exchange& exchange) { return answer_responses(exchange, models, *store); }});
  }
  server.add({"POST", "/v1/responses/input_tokens",
              [&models, store](Exchange& exchange) { return count_input(exchange, models, *store); }});
  server.add({"GET", "/v1/responses/*", [store](Exchange& exchange) { return get_response(exchange, *store); }});
  server.add({"DELETE", "/v1/responses/*", [store](Exchange& exchange) { return delete_response(exchange, *store); }});
}

}  // namespace hearth::server
