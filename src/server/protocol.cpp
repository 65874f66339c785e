#include "server/protocol.h"

namespace hearth::server {

void add_protocols(Server& server, Models& models) {
  server.set_error_form("", openai_error);
  add_openai_chat(server, models);
  add_openai_completions(server, models);
  add_openai_models(server, models);
  add_openai_responses(server, models);
  server.set_error_form("/v1/messages", anthropic_error);
  add_anthropic(server, models);
  server.set_error_form("/api/", ollama_error);
  add_ollama(server, models);
  add_native(server, models);
}

void note_run(Exchange& exchange, const ChatRun& run, const Answer<void>& result) {
  const AnswerUsage usage = run.usage();
  exchange.note("prompt", usage.prompt_tokens);
  if (result) {  // what was computed of a prompt that nobody waited for, nobody counted
    exchange.note("cached", usage.cached_tokens);
    exchange.note("computed", usage.prompt_tokens - usage.cached_tokens);
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
    exchange.note("error", fmt::format("\"{}\"", Answer<void>(result).error().message.substr(0, 200)));
  }
}

void respond_json(Exchange& exchange, int status, const Json& body) {
  exchange.respond(status, "application/json", dump(body));
}

void write_event(Exchange& exchange, const Json& event) {
  exchange.write(fmt::format("event: {}\ndata: {}\n\n", event["type"].get_ref<const std::string&>(), dump(event)));
}

Answer<Json> body_of(const Exchange& exchange) { return parse_json(exchange.request().body); }

}  // namespace hearth::server
