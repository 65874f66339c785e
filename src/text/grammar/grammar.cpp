#include "text/grammar/grammar.h"

#include <algorithm>
#include <utility>

#include "text/grammar/gbnf.h"
#include "text/grammar/json_schema.h"
#include "text/grammar/tool_calls.h"

namespace hearth {
namespace {

using grammar::Matcher;

// What answers of one grammar build together, before it begins anew.
constexpr size_t kMaxWorkBytes = size_t{32} << 20;
constexpr size_t kMaxSourceBytes = size_t{16} << 20;

Result<grammar::Rules> make_rules(const GrammarSource& source, std::string_view dialect,
                                  const grammar::TokenTrie& tokens) {
  if (source.text.size() > kMaxSourceBytes) {
    return fail(ErrorCode::kUsage, "compile a grammar: its source has {} bytes; it may have {}", source.text.size(),
                kMaxSourceBytes);
  }
  switch (source.kind) {
    case GrammarSource::Kind::kJson:
      return grammar::json_schema_rules("true");
    case GrammarSource::Kind::kJsonObject:
      return grammar::json_schema_rules(R"({"type": "object"})");
    case GrammarSource::Kind::kJsonSchema:
      return grammar::json_schema_rules(source.text, source.wanted);
    case GrammarSource::Kind::kToolCalls:
      return grammar::tool_call_rules(source.text, dialect, tokens, source.wanted);
    case GrammarSource::Kind::kGbnf:
      return grammar::gbnf_rules(source.text);
  }
  return fail(ErrorCode::kInternal, "compile a grammar: kind {}", static_cast<int>(source.kind));
}

}  // namespace

Grammar::Grammar(grammar::Automaton automaton, std::shared_ptr<const grammar::TokenTrie> trie)
    : automaton_(std::move(automaton)), trie_(std::move(trie)) {}

std::shared_ptr<Grammar::Work> Grammar::work() const {
  std::lock_guard lock(mutex_);
  if (!work_) work_ = std::make_shared<Work>(automaton_, *trie_);
  return work_;
}

std::shared_ptr<Grammar::Work> Grammar::renewed(const std::shared_ptr<Work>& old) const {
  std::lock_guard lock(mutex_);
  if (work_ == old) {
    std::lock_guard work_lock(old->mutex);
    if (old->matcher.size_bytes() <= kMaxWorkBytes) return old;
    work_ = std::make_shared<Work>(automaton_, *trie_);
  }
  return work_;
}

GrammarState::GrammarState(std::shared_ptr<const Grammar> grammar)
    : grammar_(std::move(grammar)), work_(grammar_->work()), config_(work_->matcher.start()) {}

void GrammarState::renew() {
  const auto work = grammar_->renewed(work_);
  if (work == work_) return;
  std::scoped_lock lock(work->mutex, work_->mutex);
  config_ = work->matcher.adopt(work_->matcher, config_);
  work_ = work;
}

bool GrammarState::allows(int32_t token) const {
  GrammarState copy = *this;
  return copy.accept(token);
}

bool GrammarState::accept(int32_t token) {
  if (grammar_->tokens().is_end(token)) return complete();
  const std::string_view bytes = grammar_->tokens().bytes(token);
  return !bytes.empty() && accept_bytes(bytes);
}

bool GrammarState::accept_bytes(std::string_view bytes) {
  renew();
  std::lock_guard lock(work_->mutex);
  const Matcher::Config next = work_->matcher.step(config_, bytes);
  if (next == Matcher::kDead) return false;
  config_ = next;
  return true;
}

bool GrammarState::complete() const {
  std::lock_guard lock(work_->mutex);
  return work_->matcher.complete(config_);
}

bool GrammarState::mask(std::span<uint64_t> bits) {
  renew();
  const grammar::TokenTrie& tokens = grammar_->tokens();
  std::ranges::fill(bits, 0);
  std::lock_guard lock(work_->mutex);
  work_->matcher.mask(config_, bits.first(tokens.words()));
  if (work_->matcher.complete(config_)) {
    for (int32_t token : tokens.ends()) bits[static_cast<size_t>(token) / 64] |= uint64_t{1} << (token % 64);
  }
  return std::ranges::any_of(bits, [](uint64_t word) { return word != 0; });
}

Result<std::shared_ptr<const Grammar>> compile_grammar(const GrammarSource& source, std::string_view dialect,
                                                       std::shared_ptr<const grammar::TokenTrie> tokens) {
  return guarded("compile a grammar", [&]() -> Result<std::shared_ptr<const Grammar>> {
    HEARTH_ASSIGN(grammar::Rules rules, make_rules(source, dialect, *tokens));
    rules.wanted = source.wanted;
    HEARTH_ASSIGN(grammar::Automaton automaton, grammar::build_automaton(rules));
    for (const grammar::Run& run : automaton.runs) {
      if (rules.cancelled()) return grammar::nobody_waits();
      tokens->run_table(automaton.bodies[run.body], run.tail, 0);
    }
    return std::make_shared<const Grammar>(std::move(automaton), std::move(tokens));
  });
}

}  // namespace hearth
