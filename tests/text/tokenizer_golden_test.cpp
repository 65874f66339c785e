// Every real vocabulary against the ids that the original tokenizer gave.
#include <nlohmann/json.hpp>

#include "text/unicode.h"
#include "vocab_files.h"

namespace hearth {
namespace {

std::vector<std::string> read_inputs(const std::string& path) {
  const std::string kMark = "\n__ggml_vocab_test__\n";
  std::string all = read_file(path);
  std::vector<std::string> texts;
  size_t pos = 0;
  for (size_t mark; (mark = all.find(kMark, pos)) != std::string::npos; pos = mark + kMark.size()) {
    texts.push_back(all.substr(pos, mark - pos));
  }
  return texts;
}

std::vector<std::vector<int32_t>> read_ids(const std::string& path) {
  std::istringstream lines(read_file(path));
  std::vector<std::vector<int32_t>> out;
  for (std::string line; std::getline(lines, line);) {
    std::istringstream words(line);
    auto& ids = out.emplace_back();
    for (int32_t id; words >> id;) ids.push_back(id);
  }
  return out;
}

class Golden : public testing::TestWithParam<std::string> {};

TEST_P(Golden, GivesTheIdsOfTheOriginalTokenizer) {
  HEARTH_REAL_TOKENIZER(tokenizer, GetParam());
  auto texts = read_inputs(vocab_path(GetParam() + ".inp"));
  auto expected = read_ids(vocab_path(GetParam() + ".out"));
  ASSERT_GE(texts.size(), 46u);
  ASSERT_EQ(texts.size(), expected.size());
  for (size_t i = 0; i < texts.size(); ++i) {
    EXPECT_EQ(tokenizer->encode(texts[i]), expected[i]) << "text " << i << ": '" << texts[i] << "'";
    // The same as a segment, and cut into untrusted segments at every third byte: borders change nothing.
    std::vector<TextSegment> segments;
    std::string_view text = texts[i];
    for (size_t pos = 0; pos < text.size(); pos += 3) segments.push_back({text.substr(pos, 3)});
    EXPECT_EQ(tokenizer->encode(segments), expected[i]) << "segments of text " << i;
  }
}

TEST_P(Golden, DecodesWhatItEncoded) {
  HEARTH_REAL_TOKENIZER(tokenizer, GetParam());
  for (const std::string& text : read_inputs(vocab_path(GetParam() + ".inp"))) {
    std::string scratch;
    std::string_view expected = tokenizer->vocab().nfc ? to_nfc(text, scratch) : std::string_view(text);
    EXPECT_EQ(tokenizer->decode(tokenizer->encode(text)), expected);
  }
}

INSTANTIATE_TEST_SUITE_P(Vocabularies, Golden,
                         testing::Values("gpt-2", "llama-bpe", "llama-spm", "phi-3", "qwen2", "qwen35", "deepseek-llm"),
                         [](const auto& info) {
                           std::string name = info.param;
                           std::replace(name.begin(), name.end(), '-', '_');
                           return name;
                         });

// A real model's prompts: the template as trusted text around the user's words, and a page of prose.
TEST(GoldenModel, SmolLm2) {
  const std::string stem = HEARTH_SHARED_DATA "/models/SmolLM2-135M-Instruct";
  const Tokenizer* tokenizer = real_tokenizer(stem + ".Q4_1.gguf");
  if (!tokenizer) GTEST_SKIP() << "needs " << stem << ".Q4_1.gguf";
  const std::string before =
      "<|im_start|>system\nYou are a helpful AI assistant named SmolLM, trained by Hugging Face<|im_end|>\n"
      "<|im_start|>user\n";
  for (const auto& line : nlohmann::json::parse(read_file(stem + ".greedy.json"))) {
    std::string prompt = line["prompt"];
    std::vector<TextSegment> segments = {
        {before, true}, {prompt, false}, {"<|im_end|>\n<|im_start|>assistant\n", true}};
    EXPECT_EQ(tokenizer->encode(segments), line["prompt_ids"].get<std::vector<int32_t>>()) << prompt;
  }
  auto expected = nlohmann::json::parse(read_file(stem + ".logits.json"))["ids"].get<std::vector<int32_t>>();
  auto ids = tokenizer->encode(read_file(stem + ".logits.txt"));
  ASSERT_GE(ids.size(), expected.size());
  ids.resize(expected.size());
  EXPECT_EQ(ids, expected);
}

}  // namespace
}  // namespace hearth
