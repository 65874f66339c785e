// The neutral layer over the small model in the box.
#include "server/chat.h"

#include <gtest/gtest.h>

#include <functional>

namespace hearth::server {
namespace {

std::shared_ptr<ServedModel> open() {
  auto model = load_model({.path = HEARTH_MODELS "/pocket-dense.gguf",
                           .model = {.threads = 1, .context_tokens = 4096},
                           .engine = {.max_sequences = 2},
                           .queue = 2});
  EXPECT_TRUE(model) << model.error().message;
  return model ? *model : nullptr;
}

struct Sink final : ChatSink {
  explicit Sink(size_t n = 1) : answers(n) {}
  void event(int64_t answer, const ChatEvent& event) override {
    answers[static_cast<size_t>(answer)].add(event);
    events += 1;
    if (on_event) on_event(event);
  }
  bool alive() override {
    ++looks;
    return !leave || !leave();
  }
  std::vector<WholeAnswer> answers;
  int64_t events = 0, looks = 0;
  std::function<void(const ChatEvent&)> on_event;
  std::function<bool()> leave;
};

class Chat : public testing::Test {
 protected:
  static void SetUpTestSuite() { model_ = open(); }
  static void TearDownTestSuite() { model_.reset(); }

  static ChatRequest ask(const char* text, int64_t max_tokens = 24) {
    ChatRequest request;
    request.messages = Json::array({Json{{"role", "user"}, {"content", text}}});
    request.limits.max_tokens = max_tokens;
    request.limits.sampling.temperature = 0;
    return request;
  }
  static Json tool(const char* name) {
    return {
        {"type", "function"},
        {"function",
         {{"name", name}, {"description", "x"}, {"parameters", {{"type", "object"}, {"properties", Json::object()}}}}}};
  }
  static std::string refusal(ChatRequest request) {
    auto run = ChatRun::chat(model_, std::move(request));
    return run ? "" : run.error().message;
  }
  static std::string prompt(ChatRequest request) {
    auto prompt = render_chat(*model_, std::move(request));
    EXPECT_TRUE(prompt) << prompt.error().message;
    return prompt ? prompt->text : "";
  }
  static WholeAnswer run(ChatRequest request) {
    auto run = ChatRun::chat(model_, std::move(request));
    EXPECT_TRUE(run) << run.error().message;
    Sink sink;
    auto ok = (*run)->run(sink);
    EXPECT_TRUE(ok) << ok.error().message;
    return sink.answers[0];
  }

