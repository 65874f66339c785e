// POST /v1/chat/completions
#include "server/openai.h"

#include <ctime>

namespace hearth::server {
namespace {

struct ChatCall {
  ChatRequest chat;
  bool stream = false;
  bool include_usage = false;
  bool show_progress = false;
  bool token_ids = false;  // of prompt and answer, as vLLM gives them
  bool functions = false;  // calls go out in the protocol's older form
};

// ---- the protocol's older form of tools: `functions`, `function_call`, results with the role `function` ----

Json call_of(const Json& function_call, const std::string& id) {
  return {{"id", id}, {"type", "function"}, {"function", function_call}};
}

// Messages of that form as they are today. Calls have no ids there: theirs tell their place.
void renew_messages(Json& messages) {
  if (!messages.is_array()) return;
  std::string id;  // of the last call
  for (size_t i = 0; i < messages.size(); ++i) {
    Json& message = messages[i];
    if (!message.is_object()) continue;
    if (message.value("role", Json()) == "function") {
      message["role"] = "tool";
      message["tool_call_id"] = id;
    }
    const Json made = message.value("function_call", Json());
    message.erase("function_call");
    if (!made.is_object() || message.contains("tool_calls")) continue;
    id = fmt::format("call_{}", i);
    message["tool_calls"] = Json::array({call_of(made, id)});
  }
}

Answer<void> read_functions(Json& body, ChatCall& call) {
  Fields f(body);
  const Json* functions = f.array("functions");
  const Json* choice = f.get("function_call");
  if (f.error()) return *f.error();
  if (functions == nullptr || functions->empty() || f.has("tools")) return {};
  call.functions = true;
  call.chat.parallel_tool_calls = false;
  if (choice != nullptr) {
    HEARTH_ASSIGN(call.chat.tool_choice, read_tool_choice(*choice, tool_name));
  }
  call.chat.tools = Json::array();
  for (const Json& function : *functions) call.chat.tools.push_back({{"type", "function"}, {"function", function}});
  return {};
}

// ---- requests ----

// Those that take text in a grammar of the client's would be called with what no such client understands.
Answer<void> refuse_custom_tools(const Json& tools) {
  for (size_t i = 0; tools.is_array() && i < tools.size(); ++i) {
    if (!tools[i].is_object() || tools[i].value("type", Json()) != "custom") continue;
    return invalid(
        "tools",
        "tools[{}]: a tool of the type custom cannot be offered here; give it as a function with one string, or "
        "use /v1/responses",
        i);
  }
  return {};
}

// Whether to think and how long, under the names that clients have for it.
Answer<void> read_thinking(const Json& body, ChatRequest& chat) {
  Fields f(body);
  constexpr int64_t kMost = int64_t{1} << 31;
  chat.thinking = f.boolean("enable_thinking");
  chat.thinking_budget = f.integer("thinking_budget", -1, kMost);
  std::optional<std::string> effort = f.text("reasoning_effort");
  if (const Json* reasoning = f.get("reasoning"); reasoning != nullptr && reasoning->is_object()) {
    Fields r(*reasoning, "reasoning");
    if (!effort) effort = r.text("effort");
    if (auto most = r.integer("max_tokens", 0, kMost)) chat.thinking_budget = most;
    if (auto enabled = r.boolean("enabled")) chat.thinking = enabled;
    if (r.error()) return *r.error();
  }
  if (const Json* thinking = f.get("thinking"); thinking != nullptr && thinking->is_object()) {
    Fields t(*thinking, "thinking");
    if (auto type = t.text("type")) chat.thinking = *type != "disabled";
    if (auto most = t.integer("budget_tokens", 0, kMost)) chat.thinking_budget = most;
    if (t.error()) return *t.error();
  }
  if (effort) {
    chat.thinking = *effort != "none" && *effort != "minimal";
    if (*chat.thinking) chat.template_variables["reasoning_effort"] = *effort;
  }
  if (chat.thinking_budget == -1) chat.thinking_budget.reset();
  if (f.error()) return *f.error();
  return {};
}

Answer<ChatCall> read_call(Json body) {
  HEARTH_TRY(refuse_unsupported(body));
  ChatCall call;
  ChatRequest& chat = call.chat;
  chat.template_variables = Json::object();
  Fields f(body);
  call.stream = f.boolean("stream").value_or(false);
  if (const Json* options = f.object("stream_options")) {
    Fields o(*options, "stream_options");
    call.include_usage = o.boolean("include_usage").value_or(false);
    if (o.error()) return *o.error();
  }
  call.show_progress = f.boolean("return_progress").value_or(false);
  call.token_ids = f.boolean("return_token_ids").value_or(false);
  chat.parallel_tool_calls = f.boolean("parallel_tool_calls").value_or(true);
  auto best = f.integer("top_logprobs", 0, kMaxTopLogprobs);
  if (f.boolean("logprobs").value_or(false)) chat.limits.top_logprobs = best.value_or(0);
  if (auto n_probs = f.integer("n_probs", 0, kMaxTopLogprobs); n_probs && *n_probs > 0) {
    chat.limits.top_logprobs = n_probs;
  }
  if (const Json* choice = f.get("tool_choice")) {
    HEARTH_ASSIGN(chat.tool_choice, read_tool_choice(*choice, tool_name));
  }
  if (const Json* variables = f.object("chat_template_kwargs")) chat.template_variables = *variables;
  if (f.get("messages") == nullptr) f.expected("messages", "a list of messages");
  if (f.error()) return *f.error();
  HEARTH_TRY(read_thinking(body, chat));
  HEARTH_TRY(read_limits(body, chat.limits));
  HEARTH_TRY(read_functions(body, call));
  chat.messages = std::move(body["messages"]);
  renew_messages(chat.messages);
  if (f.has("tools")) chat.tools = std::move(body["tools"]);
  HEARTH_TRY(refuse_custom_tools(chat.tools));
  return call;
}

// `older`: as it was called when tools were functions.
std::string_view finish_reason(EndReason reason, bool older) {
  return older && reason == EndReason::kToolCalls ? "function_call" : finish_reason(reason);
}

Json scores_json(const std::vector<TokenScores>& scores) {
  Json content = Json::array();
  for (const TokenScores& token : scores) content.push_back(token_scores_json(token));
  return {{"content", std::move(content)}, {"refusal", nullptr}};
}

// What every object of one answer begins with.
struct Head {
  std::string id = random_id("chatcmpl-");
  std::string model;
  int64_t created = std::time(nullptr);

