#include "server/embeddings.h"

#include <algorithm>
#include <cmath>
#include <deque>

namespace hearth::server {
namespace {

// So many prompts of a request keep the engine busy; more would only take the places of others.
constexpr int64_t kAtOnce = 4;

// The first `dimensions` numbers of a vector, with a length of 1.
void shorten(std::vector<float>& vector, int64_t dimensions) {
  vector.resize(static_cast<size_t>(dimensions));
  double squares = 0;
  for (float x : vector) squares += static_cast<double>(x) * x;
  if (squares == 0) return;
  for (float& x : vector) x = static_cast<float>(x / std::sqrt(squares));
}

class EmbeddingRun {
 public:
  EmbeddingRun(std::shared_ptr<ServedModel> model, const EmbeddingRequest& request)
      : model_(std::move(model)), request_(request), vectors_(request.prompts.size()) {}

  Answer<void> run(const std::function<bool()>& wanted) {
    const int64_t at_once = std::min<int64_t>(kAtOnce, std::ssize(request_.prompts));
    HEARTH_ASSIGN(const Places places, Places::take(model_, at_once));
    Answer<void> result = run_all(at_once, wanted);
    if (!result) cancel();
    return result;
  }

  AnswerUsage usage;  // of all prompts, as far as they came
  std::vector<std::vector<float>> take_vectors() { return std::move(vectors_); }

 private:
  struct Running {
    size_t prompt = 0;
    Generation generation;
  };

  Answer<void> run_all(int64_t at_once, const std::function<bool()>& wanted) {
    size_t next = 0;
    while (next < request_.prompts.size() || !running_.empty()) {
      while (next < request_.prompts.size() && std::ssize(running_) < at_once) {
        HEARTH_ASSIGN(Generation generation,
                      model_->engine->submit({.prompt = request_.prompts[next], .max_tokens = 0, .embedding = true}));
        running_.push_back({.prompt = next++, .generation = std::move(generation)});
      }
      // The engine takes the oldest first, mostly: what the others say can wait for it.
      std::optional<Event> event = running_.front().generation.next_within(0.1);
      if (!wanted()) return cut_off();
      if (event) HEARTH_TRY(handle(*std::move(event)));
    }
    return {};
  }

  Answer<void> handle(Event event) {
    if (auto* embedding = std::get_if<Embedding>(&event)) {
      std::vector<float>& vector = vectors_[running_.front().prompt];
      vector = std::move(embedding->values);
      if (request_.dimensions) shorten(vector, *request_.dimensions);
    } else if (auto* done = std::get_if<Done>(&event)) {
      const bool whole = done->reason != FinishReason::kCancelled;
      end(done->usage, whole ? model_->counters->answers : model_->counters->cancelled);
      if (!whole) return cut_off();
    } else if (auto* failed = std::get_if<Failed>(&event)) {
      end({}, model_->counters->failed);
      return std::move(failed->error);
    }
    return {};
  }

  // Takes the first that runs off the list.
  void end(const Usage& used, std::atomic<int64_t>& kind) {
    const AnswerUsage one{.prompt_tokens = std::ssize(request_.prompts[running_.front().prompt]),
                          .cached_tokens = used.cached_tokens,
                          .returned_tokens = used.returned_tokens,
                          .computed_tokens = used.computed_tokens,
                          .queue_seconds = used.queue_seconds,
                          .prefill_seconds = used.prefill_seconds};
    count(*model_->counters, kind, one);
    usage.prompt_tokens += one.prompt_tokens;
    usage.cached_tokens += one.cached_tokens;
    usage.returned_tokens += one.returned_tokens;
    usage.computed_tokens += one.computed_tokens;
    running_.pop_front();
  }

  void cancel() {
    for (Running& running : running_) running.generation.cancel();
    const auto deadline = std::chrono::steady_clock::now() + kLastWords;
    while (!running_.empty()) {
      const auto done = last_words(running_.front().generation, deadline);
      end(done ? done->usage : Usage(), model_->counters->cancelled);
    }
  }

  const std::shared_ptr<ServedModel> model_;
  const EmbeddingRequest& request_;
  std::deque<Running> running_;
  std::vector<std::vector<float>> vectors_;
};

}  // namespace

std::optional<int64_t> read_dimensions(Fields& fields, const ServedModel& model) {
  return fields.integer("dimensions", 1, std::max<int64_t>(1, model.model->info().embedding_width));
}

Answer<std::vector<int32_t>> embedding_prompt(const std::string& text, const ServedModel& model,
                                              const std::string& field) {
  std::vector<int32_t> tokens;
  if (!text.empty()) {
    HEARTH_ASSIGN(tokens, model.text().tokenize(text, /*special=*/true, /*add_special=*/true));
  }
  if (tokens.empty()) return invalid(field, "{}: a text is empty; each must have at least one token", field);
  return tokens;
}

Answer<Embeddings> embed(Exchange& exchange, const std::shared_ptr<ServedModel>& model,
                         const EmbeddingRequest& request) {
  EmbeddingRun run(model, request);
  Answer<void> result = run.run(wanted_by(exchange));
  exchange.note("inputs", request.prompts.size());
  exchange.note("prompt", run.usage.prompt_tokens);
  exchange.note("cached", run.usage.cached_tokens);
  if (run.usage.returned_tokens > 0) exchange.note("returned", run.usage.returned_tokens);
  exchange.note("computed", run.usage.computed_tokens);
  if (exchange.gone()) exchange.note("gone", "yes");
  if (!result) return std::move(result).error();
  return Embeddings{.vectors = run.take_vectors(), .prompt_tokens = run.usage.prompt_tokens};
}

}  // namespace hearth::server
