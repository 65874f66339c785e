#include "text/grammar/grammar_cache.h"

#include <algorithm>
#include <utility>

namespace hearth {
namespace {

constexpr size_t kMaxEntries = 64;

}  // namespace

std::shared_ptr<const grammar::TokenTrie> GrammarCache::tokens() {
  std::call_once(tokens_once_, [&] { tokens_ = grammar::TokenTrie::create(tokenizer_); });
  return tokens_;
}

std::shared_ptr<const Grammar> GrammarCache::find(const GrammarSource& source, std::string_view dialect) {
  std::lock_guard lock(mutex_);
  const auto it = std::ranges::find_if(entries_, [&](const Entry& e) {
    return e.source.kind == source.kind && e.dialect == dialect && e.source.text == source.text;
  });
  if (it == entries_.end()) return nullptr;
  entries_.splice(entries_.begin(), entries_, it);
  return it->grammar;
}

size_t GrammarCache::bytes() const {
  std::lock_guard lock(mutex_);
  return bytes_;
}

void GrammarCache::keep(Entry entry) {
  std::lock_guard lock(mutex_);
  bytes_ += entry.bytes;
  entries_.push_front(std::move(entry));
  while (entries_.size() > 1 && (bytes_ > kMaxBytes || entries_.size() > kMaxEntries)) {
    bytes_ -= entries_.back().bytes;
    entries_.pop_back();
  }
}

Result<std::shared_ptr<const Grammar>> GrammarCache::compile(const GrammarSource& source, std::string_view dialect) {
  if (auto known = find(source, dialect)) return known;
  return guarded("compile a grammar", [&]() -> Result<std::shared_ptr<const Grammar>> {
    HEARTH_ASSIGN(auto grammar, compile_grammar(source, dialect, tokens()));
    const size_t bytes = source.text.size() + grammar->size_bytes();
    keep({.source = {.kind = source.kind, .text = source.text},
          .dialect = std::string(dialect),
          .grammar = grammar,
          .bytes = bytes});
    return grammar;
  });
}

}  // namespace hearth
