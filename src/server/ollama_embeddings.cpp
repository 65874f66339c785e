// /api/embed and its predecessor /api/embeddings: the protocol of Ollama.
#include <chrono>

#include "server/embeddings.h"

namespace hearth::server {
namespace {

using Clock = std::chrono::steady_clock;

// The longest prompt of this one's beginning that the context takes. An end that the model wants behind every text
// stays there: the embedding is its hidden state.
void truncate(std::vector<int32_t>& tokens, const ServedModel& model) {
  const auto most = static_cast<size_t>(model.model->info().sequence_tokens);
  if (tokens.size() <= most) return;
  const int32_t last = tokens.back();
  tokens.resize(most);
  if (model.text().ends_generation(last)) tokens.back() = last;
}

// The embeddings of texts that `field` has. None: the client only wanted the model to be loaded.
Answer<Embeddings> embed_texts(Exchange& exchange, const Models& models, const Json& body, const char* field) {
  HEARTH_ASSIGN(const std::shared_ptr<ServedModel> model, model_for(exchange, models, body));
  EmbeddingRequest request;
  Fields f(body);
  const std::vector<std::string> texts = f.texts(field).value_or(std::vector<std::string>());
  const bool shorten = f.boolean("truncate").value_or(true);
  request.dimensions = read_dimensions(f, *model);
  if (f.error()) return *f.error();
  if (texts.empty() || (texts.size() == 1 && texts[0].empty() && body[field].is_string())) return Embeddings{};
  for (const std::string& text : texts) {
    HEARTH_ASSIGN(std::vector<int32_t> tokens, embedding_prompt(text, *model, field));
    if (shorten) truncate(tokens, *model);
    HEARTH_TRY(check_length(std::ssize(tokens), /*max_tokens=*/0, *model, field));
    request.prompts.push_back(std::move(tokens));
  }
  return embed(exchange, model, request);
}

Answer<void> answer_embed(Exchange& exchange, const Models& models) {
  const Clock::time_point start = Clock::now();
  HEARTH_ASSIGN(const Json body, body_of(exchange));
  HEARTH_ASSIGN(const Embeddings embeddings, embed_texts(exchange, models, body, "input"));
  respond_json(exchange, 200,
               {{"model", body.value("model", Json())},
                {"embeddings", embeddings.vectors},
                {"total_duration", std::chrono::nanoseconds(Clock::now() - start).count()},
                {"load_duration", 0},
                {"prompt_eval_count", embeddings.prompt_tokens}});
  return {};
}

Answer<void> answer_embeddings(Exchange& exchange, const Models& models) {
  HEARTH_ASSIGN(const Json body, body_of(exchange));
  if (const auto prompt = body.find("prompt"); prompt != body.end() && prompt->is_array()) {
    return invalid("prompt", "prompt: it must be a string; /api/embed takes several");
  }
  HEARTH_ASSIGN(const Embeddings embeddings, embed_texts(exchange, models, body, "prompt"));
  respond_json(exchange, 200,
               {{"embedding", embeddings.vectors.empty() ? Json::array() : Json(embeddings.vectors[0])}});
  return {};
}

}  // namespace

void add_ollama_embeddings(Server& server, Models& models) {
  server.add({"POST", "/api/embed", [&models](Exchange& exchange) { return answer_embed(exchange, models); }});
  server.add(
      {"POST", "/api/embeddings", [&models](Exchange& exchange) { return answer_embeddings(exchange, models); }});
}

}  // namespace hearth::server
