// GET /v1/models, and what of the OpenAI protocol this server does not have.
#include <ctime>

#include "server/openai.h"

namespace hearth::server {
namespace {

std::string date(int64_t seconds) {
  const std::time_t time = seconds;
  std::tm utc{};
  gmtime_r(&time, &utc);
  char text[32];
  return {text, std::strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%SZ", &utc)};
}

std::string_view status_name(Models::Status status) {
  switch (status) {
    case Models::Status::kUnloaded:
      return "unloaded";
    case Models::Status::kLoading:
      return "loading";
    case Models::Status::kReady:
      return "ready";
    case Models::Status::kFailed:
      return "failed";
  }
  return "failed";
}

// With the fields of the Anthropic protocol, which has its list at the same place.
Json model_json(const Models::State& model) {
  Json entry = {{"id", model.id},
                {"object", "model"},
                {"created", model.created},
                {"owned_by", "hearth"},
                {"type", "model"},
                {"display_name", model.id},
                {"created_at", date(model.created)},
                {"status", status_name(model.status)}};
  if (!model.aliases.empty()) entry["aliases"] = model.aliases;
  if (model.failure) entry["message"] = model.failure->message;
  if (!model.info) return entry;
  const ModelInfo& info = *model.info;
  // Clients read the length of the context under one of these names.
  for (const char* name : {"context_length", "context_window", "max_model_len", "max_context_length"}) {
    entry[name] = info.sequence_tokens;
  }
  entry["meta"] = {{"name", info.name},
                   {"architecture", info.architecture},
                   {"n_params", info.parameters},
                   {"size", info.file_bytes},
                   {"n_vocab", info.vocab_size},
                   {"n_ctx", info.sequence_tokens},
                   {"n_ctx_train", info.trained_context}};
  return entry;
}

}  // namespace

void add_openai_models(Server& server, Models& models) {
  const auto list = [&models](Exchange& exchange) -> Answer<void> {
    Json data = Json::array();
    for (const Models::State& model : models.states()) data.push_back(model_json(model));
    const Json first = data.front()["id"], last = data.back()["id"];
    respond_json(
        exchange, 200,
        {{"object", "list"}, {"data", std::move(data)}, {"has_more", false}, {"first_id", first}, {"last_id", last}});
    return {};
  };
  const auto one = [&models](Exchange& exchange) -> Answer<void> {
    const std::string& path = exchange.request().path;
    respond_json(exchange, 200, model_json(models.state(path.substr(path.find("/models/") + 8))));
    return {};
  };
  server.add({"GET", "/v1/models", list});
  server.add({"GET", "/models", list});
  server.add({"GET", "/v1/models/*", one});
  const auto not_here = [](std::string what) {
    return [what = std::move(what)](Exchange&) -> Answer<void> {
      return refuse(Refusal::kUnsupported, what + ": this server generates text and has no such models");
    };
  };
  server.add({"POST", "/v1/images/*", not_here("images")});
  server.add({"POST", "/v1/audio/*", not_here("audio")});
  server.add({"POST", "/v1/rerank", not_here("reranking")});
  server.add({"POST", "/v1/moderations", not_here("moderation")});
}

}  // namespace hearth::server
