// POST /v1/completions: text goes on from text.
#include <algorithm>
#include <ctime>

#include "server/fim.h"
#include "server/openai.h"

namespace hearth::server {
namespace {

constexpr int64_t kDefaultMaxTokens = 16;  // the protocol's
constexpr size_t kMaxPrompts = 256;

Answer<CompletionPrompt> token_prompt(const Json& ids, const Text& text) {
  CompletionPrompt prompt;
  HEARTH_ASSIGN(prompt.tokens, read_tokens(ids, "prompt", text));
  prompt.text = text.detokenize(prompt.tokens, /*special=*/true);
  return prompt;
}

Answer<CompletionPrompt> text_prompt(const std::string& source, const Json& body, const ServedModel& model,
                                     int64_t max_tokens) {
  CompletionPrompt prompt{.text = source};
  Fields f(body);
  const std::optional<std::string> suffix = f.text("suffix");
  if (f.error()) return *f.error();
  if (suffix && !suffix->empty()) {
    HEARTH_ASSIGN(prompt.tokens, fim_prompt(model, {.prefix = source, .suffix = *suffix, .max_tokens = max_tokens}));
  } else {
    HEARTH_ASSIGN(prompt.tokens, model.text().tokenize(source, /*special=*/true, /*add_special=*/true));
  }
  return prompt;
}

}  // namespace

Answer<std::vector<CompletionPrompt>> read_prompts(const Json& body, const ServedModel& model, int64_t max_tokens) {
  HEARTH_ASSIGN(const std::vector<const Json*> inputs, read_inputs(body, "prompt", kMaxPrompts));
  std::vector<CompletionPrompt> prompts;
  for (const Json* input : inputs) {
    if (input->is_string()) {
      HEARTH_ASSIGN(prompts.emplace_back(), text_prompt(input->get<std::string>(), body, model, max_tokens));
    } else {
      HEARTH_ASSIGN(prompts.emplace_back(), token_prompt(*input, model.text()));
    }
  }
  return prompts;
}

namespace {

struct CompletionCall {
  std::vector<CompletionPrompt> prompts;
  AnswerLimits limits;
  bool stream = false;
  bool include_usage = false;
  bool echo = false;
};

Answer<CompletionCall> read_call(const Json& body, const ServedModel& model) {
  HEARTH_TRY(refuse_unsupported(body));
  CompletionCall call;
  Fields f(body);
  call.stream = f.boolean("stream").value_or(false);
  call.echo = f.boolean("echo").value_or(false);
  if (const Json* options = f.object("stream_options")) {
    Fields o(*options, "stream_options");
    call.include_usage = o.boolean("include_usage").value_or(false);
    if (o.error()) return *o.error();
  }
  call.limits.top_logprobs = f.integer("logprobs", 0, kMaxTopLogprobs);
  const auto best_of = f.integer("best_of", 1, kMaxAnswers);
  if (f.error()) return *f.error();
  HEARTH_TRY(read_limits(body, call.limits));
  if (best_of && *best_of != call.limits.n) {
    return invalid("best_of", "best_of: it must be n ({}), found {}: all answers are returned", call.limits.n,
                   *best_of);
  }
  if (!call.limits.max_tokens && !f.has("max_tokens") && !f.has("n_predict"))
    call.limits.max_tokens = kDefaultMaxTokens;
  HEARTH_ASSIGN(call.prompts, read_prompts(body, model, call.limits.max_tokens.value_or(kDefaultMaxTokens)));
  return call;
}

// The old form: parallel lists. `offset`: characters of text in front.
Json scores_json(const std::vector<TokenScores>& scores, size_t& offset, bool first_is_unscored,
                 std::string_view first_token) {
  Json tokens = Json::array(), logprobs = Json::array(), tops = Json::array(), offsets = Json::array();
  const auto add = [&](std::string_view bytes, Json logprob, Json top) {
    tokens.push_back(std::string(bytes));
    logprobs.push_back(std::move(logprob));
    tops.push_back(std::move(top));
    offsets.push_back(offset);
    offset += static_cast<size_t>(
        std::ranges::count_if(bytes, [](char c) { return (static_cast<unsigned char>(c) & 0xC0) != 0x80; }));
  };
  if (first_is_unscored) add(first_token, nullptr, nullptr);
  for (const TokenScores& token : scores) {
    Json top = Json::object();
    for (const TokenScore& score : token.best) top[score.bytes] = finite_logprob(score.logprob);
    add(token.token.bytes, finite_logprob(token.token.logprob), std::move(top));
  }
  return {{"tokens", std::move(tokens)},
          {"token_logprobs", std::move(logprobs)},
          {"top_logprobs", std::move(tops)},
          {"text_offset", std::move(offsets)}};
}

struct Head {
  std::string id = random_id("cmpl-");
  std::string model;
  int64_t created = std::time(nullptr);

  Json json() const { return {{"id", id}, {"object", "text_completion"}, {"created", created}, {"model", model}}; }
};

// The index of an answer counts over all prompts.
class CompletionSink final : public ExchangeSink {
 public:
  CompletionSink(Exchange& exchange, const Head& head, const CompletionCall& call, const Text& text)
      : ExchangeSink(exchange),
        head_(head),
        call_(call),
        text_(text),
        answers_(call.prompts.size() * static_cast<size_t>(call.limits.n)),
        sent_echo_(answers_.size(), false),
        offsets_(answers_.size(), 0),
        prompt_scores_(call.prompts.size()) {}

