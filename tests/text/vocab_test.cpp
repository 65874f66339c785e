// Checks and patches that read_vocab applies to small made-up vocabularies.
#include "text/vocab.h"

#include <gtest/gtest.h>

#include "text/pretokenizer.h"

namespace hearth {
namespace {

Metadata spm_metadata(std::vector<std::string> tokens, std::vector<int64_t> types) {
  Metadata m;
  std::vector<float> scores(tokens.size(), 0.0f);
  EXPECT_TRUE(m.insert("tokenizer.ggml.model", std::string("llama")));
  EXPECT_TRUE(m.insert("tokenizer.ggml.tokens", std::move(tokens)));
  EXPECT_TRUE(m.insert("tokenizer.ggml.token_type", std::move(types)));
  EXPECT_TRUE(m.insert("tokenizer.ggml.scores", std::move(scores)));
  return m;
}

Metadata bpe_metadata(std::vector<std::string> tokens, std::vector<int64_t> types, std::string pre = "gpt-2") {
  Metadata m;
  EXPECT_TRUE(m.insert("tokenizer.ggml.model", std::string("gpt2")));
  if (!pre.empty()) {
    EXPECT_TRUE(m.insert("tokenizer.ggml.pre", pre));
  }
  EXPECT_TRUE(m.insert("tokenizer.ggml.tokens", std::move(tokens)));
  EXPECT_TRUE(m.insert("tokenizer.ggml.token_type", std::move(types)));
  EXPECT_TRUE(m.insert("tokenizer.ggml.merges", std::vector<std::string>{"a b"}));
  return m;
}

std::string error_of(const Metadata& m) {
  auto vocab = read_vocab(m);
  return vocab ? "" : vocab.error().message;
}

TEST(ReadVocab, RejectsWhatDoesNotFit) {
  EXPECT_NE(error_of({}).find("tokenizer.ggml.model is missing"), std::string::npos);
  {
    Metadata m;
    ASSERT_TRUE(m.insert("tokenizer.ggml.model", std::string("wordle")));
    EXPECT_NE(error_of(m).find("'wordle'"), std::string::npos);
    EXPECT_NE(error_of(m).find("gpt2"), std::string::npos);
  }
  EXPECT_EQ(error_of(spm_metadata({"a", "b"}, {1, 1})), "");
  EXPECT_NE(error_of(spm_metadata({"a", "b"}, {1})).find("1 entries for 2 tokens"), std::string::npos);
  EXPECT_NE(error_of(spm_metadata({"a", "b"}, {1, 7})).find("type 7"), std::string::npos);
  EXPECT_NE(error_of(spm_metadata({"a", "b"}, {1, -1})).find("type -1"), std::string::npos);
  EXPECT_NE(error_of(spm_metadata({}, {})).find("0 entries"), std::string::npos);
  EXPECT_NE(error_of(spm_metadata({"a", std::string(65537, 'x')}, {1, 1})).find("65537 bytes"), std::string::npos);
  for (const char* byte : {"<0x-1>", "<0x1>", "<0x123>", "<0xG0>", "0x00", "<0x00> "}) {
    EXPECT_NE(error_of(spm_metadata({"a", byte}, {1, 6})).find("byte token"), std::string::npos) << byte;
  }
  EXPECT_EQ(error_of(spm_metadata({"a", "<0xfF>"}, {1, 6})), "");
  for (int64_t id : {2ll, -2ll, 1ll << 32}) {
    Metadata m = spm_metadata({"a", "b"}, {1, 1});
    ASSERT_TRUE(m.insert("tokenizer.ggml.bos_token_id", id));
    EXPECT_NE(error_of(m).find("bos_token_id"), std::string::npos) << id;
  }
  {
    Metadata m = bpe_metadata({"a", "b", "ab"}, {1, 1, 1});
    ASSERT_TRUE(m.insert("tokenizer.ggml.scores", std::vector<float>{1, 2}));
    EXPECT_NE(error_of(m).find("scores has 2"), std::string::npos);
  }
  {
    Metadata m = spm_metadata({"a"}, {1});
    Metadata without;
    for (auto& [key, value] : m.values()) {
      if (key == "tokenizer.ggml.scores") continue;
      ASSERT_TRUE(without.insert(key, value));
    }
    EXPECT_NE(error_of(without).find("needs tokenizer.ggml.scores"), std::string::npos);
    ASSERT_TRUE(without.insert("tokenizer.ggml.scores", std::vector<float>{NAN}));
    EXPECT_NE(error_of(without).find("not a number"), std::string::npos);
  }
  for (const char* merge : {"ab", "a ", " b", ""}) {
    Metadata m;
    ASSERT_TRUE(m.insert("tokenizer.ggml.model", std::string("gpt2")));
    ASSERT_TRUE(m.insert("tokenizer.ggml.tokens", std::vector<std::string>{"a", "b"}));
    ASSERT_TRUE(m.insert("tokenizer.ggml.merges", std::vector<std::string>{merge}));
    EXPECT_NE(error_of(m).find("merge 0"), std::string::npos) << merge;
  }
}

TEST(ReadVocab, TakesMinusOneForNone) {
  Metadata m = spm_metadata({"a", "b", "c"}, {1, 1, 1});
  ASSERT_TRUE(m.insert("tokenizer.ggml.bos_token_id", uint64_t{0xFFFFFFFF}));
  ASSERT_TRUE(m.insert("tokenizer.ggml.eos_token_id", int64_t{-1}));
  ASSERT_TRUE(m.insert("tokenizer.ggml.padding_token_id", uint64_t{3}));  // out of range, and nothing depends on it
  auto vocab = read_vocab(m);
  ASSERT_TRUE(vocab) << vocab.error().message;
  EXPECT_EQ(vocab->bos, -1);
  EXPECT_EQ(vocab->eos, -1);
  EXPECT_EQ(vocab->padding, -1);
  EXPECT_EQ(vocab->unknown, 0);
}

TEST(ReadVocab, DefaultIdsStayInsideASmallVocabulary) {
  auto vocab = read_vocab(spm_metadata({"a"}, {1}));
  ASSERT_TRUE(vocab);
  EXPECT_EQ(vocab->unknown, 0);
  EXPECT_EQ(vocab->bos, -1);
  EXPECT_EQ(vocab->eos, -1);
}

TEST(ReadVocab, SaysWhenThePreTokenizerIsMissingOrUnknown) {
  auto missing = read_vocab(bpe_metadata({"a", "b", "ab", "</s>"}, {1, 1, 1, 3}, ""));
  ASSERT_TRUE(missing);
  EXPECT_EQ(missing->pre, "default");
  ASSERT_EQ(missing->warnings.size(), 1u);
  EXPECT_NE(missing->warnings[0].find("has no tokenizer.ggml.pre"), std::string::npos);

  auto generic = read_vocab(bpe_metadata({"a", "b", "ab", "</s>"}, {1, 1, 1, 3}, "default"));
  ASSERT_TRUE(generic);
  EXPECT_EQ(generic->warnings.size(), 1u);

  Metadata known = bpe_metadata({"a", "b", "ab", "</s>"}, {1, 1, 1, 3}, "default");
  ASSERT_TRUE(known.insert("general.architecture", std::string("llama4")));
  auto mapped = read_vocab(known);
  ASSERT_TRUE(mapped);
  EXPECT_EQ(mapped->pre, "llama4");
  EXPECT_EQ(mapped->warnings.size(), 1u);

  auto unknown = read_vocab(bpe_metadata({"a", "b", "ab"}, {1, 1, 1}, "qwen99"));
  ASSERT_FALSE(unknown);
  EXPECT_EQ(unknown.error().code, ErrorCode::kUnsupported);
  EXPECT_NE(unknown.error().message.find("'qwen99'"), std::string::npos);
  EXPECT_NE(unknown.error().message.find("qwen35"), std::string::npos);
}

TEST(ReadVocab, CollectsWhatEndsAnAnswer) {
  auto vocab = read_vocab(
      bpe_metadata({"a", "<|im_end|>", "<|endoftext|>", "<|fim_pad|>", "b", "ab"}, {1, 3, 3, 4, 1, 1}, "qwen2"));
  ASSERT_TRUE(vocab);
  EXPECT_EQ(vocab->eot, 1);
  EXPECT_EQ(vocab->fim_padding, 3);
  EXPECT_EQ(vocab->end_of_generation, (std::vector<int32_t>{1, 2, 3}));
  EXPECT_TRUE(vocab->is_end_of_generation(2));
  EXPECT_FALSE(vocab->is_end_of_generation(0));
  EXPECT_FALSE(vocab->is_end_of_generation(-1));
  EXPECT_EQ(vocab->types[3], TokenType::kControl);  // was user-defined
  EXPECT_EQ(vocab->warnings.size(), 1u);
}

TEST(ReadVocab, HarmonyMarkupIsShownAndItsMessagesDoNotEndTheTurn) {
  auto vocab = read_vocab(bpe_metadata(
      {"a", "<|start|>", "<|channel|>", "<|message|>", "<|constrain|>", "<|end|>", "<|return|>", "<|call|>", "b", "ab"},
      {1, 3, 3, 3, 3, 3, 3, 3, 1, 1}, "gpt-4o"));
  ASSERT_TRUE(vocab);
  for (int32_t id = 1; id <= 5; ++id) EXPECT_EQ(vocab->types[static_cast<size_t>(id)], TokenType::kUserDefined) << id;
  EXPECT_EQ(vocab->end_of_generation, (std::vector<int32_t>{6, 7}));
}

TEST(ReadVocab, GemmaToolResponseMakesSlashSOrdinary) {
  Metadata m;
  ASSERT_TRUE(m.insert("tokenizer.ggml.model", std::string("gemma4")));
  ASSERT_TRUE(
      m.insert("tokenizer.ggml.tokens", std::vector<std::string>{"<eos>", "</s>", "<|tool_response>", "<turn|>"}));
  ASSERT_TRUE(m.insert("tokenizer.ggml.token_type", std::vector<int64_t>{3, 4, 3, 3}));
  ASSERT_TRUE(m.insert("tokenizer.ggml.merges", std::vector<std::string>{}));
  auto vocab = read_vocab(m);
  ASSERT_TRUE(vocab) << vocab.error().message;
  EXPECT_EQ(vocab->types[1], TokenType::kNormal);
  EXPECT_EQ(vocab->end_of_generation, (std::vector<int32_t>{0, 2, 3}));
  EXPECT_TRUE(vocab->add_bos);
}

TEST(ReadVocab, NamesEmptyTokensAndTurnsUnusedControlTokensOff) {
  auto vocab = read_vocab(spm_metadata({"", "<unused1>", "x"}, {1, 3, 1}));
  ASSERT_TRUE(vocab);
  EXPECT_EQ(vocab->tokens[0], "[EMPTY_0]");
  EXPECT_EQ(vocab->types[1], TokenType::kUnused);
}

TEST(Pretokenizers, EveryRowCompilesAndNamesAreUnique) {
  auto names = pretokenizer_names();
  EXPECT_EQ(std::adjacent_find(names.begin(), names.end()), names.end());
  for (std::string_view name : names) {
    auto compiled = Pretokenizer::create(find_pretokenizer(name)->steps);
    EXPECT_TRUE(compiled) << name << ": " << compiled.error().message;
  }
  EXPECT_EQ(find_pretokenizer("nope"), nullptr);
}

}  // namespace
}  // namespace hearth
