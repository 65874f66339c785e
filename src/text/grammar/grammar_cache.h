// Compiled grammars of one model, kept by their source.
#pragma once

#include <list>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>

#include "text/grammar/grammar.h"
#include "text/tokenizer.h"

namespace hearth {

// Safe from any thread. The tokenizer outlives it.
class GrammarCache {
 public:
  static constexpr size_t kMaxBytes = size_t{128} << 20;  // of grammars and their sources; the latest stays in any case

  explicit GrammarCache(const Tokenizer& tokenizer) : tokenizer_(tokenizer) {}

  Result<std::shared_ptr<const Grammar>> compile(const GrammarSource& source, std::string_view dialect);
  size_t bytes() const;

 private:
  struct Entry {
    GrammarSource source;
    std::string dialect;
    std::shared_ptr<const Grammar> grammar;
    size_t bytes = 0;
  };
  std::shared_ptr<const grammar::TokenTrie> tokens();
  std::shared_ptr<const Grammar> find(const GrammarSource& source, std::string_view dialect);
  void keep(Entry entry);

  const Tokenizer& tokenizer_;
  std::once_flag tokens_once_;
  std::shared_ptr<const grammar::TokenTrie> tokens_;
  mutable std::mutex mutex_;
  std::list<Entry> entries_;  // the latest first; guarded by mutex_
  size_t bytes_ = 0;          // guarded by mutex_
};

}  // namespace hearth
