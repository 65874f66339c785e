// Filling in the middle, and llama.cpp's own protocol: over a tiny model that has the tokens for it.
#include "server/fim.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "server/http_client.h"
#include "server/protocol.h"
#include "support/tiny_file.h"

namespace hearth::server {
namespace {

using Ids = std::vector<int32_t>;

constexpr int32_t kPrefix = 257, kSuffix = 258, kMiddle = 259, kFile = 260;

class Fim : public ::testing::Test {
 protected:
  static void SetUpTestSuite() {
    hearth::testing::TinyFile file = hearth::testing::tiny_file({.architecture = "qwen2", .context = 128});
    const auto value = [&](std::string_view key) -> MetadataValue& {
      return std::ranges::find(file.metadata, key, [](const auto& pair) -> std::string_view { return pair.first; })
          ->second;
    };
    const char* names[] = {"<|fim_prefix|>", "<|fim_suffix|>", "<|fim_middle|>", "<|file_sep|>"};
    for (size_t i = 0; i < 4; ++i) {
      std::get<std::vector<std::string>>(value("tokenizer.ggml.tokens"))[kPrefix + i] = names[i];
      std::get<std::vector<int64_t>>(value("tokenizer.ggml.token_type"))[kPrefix + i] = 3;
    }
    static const hearth::testing::TempFile stored;
    file.write(stored.path());
    models_ = std::make_unique<Models>(LoadOptions{.path = stored.path(), .model = {.threads = 1}, .id = "fim"});
    models_->start_loading();
    auto model = models_->get("", [] { return true; });
    ASSERT_TRUE(model) << model.error().message;
    model_ = *model;
    server_ = std::make_unique<Server>(ServerOptions{.port = 0, .log = [](std::string_view) {}});
    add_protocols(*server_, *models_);
    ASSERT_TRUE(server_->start());
  }
  static void TearDownTestSuite() {
    server_.reset();
    model_.reset();
    models_.reset();
  }

  static Ids ids(std::string_view text) { return *model_->text().tokenize(text, false, false); }
  static Ids joined(std::initializer_list<Ids> parts) {
    Ids all;
    for (const Ids& part : parts) all.insert(all.end(), part.begin(), part.end());
    return all;
  }
  static Ids prompt(FimRequest request) {
    auto made = fim_prompt(*model_, request);
    EXPECT_TRUE(made) << made.error().message;
    return made ? *made : Ids();
  }
  static std::string post_text(const std::string& path, const Json& body) {
    auto reply = HttpClient(*parse_url(server_->url()), {}).post(path, dump(body));
    EXPECT_TRUE(reply) << reply.error().message;
    EXPECT_EQ(reply->status, 200) << reply->body;
    return reply->body;
  }
  static Json post(const std::string& path, Json body) {
    body.update(Json{{"temperature", 0}, {"n_predict", 8}, {"max_tokens", 8}, {"ignore_eos", true}});
    return Json::parse(post_text(path, body));
  }

