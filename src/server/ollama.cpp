// /api/chat, /api/generate and what tells of the model: the protocol of Ollama.
#include <chrono>
#include <ctime>
#include <variant>

#include "hearth/version.h"
#include "server/fim.h"
#include "server/openai.h"

namespace hearth::server {
namespace {

using Clock = std::chrono::steady_clock;

// Of Ollama's protocol: clients ask for the version from which on it has what they need.
constexpr const char* kProtocolVersion = "0.13.5";
// Clients show the first letters of a digest. That of the file is not known.
const std::string kDigest(64, '0');

std::string time_text(std::chrono::system_clock::time_point time) {
  const auto since = time.time_since_epoch();
  const auto seconds = std::chrono::floor<std::chrono::seconds>(since);
  const std::time_t whole = seconds.count();
  std::tm utc{};
  gmtime_r(&whole, &utc);
  char text[32];
  std::strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%S", &utc);
  return fmt::format("{}.{:09}Z", text, std::chrono::nanoseconds(since - seconds).count());
}

int64_t nanoseconds(double seconds) { return static_cast<int64_t>(seconds * 1e9); }

// ---- requests ----

struct OllamaCall {
  bool generate = false;  // /api/generate: its answers have another form
  bool stream = true;
  bool load_only = false;     // nothing was asked
  bool give_context = false;  // the answer ends with the tokens of the whole conversation
  std::variant<ChatRequest, CompletionRequest> request;
  ChatRequest& chat() { return std::get<ChatRequest>(request); }
};

Answer<void> refuse_images(const Json& object, const std::string& where) {
  const auto images = object.find("images");
  if (images == object.end() || images->is_null() || images->empty()) return {};
  return invalid(where + "images", "{}images: this server takes text only", where);
}

Answer<AnswerLimits> read_options(const Json& body) {
  HEARTH_TRY(refuse_unsupported(body));
  AnswerLimits limits;
  Fields f(body);
  if (const Json* options = f.object("options")) {
    HEARTH_TRY(refuse_unsupported(*options));
    HEARTH_TRY(read_limits(*options, limits));
    limits.n = 1;
    limits.format.reset();
    Fields o(*options, "options");
    // -1 and -2: no limit.
    limits.max_tokens = o.integer("num_predict", -2, int64_t{1} << 31);
    if (limits.max_tokens && *limits.max_tokens < 0) limits.max_tokens.reset();
    if (o.error()) return *o.error();
  }
  if (const Json* format = f.get("format")) {
    using Kind = GrammarSource::Kind;
    if (format->is_object()) {
      limits.format = GrammarSource{Kind::kJsonSchema, dump(*format)};
    } else if (*format == "json") {
      limits.format = GrammarSource{Kind::kJsonObject, ""};
    } else if (*format != "") {
      f.expected("format", "json or a JSON Schema");
    }
  }
  const auto best = f.integer("top_logprobs", 0, kMaxTopLogprobs);
  if (f.boolean("logprobs").value_or(false)) limits.top_logprobs = best.value_or(0);
  if (f.error()) return *f.error();
  return limits;
}

Answer<void> read_think(const Json& body, const ServedModel& model, ChatRequest& chat) {
  Fields f(body);
  const Json* think = f.get("think");
  if (think == nullptr) return {};
  if (think->is_boolean()) {
    chat.thinking = think->get<bool>();
  } else if (*think == "low" || *think == "medium" || *think == "high") {
    chat.thinking = true;
    chat.template_variables["reasoning_effort"] = *think;
  } else {
    f.expected("think", "true, false, low, medium or high");
  }
  if (f.error()) return *f.error();
  if (*chat.thinking && !model.text().supports_thinking() && model.text().output_markers().reasoning_open.empty()) {
    return invalid("think", "think: {} does not support thinking", model.id);
  }
  return {};
}

// A message as OpenAI has it.
Answer<Json> read_message(const Json& message, const std::string& where) {
  if (!message.is_object()) return invalid(where, "{}: it must be an object, found {}", where, excerpt(message));
  Fields f(message, where);
  const std::string role = f.text("role").value_or("");
  if (role.empty()) f.expected("role", "system, user, assistant or tool");
  std::string content = f.text("content").value_or("");
  if (role == "user") {
    HEARTH_TRY(refuse_images(message, where + "."));
  } else if (const Json* images = f.array("images")) {
    for (size_t i = 0; i < images->size(); ++i) content += (content.empty() ? "" : "\n") + named_part("image");
  }
  Json out = {{"role", role}, {"content", std::move(content)}};
  if (auto thinking = f.text("thinking"); thinking && !thinking->empty()) out["reasoning_content"] = *thinking;
  for (const char* name : {"tool_name", "name"}) {
    if (auto tool = f.text(name); tool && !out.contains("name")) out["name"] = *tool;
  }
  if (auto id = f.text("tool_call_id")) out["tool_call_id"] = *id;
  if (const Json* calls = f.array("tool_calls")) {
    for (size_t i = 0; i < calls->size(); ++i) {
      const std::string here = fmt::format("{}.tool_calls[{}]", where, i);
      if (!(*calls)[i].is_object()) return invalid(here, "{}: it must be an object", here);
      Fields c((*calls)[i], here);
      const Json* function = c.object("function");
      if (function == nullptr) {
        c.expected("function", "an object with name and arguments");
        return *c.error();
      }
      Fields n(*function, here + ".function");
      const Json arguments = function->value("arguments", Json::object());
      out["tool_calls"].push_back({{"id", c.text("id").value_or(fmt::format("call_{}", i))},
                                   {"type", "function"},
                                   {"function",
                                    {{"name", n.text("name").value_or("")},
                                     {"arguments", arguments.is_string() ? arguments : Json(dump(arguments))}}}});
      if (c.error()) return *c.error();
      if (n.error()) return *n.error();
    }
  }
  if (f.error()) return *f.error();
  return out;
}

Answer<OllamaCall> read_chat(const Json& body, const ServedModel& model) {
  OllamaCall call;
  ChatRequest chat{.messages = Json::array(), .template_variables = Json::object()};
  HEARTH_ASSIGN(chat.limits, read_options(body));
  HEARTH_TRY(read_think(body, model, chat));
  Fields f(body);
  call.stream = f.boolean("stream").value_or(true);
  if (const Json* tools = f.array("tools")) chat.tools = *tools;
  const Json* messages = f.array("messages");
  if (f.error()) return *f.error();
  call.load_only = messages == nullptr || messages->empty();
  for (size_t i = 0; !call.load_only && i < messages->size(); ++i) {
    HEARTH_ASSIGN(Json message, read_message((*messages)[i], fmt::format("messages[{}]", i)));
    chat.messages.push_back(std::move(message));
  }
  call.request = std::move(chat);
  return call;
}

Answer<std::vector<int32_t>> read_context(Fields& f, const ServedModel& model) {
  std::vector<int32_t> tokens;
  const Json* context = f.array("context");
  if (context == nullptr) return tokens;
  for (const Json& token : *context) {
    const int64_t id =
        token.is_number_unsigned() ? static_cast<int64_t>(std::min<uint64_t>(token.get<uint64_t>(), 1u << 31)) : -1;
    if (id < 0 || id >= model.text().vocab_size()) {
      return invalid("context", "context: it must be a list of tokens as an earlier answer gave it, found {}",
                     excerpt(token));
    }
    tokens.push_back(static_cast<int32_t>(id));
  }
  return tokens;
}

Answer<OllamaCall> read_generate(const Json& body, const ServedModel& model) {
  OllamaCall call{.generate = true};
  HEARTH_TRY(refuse_images(body, ""));
  HEARTH_ASSIGN(AnswerLimits limits, read_options(body));
  Fields f(body);
  call.stream = f.boolean("stream").value_or(true);
  const std::string prompt = f.text("prompt").value_or("");
  const std::string system = f.text("system").value_or("");
  const bool raw = f.boolean("raw").value_or(false);
  const std::string suffix = f.text("suffix").value_or("");
  if (!f.text("template").value_or("").empty()) {
    f.reject("template",
             "the template of the model is used; leave the field out, or set raw and send the whole prompt");
  }
  HEARTH_ASSIGN(std::vector<int32_t> context, read_context(f, model));
  if (f.error()) return *f.error();
  call.load_only = prompt.empty() && suffix.empty();
  if (!suffix.empty()) {
    const FimRequest fim{.prefix = prompt, .suffix = suffix, .max_tokens = limits.max_tokens.value_or(kFimTokens)};
    HEARTH_ASSIGN(std::vector<int32_t> tokens, fim_prompt(model, fim));
    call.request = CompletionRequest{.prompts = {std::move(tokens)}, .limits = std::move(limits)};
    return call;
  }
  if (raw) {
    HEARTH_ASSIGN(std::vector<int32_t> tokens, model.text().tokenize(prompt, true, context.empty()));
    context.insert(context.end(), tokens.begin(), tokens.end());
    call.request = CompletionRequest{.prompts = {std::move(context)}, .limits = std::move(limits)};
    return call;
  }
  call.give_context = true;
  ChatRequest chat{.messages = Json::array(), .template_variables = Json::object(), .context = std::move(context)};
  chat.limits = std::move(limits);
  HEARTH_TRY(read_think(body, model, chat));
  if (!system.empty()) chat.messages.push_back({{"role", "system"}, {"content", system}});
  chat.messages.push_back({{"role", "user"}, {"content", prompt}});
  call.request = std::move(chat);
  return call;
}

// The tokens of the conversation with its answer, for the next request to go on from.
Answer<Json> context_of(const ChatRequest& chat, const std::string& answer, const Text& text) {
  Json messages = chat.messages;
  messages.push_back({{"role", "assistant"}, {"content", answer}});
  HEARTH_ASSIGN(Prompt prompt,
                text.render(dump({{"messages", std::move(messages)}}), {.add_generation_prompt = false}));
  Json tokens = chat.context;
  for (int32_t token : prompt.tokens) tokens.push_back(token);
  return tokens;
}

// ---- answers ----

Json head(const std::string& model) {
  return {{"model", model}, {"created_at", time_text(std::chrono::system_clock::now())}};
}

class OllamaSink final : public ExchangeSink {
 public:
  OllamaSink(Exchange& exchange, const OllamaCall& call, std::string model)
      : ExchangeSink(exchange), call_(call), model_(std::move(model)) {}

