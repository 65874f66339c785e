#include <time.h>

#include "grammar_support.h"

namespace hearth {
namespace {

constexpr auto kGbnf = GrammarSource::Kind::kGbnf;

struct Case {
  const char* grammar;
  std::vector<std::string> good;
  std::vector<std::string> bad;  // no match; a prefix of one may be
};

TEST(Gbnf, MatchesWhatItSays) {
  const std::string long_text(100000, 'x');
  const Case cases[] = {
      {"root ::= \"yes\" | \"no\"", {"yes", "no"}, {"", "ye", "yesno", "Yes"}},
      {"root ::= [a-c]+", {"a", "cab"}, {"", "d", "abd"}},
      {"root ::= [^a-c\\n]*", {"", "xyz", "\u00e9\u20ac"}, {"a", "\n", "x\xFF", "\xC3"}},
      {"root ::= \"a\"? \"b\"* \"c\"+", {"c", "abbcc", "bc"}, {"", "ab", "aac"}},
      {"root ::= [0-9]{3} \"-\" [0-9]{2,4} [x]{0,} [y]{1,}",
       {"123-45y", "123-4567xxyy"},
       {"12-45y", "123-4y", "123-45678y"}},
      {"root ::= (\"a\" | \"b\" \"c\")+ # comment\n", {"a", "bc", "abca"}, {"b", "ac", ""}},
      {"root ::= pair (\",\" pair)*\npair ::= word \"=\" word\nword ::= [a-z_]+", {"a=b", "a=b,c=d"}, {"a", "a=b,"}},
      // Recursion in the middle, at the end, and through another rule.
      {"root ::= \"(\" root \")\" | \"x\"", {"x", "(x)", "(((x)))"}, {"(x", "x)", "((x)"}},
      {"root ::= \"a\" root | \"\"", {"", "aaaa", std::string(5000, 'a')}, {"b", "ab"}},
      {"root ::= a\na ::= \"x\" b | \"y\"\nb ::= \"z\" a", {"y", "xzy", "xzxzy"}, {"x", "xz", "xzz"}},
      // Ambiguous: many ways to read the same text.
      {"root ::= (\"a\" | b)*\nb ::= \"a\" | \"aa\"", {"", "a", std::string(3000, 'a')}, {"b"}},
      {"root ::= (\"a\"*)* \"b\"", {"b", "aaab"}, {"", "a", "ba"}},
      {"root ::= a a a\na ::= \"x\"?", {"", "x", "xxx"}, {"xxxx"}},
      // Counted: with and without something that tells the end.
      {"root ::= [a-z]{2,100000} \"!\"", {"ab!", long_text + "!"}, {"a!", long_text + "x!", "ab"}},
      {"root ::= [a-z]{2,100000} [m-n]", {"abm", "mmm", long_text + "m"}, {"am", "abc"}},
      {"root ::= (\"ab\" | \"c\")+ \"d\"", {"abcd", "cd"}, {"d", "acd"}},
      {"root ::= word{3,200}\nword ::= [a-z] [0-9]? [a-z]*", {"abc", "a1b2c3", "abcdef"}, {"ab", "a1"}},
      {"root ::= \"\\x41\\u00e9\\U0001F600\\\\\\\"\\n\\t\"", {"A\u00e9\U0001F600\\\"\n\t"}, {"A"}},
      {"root ::= .", {"a", "\n", "\u20ac", "\U0001F600"}, {"", "ab", "\xF0\x9F", "\xED\xA0\x80"}},
      {"root ::= \"a\"\n  | \"b\" |\n \"c\"\n\nother ::= \"d\"", {"a", "b", "c"}, {"d"}},
      {"root ::= [\\]\\-a^-]", {"]", "-", "a", "^"}, {"b", "\\"}},
      {"root ::= [a-z]{0} \"x\"", {"x"}, {"ax"}},
      {"root ::= \"x\" never | \"y\"\nnever ::= \"z\" never", {"y"}, {"x", "xz"}},
      {"root ::= [\\u0080-\\U0010FFFF]+",
       {"\u0080", "\uD7FF\uE000\U0010FFFF", "\u07ff\u0800\uffff\U00010000"},
       {"a", "\x7f", "\xC0\x80"}},
  };
  for (const Case& c : cases) {
    const auto grammar = compiled(kGbnf, c.grammar);
    ASSERT_TRUE(grammar);
    for (const std::string& text : c.good)
      EXPECT_TRUE(matches(grammar, text)) << c.grammar << "\n" << text.substr(0, 100);
    for (const std::string& text : c.bad)
      EXPECT_FALSE(matches(grammar, text)) << c.grammar << "\n" << text.substr(0, 100);
  }
}

TEST(Gbnf, EveryPrefixOfAMatchFitsAndABrokenOneStopsAtOnce) {
  const auto grammar = compiled(kGbnf, "root ::= \"<\" [a-z]{3,500} \">\" num?\nnum ::= [0-9]+");
  EXPECT_EQ(fitting(grammar, "<abc>12x"), 7u);
  EXPECT_EQ(fitting(grammar, "<ab>"), 3u);
  EXPECT_EQ(fitting(grammar, "<" + std::string(501, 'a')), 501u);
}

TEST(Gbnf, ErrorsNameTheLine) {
  const std::pair<const char*, const char*> cases[] = {
      {"", "no rule root"},
      {"a ::= \"x\"", "no rule root"},
      {"root ::= \"x", "line 1"},
      {"root ::= a\n", "the rule a is used, but not defined"},
      {"root ::= y w z x b", "the rule y is used, but not defined"},  // the first, whatever their names
      {"root ::= \"x\"\n\n)", "line 3"},
      {"root ::= \"x\"\nroot ::= \"y\"", "defined twice"},
      {"root ::= (\"x\"", "has no )"},
      {"root ::= [a-", "ends inside"},
      {"root ::= [z-a]", "down to"},
      {"root ::= \"a\"{3,1}", "impossible"},
      {"root ::= \"a\"{x}", "looks like"},
      {"root ::= \"a\"{9999999999}", "more than"},
      {"root ::= \"\\q\"", "no escape"},
      {"root ::= \"\\xZZ\"", "hexadecimal"},
      {"root ::= \"\\uD800\"", "no character"},
      {"root := \"a\"", "::="},
      {"root ::= root \"a\" | \"b\"", "left recursion"},
      {"root ::= a | \"z\"\na ::= b? root \"x\"\nb ::= \"y\"", "left recursion"},
      {"root ::= \"a\" root", "no text can ever match"},
      {"root ::= []", "no text can ever match"},
      {"root ::= \"\xff\"", "byte 10 is not UTF-8"},
      {"root ::= <tool>", "unexpected '<'"},
      {"root ::= (\"a\"?){3,100000}", "may be empty"},
      {"root ::= a{1000} a{1000}\na ::= b{1000}\nb ::= (\"x\" | \"y\" \"z\" c)\nc ::= ", ""},
  };
  for (const auto& [grammar, message] : cases) {
    const std::string error = error_of(kGbnf, grammar);
    if (*message == 0) continue;
    EXPECT_NE(error.find(message), std::string::npos) << grammar << "\n" << error;
  }
  EXPECT_NE(error_of(kGbnf, "root ::= " + std::string(5000, '(') + "\"a\"").find("nested"), std::string::npos);
}

double cpu_seconds() {
  timespec t{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
  return static_cast<double>(t.tv_sec) + 1e-9 * static_cast<double>(t.tv_nsec);
}

// Whatever the source, compiling and a few masks end soon.
void try_source(GrammarSource::Kind kind, const std::string& text) {
  const double begin = cpu_seconds();
  const auto grammar = compile(kind, text);
  if (grammar) {
    std::vector<uint64_t> bits(small_tokens()->words());
    GrammarState state(*grammar);
    std::mt19937 random(1);
    for (int i = 0; i < 5 && state.mask(bits); ++i) {
      std::vector<int32_t> allowed;
      for (int32_t t = 0; t < small_tokens()->vocab_size(); ++t) {
        if (bit(bits, t)) allowed.push_back(t);
      }
      ASSERT_TRUE(state.accept(allowed[random() % allowed.size()])) << text;
    }
  } else {
    EXPECT_FALSE(grammar.error().message.empty());
  }
  EXPECT_LT(cpu_seconds() - begin, 2) << text.substr(0, 1000);
}

TEST(Gbnf, HostileGrammarsEndSoon) {
  std::string nested = "root ::= ";
  for (int i = 0; i < 90; ++i) nested += "(";
  nested += "\"a\"";
  for (int i = 0; i < 90; ++i) nested += "+)";
  std::string doubling = "root ::= r0\n";
  for (int i = 0; i < 60; ++i) {
    doubling += fmt::format("r{} ::= r{} \"a\" | r{} \"b\" | s{}\ns{} ::= r{} \"c\"\n", i, i + 1, i + 1, i, i, i + 1);
  }
  doubling += "r60 ::= \"x\"";
  std::string chain = "root ::= r0\n";
  for (int i = 0; i < 20000; ++i) chain += fmt::format("r{} ::= r{}?\n", i, i + 1);
  chain += "r20000 ::= \"x\"";
  std::string wide = "root ::= (";
  for (int i = 0; i < 500; ++i) wide += fmt::format("w{} | ", i);
  wide += "\"z\")*\n";
  for (int i = 0; i < 500; ++i) wide += fmt::format("w{} ::= [a-z] [a-y]* \"{}\"\n", i, i);
  const std::string sources[] = {
      nested,
      doubling,
      chain,
      wide,
      "root ::= ((((\"a\"{1000}){1000}){1000}){1000}){1000}",
      "root ::= ((((\"a\"?)*)*)*)* \"b\"",
      "root ::= (\"a\" | \"a\" | \"a\")*{1,60}",
      "root ::= \"x\" root \"y\" | \"z\"",
  };
  for (const std::string& source : sources) try_source(kGbnf, source);
}

TEST(Gbnf, RandomSourcesDoNoHarm) {
  std::mt19937 random(7);
  const std::vector<std::string> bits = {"root", "a", "b",    " ::= ", "\n", "\"x\"", "[a-z]", "[^\"]",
                                         "(",    ")", "|",    "*",     "+",  "?",     "{2,3}", "{0,}",
                                         "{70}", " ", "#c\n", "\\",    "\"", "[",     "]",     "."};
  for (int i = 0; i < 3000; ++i) {
    std::string text = random() % 2 ? "root ::= " : "";
    const size_t length = random() % 40;
    for (size_t k = 0; k < length; ++k) text += bits[random() % bits.size()];
    if (random() % 2) text += "\na ::= \"y\" b?\nb ::= [0-9]+ a\n";
    try_source(kGbnf, text);
  }
}

TEST(Gbnf, MasksAreTheAllowedTokens) {
  for (const char* source : {"root ::= [a-z ]{2,200} \".\" | \"{\" [^}]* \"}\"",
                             "root ::= (\"a\" | b)* \"\\n\"\nb ::= [a-d] \"b\"* [\"] c?\nc ::= root",
                             "root ::= ([a-z]+ | [0-9]{70,90}){3,99}", "root ::= [^\\n]{0,300} [\\n] root?"}) {
    expect_masks_along_random_answers(compiled(kGbnf, source), 3, 6, 40);
  }
}

TEST(Gbnf, OnlyCompleteGrammarsEndAndControlTokensNeverFit) {
  const auto tokens = small_tokens();
  const auto grammar = compiled(kGbnf, "root ::= [^x]+ \"x\"");
  const auto end = static_cast<int32_t>(tokens->vocab_size()) - 1;
  const int32_t control = end - 1;
  GrammarState state(grammar);
  EXPECT_FALSE(state.allows(end));
  EXPECT_FALSE(state.allows(control));
  ASSERT_TRUE(state.accept('a'));
  EXPECT_FALSE(state.accept(end));
  GrammarState copy = state;
  ASSERT_TRUE(state.accept('x'));
  EXPECT_TRUE(state.complete());
  EXPECT_TRUE(state.accept(end));
  EXPECT_FALSE(copy.complete());
  EXPECT_FALSE(state.allows(-1));
  EXPECT_FALSE(state.allows(1 << 20));
  std::vector<uint64_t> bits(tokens->words() + 2, ~uint64_t{0});
  EXPECT_TRUE(state.mask(bits));
  for (int32_t t = 0; t < static_cast<int32_t>(64 * bits.size()); ++t) EXPECT_EQ(bit(bits, t), t == end) << t;
}

}  // namespace
}  // namespace hearth