  static inline std::unique_ptr<Models> models_;
  static inline std::shared_ptr<ServedModel> model_;
  static inline std::unique_ptr<Server> server_;
};

TEST_F(Fim, ThePromptHasBothSidesBetweenItsTokens) {
  const Ids wanted = joined({{kPrefix}, ids("int a = "), {kSuffix}, ids(";\n"), {kMiddle}});
  EXPECT_EQ(prompt({.prefix = "int a = ", .suffix = ";\n", .max_tokens = 8}), wanted);
  EXPECT_EQ(prompt({.prefix = "a", .suffix = "b", .files = {{.name = "x.c", .text = "int x;"}}, .max_tokens = 8}),
            joined({{kFile}, ids("x.c\nint x;\n"), {kPrefix}, ids("a"), {kSuffix}, ids("b"), {kMiddle}}));
  // Markup in the text is text.
  const Ids markup = prompt({.prefix = "<|fim_suffix|>", .suffix = "", .max_tokens = 8});
  EXPECT_EQ(std::ranges::count(markup, kSuffix), 1);
}

TEST_F(Fim, WhatIsTooLongLosesWhatIsFarthestFromTheCursor) {
  std::string before(400, 'x'), after(400, 'y');
  before += "<";
  after = ">" + after;
  const Ids cut = prompt({.prefix = before, .suffix = after, .max_tokens = 8});
  EXPECT_LE(std::ssize(cut) + 8, model_->model->info().sequence_tokens);
  EXPECT_GT(std::ssize(cut), 100);
  const auto suffix = std::ranges::find(cut, kSuffix);
  ASSERT_NE(suffix, cut.end());
  EXPECT_EQ(*(suffix - 1), ids("<")[0]);
  EXPECT_EQ(*(suffix + 1), ids(">")[0]);
  EXPECT_GT(suffix - cut.begin(), cut.end() - suffix);  // three quarters are what is before the cursor
  // A file that has no room is left out.
  EXPECT_EQ(prompt({.prefix = "a", .suffix = "b", .files = {{.name = "x", .text = before}}, .max_tokens = 8}),
            prompt({.prefix = "a", .suffix = "b", .max_tokens = 8}));
}

TEST_F(Fim, EveryProtocolRunsThatPrompt) {
  const Ids tokens = joined({{kPrefix}, ids("int a = "), {kSuffix}, ids(";"), {kMiddle}});
  const Json plain = post("/completion", {{"prompt", tokens}, {"return_tokens", true}});
  EXPECT_EQ(plain["tokens_evaluated"], tokens.size());
  EXPECT_EQ(plain["tokens"].size(), 8u);
  const Json infill = post("/infill", {{"input_prefix", "int a = "}, {"input_suffix", ";"}, {"return_tokens", true}});
  EXPECT_EQ(infill["tokens"], plain["tokens"]);
  EXPECT_EQ(infill["tokens_evaluated"], tokens.size());
  EXPECT_EQ(post("/infill", {{"input_prefix", "int "}, {"prompt", "a = "}, {"input_suffix", ";"}})["content"],
            plain["content"]);
  const Json openai = post("/v1/completions", {{"prompt", "int a = "}, {"suffix", ";"}});
  EXPECT_EQ(openai["choices"][0]["text"], plain["content"]);
  EXPECT_EQ(openai["usage"]["prompt_tokens"], tokens.size());
  const Json ollama = Json::parse(
      post_text("/api/generate", {{"prompt", "int a = "},
                                  {"suffix", ";"},
                                  {"stream", false},
                                  {"options", {{"temperature", 0}, {"num_predict", 8}, {"ignore_eos", true}}}}));
  EXPECT_EQ(ollama["response"], plain["content"]);
  EXPECT_EQ(ollama["prompt_eval_count"], tokens.size());
  EXPECT_EQ(ollama["prompt_cached_count"].get<size_t>() + ollama["prompt_computed_count"].get<size_t>(), tokens.size());
}

TEST_F(Fim, CompletionHasTheFormOfLlamaCpp) {
  const Json one = post("/completion", {{"prompt", "Once"}, {"n_probs", 2}});
  EXPECT_EQ(one["stop"], true);
  EXPECT_EQ(one["stop_type"], "limit");
  EXPECT_EQ(one["stopping_word"], "");
  EXPECT_EQ(one["model"], "fim");
  EXPECT_EQ(one["tokens_predicted"], 8);
  EXPECT_EQ(one["tokens_evaluated"], 4);
  EXPECT_EQ(one["tokens"], Json::array());
  EXPECT_EQ(one["timings"]["predicted_n"], 8);
  ASSERT_EQ(one["completion_probabilities"].size(), 8u);
  EXPECT_EQ(one["completion_probabilities"][0]["top_logprobs"].size(), 2u);
  EXPECT_EQ(one["completion_probabilities"][0]["top_logprobs"][0]["id"], one["completion_probabilities"][0]["id"]);

  const Json many = post("/completion", {{"prompt", {"Once", "upon a time"}}});
  ASSERT_EQ(many.size(), 2u);
  EXPECT_EQ(many[0]["content"], one["content"]);
  EXPECT_EQ(many[1]["index"], 1);
  EXPECT_EQ(many[1]["tokens_evaluated"], 11);

  // A stop string that comes, if it is text.
  const auto content = one["content"].get<std::string>();
  const auto letter = std::ranges::find_if(content, [](char c) { return c > 32 && c < 127; });
  if (letter != content.end()) {
    const Json stopped = post("/completion", {{"prompt", "Once"}, {"stop", {std::string(1, *letter)}}});
    EXPECT_EQ(stopped["stop_type"], "word");
    EXPECT_EQ(stopped["stopping_word"], std::string(1, *letter));
    EXPECT_EQ(stopped["content"], content.substr(0, static_cast<size_t>(letter - content.begin())));
  }
}

TEST_F(Fim, CompletionStreams) {
  const Json body = {{"prompt", "Once"}, {"temperature", 0}, {"n_predict", 8}, {"ignore_eos", true}};
  const Json whole = Json::parse(post_text("/completion", body));
  Json asked = body;
  asked["stream"] = true;
  std::string text;
  Json last;
  EventReader events;
  auto read = events.add(post_text("/completion", asked), [&](std::string_view type, std::string_view data) {
    EXPECT_EQ(type, "");
    last = Json::parse(data);
    text += last["content"].get<std::string>();
    return true;
  });
  ASSERT_TRUE(read) << read.error().message;
  EXPECT_TRUE(events.complete());
  EXPECT_EQ(text, whole["content"].get<std::string>());
  EXPECT_EQ(last["stop"], true);
  EXPECT_EQ(last["content"], "");
  EXPECT_EQ(last["stop_type"], "limit");
  EXPECT_EQ(last["tokens_predicted"], 8);
}

}  // namespace
}  // namespace hearth::server