  void begin() { exchange_.begin(200, "application/x-ndjson"); }

  void tell(int64_t, const ChatEvent& event) override {
    whole.add(event);
    std::visit([&]<class T>(const T& e) { on(e); }, event);
  }

  // The last object: of a stream that has no text any longer, else with all of it.
  void end(const AnswerUsage& usage, Json context) {
    Json object;
    if (call_.stream) {
      object = piece("", "", Json());
    } else {
      Json calls;
      for (size_t i = 0; i < whole.calls.size(); ++i) add_call(whole.calls[i], i, calls);
      object = piece(whole.text, whole.reasoning, std::move(calls));
    }
    if (!scores_.empty()) object["logprobs"] = std::exchange(scores_, Json::array());
    object["done"] = true;
    object["done_reason"] = whole.done.reason == EndReason::kLength ? "length" : "stop";
    if (!context.is_null()) object["context"] = std::move(context);
    object["total_duration"] = std::chrono::nanoseconds(Clock::now() - start_).count();
    object["load_duration"] = 0;
    object["prompt_eval_count"] = usage.prompt_tokens;
    // Of them, beside the protocol: its clients ignore what they do not know.
    object["prompt_cached_count"] = usage.cached_tokens;
    object["prompt_computed_count"] = usage.computed_tokens;
    object["prompt_eval_duration"] = nanoseconds(usage.prefill_seconds);
    object["eval_count"] = usage.generated_tokens;
    object["eval_duration"] = nanoseconds(usage.decode_seconds);
    if (!call_.stream) return respond_json(exchange_, 200, object);
    send(object);
    exchange_.end();
  }

