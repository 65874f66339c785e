// What holds for any text, and the rules around special tokens, on real and made-up vocabularies.
#include "text/tokenizer.h"

#include <thread>

#include "text/bpe.h"
#include "text/unicode.h"
#include "vocab_files.h"

namespace hearth {
namespace {

bool is_control(const Tokenizer& t, int32_t id) {
  TokenType type = t.vocab().types[static_cast<size_t>(id)];
  return type == TokenType::kControl || type == TokenType::kUnknown;
}

// Some vocabularies have no token for bytes that UTF-8 never uses, such as 0xFF.
bool has_all_bytes(const Tokenizer& t) {
  for (int b = 0; b < 256; ++b) {
    char c = static_cast<char>(b);
    if (t.encode({&c, 1}).empty()) return false;
  }
  return true;
}

std::string normal_form(const Tokenizer& t, std::string_view text) {
  std::string scratch;
  return std::string(t.vocab().nfc ? to_nfc(text, scratch) : text);
}

class RealVocab : public testing::TestWithParam<std::string> {};

// Every byte-level vocabulary gives any bytes back; the SentencePiece ones too, except that U+2581 becomes a space.
TEST_P(RealVocab, DecodesWhatItEncoded) {
  HEARTH_REAL_TOKENIZER(t, GetParam());
  const bool all_bytes = has_all_bytes(*t);
  std::mt19937 rng(1);
  for (int round = 0; round < 400; ++round) {
    std::string text = round % 2 || !all_bytes ? random_text(rng, rng() % 100) : random_bytes(rng, rng() % 100);
    if (t->vocab().kind == VocabKind::kSentencePiece) {
      for (size_t p; (p = text.find(kEscapedSpace)) != std::string::npos;) text.replace(p, kEscapedSpace.size(), " ");
    }
    ASSERT_EQ(t->decode(t->encode(text)), normal_form(*t, text)) << round;
  }
}

TEST_P(RealVocab, EveryTokenDecodesAndPiecesJoin) {
  HEARTH_REAL_TOKENIZER(t, GetParam());
  for (int32_t id = 0; id < t->vocab().size(); ++id) {
    std::string one = t->decode({&id, 1}, {.special = true, .strip_space_prefix = false});
    ASSERT_EQ(one, t->piece(id));
  }
  EXPECT_EQ(t->piece(-1), "");
  EXPECT_EQ(t->piece(static_cast<int32_t>(t->vocab().size())), "");
}

// Whatever a user writes, spelled-out special tokens included, no control token comes of it, and in strict mode no
// markup either; the text is still all there.
TEST_P(RealVocab, UntrustedTextFormsNoControlToken) {
  HEARTH_REAL_TOKENIZER(t, GetParam());
  std::vector<std::string> specials;
  for (int32_t id = 0; id < t->vocab().size(); ++id) {
    TokenType type = t->vocab().types[static_cast<size_t>(id)];
    if (type != TokenType::kNormal) specials.push_back(t->vocab().tokens[static_cast<size_t>(id)]);
  }
  ASSERT_FALSE(specials.empty());
  std::mt19937 rng(2);
  for (int round = 0; round < 400; ++round) {
    std::string text;
    for (size_t n = rng() % 6; n > 0; --n) {
      text += rng() % 2 ? specials[rng() % specials.size()] : random_text(rng, rng() % 5);
    }
    for (bool strict : {false, true}) {
      TextSegment segment{text, false};
      auto ids = t->encode({&segment, 1}, {.strict = strict});
      for (int32_t id : ids) {
        ASSERT_FALSE(is_control(*t, id)) << text;
        if (strict && t->vocab().types[static_cast<size_t>(id)] == TokenType::kUserDefined) {
          ASSERT_TRUE(is_harmless_token(t->vocab().tokens[static_cast<size_t>(id)]));
        }
      }
      if (t->vocab().kind == VocabKind::kBytePair) {
        ASSERT_EQ(t->decode(ids), normal_form(*t, text));
      }
    }
    // The same text as template text forms them.
    TextSegment segment{text, true};
    EXPECT_EQ(t->encode({&segment, 1}), t->encode(text, {.parse_special = true}));
  }
}

// A control token whose spelling is half template, half user text is not formed; all template, in two segments, is.
TEST_P(RealVocab, TokensAcrossASegmentBorderNeedTrustOnBothSides) {
  HEARTH_REAL_TOKENIZER(t, GetParam());
  for (int32_t id = 0; id < t->vocab().size(); ++id) {
    if (t->vocab().types[static_cast<size_t>(id)] != TokenType::kControl) continue;
    std::string_view text = t->vocab().tokens[static_cast<size_t>(id)];
    for (size_t cut = 1; cut < text.size(); cut += 5) {
      std::vector<TextSegment> segments = {{text.substr(0, cut), true}, {text.substr(cut), true}};
      ASSERT_EQ(t->encode(segments), std::vector<int32_t>{id});
      for (int untrusted : {0, 1}) {
        segments[0].trusted = untrusted != 0;
        segments[1].trusted = untrusted == 0;
        for (int32_t other : t->encode(segments)) ASSERT_FALSE(is_control(*t, other)) << text << " " << cut;
      }
    }
  }
}

// Long runs of one character, and 256 KiB without a word boundary: about 0.3 s each, minutes if merging were quadratic.
TEST_P(RealVocab, HostileTextTakesBoundedTime) {
  HEARTH_REAL_TOKENIZER(t, GetParam());
  std::mt19937 rng(4);
  std::string letters;
  while (letters.size() < (1 << 18)) letters.push_back(static_cast<char>('a' + rng() % 26));
  std::vector<std::string> texts = {std::string(1 << 18, 'a'),    std::string(1 << 18, ' '),
                                    std::string(1 << 18, '<'),    std::string(1 << 18, '\n') + "x",
                                    std::string(1 << 18, '\xFF'), letters};
  for (size_t i = 0; i < texts.size(); ++i) {
    double begin = cpu_seconds();
    auto ids = t->encode(texts[i]);
    double seconds = cpu_seconds() - begin;
    EXPECT_LT(seconds, 2.0) << "text " << i;
    EXPECT_TRUE(t->decode(ids) == texts[i] || !has_all_bytes(*t)) << "text " << i;
  }
}

TEST_P(RealVocab, ThreadsShareATokenizer) {
  HEARTH_REAL_TOKENIZER(shared, GetParam());
  auto fresh = Tokenizer::create(Vocab(shared->vocab()));  // its memory of whole tokens is empty
  ASSERT_TRUE(fresh);
  std::mt19937 rng(6);
  std::string text = random_text(rng, 20000);
  auto expected = shared->encode(text);
  std::vector<std::thread> threads;
  std::vector<std::vector<int32_t>> results(4);
  for (auto& result : results) threads.emplace_back([&] { result = (*fresh)->encode(text); });
  for (auto& thread : threads) thread.join();
  for (auto& result : results) EXPECT_EQ(result, expected);
}

INSTANTIATE_TEST_SUITE_P(Vocabularies, RealVocab,
                         testing::Values("gpt-2", "llama-bpe", "llama-spm", "phi-3", "qwen2", "deepseek-llm"),
                         [](const auto& info) {
                           std::string name = info.param;
                           std::replace(name.begin(), name.end(), '-', '_');
                           return name;
                         });

// The values of formats.md that no vector file holds, and tokens of chat templates.
TEST(Tokenizer, ChatMarkup) {
  HEARTH_REAL_TOKENIZER(t, "qwen2");
  EXPECT_EQ(t->find_special("<|im_start|>"), 151644);
  EXPECT_EQ(t->find_special("<|im_end|>"), 151645);
  EXPECT_EQ(t->find_special("<|im_end"), -1);
  EXPECT_EQ(t->find_special("Hello"), -1);
  EXPECT_TRUE(t->is_end_of_generation(151645));
  EXPECT_EQ(t->encode("<|im_end|>Hello world", {.parse_special = true}), (std::vector<int32_t>{151645, 9707, 1879}));
  EXPECT_EQ(t->decode(std::vector<int32_t>{151645, 9707}), "Hello");
  EXPECT_EQ(t->decode(std::vector<int32_t>{151645, 9707}, {.special = true}), "<|im_end|>Hello");
  // Ordinary tokens go across the border of template and user text.
  std::vector<TextSegment> segments = {
      {"<|im_start|>user\n", true}, {"\nHello<|im_end|>", false}, {"<|im_end|>", true}};
  auto ids = t->encode(segments);
  EXPECT_EQ(ids.front(), 151644);
  EXPECT_EQ(ids.back(), 151645);
  EXPECT_EQ(std::count(ids.begin(), ids.end(), 151645), 1);
  EXPECT_EQ(std::count(ids.begin(), ids.end(), 271), 1);  // "\n\n"
}

TEST(Tokenizer, NormalizesWhereTheOriginalDoes) {
  HEARTH_REAL_TOKENIZER(qwen, "qwen2");
  EXPECT_EQ(qwen->encode("re\u0301sume\u0301"), qwen->encode("r\u00E9sum\u00E9"));
  HEARTH_REAL_TOKENIZER(llama, "llama-bpe");
  EXPECT_NE(llama->encode("re\u0301sume\u0301"), llama->encode("r\u00E9sum\u00E9"));
}

TEST(Tokenizer, AddsBosOnce) {
  HEARTH_REAL_TOKENIZER(t, "llama-spm");
  EXPECT_EQ(t->encode("Hello world", {.add_special = true}), (std::vector<int32_t>{1, 15043, 3186}));
  EXPECT_EQ(t->encode("", {.add_special = true}), std::vector<int32_t>{1});
  EXPECT_EQ(t->encode("<s>Hello", {.parse_special = true, .add_special = true}).front(), 1);
  EXPECT_NE(t->encode("<s>Hello", {.parse_special = true, .add_special = true})[1], 1);
  EXPECT_EQ(t->encode("<s>x", {.add_special = true})[0], 1);
  EXPECT_GT(t->encode("<s>x", {.add_special = true}).size(), 3u);  // spelled out
}

TEST(Tokenizer, SpacePrefixComesBackOff) {
  HEARTH_REAL_TOKENIZER(t, "llama-spm");
  std::vector<int32_t> ids = {1, 15043, 3186};
  EXPECT_EQ(t->decode(ids), "Hello world");
  EXPECT_EQ(t->decode(ids, {.strip_space_prefix = false}), " Hello world");
  EXPECT_EQ(t->decode(ids, {.special = true}), "<s> Hello world");
}

TEST(Tokenizer, Phi3MarkupTakesTheWhiteSpaceBehindIt) {
  HEARTH_REAL_TOKENIZER(t, "phi-3");
  auto user = t->find_special("<|user|>");
  ASSERT_GE(user, 0);
  if (!t->vocab().strips[static_cast<size_t>(user)].right) GTEST_SKIP() << "this file's general.name is not phi-3";
  EXPECT_EQ(t->encode("<|user|>\n \tHello", {.parse_special = true}),
            t->encode("<|user|>Hello", {.parse_special = true}));
}

// ---- made-up vocabularies

Vocab small_vocab(VocabKind kind, std::vector<std::string> tokens, std::vector<TokenType> types = {}) {
  Vocab v;
  v.kind = kind;
  v.pre = "gpt-2";
  v.types = std::move(types);
  v.types.resize(tokens.size(), TokenType::kNormal);
  v.strips.resize(tokens.size());
  v.tokens = std::move(tokens);
  return v;
}

std::unique_ptr<const Tokenizer> make(Vocab vocab) {
  auto t = Tokenizer::create(std::move(vocab));
  EXPECT_TRUE(t) << t.error().message;
  return std::move(*t);
}

TEST(Tokenizer, SaysWhatItCannotDo) {
  for (VocabKind kind :
       {VocabKind::kUnigram, VocabKind::kWordPiece, VocabKind::kRwkv, VocabKind::kPlamo2, VocabKind::kNone}) {
    Vocab v = small_vocab(kind, {"a"});
    v.model = "some-kind";
    auto t = Tokenizer::create(std::move(v));
    ASSERT_FALSE(t);
    EXPECT_EQ(t.error().code, ErrorCode::kUnsupported);
    EXPECT_NE(t.error().message.find("some-kind"), std::string::npos);
  }
}

TEST(Bpe, MapsBytes) {
  EXPECT_EQ(bytes_of_mapped("\u0120a\u010A\u00E9"), " a\n\xE9");
  bool exact = true;
  EXPECT_EQ(bytes_of_mapped("a b\u2581", &exact), "a b\u2581");
  EXPECT_FALSE(exact);
}

TEST(Bpe, MergesByRankThenFromTheLeft) {
  Vocab v = small_vocab(VocabKind::kBytePair, {"a", "b", "ab", "ba", "aa", "aab"});
  v.merges = {"a a", "b a", "a b", "aa b"};
  auto t = make(v);
  EXPECT_EQ(t->encode("aba"), (std::vector<int32_t>{0, 3}));
  EXPECT_EQ(t->encode("aaab"), (std::vector<int32_t>{4, 2}));
  EXPECT_EQ(t->encode("aab"), std::vector<int32_t>{5});
  // "abab" is no token; the whole "ab" is one, but reached by merges only.
  EXPECT_EQ(t->encode("abab"), (std::vector<int32_t>{0, 3, 1}));
}

TEST(Bpe, IgnoreMergesTakesTheWholePiece) {
  Vocab v = small_vocab(VocabKind::kBytePair, {"a", "b", "ab"});
  auto without = make(v);
  EXPECT_EQ(without->encode("ab"), (std::vector<int32_t>{0, 1}));
  v.ignore_merges = true;
  EXPECT_EQ(make(v)->encode("ab"), std::vector<int32_t>{2});
}

TEST(Bpe, ScanAndHeapAgree) {
  std::mt19937 rng(8);
  for (int round = 0; round < 300; ++round) {
    // A random merge table over ids 0 to 39.
    MergeTable table(200);
    for (uint32_t rank = 0; rank < 120; ++rank) {
      table.insert(static_cast<int32_t>(rng() % 40), static_cast<int32_t>(rng() % 40), rank,
                   static_cast<int32_t>(rng() % 40));
    }
    auto join = [&](const MergeSymbol& l, const MergeSymbol& r) { return table.find(l.id, r.id); };
    MergeScratch a, b;
    size_t n = rng() % 120;
    for (size_t i = 0; i < n; ++i) a.symbols.push_back({static_cast<int32_t>(rng() % 12), static_cast<uint32_t>(i), 1});
    b.symbols = a.symbols;
    merge_scan(a, join);
    merge_heap(b, join);
    ASSERT_EQ(a.symbols.size(), b.symbols.size());
    for (size_t i = 0; i < a.symbols.size(); ++i) {
      ASSERT_EQ(a.symbols[i].id, b.symbols[i].id);
      ASSERT_EQ(a.symbols[i].start, b.symbols[i].start);
      ASSERT_EQ(a.symbols[i].length, b.symbols[i].length);
    }
  }
}

TEST(Bpe, MissingBytesBecomeUnknownOrNothing) {
  Vocab v = small_vocab(VocabKind::kBytePair, {"a", "<unk>"}, {TokenType::kNormal, TokenType::kUnknown});
  auto dropped = make(v);
  EXPECT_EQ(dropped->encode("abа"), std::vector<int32_t>{0});
  v.unknown = 1;
  EXPECT_EQ(make(v)->encode("ab"), (std::vector<int32_t>{0, 1}));
}

TEST(Bpe, MergesNeverFormSpecialTokens) {
  Vocab v = small_vocab(
      VocabKind::kBytePair, {"<", "s", ">", "<s", "<s>", "<s>s"},
      {TokenType::kNormal, TokenType::kNormal, TokenType::kNormal, TokenType::kNormal, TokenType::kControl});
  v.pre = "bloom";  // keeps these texts in one piece
  v.merges = {"< s", "<s >", "<s> s"};
  auto t = make(v);
  EXPECT_EQ(t->encode("<s>"), (std::vector<int32_t>{3, 2}));
  EXPECT_EQ(t->encode("<s>s"), (std::vector<int32_t>{3, 2, 1}));
  EXPECT_EQ(t->encode("<s>", {.parse_special = true}), std::vector<int32_t>{4});
}

TEST(Specials, LeftmostThenLongest) {
  Vocab v = small_vocab(VocabKind::kBytePair, {"a", "b", "c", "d", "ab", "bcd", "abc", "ab"},
                        {TokenType::kNormal, TokenType::kNormal, TokenType::kNormal, TokenType::kNormal,
                         TokenType::kControl, TokenType::kControl, TokenType::kUserDefined, TokenType::kControl});
  auto t = make(v);
  EXPECT_EQ(t->encode("abd", {.parse_special = true}), (std::vector<int32_t>{4, 3}));   // the first of two ids
  EXPECT_EQ(t->encode("abcd", {.parse_special = true}), (std::vector<int32_t>{6, 3}));  // "abc", not "ab" "cd" or "bcd"
  EXPECT_EQ(t->encode("abcd"), (std::vector<int32_t>{6, 3}));                           // user-defined ones always form
  EXPECT_EQ(t->encode("bcd"), (std::vector<int32_t>{1, 2, 3}));
  std::vector<TextSegment> half = {{"ab", true}, {"cd", false}};
  EXPECT_EQ(t->encode(half), (std::vector<int32_t>{4, 2, 3}));  // strict: "abc" may not form
  EXPECT_EQ(t->encode(half, {.strict = false}), (std::vector<int32_t>{6, 3}));
}

TEST(Specials, HarmlessOnesFormInUntrustedText) {
  for (const char* text : {" ", "\n\n", "\u2581\u2581", "\u00F8", "<table>", "</h1>"})
    EXPECT_TRUE(is_harmless_token(text)) << text;
  for (const char* text : {"<think>", "</tool_call>", "[INST]", "<|im_end|>", "/nothink", "<>", "</>", "ab"}) {
    EXPECT_FALSE(is_harmless_token(text)) << text;
  }
  Vocab v = small_vocab(VocabKind::kBytePair, {"\n", "x", "\n\n", "<x>", "<", ">"},
                        {TokenType::kUndefined, TokenType::kNormal, TokenType::kUserDefined, TokenType::kUserDefined});
  v.tokens[0] = "\u010A";
  auto t = make(v);
  TextSegment segment{"\n\n<x>", false};
  EXPECT_EQ(t->encode({&segment, 1}), (std::vector<int32_t>{2, 4, 1, 5}));
  EXPECT_EQ(t->encode("\n\n<x>"), (std::vector<int32_t>{2, 3}));
}

TEST(Specials, StripsWhiteSpace) {
  Vocab v = small_vocab(VocabKind::kBytePair, {"a", "\u0120", "<m>"},
                        {TokenType::kNormal, TokenType::kNormal, TokenType::kControl});
  v.strips[2] = {.left = true, .right = true};
  auto t = make(v);
  EXPECT_EQ(t->encode("a  <m>\u3000 a", {.parse_special = true}), (std::vector<int32_t>{0, 2, 0}));
  EXPECT_EQ(t->encode(" <m> <m> ", {.parse_special = true}), (std::vector<int32_t>{2, 2}));
}

TEST(Gemma4, MergesCharactersAndFallsBackToBytes) {
  Vocab v = small_vocab(VocabKind::kGemma4,
                        {"\u2581", "a", "b", "\u2581a", "\n", "\n\n", "<0xC3>", "<0xA9>", "ab", "a\u2581b"},
                        {TokenType::kNormal, TokenType::kNormal, TokenType::kNormal, TokenType::kNormal,
                         TokenType::kNormal, TokenType::kNormal, TokenType::kByte, TokenType::kByte});
  v.merges = {"\u2581 a", "a b"};
  auto t = make(v);
  EXPECT_EQ(t->encode(" ab\n\n\u00E9\n\n\na b"), (std::vector<int32_t>{3, 2, 5, 6, 7, 4, 4, 4, 1, 0, 2}));
  EXPECT_EQ(t->decode(t->encode(" ab\n\n\u00E9\n\n\na b")), " ab\n\n\u00E9\n\n\na b");
  v.merges = {"a \u2581", "a\u2581 b"};  // merges across words: "a\u2581" is no token, so neither takes part
  EXPECT_EQ(make(v)->encode("a b"), (std::vector<int32_t>{1, 0, 2}));
}

Vocab spm_vocab(std::vector<std::string> tokens, std::vector<float> scores, std::vector<TokenType> types = {}) {
  Vocab v = small_vocab(VocabKind::kSentencePiece, std::move(tokens), std::move(types));
  v.scores = std::move(scores);
  return v;
}

TEST(Spm, HigherScoresFirst) {
  auto t = make(spm_vocab({"a", "b", "c", "ab", "bc"}, {0, 0, 0, -2, -1}));
  EXPECT_EQ(t->encode("abc"), (std::vector<int32_t>{0, 4}));
  t = make(spm_vocab({"a", "b", "c", "ab", "bc"}, {0, 0, 0, -1, -1}));
  EXPECT_EQ(t->encode("abc"), (std::vector<int32_t>{3, 2}));  // the left one on ties
  t = make(spm_vocab({"a", "b", "c", "ab", "bc"}, {0, 0, 0, 2, 1}));
  EXPECT_EQ(t->encode("abc"), (std::vector<int32_t>{3, 2}));  // positive scores too
}

TEST(Spm, UnusedPiecesAreTakenApart) {
  // "abcd" is unused: it stands for "ab" and "cd", and the unused "cd" for "c" and "d".
  auto t = make(spm_vocab({"a", "b", "c", "d", "ab", "cd", "abcd"}, {0, 0, 0, 0, -1, -2, -3},
                          {TokenType::kNormal, TokenType::kNormal, TokenType::kNormal, TokenType::kNormal,
                           TokenType::kNormal, TokenType::kUnused, TokenType::kUnused}));
  EXPECT_EQ(t->encode("abcd"), (std::vector<int32_t>{4, 2, 3}));
  EXPECT_EQ(t->piece(6), "");
}

TEST(Spm, LongChainsOfUnusedPiecesNeedNoDeepStack) {
  std::vector<std::string> tokens = {"a"};
  std::vector<float> scores = {0};
  std::vector<TokenType> types = {TokenType::kNormal};
  for (size_t n = 2; n <= 400; ++n) {
    tokens.emplace_back(n, 'a');
    scores.push_back(static_cast<float>(n));
    types.push_back(TokenType::kUnused);
  }
  auto t = make(spm_vocab(tokens, scores, types));
  EXPECT_EQ(t->encode(std::string(400, 'a')), std::vector<int32_t>(400, 0));
}

TEST(Spm, FallsBackToBytesThenCharactersThenUnknown) {
  Vocab v = spm_vocab({"<unk>", "<0xC3>", "a"}, {0, 0, 0}, {TokenType::kUnknown, TokenType::kByte, TokenType::kNormal});
  v.unknown = 0;
  auto t = make(v);
  EXPECT_EQ(t->encode("a\u00E9"), (std::vector<int32_t>{2, 1, 0}));
  // A byte token's spelling is not that byte token.
  EXPECT_EQ(t->encode("<0xC3>"), std::vector<int32_t>(6, 0));
}

TEST(Spm, SpacePrefixAtTheStartAndAfterSpecialTokens) {
  Vocab v = spm_vocab({"\u2581", "a", "\u2581a", "<s>"}, {0, 0, -1, 0},
                      {TokenType::kNormal, TokenType::kNormal, TokenType::kNormal, TokenType::kControl});
  v.add_space_prefix = true;
  auto t = make(v);
  EXPECT_EQ(t->encode("a<s>a a", {.parse_special = true}), (std::vector<int32_t>{2, 3, 2, 2}));
  v.add_space_prefix = false;
  EXPECT_EQ(make(v)->encode("a<s>a a", {.parse_special = true}), (std::vector<int32_t>{1, 3, 1, 2}));
}

// Words are encoded one by one where no token crosses them; one token that does must bring the same ids otherwise.
TEST(Spm, WordByWordIsTheSameAsAllAtOnce) {
  std::vector<std::string> tokens = {"\u2581"};
  std::vector<float> scores = {-1};
  for (char c : {'a', 'b', 'c'}) {
    tokens.push_back(std::string(1, c));
    scores.push_back(-1);
  }
  std::mt19937 rng(9);
  for (int i = 0; i < 60; ++i) {
    std::string token = rng() % 2 ? "\u2581" : "";
    for (size_t n = 1 + rng() % 4; n > 0; --n) token.push_back("abc"[rng() % 3]);
    tokens.push_back(token);
    scores.push_back(static_cast<float>(rng() % 20));
  }
  auto by_word = make(spm_vocab(tokens, scores));
  tokens.push_back("z\u2581z");
  scores.push_back(0);
  auto at_once = make(spm_vocab(tokens, scores));
  for (int round = 0; round < 200; ++round) {
    std::string text;
    for (size_t n = rng() % 100; n > 0; --n) text.push_back("abc "[rng() % 4]);
    ASSERT_EQ(by_word->encode(text), at_once->encode(text)) << text;
  }
}

}  // namespace
}  // namespace hearth