  Json json(std::string_view object) const {
    return {{"id", id}, {"object", object}, {"created", created}, {"model", model}};
  }
};

Json whole_json(const Head& head, const std::vector<WholeAnswer>& answers, const ChatRun& run, const ChatCall& call) {
  const bool logprobs = call.chat.limits.top_logprobs.has_value();
  Json choices = Json::array();
  for (size_t i = 0; i < answers.size(); ++i) {
    const WholeAnswer& answer = answers[i];
    Json message = {{"role", "assistant"}, {"content", answer.text}};
    if (answer.text.empty() && !answer.calls.empty()) message["content"] = nullptr;
    if (!answer.reasoning.empty()) message["reasoning_content"] = answer.reasoning;
    for (const WholeAnswer::Call& made : answer.calls) {
      if (call.functions) {
        message["function_call"] = {{"name", made.name}, {"arguments", made.arguments}};
        continue;
      }
      message["tool_calls"].push_back(
          {{"id", made.id}, {"type", "function"}, {"function", {{"name", made.name}, {"arguments", made.arguments}}}});
    }
    choices.push_back({{"index", i},
                       {"message", std::move(message)},
                       {"logprobs", logprobs ? scores_json(answer.scores) : Json()},
                       {"finish_reason", finish_reason(answer.done.reason, call.functions)}});
    if (call.token_ids) choices.back()["token_ids"] = answer.done.tokens;
  }
  Json body = head.json("chat.completion");
  if (call.token_ids) body["prompt_token_ids"] = run.prompt();
  body["choices"] = std::move(choices);
  body["usage"] = usage_json(run.usage());
  body["timings"] = timings_json(run.usage());
  return body;
}

class StreamSink final : public ExchangeSink {
 public:
  StreamSink(Exchange& exchange, const Head& head, const ChatCall& call)
      : ExchangeSink(exchange), head_(head), call_(call), scores_(static_cast<size_t>(call.chat.limits.n)) {}

  void begin() {
    exchange_.begin(200, "text/event-stream; charset=utf-8");
    for (int64_t i = 0; i < std::ssize(scores_); ++i) delta(i, {{"role", "assistant"}, {"content", ""}});
  }

  void tell(int64_t answer, const ChatEvent& event) override {
    std::visit([&]<class T>(const T& e) { on(answer, e); }, event);
  }

  // Those of the prompt, once; those of each answer come with its end.
  void token_ids(const std::vector<int32_t>& prompt) {
    if (!call_.token_ids) return;
    Json chunk = head_.json("chat.completion.chunk");
    chunk["choices"] = Json::array({Json{{"index", 0}, {"delta", Json::object()}, {"finish_reason", nullptr}}});
    if (call_.include_usage) chunk["usage"] = nullptr;
    chunk["prompt_token_ids"] = prompt;
    send(chunk);
  }

  void end(const AnswerUsage& usage) {
    if (call_.include_usage) {
      Json chunk = head_.json("chat.completion.chunk");
      chunk["choices"] = Json::array();
      chunk["usage"] = usage_json(usage);
      chunk["timings"] = timings_json(usage);
      send(chunk);
    }
    exchange_.write("data: [DONE]\n\n");
    exchange_.end();
  }

