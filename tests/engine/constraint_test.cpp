// Constraints in the engine: what they allow, when they begin, and that others do not notice.
#include <gtest/gtest.h>

#include <random>
#include <regex>

#include "engine/engine.h"
#include "fake_device.h"
#include "text/grammar/grammar.h"

namespace hearth {
namespace {

using Tokens = std::vector<int32_t>;

// The tokens of the fake text: letters, half a character, the end. `with_end`: one may end an answer.
std::shared_ptr<const Grammar> grammar_of(const FakeModel& model, const std::string& gbnf, bool with_end = true) {
  const Text& text = *model.engine_model().text;
  std::vector<std::string> bytes;
  for (int32_t t = 0; t < text.vocab_size(); ++t) bytes.push_back(text.piece(t, true));
  const auto tokens = std::make_shared<const grammar::TokenTrie>(
      std::move(bytes), with_end ? std::vector<int32_t>{kEndToken} : std::vector<int32_t>{});
  auto grammar = compile_grammar({.kind = GrammarSource::Kind::kGbnf, .text = gbnf}, "", tokens);
  EXPECT_TRUE(grammar) << (grammar ? "" : grammar.error().message);
  return grammar ? *grammar : nullptr;
}

Tokens random_prompt(uint32_t seed, int64_t tokens) {
  std::mt19937 random(seed);
  Tokens prompt;
  for (int64_t i = 0; i < tokens; ++i) prompt.push_back(static_cast<int32_t>(random() % 58));
  return prompt;
}

Request constrained(uint32_t seed, Constraint constraint, int64_t most = 60) {
  return {.prompt = random_prompt(seed, 20), .max_tokens = most, .constraint = std::move(constraint)};
}

std::unique_ptr<Engine> start(const FakeModel& model, const EngineOptions& options = {}) {
  auto engine = make_engine(model.engine_model(), options, nullptr);
  EXPECT_TRUE(engine) << (engine ? "" : engine.error().message);
  return std::move(engine).value();
}

Collected run(Engine& engine, Request request) {
  auto generation = engine.submit(std::move(request));
  EXPECT_TRUE(generation) << (generation ? "" : generation.error().message);
  return collect(*generation);
}

bool fits(const std::string& text, const char* pattern) { return std::regex_match(text, std::regex(pattern)); }

TEST(EngineConstraint, TheAnswerMatchesAndOthersDoNotNotice) {
  const FakeModel model({.pages = {400}});
  auto engine = start(model);
  const auto grammar = grammar_of(model, "root ::= ([a-m] [N-Z]){3,5}");
  std::vector<Generation> free, bound;
  for (uint32_t i = 0; i < 6; ++i) {
    free.push_back(*engine->submit({.prompt = random_prompt(100 + i, 20), .max_tokens = 40, .ignore_end = true}));
    Request request = constrained(i, {.grammar = grammar});
    if (i % 2) request.sampling = {.temperature = 1.5f, .seed = i};
    bound.push_back(*engine->submit(std::move(request)));
  }
  for (uint32_t i = 0; i < 6; ++i) {
    EXPECT_EQ(collect(free[i]).tokens, model.expected(random_prompt(100 + i, 20), 40)) << i;
    const Collected all = collect(bound[i]);
    ASSERT_TRUE(all.done) << all.error->message;
    EXPECT_EQ(all.done->reason, FinishReason::kEnd);
    EXPECT_TRUE(fits(all.text + all.done->text, "([a-m][N-Z]){3,5}")) << all.text;
  }
}

TEST(EngineConstraint, BeginsBehindItsText) {
  const FakeModel model;
  auto engine = start(model);
  const auto grammar = grammar_of(model, "root ::= [a-c]{4} \"X\"");
  for (uint32_t seed = 0; seed < 8; ++seed) {
    Request request = constrained(seed, {});
    request.ignore_end = true;
    const std::string free = run(*engine, request).text;
    const std::string after = free.substr(5, 2);
    if (!fits(after, "[A-Za-z]+")) continue;  // half a character
    const size_t begins = free.find(after) + 2;
    const Collected all = run(*engine, constrained(seed, {.grammar = grammar, .after = after}));
    ASSERT_TRUE(all.done);
    if (all.text.size() < begins) continue;  // the model ended before
    EXPECT_EQ(all.text.substr(0, begins), free.substr(0, begins));
    EXPECT_TRUE(fits(all.text.substr(begins), "[a-c]{4}X")) << all.text;
    EXPECT_EQ(all.done->reason, FinishReason::kEnd);

    // Free again behind each match, until the text comes again.
    request = constrained(seed, {.grammar = grammar, .after = after, .repeats = true}, 400);
    request.ignore_end = true;
    const std::string text = run(*engine, request).text;
    EXPECT_GT(text.size(), begins + 10);
    for (size_t at = text.find(after); at != std::string::npos && at + 7 <= text.size();) {
      EXPECT_TRUE(fits(text.substr(at + 2, 5), "[a-c]{4}X")) << text;
      at = text.find(after, at + 7);
    }
  }
}

TEST(EngineConstraint, GivesTheSameHoweverItIsScheduled) {
  const FakeModel model({.pages = {400}});
  const FakeModel small({.pages = {36}});
  auto engine = start(model);
  auto crowded = start(small);
  const auto grammar = grammar_of(model, "root ::= [a-z]{100} [A-Z]+ \"q\"");
  const auto grammar_small = grammar_of(small, "root ::= [a-z]{100} [A-Z]+ \"q\"");
  std::vector<Generation> generations;
  for (uint32_t i = 0; i < 8; ++i)
    generations.push_back(*crowded->submit(constrained(i, {.grammar = grammar_small}, 150)));
  for (uint32_t i = 0; i < 8; ++i) {
    const Collected alone = run(*engine, constrained(i, {.grammar = grammar}, 150));
    EXPECT_EQ(collect(generations[i]).tokens, alone.tokens) << i;
    EXPECT_GE(alone.tokens.size(), 102u);
    EXPECT_TRUE(fits(alone.text, "[a-z]{100}[A-Z]+q?")) << alone.text;
  }
}

// Tokens of more than one letter, which may have the beginning of `after`, its end and more in them.
class WordText final : public Text {
 public:
  explicit WordText(std::vector<std::string> words) : words_(std::move(words)) {}
  std::string piece(int32_t token, bool) const override { return words_[static_cast<size_t>(token)]; }
  int64_t vocab_size() const override { return static_cast<int64_t>(words_.size()); }
  Result<Tokens> tokenize(std::string_view, bool, bool) const override { return Tokens{}; }
  std::string detokenize(const Tokens&, bool) const override { return {}; }
  Result<Prompt> render(std::string_view, const RenderOptions&) const override { return Prompt{}; }
  void remember(std::span<const int32_t>) const override {}
  std::unique_ptr<OutputParser> parse_output(const OutputOptions&) const override { return nullptr; }
  const OutputMarkers& output_markers() const override { return markers_; }
  Result<std::shared_ptr<const Grammar>> compile(const GrammarSource& source) const override {
    return compile_grammar(source, "", std::make_shared<const grammar::TokenTrie>(words_, Tokens{}));
  }
  bool has_chat_template() const override { return false; }
  bool supports_thinking() const override { return false; }
  std::string_view chat_template() const override { return ""; }
  bool ends_generation(int32_t token) const override { return piece(token, true) == "<end>"; }
  const std::vector<std::string>& warnings() const override { return warnings_; }

