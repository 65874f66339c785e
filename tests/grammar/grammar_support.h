// Vocabularies and helpers of the grammar tests.
#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <random>
#include <string>
#include <string_view>
#include <vector>

#include "text/grammar/grammar.h"

namespace hearth {

// All single bytes, then words that cross the places where grammars are tricky, then a control token and the end.
inline std::vector<std::string> small_vocabulary() {
  std::vector<std::string> tokens;
  for (int b = 0; b < 255; ++b) tokens.emplace_back(1, static_cast<char>(b));
  for (const char* word :
       {"\", \"",       "\": ",        "\":",          "{\"",    "\"}",   "}}",    "], [",     "\"]",
        "},",           "}]",          ",\"",          "true",   "false", "null",  "12",       "0.",
        "e+",           "-1",          "the",          " cat",   "\\n",   "\\u00", "\xC3\xA9", "\xE2\x82",
        "\xAC\xF0\x9F", "\x98\x80",    "\n  ",         "\n    ", "  ",    "[[",    "[]",       "{}",
        "ab",           "abc",         "abcd",         "\": \"", "\": [", "\": {", "name",     "\"name",
        "value",        "<tool_call>", "</tool_call>", "\n<",    "\"a\"", "a\": 1"}) {
    tokens.emplace_back(word);
  }
  return tokens;
}

inline constexpr std::string_view kControlToken = "[TOOL_CALLS]";

inline std::shared_ptr<const grammar::TokenTrie> small_tokens() {
  static const auto tokens = [] {
    std::vector<std::string> bytes = small_vocabulary();
    bytes.push_back(grammar::kControlByte + std::string(kControlToken));
    bytes.emplace_back("");
    const auto end = static_cast<int32_t>(bytes.size()) - 1;
    return std::make_shared<const grammar::TokenTrie>(std::move(bytes), std::vector<int32_t>{end});
  }();
  return tokens;
}

inline Result<std::shared_ptr<const Grammar>> compile(GrammarSource::Kind kind, std::string text,
                                                      std::string_view dialect = "hermes") {
  return compile_grammar({.kind = kind, .text = std::move(text)}, dialect, small_tokens());
}

inline std::shared_ptr<const Grammar> compiled(GrammarSource::Kind kind, std::string text,
                                               std::string_view dialect = "hermes") {
  auto grammar = compile(kind, text, dialect);
  EXPECT_TRUE(grammar) << (grammar ? "" : grammar.error().message) << "\n" << text.substr(0, 2000);
  return grammar ? *grammar : nullptr;
}

inline std::string error_of(GrammarSource::Kind kind, std::string text, std::string_view dialect = "hermes") {
  const auto grammar = compile(kind, std::move(text), dialect);
  if (grammar) return {};
  EXPECT_EQ(grammar.error().code, ErrorCode::kUsage) << grammar.error().message;
  return grammar.error().message;
}

inline bool matches(const std::shared_ptr<const Grammar>& grammar, std::string_view text) {
  if (!grammar) return false;
  GrammarState state(grammar);
  return state.accept_bytes(text) && state.complete();
}

// How many bytes at the beginning of the text fit.
inline size_t fitting(const std::shared_ptr<const Grammar>& grammar, std::string_view text) {
  GrammarState state(grammar);
  for (size_t i = 0; i < text.size(); ++i) {
    if (!state.accept_bytes(text.substr(i, 1))) return i;
  }
  return text.size();
}

inline bool bit(const std::vector<uint64_t>& bits, int32_t token) {
  return bits[static_cast<size_t>(token) / 64] >> (token % 64) & 1;
}

inline void expect_mask_equals_brute_force(GrammarState& state, const grammar::TokenTrie& tokens) {
  std::vector<uint64_t> bits(tokens.words());
  state.mask(bits);
  for (int32_t token = 0; token < tokens.vocab_size(); ++token) {
    ASSERT_EQ(bit(bits, token), state.allows(token)) << "token " << token << " '" << tokens.bytes(token) << "'";
  }
}

// Along random answers, from each state on.
inline void expect_masks_along_random_answers(const std::shared_ptr<const Grammar>& grammar, uint32_t seed, int answers,
                                              int most_tokens) {
  std::mt19937 random(seed);
  for (int run = 0; run < answers; ++run) {
    GrammarState state(grammar);
    for (int i = 0; i < most_tokens; ++i) {
      expect_mask_equals_brute_force(state, *small_tokens());
      std::vector<int32_t> allowed;
      for (int32_t t = 0; t < small_tokens()->vocab_size(); ++t) {
        if (state.allows(t) && !small_tokens()->is_end(t)) allowed.push_back(t);
      }
      if (allowed.empty()) break;
      ASSERT_TRUE(state.accept(allowed[random() % allowed.size()]));
    }
  }
}

}  // namespace hearth