  static inline std::shared_ptr<ServedModel> model_;
};

TEST_F(Chat, AnswersAndCountsTokens) {
  ASSERT_TRUE(model_->engine->clear_cache());
  const WholeAnswer first = run(ask("Tell me a story about a fox who is looking for a friend in the deep dark wood."));
  EXPECT_FALSE(first.text.empty());
  EXPECT_EQ(first.done.reason, EndReason::kLength);
  EXPECT_EQ(first.done.usage.generated_tokens, 24);
  EXPECT_EQ(first.done.usage.cached_tokens, 0);
  EXPECT_GT(first.done.usage.first_token_seconds, 0);
  const WholeAnswer second = run(ask("Tell me a story about a fox who is looking for a friend in the deep dark wood."));
  EXPECT_EQ(second.text, first.text);
  EXPECT_GE(second.done.usage.cached_tokens, 16);
  EXPECT_EQ(model_->in_flight, 0);
}

TEST_F(Chat, DropsTheBillingHeaderInFrontOfTheSystemPrompt) {
  const auto with = [&](Json content) {
    ChatRequest request = ask("Hi");
    request.messages.insert(request.messages.begin(), Json{{"role", "system"}, {"content", std::move(content)}});
    return prompt(std::move(request));
  };
  const std::string plain = with("Be brief.");
  const std::string header = "x-anthropic-billing-header: cc_version=2.1; cch=abc;";
  EXPECT_EQ(with(header + "\nBe brief."), plain);
  EXPECT_EQ(
      with(Json::array({Json{{"type", "text"}, {"text", header}}, Json{{"type", "text"}, {"text", "Be brief."}}})),
      plain);
  EXPECT_EQ(with(Json::array({Json{{"type", "text"}, {"text", header + "\nBe brief."}}})), plain);
  EXPECT_EQ(with(header), prompt(ask("Hi")));
  EXPECT_NE(with("Be brief.\n" + header), plain);  // only at the front
}

TEST_F(Chat, ShowsToolsUnlessTheChoiceIsNone) {
  ChatRequest request = ask("Hi");
  request.tools = Json::array({tool("get_weather"), Json{{"type", "web_search"}}});
  EXPECT_NE(prompt(request).find("get_weather"), std::string::npos);
  request.tool_choice.kind = ToolChoice::Kind::kNone;
  EXPECT_EQ(prompt(request), prompt(ask("Hi")));
}

TEST_F(Chat, RefusesWhatCannotBeDone) {
  ChatRequest request = ask("Hi");
  request.messages = Json::array();
  EXPECT_NE(refusal(request).find("empty"), std::string::npos);
  for (const char* messages :
       {"null", "{}", "[1]", "[{}]", R"([{"role": 1}])", R"([{"content": "x"}])", R"([{"role": "user", "content": 5}])",
        R"([{"role": "user", "content": [{"type": "image_url", "image_url": {"url": "x"}}]}])"}) {
    request.messages = Json::parse(messages);
    EXPECT_NE(refusal(request), "") << messages;
  }
  for (const char* tools :
       {"{}", "5", "[1]", R"([{"type": "function"}])", R"([{"type": "function", "function": {}}])"}) {
    request = ask("Hi");
    request.tools = Json::parse(tools);
    EXPECT_NE(refusal(request).find("tools"), std::string::npos) << tools;
  }
  request = ask("Hi");
  request.tool_choice = {.kind = ToolChoice::Kind::kRequired};
  EXPECT_NE(refusal(request).find("tool_choice"), std::string::npos);
  request.tools = Json::array({tool("a")});
  request.tool_choice = {.kind = ToolChoice::Kind::kNamed, .names = {"b"}};
  EXPECT_NE(refusal(request).find("\"b\""), std::string::npos);
  request = ask("Hi");
  request.limits.n = kMaxAnswers + 1;
  EXPECT_NE(refusal(request), "");
  EXPECT_EQ(model_->in_flight, 0);
}

TEST_F(Chat, TellsHowMuchTooLongAPromptIs) {
  std::string text;
  for (int i = 0; i < 5000; ++i) text += "word ";
  auto run = ChatRun::chat(model_, ask(text.c_str()));
  ASSERT_FALSE(run);
  EXPECT_EQ(run.error().kind, Refusal::kContextLength);
  EXPECT_GT(run.error().prompt_tokens, 4095);
  EXPECT_EQ(run.error().context_tokens, 4095);
}

TEST_F(Chat, NamesTheStopStringThatEndedIt) {
  const std::string text = run(ask("Tell me a story.", 40)).text;
  ASSERT_GT(text.size(), 20u);
  ChatRequest request = ask("Tell me a story.", 40);
  request.limits.stop = {"this never comes", text.substr(10, 6), ""};
  const WholeAnswer answer = run(request);
  EXPECT_EQ(answer.done.reason, EndReason::kStopSequence);
  EXPECT_EQ(answer.done.stop_sequence, text.substr(10, 6));
  EXPECT_EQ(answer.text, text.substr(0, text.find(text.substr(10, 6))));
}

TEST_F(Chat, GivesSeveralAnswersOfOnePrompt) {
  ChatRequest request = ask("Tell me a long story about a brave little boat that sails around the whole wide world.");
  request.limits.n = 3;
  request.limits.sampling = {.temperature = 1.5};
  request.limits.sampling.seed = 7;
  ASSERT_TRUE(model_->engine->clear_cache());
  auto run = ChatRun::chat(model_, request);
  ASSERT_TRUE(run);
  Sink sink(3);
  ASSERT_TRUE((*run)->run(sink));
  EXPECT_NE(sink.answers[0].text, sink.answers[1].text);
  EXPECT_NE(sink.answers[1].text, sink.answers[2].text);
  // The prompt was computed once.
  EXPECT_GE(sink.answers[1].done.usage.cached_tokens, 16);
  EXPECT_EQ((*run)->usage().generated_tokens, 3 * 24);
}

TEST_F(Chat, ScoresTokens) {
  ChatRequest request = ask("Hi", 5);
  request.limits.top_logprobs = 2;
  const WholeAnswer answer = run(request);
  std::string text;
  for (const TokenScores& token : answer.scores) {
    text += token.token.bytes;
    ASSERT_EQ(token.best.size(), 2u);
    EXPECT_EQ(token.best[0].token, token.token.token);  // greedy
    EXPECT_LE(token.best[1].logprob, token.best[0].logprob);
  }
  EXPECT_EQ(text, answer.text);

  // The scores of a prompt are those that its tokens had when they were sampled.
  auto tokens = model_->text().tokenize("Once upon a time there was", false, false);
  ASSERT_TRUE(tokens);
  CompletionRequest completion{.prompts = {*tokens}};
  completion.limits.max_tokens = 4;
  completion.limits.top_logprobs = 1;
  completion.limits.sampling.temperature = 0;
  auto first = ChatRun::completion(model_, completion);
  ASSERT_TRUE(first);
  Sink sampled;
  ASSERT_TRUE((*first)->run(sampled));
  for (const TokenScores& token : sampled.answers[0].scores) completion.prompts[0].push_back(token.token.token);
  completion.prompt_logprobs = true;
  completion.limits.max_tokens = 0;
  auto second = ChatRun::completion(model_, completion);
  ASSERT_TRUE(second);
  Sink scored;
  ASSERT_TRUE((*second)->run(scored));
  const auto& all = scored.answers[0].prompt_scores;
  ASSERT_EQ(all.size() + 1, completion.prompts[0].size());
  for (size_t i = 0; i < 4; ++i) {
    EXPECT_EQ(all[all.size() - 4 + i].token.token, sampled.answers[0].scores[i].token.token);
    EXPECT_NEAR(all[all.size() - 4 + i].token.logprob, sampled.answers[0].scores[i].token.logprob, 0.02);
  }
}

TEST_F(Chat, EndsWhenNobodyListens) {
  ChatRequest request = ask("Tell me a story.", -1);
  request.limits.max_tokens.reset();
  request.limits.ignore_end = true;
  auto run = ChatRun::chat(model_, request);
  ASSERT_TRUE(run);
  Sink sink;
  sink.leave = [&] { return sink.events > 5; };
  auto cut = (*run)->run(sink);
  ASSERT_FALSE(cut);
  EXPECT_EQ(cut.error().kind, Refusal::kUnavailable);
  EXPECT_EQ(sink.answers[0].done.reason, EndReason::kCancelled);
  EXPECT_LT(sink.answers[0].done.usage.generated_tokens, 1000);
  run->reset();
  for (int i = 0; i < 100 && model_->engine->stats().active_sequences > 0; ++i) {
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  EXPECT_EQ(model_->engine->stats().active_sequences, 0);
}

TEST_F(Chat, TellsReasoningFromText) {
  ChatRequest request = ask("What is 7 + 5?", 200);
  request.thinking = true;
  const WholeAnswer answer = run(request);
  EXPECT_EQ(answer.done.reason, EndReason::kStop);
  EXPECT_FALSE(answer.reasoning.empty());
  EXPECT_NE(answer.text.find("12"), std::string::npos) << answer.text;
  EXPECT_EQ(answer.text.find("think>"), std::string::npos) << answer.text;
  EXPECT_GT(answer.done.usage.reasoning_tokens, 2);
  EXPECT_LT(answer.done.usage.reasoning_tokens, answer.done.usage.generated_tokens);
  request.thinking = false;
  EXPECT_EQ(run(request).reasoning, "");
}

TEST_F(Chat, EndsReasoningAtItsBudget) {
  for (int64_t budget : {0, 3}) {
    ChatRequest request = ask("Hello!", 100);
    request.thinking = true;
    request.thinking_budget = budget;
    const WholeAnswer answer = run(request);
    EXPECT_EQ(answer.done.usage.reasoning_tokens, budget) << answer.reasoning;
    EXPECT_FALSE(answer.text.empty());
    EXPECT_EQ(answer.text.find("think>"), std::string::npos) << answer.text;
    EXPECT_NE(answer.done.reason, EndReason::kCancelled);
    EXPECT_LE(answer.done.usage.generated_tokens, 100);
  }
  // The default leaves a share of the answer for text.
  ChatRequest request = ask("Hello!", 12);
  request.thinking = true;
  const WholeAnswer answer = run(request);
  EXPECT_EQ(answer.done.usage.thinking_budget, static_cast<int64_t>(12 * kThinkingShare));
  EXPECT_EQ(answer.done.usage.reasoning_tokens, answer.done.usage.thinking_budget);
  EXPECT_EQ(answer.done.usage.generated_tokens, 12);
  EXPECT_EQ(answer.done.reason, EndReason::kLength);
  EXPECT_FALSE(answer.text.empty());
}

TEST_F(Chat, TakesCallsApart) {
  ChatRequest request = ask("What is the weather in Hamburg?", 100);
  Json weather = tool("get_weather");
  weather["function"]["parameters"]["properties"]["city"] = {{"type", "string"}};
  request.tools = Json::array({weather});
  const WholeAnswer answer = run(request);
  ASSERT_EQ(answer.calls.size(), 1u) << answer.text;
  EXPECT_EQ(answer.calls[0].name, "get_weather");
  EXPECT_TRUE(answer.calls[0].id.starts_with("call_"));
  EXPECT_EQ(Json::parse(answer.calls[0].arguments), (Json{{"city", "Hamburg"}}));
  EXPECT_EQ(answer.done.reason, EndReason::kToolCalls);

  // Cut off in the middle of the call.
  request.limits.max_tokens = answer.done.usage.generated_tokens - 4;
  EXPECT_EQ(run(request).done.reason, EndReason::kLength);
}

TEST_F(Chat, ForcesTheFormThatWasAskedFor) {
  ChatRequest request = ask("What is 7 + 5?", 200);
  request.limits.format = GrammarSource{
      .kind = GrammarSource::Kind::kJsonSchema,
      .text =
          R"({"type": "object", "properties": {"sum": {"type": "integer"}}, "required": ["sum"], "additionalProperties": false})"};
  for (bool thinking : {false, true}) {
    request.thinking = thinking;
    const WholeAnswer answer = run(request);
    const Json json = Json::parse(answer.text, nullptr, false);
    ASSERT_TRUE(json.is_object()) << answer.text;
    EXPECT_TRUE(json["sum"].is_number_integer()) << answer.text;
    EXPECT_EQ(answer.reasoning.empty(), !thinking);
  }
  request.thinking_budget = 3;  // the grammar goes on in the second generation
  EXPECT_TRUE(Json::parse(run(request).text, nullptr, false).is_object());
  request.limits.format->text = R"({"type": "object", "properties": {"a": {"pattern": "("}}, "required": ["a"]})";
  auto refused = ChatRun::chat(model_, request);
  request.limits.format = GrammarSource{.kind = GrammarSource::Kind::kGbnf, .text = "root ::= nonsense"};
  refused = ChatRun::chat(model_, request);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().kind, Refusal::kInvalid);

  request = ask("Hello!", 200);
  request.tools = Json::array({tool("get_weather"), tool("get_time")});
  request.tool_choice.kind = ToolChoice::Kind::kRequired;
  EXPECT_GE(run(request).calls.size(), 1u);
  request.tool_choice = {.kind = ToolChoice::Kind::kNamed, .names = {"get_time"}};
  const WholeAnswer named = run(request);
  ASSERT_EQ(named.calls.size(), 1u) << named.text;
  EXPECT_EQ(named.calls[0].name, "get_time");
  EXPECT_EQ(named.done.reason, EndReason::kToolCalls);
}

TEST_F(Chat, PromptsShareThePlacesThatAreTakenOnce) {
  CompletionRequest request;
  request.limits.n = 2;
  request.limits.max_tokens = 6;
  request.limits.sampling.temperature = 0;
  request.limits.ignore_end = true;
  for (const char* text : {"Once upon a time", "The dog", "A bear and", "Two birds", "In the wood"}) {
    request.prompts.push_back(*model_->text().tokenize(text, false, false));
  }
  auto run = ChatRun::completion(model_, request);
  ASSERT_TRUE(run) << run.error().message;
  EXPECT_EQ(model_->in_flight, 2);  // as many as the engine runs; four would be all that may wait
  Sink sink(10);
  ASSERT_TRUE((*run)->run(sink));
  int64_t prompt_tokens = 0;
  for (const auto& prompt : request.prompts) prompt_tokens += std::ssize(prompt);
  const AnswerUsage usage = (*run)->usage();
  EXPECT_EQ(usage.prompt_tokens, prompt_tokens);
  EXPECT_EQ(usage.generated_tokens, 60);
  EXPECT_EQ(usage.cached_tokens + usage.computed_tokens, prompt_tokens);
  run->reset();
  EXPECT_EQ(model_->in_flight, 0);
  for (size_t p = 0; p < 5; ++p) {
    auto one = ChatRun::completion(model_, {.prompts = {request.prompts[p]}, .limits = request.limits});
    ASSERT_TRUE(one);
    Sink alone(2);
    ASSERT_TRUE((*one)->run(alone));
    for (size_t i = 0; i < 2; ++i) EXPECT_EQ(sink.answers[2 * p + i].text, alone.answers[i].text) << p;
  }

  // Who leaves ends them all, those too that had not begun.
  request.limits.max_tokens = 2000;
  auto left = ChatRun::completion(model_, request);
  ASSERT_TRUE(left);
  Sink leaver(10);
  leaver.leave = [&] { return leaver.events > 20; };
  EXPECT_FALSE((*left)->run(leaver));
  for (const WholeAnswer& answer : leaver.answers) EXPECT_EQ(answer.done.reason, EndReason::kCancelled);
}

TEST_F(Chat, HoldsCallsToThoseThatAreAllowedAndKeepsThePrompt) {
  ChatRequest request = ask("What is the weather in Hamburg?", 200);
  Json weather = tool("get_weather");
  weather["function"]["parameters"]["properties"]["city"] = {{"type", "string"}};
  request.tools = Json::array({weather, tool("get_time"), tool("get_news")});
  const std::string shown = prompt(request);
  const WholeAnswer free = run(request);
  ASSERT_FALSE(free.calls.empty()) << free.text;
  EXPECT_EQ(free.calls[0].name, "get_weather");
  for (const auto kind : {ToolChoice::Kind::kAuto, ToolChoice::Kind::kRequired}) {
    request.tool_choice = {.kind = kind, .names = {"get_time", "get_news"}};
    EXPECT_EQ(prompt(request), shown);
    const WholeAnswer answer = run(request);
    ASSERT_FALSE(answer.calls.empty()) << answer.text;
    for (const WholeAnswer::Call& call : answer.calls) EXPECT_NE(call.name, "get_weather");
  }
  request.tool_choice.names = {"get_time", "other"};
  EXPECT_NE(refusal(request).find("other"), std::string::npos);
}

TEST_F(Chat, TurnsAwayMoreThanMayWait) {
  std::vector<std::unique_ptr<ChatRun>> runs;
  for (int i = 0; i < 4; ++i) {
    auto run = ChatRun::chat(model_, ask("Hi"));
    ASSERT_TRUE(run) << i;
    runs.push_back(*std::move(run));
  }
  auto fifth = ChatRun::chat(model_, ask("Hi"));
  ASSERT_FALSE(fifth);
  EXPECT_EQ(fifth.error().kind, Refusal::kOverloaded);
  EXPECT_GT(fifth.error().retry_seconds, 0);
  runs.clear();
  EXPECT_EQ(refusal(ask("Hi")), "");
}

}  // namespace
}  // namespace hearth::server