  void fail(const ApiError& error) {
    send({{"error", error.message}});
    exchange_.end();
  }

  WholeAnswer whole;

 protected:
  void keepalive() override { send(piece("", "", Json())); }

 private:
  template <class T>
  void on(const T&) {}
  void on(const TokenScores& e) { scores_.push_back(token_scores_json(e)); }
  void on(const ReasoningDelta& e) {
    if (call_.stream) send(piece("", e.text, Json()));
  }
  void on(const TextDelta& e) {
    if (!call_.stream) return;
    Json object = piece(e.text, "", Json());
    if (!scores_.empty()) object["logprobs"] = std::exchange(scores_, Json::array());
    send(object);
  }
  // Calls go out whole.
  void on(const ToolCallEnd& e) {
    if (!call_.stream) return;
    Json calls;
    add_call(whole.calls.back(), static_cast<size_t>(e.index), calls);
    if (!calls.is_null()) send(piece("", "", std::move(calls)));
  }

  // A call that was cut off is nothing that a client could do.
  static void add_call(const WholeAnswer::Call& call, size_t index, Json& calls) {
    Json arguments = Json::parse(call.arguments, nullptr, /*allow_exceptions=*/false);
    if (!arguments.is_object()) return;
    calls.push_back(
        {{"id", call.id}, {"function", {{"index", index}, {"name", call.name}, {"arguments", std::move(arguments)}}}});
  }

