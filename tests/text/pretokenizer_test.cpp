// Pieces that the patterns give, worked out by hand from the originals' rules; and their time on hostile text.
#include "text/pretokenizer.h"

#include <gtest/gtest.h>

#include <random>
#include <set>

#include "vocab_files.h"

namespace hearth {
namespace {

std::unique_ptr<const Pretokenizer> make(std::string_view name) {
  const PretokenizerInfo* info = find_pretokenizer(name);
  EXPECT_NE(info, nullptr) << name;
  auto p = Pretokenizer::create(info->steps);
  EXPECT_TRUE(p) << p.error().message;
  return std::move(*p);
}

std::vector<std::string> split(std::string_view name, std::string_view text) {
  std::vector<uint32_t> ends;
  make(name)->split(text, ends);
  std::vector<std::string> pieces;
  size_t start = 0;
  for (uint32_t end : ends) {
    pieces.emplace_back(text.substr(start, end - start));
    start = end;
  }
  EXPECT_EQ(start, text.size());
  return pieces;
}

using Pieces = std::vector<std::string>;

TEST(Pretokenizer, Gpt2) {
  EXPECT_EQ(split("gpt-2", "I've  'LL 12½ x\n\n y"), (Pieces{"I", "'ve", " ", " '", "LL", " 12½", " x", "\n\n", " y"}));
}

TEST(Pretokenizer, Llama3GroupsDigitsAndKeepsLineEnds) {
  EXPECT_EQ(split("llama-bpe", "I'LL 12345 (x);\r\n   y  \n z  "),
            (Pieces{"I", "'LL", " ", "123", "45", " (", "x", ");\r\n", "  ", " y", "  \n", " z", "  "}));
}

TEST(Pretokenizer, QwenTakesDigitsOneByOneAndQwen35MarksWithLetters) {
  EXPECT_EQ(split("qwen2", "a12 e\u0301x"), (Pieces{"a", "1", "2", " e", "\u0301x"}));
  EXPECT_EQ(split("qwen35", "a12 e\u0301x"), (Pieces{"a", "1", "2", " e\u0301x"}));
}

TEST(Pretokenizer, SmollmIsolatesDigitsBeforeTheRest) {
  EXPECT_EQ(split("smollm", "a  12 b"), (Pieces{"a", "  ", "1", "2", " b"}));
}

TEST(Pretokenizer, DeepSeek) {
  EXPECT_EQ(split("deepseek-llm", "Hi, 你好 12\n x  "), (Pieces{"Hi", ",", " ", "你好", " ", "12", "\n", " x", "  "}));
  EXPECT_EQ(split("deepseek-v3", "Hi,世界 1234 _x.y"), (Pieces{"Hi", ",", "世界", " ", "123", "4", " _", "x", ".y"}));
  EXPECT_EQ(split("deepseek-coder", "f(x) 12"), (Pieces{"f", "(", "x", ")", " ", "1", "2"}));
}

TEST(Pretokenizer, CasedWords) {
  EXPECT_EQ(split("gpt-4o", "HelloWORLDfoo's ÉCOLEs /\n"), (Pieces{"Hello", "WORLDfoo's", " ÉCOLEs", " /\n"}));
  EXPECT_EQ(split("tekken", "CamelCase's 12"), (Pieces{"Camel", "Case", "'s", " ", "1", "2"}));
  EXPECT_EQ(split("kimi-k2", "ab漢字Cd 々x"), (Pieces{"ab", "漢字", "Cd", " ", "々", "x"}));
}

TEST(Pretokenizer, DigitsInThreesFromTheRight) {
  EXPECT_EQ(split("superbpe", "x1234567 12"), (Pieces{"x", "1", "234", "567", " ", "12"}));
  EXPECT_EQ(split("afmoe", "1234567"), (Pieces{"1", "234", "567"}));
  EXPECT_EQ(split("tiny_aya", "1234567 x"), (Pieces{"1", "234", "567", " x"}));
  // Digits that a letter follows have no word boundary: they are grouped from the left instead.
  EXPECT_EQ(split("tiny_aya", "1234567x"), (Pieces{"123", "456", "7", "x"}));
}

TEST(Pretokenizer, OtherRows) {
  EXPECT_EQ(split("falcon", "a!! 1234"), (Pieces{"a", "!!", " ", "123", "4"}));
  EXPECT_EQ(split("default", "a!! 1234"), (Pieces{"a", "!!", " ", "123", "4"}));
  EXPECT_EQ(split("jais-2", "a" + std::string(7, ' ') + "b"), (Pieces{"a", "    ", "  ", " b"}));
  EXPECT_EQ(split("jais-2", "a  \n \n  b!\n   \n c"), (Pieces{"a", "  \n \n", " ", " b", "!\n", "   \n", " c"}));
  EXPECT_EQ(split("bailingmoe", "he's (a)\n\nb"), (Pieces{"he", "'s", " (", "a", ")\n\n", "b"}));
  EXPECT_EQ(split("poro-chat", "one, two"), (Pieces{"one", ",", " two"}));
  EXPECT_EQ(split("exaone-moe", "ab cd 1\n\n"), (Pieces{"ab cd", " ", "1", "\n\n"}));
  EXPECT_EQ(split("youtu", "가나、x1"), (Pieces{"가나", "、", "x", "1"}));
  EXPECT_EQ(split("chameleon", "xIMGIMGABZ 1"), (Pieces{"x", "IMGIMGABZ", " ", "1"}));
}

TEST(Pretokenizer, WhiteSpaceIsTheUnicodeProperty) {
  EXPECT_EQ(split("llama-bpe", "a\u3000\u3000b"), (Pieces{"a", "\u3000", "\u3000b"}));
  EXPECT_EQ(split("gpt-2", "a\u180Eb"), (Pieces{"a", "\u180E", "b"}));  // once a space, now a format character
}

TEST(Pretokenizer, RunsOfInvalidBytesArePieces) {
  EXPECT_EQ(split("gpt-2", "ab\xFF\xC3zz\xE2\x82"), (Pieces{"ab", "\xFF\xC3", "zz", "\xE2\x82"}));
}

// Every row covers any text with ascending, non-empty pieces that respect characters.
TEST(Pretokenizer, CoversRandomText) {
  std::mt19937 rng(7);
  for (std::string_view name : pretokenizer_names()) {
    auto p = make(name);
    std::vector<uint32_t> ends = {99};
    p->split("", ends);
    EXPECT_TRUE(ends.empty());
    for (int round = 0; round < 40; ++round) {
      std::string text = round % 4 ? random_text(rng, rng() % 200) : random_bytes(rng, rng() % 200);
      p->split(text, ends);
      uint32_t start = 0;
      for (uint32_t end : ends) {
        ASSERT_LT(start, end) << name;
        start = end;
      }
      ASSERT_EQ(start, text.size()) << name;
    }
  }
}

// What makes careless patterns quadratic: 256 KiB of it take a linear row some 10 ms, a quadratic one more than 10 s.
TEST(Pretokenizer, HostileTextTakesLinearTime) {
  const size_t kSize = 1 << 18;
  auto repeat = [&](std::string unit) {
    std::string out;
    while (out.size() < kSize) out += unit;
    return out;
  };
  const std::vector<std::string> texts = {repeat("a"),
                                          repeat(" "),
                                          repeat(" ") + "x",
                                          repeat("7"),
                                          repeat("7") + "x",
                                          repeat("\n"),
                                          repeat("\n") + "x",
                                          repeat("'"),
                                          repeat("A"),
                                          repeat("!"),
                                          repeat(" \n") + "x",
                                          repeat("e\u0301"),
                                          repeat("漢"),
                                          repeat("a "),
                                          repeat("\u0301"),
                                          repeat("\x01"),
                                          repeat("\u3000") + "x",
                                          repeat("\xFF"),
                                          repeat("\xFF"
                                                 "a")};
  std::set<const PretokenizerInfo*> done;
  for (std::string_view name : pretokenizer_names()) {
    if (!done.insert(find_pretokenizer(name)).second) continue;  // another name of the same row
    auto p = make(name);
    std::vector<uint32_t> ends;
    for (size_t i = 0; i < texts.size(); ++i) {
      double begin = cpu_seconds();
      p->split(texts[i], ends);
      double seconds = cpu_seconds() - begin;
      ASSERT_LT(seconds, 1.0) << name << " text " << i;
      ASSERT_EQ(ends.back(), texts[i].size());
    }
  }
}

}  // namespace
}  // namespace hearth
