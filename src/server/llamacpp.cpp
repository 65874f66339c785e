// /completion and /infill: what is llama.cpp's own, for the editors and programs that were written for it.
#include "server/fim.h"
#include "server/openai.h"

namespace hearth::server {
namespace {

class LlamaSink final : public ExchangeSink {
 public:
  LlamaSink(Exchange& exchange, bool stream, size_t answers)
      : ExchangeSink(exchange), answers(answers), stream_(stream) {}

  void tell(int64_t answer, const ChatEvent& event) override {
    answers[static_cast<size_t>(answer)].add(event);
    const auto* text = std::get_if<TextDelta>(&event);
    if (text != nullptr && stream_) send(piece(answer, text->text));
  }
  void send(const Json& chunk) { exchange_.write("data: " + dump(chunk) + "\n\n"); }

  std::vector<WholeAnswer> answers;

 protected:
  void keepalive() override { send(piece(0, "")); }

 private:
  static Json piece(int64_t answer, const std::string& text) {
    return {{"index", answer}, {"content", text}, {"stop", false}};
  }

  const bool stream_;
};

std::string_view stop_type(EndReason reason) {
  switch (reason) {
    case EndReason::kLength:
      return "limit";
    case EndReason::kStopSequence:
      return "word";
    default:
      return "eos";
  }
}

Json scores_json(const std::vector<TokenScores>& scores) {
  Json list = Json::array();
  for (const TokenScores& token : scores) {
    Json entry = token_scores_json(token);
    entry["id"] = token.token.token;
    for (size_t i = 0; i < token.best.size(); ++i) entry["top_logprobs"][i]["id"] = token.best[i].token;
    list.push_back(std::move(entry));
  }
  return list;
}

// A request to answer, and what its answers tell beside the text.
struct LlamaCall {
  CompletionRequest request;
  bool stream = false;
  bool return_tokens = false;
};

// What an answer ends with; `content` is all of the text, or nothing after a stream.
Json end_json(const LlamaCall& call, const WholeAnswer& answer, int64_t index, const ServedModel& model) {
  const AnswerUsage& usage = answer.done.usage;
  Json end = {{"index", index},
              {"content", call.stream ? std::string() : answer.text},
              {"tokens", call.return_tokens ? Json(answer.done.tokens) : Json::array()},
              {"stop", true},
              {"model", model.id},
              {"stop_type", stop_type(answer.done.reason)},
              {"stopping_word", answer.done.stop_sequence},
              {"tokens_evaluated", usage.prompt_tokens},
              {"tokens_cached", usage.cached_tokens},
              {"tokens_predicted", usage.generated_tokens},
              {"truncated", false},
              {"timings", timings_json(usage)}};
  if (call.request.limits.top_logprobs) end["completion_probabilities"] = scores_json(answer.scores);
  return end;
}

Answer<void> answer_call(Exchange& exchange, std::shared_ptr<ServedModel> model, LlamaCall call) {
  const size_t count = call.request.prompts.size() * static_cast<size_t>(call.request.limits.n);
  call.request.limits.wanted = wanted_by(exchange);
  HEARTH_ASSIGN(std::unique_ptr<ChatRun> run, ChatRun::completion(model, call.request));
  if (call.stream) {
    exchange.header("Cache-Control", "no-cache");
    exchange.begin(200, "text/event-stream; charset=utf-8");
  }
  LlamaSink sink(exchange, call.stream, count);
  Answer<void> result = run->run(sink);
  note_run(exchange, *run, result);
  if (!result) {
    if (!call.stream) return result;
    sink.send(openai_error_json(result.error()));
    exchange.end();
    return {};
  }
  Json ends = Json::array();
  for (size_t i = 0; i < count; ++i) {
    ends.push_back(end_json(call, sink.answers[i], static_cast<int64_t>(i), *model));
  }
  if (!call.stream) {
    respond_json(exchange, 200, count == 1 ? ends[0] : ends);
    return {};
  }
  for (const Json& end : ends) sink.send(end);
  exchange.end();
  return {};
}

// What both endpoints take; the prompts are still to come.
Answer<LlamaCall> read_call(const Json& body) {
  HEARTH_TRY(refuse_unsupported(body));
  LlamaCall call;
  HEARTH_TRY(read_limits(body, call.request.limits));
  Fields f(body);
  call.stream = f.boolean("stream").value_or(false);
  call.return_tokens = f.boolean("return_tokens").value_or(false);
  const auto best = f.integer("n_probs", 0, kMaxTopLogprobs);
  if (best && *best > 0) call.request.limits.top_logprobs = best;
  if (f.error()) return *f.error();
  return call;
}

Answer<void> completion(Exchange& exchange, const Models& models) {
  HEARTH_ASSIGN(Json body, body_of(exchange));
  HEARTH_ASSIGN(std::shared_ptr<ServedModel> model, model_for(exchange, models, body));
  HEARTH_ASSIGN(LlamaCall call, read_call(body));
  HEARTH_ASSIGN(std::vector<CompletionPrompt> prompts,
                read_prompts(body, *model, call.request.limits.max_tokens.value_or(kFimTokens)));
  for (CompletionPrompt& prompt : prompts) call.request.prompts.push_back(std::move(prompt.tokens));
  return answer_call(exchange, model, std::move(call));
}

Answer<FimRequest> read_infill(const Json& body) {
  FimRequest fim;
  Fields f(body);
  fim.prefix = f.text("input_prefix").value_or("") + f.text("prompt").value_or("");
  fim.suffix = f.text("input_suffix").value_or("");
  if (const Json* files = f.array("input_extra")) {
    for (const Json& entry : *files) {
      if (!entry.is_object()) {
        f.expected("input_extra", "a list of {\"filename\": ..., \"text\": ...}");
        break;
      }
      Fields file(entry, "input_extra");
      fim.files.push_back({.name = file.text("filename").value_or(""), .text = file.text("text").value_or("")});
      if (file.error()) return *file.error();
    }
  }
  if (f.error()) return *f.error();
  return fim;
}

Answer<void> infill(Exchange& exchange, const Models& models) {
  HEARTH_ASSIGN(Json body, body_of(exchange));
  HEARTH_ASSIGN(std::shared_ptr<ServedModel> model, model_for(exchange, models, body));
  HEARTH_ASSIGN(LlamaCall call, read_call(body));
  HEARTH_ASSIGN(FimRequest fim, read_infill(body));
  fim.max_tokens = call.request.limits.max_tokens.value_or(kFimTokens);
  call.request.limits.n = 1;
  HEARTH_ASSIGN(call.request.prompts.emplace_back(), fim_prompt(*model, fim));
  return answer_call(exchange, model, std::move(call));
}

}  // namespace

void add_llamacpp(Server& server, Models& models) {
  server.add({"POST", "/completion", [&models](Exchange& exchange) { return completion(exchange, models); }});
  server.add({"POST", "/infill", [&models](Exchange& exchange) { return infill(exchange, models); }});
}

}  // namespace hearth::server