 private:
  OutputMarkers markers_;
  std::vector<std::string> words_, warnings_;
};

TEST(AnswerConstraint, ATokenMayHaveTheEndOfTheTextAndMoreInIt) {
  const WordText text({"<", "t>", "t>1", "t>x", "<t>12;", "1", "2", ";", "x", "2;y<t", ">1", "1;<t>2;<t>x", "t"});
  const auto grammar = *text.compile({.kind = GrammarSource::Kind::kGbnf, .text = "root ::= [0-9]+ \";\""});
  const auto allowed = [&](const AnswerConstraint& c) {
    Tokens tokens;
    for (int32_t t = 0; t < text.vocab_size(); ++t) {
      if (c.allows(t)) tokens.push_back(t);
    }
    return tokens;
  };
  const auto mask = [&](AnswerConstraint& c) {
    uint64_t bits = 0;
    c.mask(std::span(&bits, 1));
    Tokens tokens;
    for (int32_t t = 0; t < 64; ++t) {
      if (bits >> t & 1) tokens.push_back(t);
    }
    return tokens;
  };
  const Tokens in_grammar = {5, 6};
  for (bool repeats : {false, true}) {
    AnswerConstraint c({.grammar = grammar, .after = "<t>", .repeats = repeats}, text);
    const Tokens free = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 12};
    EXPECT_EQ(allowed(c), free);  // 11 has an x behind the text
    EXPECT_EQ(mask(c), free);
    c.accept(0);
    EXPECT_FALSE(c.allows(3));
    EXPECT_EQ(mask(c), allowed(c));
    AnswerConstraint other = c;
    c.accept(1);
    EXPECT_FALSE(c.complete());
    EXPECT_EQ(mask(c), in_grammar);
    EXPECT_EQ(c.allows(9), repeats);
    c.accept(5);
    EXPECT_EQ(mask(c), (Tokens{5, 6, 7}));
    EXPECT_EQ(c.allows(9), repeats);  // ends the grammar, and goes on free
    if (repeats) {
      c.accept(9);
      EXPECT_TRUE(c.complete());
      EXPECT_TRUE(c.allows(8));
      c.accept(10);
      EXPECT_EQ(mask(c), (Tokens{5, 6, 7}));
    } else {
      c.accept(7);
      EXPECT_TRUE(c.complete());
      EXPECT_TRUE(mask(c).empty());
    }
    other.accept(2);
    EXPECT_EQ(mask(other), (Tokens{5, 6, 7}));
    AnswerConstraint once({.grammar = grammar, .after = "<t>", .repeats = repeats}, text);
    once.accept(4);
    EXPECT_TRUE(once.complete());
    EXPECT_EQ(once.allows(8), repeats);
  }
}

TEST(AnswerConstraint, AnAnswerThatMustHaveAFormDoesNotEndBeforeItBegins) {
  const WordText text({"a", "<t>", "1", "<end>"});
  const auto grammar = *text.compile({.kind = GrammarSource::Kind::kGbnf, .text = "root ::= [0-9]"});
  for (bool repeats : {false, true}) {
    AnswerConstraint c({.grammar = grammar, .after = "<t>", .repeats = repeats}, text);
    c.accept(0);
    EXPECT_EQ(c.allows(3), repeats);
    uint64_t bits = 0;
    ASSERT_TRUE(c.mask(std::span(&bits, 1)));
    EXPECT_EQ(bits >> 3 & 1, repeats ? 1u : 0u);
  }
}

TEST(EngineConstraint, NoTokenEndsTheSequenceAndNotTheProcess) {
  const FakeModel model;
  auto engine = start(model);
  const Collected stuck = run(*engine, constrained(1, {.grammar = grammar_of(model, "root ::= [a-z] \"7\"")}));
  ASSERT_TRUE(stuck.error);
  EXPECT_NE(stuck.error->message.find("no token"), std::string::npos) << stuck.error->message;
  EXPECT_EQ(stuck.tokens.size(), 1u);
  // Complete, and the vocabulary has no end.
  const Collected ended = run(*engine, constrained(1, {.grammar = grammar_of(model, "root ::= [a-z]{3}", false)}));
  ASSERT_TRUE(ended.done);
  EXPECT_EQ(ended.done->reason, FinishReason::kEnd);
  EXPECT_EQ(ended.tokens.size(), 3u);
  const Collected cut = run(*engine, constrained(1, {.grammar = grammar_of(model, "root ::= [a-z]+ \"7\"")}, 10));
  ASSERT_TRUE(cut.done);
  EXPECT_EQ(cut.done->reason, FinishReason::kLength);
  Request nothing_left = constrained(1, {.grammar = grammar_of(model, "root ::= \"g\"")});
  nothing_left.sampling.logit_bias = {{6, -std::numeric_limits<float>::infinity()}};
  const Collected biased = run(*engine, nothing_left);
  ASSERT_TRUE(biased.error);
  EXPECT_NE(biased.error->message.find("grammar"), std::string::npos) << biased.error->message;
  // Others go on.
  EXPECT_EQ(run(*engine, {.prompt = random_prompt(3, 9), .max_tokens = 9, .ignore_end = true}).tokens,
            model.expected(random_prompt(3, 9), 9));
}

TEST(EngineConstraint, ImpossibleOnesAreRefused) {
  const FakeModel model;
  auto engine = start(model);
  const auto grammar = grammar_of(model, "root ::= \"a\"");
  EXPECT_FALSE(engine->submit(constrained(1, {.grammar = grammar, .repeats = true})));
  const auto tokens = std::make_shared<const grammar::TokenTrie>(std::vector<std::string>(1000, "a"), Tokens{});
  auto other = compile_grammar({.kind = GrammarSource::Kind::kGbnf, .text = "root ::= \"a\""}, "", tokens);
  const auto refused = engine->submit(constrained(1, {.grammar = *other}));
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, ErrorCode::kUsage);
}

}  // namespace
}  // namespace hearth
