#include "server/protocol.h"

#include <algorithm>

namespace hearth::server {

void add_protocols(Server& server, Models& models) {
  server.set_directory(
      "; GET /v1/models lists models; POST /v1/chat/completions, /v1/completions, /v1/responses, /v1/messages or "
      "/api/chat asks one, /v1/embeddings embeds");
  server.set_error_form("", openai_error);
  add_openai_chat(server, models);
  add_openai_completions(server, models);
  add_openai_embeddings(server, models);
  add_openai_models(server, models);
  auto responses = std::make_shared<ResponseStore>();
  add_openai_responses(server, models, responses);
  server.set_error_form("/v1/messages", anthropic_error);
  add_anthropic(server, models);
  server.set_error_form("/api/", ollama_error);
  add_ollama(server, models);
  add_ollama_embeddings(server, models);
  add_llamacpp(server, models);
  add_native(server, models, responses);
}

namespace {

// Between two lines of the log about a prompt that is being read.
constexpr double kProgressSeconds = 5;

std::string_view name_of(CacheMiss miss) {
  switch (miss) {
    case CacheMiss::kNone:
      return "none";
    case CacheMiss::kNew:
      return "new";
    case CacheMiss::kLonger:
      return "longer";
    case CacheMiss::kChanged:
      return "changed";
    case CacheMiss::kEvicted:
      return "evicted";
    case CacheMiss::kCleared:
      return "cleared";
    case CacheMiss::kUnused:
      return "unused";
  }
  return "none";
}

}  // namespace

bool ExchangeSink::alive() {
  if (exchange_.gone()) return false;
  if (exchange_.started() && exchange_.quiet_seconds() >= exchange_.limits().keepalive_seconds) keepalive();
  return true;
}

void ExchangeSink::event(int64_t answer, const ChatEvent& event) {
  if (const auto* progress = std::get_if<PromptProgress>(&event)) {
    const auto now = Socket::Clock::now();
    if (progress->done < progress->total && now - logged_ >= seconds(kProgressSeconds)) {
      logged_ = now;
      exchange_.log(fmt::format("read={} of={}", progress->done, progress->total));
    }
  }
  tell(answer, event);
}

std::function<bool()> wanted_by(Exchange& exchange) {
  return [&exchange, looked = Socket::Clock::now(), there = true]() mutable {
    const auto now = Socket::Clock::now();
    if (there && now - looked >= std::chrono::milliseconds(20)) {
      looked = now;
      there = !exchange.gone();
    }
    return there;
  };
}

void note_run(Exchange& exchange, const ChatRun& run, const Answer<void>& result) {
  const AnswerUsage usage = run.usage();
  exchange.note("prompt", usage.prompt_tokens);
  exchange.note("cached", usage.cached_tokens);
  if (usage.returned_tokens > 0) exchange.note("returned", usage.returned_tokens);
  exchange.note("computed", usage.computed_tokens);
  if (usage.miss != CacheMiss::kNone) {
    exchange.note("miss", name_of(usage.miss));
    exchange.note("miss_at", usage.miss_position);
  }
  exchange.note("generated", usage.generated_tokens);
  if (usage.first_token_seconds >= 0) exchange.note("ttft", fmt::format("{:.3f}", usage.first_token_seconds));
  if (usage.decode_seconds > 0 && usage.generated_tokens > 1) {
    exchange.note("tok_s",
                  fmt::format("{:.1f}", static_cast<double>(usage.generated_tokens - 1) / usage.decode_seconds));
  }
  if (exchange.gone()) {
    exchange.note("gone", "yes");
  } else if (!result && exchange.started()) {  // else whoever answers with it notes it
    exchange.note_text("error", Answer<void>(result).error().message);
  }
}

void respond_json(Exchange& exchange, int status, const Json& body) {
  exchange.respond(status, "application/json", dump(body));
}

void write_event(Exchange& exchange, const Json& event) {
  exchange.write(fmt::format("event: {}\ndata: {}\n\n", event["type"].get_ref<const std::string&>(), dump(event)));
}

Answer<Json> body_of(const Exchange& exchange) { return parse_json(exchange.request().body); }

std::string in_query(const HttpRequest& request, std::string_view name) {
  std::string_view rest = request.query;
  while (!rest.empty()) {
    const std::string_view field = rest.substr(0, rest.find('&'));
    rest.remove_prefix(std::min(rest.size(), field.size() + 1));
    if (field.size() > name.size() && field.starts_with(name) && field[name.size()] == '=') {
      return percent_decoded(field.substr(name.size() + 1)).value_or("");
    }
  }
  return {};
}

namespace {

Answer<std::shared_ptr<ServedModel>> wait_for_model(Exchange& exchange, const Models& models, const std::string& name) {
  HEARTH_ASSIGN(std::shared_ptr<ServedModel> model, models.get(name, [&] { return !exchange.gone(); }));
  // The name of a file may have what no header can.
  if (std::ranges::all_of(model->id, [](char c) { return c > 31 && c < 127; })) {
    exchange.header("X-Hearth-Model", model->id);
  }
  exchange.note_text("model", model->id);
  if (!name.empty() && !models.has(name)) exchange.note_text("asked", name);
  return model;
}

}  // namespace

Answer<std::shared_ptr<ServedModel>> model_for(Exchange& exchange, const Models& models, const Json& body) {
  const auto name = body.find("model");
  return wait_for_model(exchange, models, name != body.end() && name->is_string() ? name->get<std::string>() : "");
}

Answer<std::shared_ptr<ServedModel>> model_for(Exchange& exchange, const Models& models) {
  return wait_for_model(exchange, models, in_query(exchange.request(), "model"));
}

}  // namespace hearth::server