  void fail(const ApiError& error) {
    send(openai_error_json(error));
    exchange_.end();
  }

 protected:
  // Comments do not count with every client, an empty delta does.
  void keepalive() override { delta(0, Json::object()); }

 private:
  void on(int64_t, const PromptScores&) {}
  void on(int64_t answer, const PromptProgress& e) {
    if (!call_.show_progress) return;
    Json chunk = head_.json("chat.completion.chunk");
    chunk["choices"] = Json::array({Json{{"index", answer}, {"delta", Json::object()}, {"finish_reason", nullptr}}});
    if (call_.include_usage) chunk["usage"] = nullptr;
    chunk["prompt_progress"] = {{"processed", e.done}, {"total", e.total}};
    send(chunk);
  }
  void on(int64_t answer, const ReasoningDelta& e) { delta(answer, {{"reasoning_content", e.text}}); }
  void on(int64_t answer, const TextDelta& e) { delta(answer, {{"content", e.text}}); }
  void on(int64_t answer, const CallStart& e) {
    if (call_.functions) return delta(answer, {{"function_call", {{"name", e.name}, {"arguments", ""}}}});
    call_delta(
        answer,
        {{"index", e.index}, {"id", e.id}, {"type", "function"}, {"function", {{"name", e.name}, {"arguments", ""}}}});
  }
  void on(int64_t answer, const ToolArgumentsDelta& e) {
    if (call_.functions) return delta(answer, {{"function_call", {{"arguments", e.json}}}});
    call_delta(answer, {{"index", e.index}, {"function", {{"arguments", e.json}}}});
  }
  void on(int64_t, const ToolCallEnd&) {}
  void on(int64_t answer, const TokenScores& e) { scores_[static_cast<size_t>(answer)].push_back(e); }
  void on(int64_t answer, const AnswerDone& e) {
    if (e.reason == EndReason::kCancelled) return;  // an error follows
    delta(answer, Json::object(), finish_reason(e.reason, call_.functions), &e);
  }

  void call_delta(int64_t answer, Json call) { delta(answer, {{"tool_calls", Json::array({std::move(call)})}}); }

  void delta(int64_t answer, Json delta, std::string_view finish = {}, const AnswerDone* done = nullptr) {
    Json choice = {{"index", answer}, {"delta", std::move(delta)}};
    std::vector<TokenScores>& scores = scores_[static_cast<size_t>(answer)];
    if (!scores.empty()) {
      choice["logprobs"] = scores_json(scores);
      scores.clear();
    }
    choice["finish_reason"] = finish.empty() ? Json() : Json(finish);
    if (done != nullptr && call_.token_ids) choice["token_ids"] = done->tokens;
    Json chunk = head_.json("chat.completion.chunk");
    chunk["choices"] = Json::array({std::move(choice)});
    if (call_.include_usage) chunk["usage"] = nullptr;
    if (done != nullptr && !call_.include_usage) chunk["timings"] = timings_json(done->usage);
    send(chunk);
  }

  void send(const Json& chunk) { exchange_.write("data: " + dump(chunk) + "\n\n"); }

  const Head& head_;
  const ChatCall& call_;
  std::vector<std::vector<TokenScores>> scores_;  // of each answer, that wait for its next piece
};

Answer<void> answer_chat(Exchange& exchange, const Models& models) {
  HEARTH_ASSIGN(Json body, body_of(exchange));
  HEARTH_ASSIGN(std::shared_ptr<ServedModel> model, model_for(exchange, models, body));
  HEARTH_ASSIGN(ChatCall call, read_call(std::move(body)));
  call.chat.limits.wanted = wanted_by(exchange);
  HEARTH_ASSIGN(std::unique_ptr<ChatRun> run, ChatRun::chat(model, call.chat));
  Head head{.model = model->id};
  if (call.stream) {
    StreamSink sink(exchange, head, call);
    exchange.header("Cache-Control", "no-cache");
    sink.begin();
    sink.token_ids(run->prompt());
    Answer<void> result = run->run(sink);
    note_run(exchange, *run, result);
    if (!result) {
      sink.fail(result.error());
    } else {
      sink.end(run->usage());
    }
    return {};
  }
  WholeSink sink(exchange, call.chat.limits.n);
  Answer<void> result = run->run(sink);
  note_run(exchange, *run, result);
  if (!result) return result;
  respond_json(exchange, 200, whole_json(head, sink.answers, *run, call));
  return {};
}

}  // namespace

Answer<ChatRequest> read_openai_chat(Json body) {
  HEARTH_ASSIGN(ChatCall call, read_call(std::move(body)));
  return std::move(call.chat);
}

void add_openai_chat(Server& server, Models& models) {
  for (const char* path : {"/v1/chat/completions", "/chat/completions"}) {
    server.add({"POST", path, [&models](Exchange& exchange) { return answer_chat(exchange, models); }});
  }
}

}  // namespace hearth::server