  void begin() {
    exchange_.header("Cache-Control", "no-cache");
    exchange_.begin(200, "text/event-stream; charset=utf-8");
    // Without log-probabilities the echo waits for nothing.
    if (!call_.echo || call_.limits.top_logprobs) return;
    for (size_t i = 0; i < answers_.size(); ++i) echo(i);
  }

  void tell(int64_t answer, const ChatEvent& event) override {
    const auto i = static_cast<size_t>(answer);
    WholeAnswer& whole = answers_[i];
    if (const auto* prompt = std::get_if<PromptScores>(&event)) prompt_scores_[prompt_of(i)] = prompt->tokens;
    if (!call_.stream) {
      whole.add(event);
      return;
    }
    if (const auto* text = std::get_if<TextDelta>(&event)) {
      echo(i);
      piece(i, text->text, {});
    } else if (std::holds_alternative<TokenScores>(event)) {
      whole.add(event);
    } else if (const auto* done = std::get_if<AnswerDone>(&event); done && done->reason != EndReason::kCancelled) {
      echo(i);
      piece(i, "", finish_reason(done->reason));
    }
  }

  Json choices() {
    Json choices = Json::array();
    for (size_t i = 0; i < answers_.size(); ++i) {
      const WholeAnswer& answer = answers_[i];
      Json logprobs;
      if (call_.limits.top_logprobs) {
        std::vector<TokenScores> scores = call_.echo ? prompt_scores_[prompt_of(i)] : std::vector<TokenScores>();
        scores.insert(scores.end(), answer.scores.begin(), answer.scores.end());
        logprobs = scores_json(scores, offsets_[i], call_.echo, first_token(i));
      }
      choices.push_back({{"text", (call_.echo ? call_.prompts[prompt_of(i)].text : "") + answer.text},
                         {"index", i},
                         {"logprobs", std::move(logprobs)},
                         {"finish_reason", finish_reason(answer.done.reason)}});
    }
    return choices;
  }

  void send(const Json& chunk) { exchange_.write("data: " + dump(chunk) + "\n\n"); }

 protected:
  void keepalive() override { send(chunk(0, "", nullptr, {})); }

 private:
  size_t prompt_of(size_t answer) const { return answer / static_cast<size_t>(call_.limits.n); }

  std::string first_token(size_t answer) const {
    const std::vector<int32_t>& tokens = call_.prompts[prompt_of(answer)].tokens;
    return tokens.empty() ? std::string() : text_.piece(tokens[0], true);
  }

  void echo(size_t answer) {
    if (!call_.echo || sent_echo_[answer]) return;
    sent_echo_[answer] = true;
    Json logprobs;
    if (call_.limits.top_logprobs) {
      logprobs = scores_json(prompt_scores_[prompt_of(answer)], offsets_[answer], true, first_token(answer));
    }
    send(chunk(answer, call_.prompts[prompt_of(answer)].text, std::move(logprobs), {}));
  }

  void piece(size_t answer, const std::string& text, std::string_view finish) {
    Json logprobs;
    if (!answers_[answer].scores.empty()) {
      logprobs = scores_json(answers_[answer].scores, offsets_[answer], false, {});
      answers_[answer].scores.clear();
    }
    send(chunk(answer, text, std::move(logprobs), finish));
  }

  Json chunk(size_t index, const std::string& text, Json logprobs, std::string_view finish) const {
    Json body = head_.json();
    body["choices"] = Json::array({Json{{"text", text},
                                        {"index", index},
                                        {"logprobs", std::move(logprobs)},
                                        {"finish_reason", finish.empty() ? Json() : Json(finish)}}});
    return body;
  }

  const Head& head_;
  const CompletionCall& call_;
  const Text& text_;
  std::vector<WholeAnswer> answers_;
  std::vector<bool> sent_echo_;
  std::vector<size_t> offsets_;
  std::vector<std::vector<TokenScores>> prompt_scores_;  // by prompt
};

Answer<void> answer_completion(Exchange& exchange, const Models& models) {
  HEARTH_ASSIGN(Json body, body_of(exchange));
  HEARTH_ASSIGN(std::shared_ptr<ServedModel> model, model_for(exchange, models, body));
  HEARTH_ASSIGN(CompletionCall call, read_call(body, *model));
  call.limits.wanted = wanted_by(exchange);
  CompletionRequest request{.limits = call.limits,
                            .prompt_logprobs = call.echo && call.limits.top_logprobs.has_value()};
  for (const CompletionPrompt& prompt : call.prompts) request.prompts.push_back(prompt.tokens);
  HEARTH_ASSIGN(std::unique_ptr<ChatRun> run, ChatRun::completion(model, std::move(request)));
  const Head head{.model = model->id};
  CompletionSink sink(exchange, head, call, model->text());
  if (call.stream) sink.begin();
  Answer<void> result = run->run(sink);
  note_run(exchange, *run, result);
  if (!result) {
    if (!call.stream) return result;
    sink.send(openai_error_json(result.error()));
    exchange.end();
    return {};
  }
  Json end = head.json();
  end["choices"] = call.stream ? Json::array() : sink.choices();
  end["usage"] = usage_json(run->usage());
  end["timings"] = timings_json(run->usage());
  if (!call.stream) {
    respond_json(exchange, 200, end);
    return {};
  }
  if (call.include_usage) sink.send(end);
  exchange.write("data: [DONE]\n\n");
  exchange.end();
  return {};
}

}  // namespace

void add_openai_completions(Server& server, Models& models) {
  for (const char* path : {"/v1/completions", "/completions"}) {
    server.add({"POST", path, [&models](Exchange& exchange) { return answer_completion(exchange, models); }});
  }
}

}  // namespace hearth::server