  Json piece(const std::string& text, const std::string& thinking, Json calls) const {
    Json object = head(model_);
    if (call_.generate) {
      object["response"] = text;
      if (!thinking.empty()) object["thinking"] = thinking;
    } else {
      Json message = {{"role", "assistant"}, {"content", text}};
      if (!thinking.empty()) message["thinking"] = thinking;
      if (!calls.is_null()) message["tool_calls"] = std::move(calls);
      object["message"] = std::move(message);
    }
    object["done"] = false;
    return object;
  }

  void send(const Json& object) { exchange_.write(dump(object) + "\n"); }

  const OllamaCall& call_;
  const std::string model_;
  const Clock::time_point start_ = Clock::now();
  Json scores_ = Json::array();  // of tokens that wait for their text
};

Answer<void> answer_loaded(Exchange& exchange, const OllamaCall& call, const std::string& model) {
  Json object = head(model);
  if (call.generate) {
    object["response"] = "";
  } else {
    object["message"] = {{"role", "assistant"}, {"content", ""}};
  }
  object["done"] = true;
  object["done_reason"] = "load";
  respond_json(exchange, 200, object);
  return {};
}

// `read`: makes a call of a body.
Answer<void> answer_call(Exchange& exchange, const Models& models,
                         Answer<OllamaCall> (*read)(const Json&, const ServedModel&)) {
  HEARTH_ASSIGN(Json body, body_of(exchange));
  HEARTH_ASSIGN(std::shared_ptr<ServedModel> model, model_for(exchange, models, body));
  HEARTH_ASSIGN(OllamaCall call, read(body, *model));
  // Clients expect the name that they asked for, with its tag; one that no model has is not what answers.
  const Json asked = body.value("model", Json());
  const std::string name =
      asked.is_string() && models.has(asked.get<std::string>()) ? asked.get<std::string>() : model->id;
  if (call.load_only) return answer_loaded(exchange, call, name);
  std::unique_ptr<ChatRun> run;
  std::visit([&](auto& request) { request.limits.wanted = wanted_by(exchange); }, call.request);
  if (auto* chat = std::get_if<ChatRequest>(&call.request)) {
    HEARTH_ASSIGN(run, ChatRun::chat(model, *chat));
  } else {
    HEARTH_ASSIGN(run, ChatRun::completion(model, std::get<CompletionRequest>(call.request)));
  }
  OllamaSink sink(exchange, call, name);
  if (call.stream) sink.begin();
  Answer<void> result = run->run(sink);
  note_run(exchange, *run, result);
  Json context;
  if (result && call.give_context) {
    if (auto tokens = context_of(call.chat(), sink.whole.text, model->text())) context = *std::move(tokens);
  }
  if (result) {
    sink.end(run->usage(), std::move(context));
  } else if (call.stream) {
    sink.fail(result.error());
  } else {
    return result;
  }
  return {};
}

// ---- the model ----

Json details(const ModelFile& file) {
  return {{"parent_model", ""},
          {"format", "gguf"},
          {"family", file.architecture},
          {"families", Json::array({file.architecture})},
          {"parameter_size", file.parameters >= 1'000'000'000
                                 ? fmt::format("{:.1f}B", static_cast<double>(file.parameters) / 1e9)
                                 : fmt::format("{:.1f}M", static_cast<double>(file.parameters) / 1e6)},
          {"quantization_level", "unknown"}};
}

Json entry(const Models::State& model) {
  const std::chrono::system_clock::time_point modified{std::chrono::seconds(model.file.modified)};
  return {{"name", model.id},         {"model", model.id}, {"modified_at", time_text(modified)},
          {"size", model.file.bytes}, {"digest", kDigest}, {"details", details(model.file)}};
}

Answer<void> list_models(Exchange& exchange, const Models& models) {
  Json list = Json::array();
  for (const Models::State& state : models.states()) list.push_back(entry(state));
  respond_json(exchange, 200, {{"models", std::move(list)}});
  return {};
}

Answer<void> list_running(Exchange& exchange, const Models& models) {
  Json list = Json::array();
  for (const Models::State& state : models.states()) {
    if (!state.model) continue;
    Json running = entry(state);
    running.erase("modified_at");
    running["expires_at"] = "9999-12-31T23:59:59Z";  // clients cannot choose when it goes
    running["size_vram"] = 0;
    running["context_length"] = state.info->sequence_tokens;
    list.push_back(std::move(running));
  }
  respond_json(exchange, 200, {{"models", std::move(list)}});
  return {};
}

Answer<void> show_model(Exchange& exchange, const Models& models) {
  HEARTH_ASSIGN(Json body, body_of(exchange));
  if (!body.contains("model") && body.contains("name")) body["model"] = body["name"];
  HEARTH_ASSIGN(std::shared_ptr<ServedModel> model, model_for(exchange, models, body));
  const ModelInfo& info = model->model->info();
  const Text& text = model->text();
  // Clients do not offer models for chats that were made for embeddings.
  Json capabilities = Json::array({info.makes_embeddings ? "embedding" : "completion"});
  if (model->template_shows_tools) capabilities.push_back("tools");
  if (text.supports_thinking()) capabilities.push_back("thinking");
  const Json described = entry(models.state(model->id));
  respond_json(exchange, 200,
               {{"license", ""},
                {"modelfile", ""},
                {"parameters", ""},
                {"template", text.chat_template()},
                {"details", described["details"]},
                {"model_info",
                 {{"general.architecture", info.architecture},
                  {"general.basename", info.name},
                  {"general.parameter_count", info.parameters},
                  {info.architecture + ".context_length", info.sequence_tokens},
                  {info.architecture + ".embedding_length", info.embedding_width}}},
                {"capabilities", std::move(capabilities)},
                {"modified_at", described["modified_at"]}});
  return {};
}

}  // namespace

void ollama_error(Exchange& exchange, const ApiError& error) {
  respond_json(exchange, http_status(error.kind), {{"error", error.message}});
}

void add_ollama(Server& server, Models& models) {
  server.add({"POST", "/api/chat", [&models](Exchange& exchange) { return answer_call(exchange, models, read_chat); }});
  server.add({"POST", "/api/generate",
              [&models](Exchange& exchange) { return answer_call(exchange, models, read_generate); }});
  server.add({"GET", "/api/tags", [&models](Exchange& exchange) { return list_models(exchange, models); }});
  server.add({"GET", "/api/ps", [&models](Exchange& exchange) { return list_running(exchange, models); }});
  server.add({"POST", "/api/show", [&models](Exchange& exchange) { return show_model(exchange, models); }});
  server.add({"GET", "/api/version", [](Exchange& exchange) -> Answer<void> {
                respond_json(exchange, 200, {{"version", kProtocolVersion}, {"hearth", HEARTH_VERSION}});
                return {};
              }});
  const auto add_refusal = [&](const char* method, const char* path, std::string why) {
    server.add({method, path,
                [why = std::move(why)](Exchange&) -> Answer<void> { return refuse(Refusal::kUnsupported, why); }});
  };
  for (const char* path : {"/api/pull", "/api/push", "/api/create", "/api/copy"}) {
    add_refusal("POST", path, "this server serves the models that it was started with, and takes no others");
  }
  add_refusal("DELETE", "/api/delete", "this server serves the models that it was started with, and keeps them");
}

}  // namespace hearth::server
