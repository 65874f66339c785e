// A compiled grammar of one vocabulary, and its state in one answer.
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <span>
#include <string_view>

#include "base/result.h"
#include "hearth/grammar.h"
#include "text/grammar/automaton.h"
#include "text/grammar/matcher.h"
#include "text/grammar/token_trie.h"

namespace hearth {

class Grammar {
 public:
  Grammar(grammar::Automaton automaton, std::shared_ptr<const grammar::TokenTrie> trie);

  const grammar::TokenTrie& tokens() const { return *trie_; }
  // Without what its answers have made of it, which is limited.
  size_t size_bytes() const { return automaton_.size_bytes(); }

 private:
  friend class GrammarState;
  // What the answers build while they go; replaced when it has grown too large.
  struct Work {
    Work(const grammar::Automaton& automaton, const grammar::TokenTrie& trie) : matcher(automaton, trie) {}
    std::mutex mutex;
    grammar::Matcher matcher;  // guarded by mutex
  };
  std::shared_ptr<Work> work() const;
  std::shared_ptr<Work> renewed(const std::shared_ptr<Work>& old) const;

  grammar::Automaton automaton_;
  std::shared_ptr<const grammar::TokenTrie> trie_;
  mutable std::mutex mutex_;
  mutable std::shared_ptr<Work> work_;  // guarded by mutex_
};

// How far an answer is in its grammar. A copy costs two pointers. One thread at a time uses a state; states of the same
// grammar may be used by several.
class GrammarState {
 public:
  explicit GrammarState(std::shared_ptr<const Grammar> grammar);

  // A token that ends generation is allowed when the grammar is complete. Other control tokens are where the grammar
  // names them.
  bool allows(int32_t token) const;
  // False, and nothing changes, when the token is not allowed.
  bool accept(int32_t token);
  bool accept_bytes(std::string_view bytes);
  bool complete() const;
  // As the grammar sees a token; empty for one that no text has.
  std::string_view token_bytes(int32_t token) const { return grammar_->tokens().bytes(token); }
  // Sets the bits of the allowed tokens and clears the others; bits beyond the vocabulary too. False when none is.
  bool mask(std::span<uint64_t> bits);

 private:
  // Moves to the grammar's present work when the old one was given up.
  void renew();

  std::shared_ptr<const Grammar> grammar_;
  std::shared_ptr<Grammar::Work> work_;
  grammar::Matcher::Config config_ = grammar::Matcher::kDead;
};

// Compiles a source. `dialect`: of OutputMarkers, for calls of tools. Errors are kUsage and name the place, or
// kUnsupported for a dialect without a grammar.
Result<std::shared_ptr<const Grammar>> compile_grammar(const GrammarSource& source, std::string_view dialect,
                                                       std::shared_ptr<const grammar::TokenTrie> tokens);

// What a model writes in front of a call, to be found as Constraint::after; empty when there is no sure sign of one.
std::string_view tool_call_opener(std::string_view dialect);

}  // namespace hearth
