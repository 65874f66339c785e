#include "text/grammar/matcher.h"

#include <algorithm>
#include <utility>

#include "base/check.h"

namespace hearth::grammar {
namespace {

// Beyond these limits stacks are dropped: less is allowed then, never more.
constexpr uint16_t kMaxDepth = 1000;
constexpr size_t kMaxStacks = 256;
constexpr int64_t kMaxExpansion = 8192;  // stacks looked at to find those
// Stack steps for one mask, about 0.3 s; a grammar of JSON needs less than a tenth of it. The tokens that were not
// looked at are not allowed.
constexpr int64_t kMaxWork = 6'000'000;

constexpr uint8_t kStepsBeforeTable = 16;
constexpr size_t kLargeSet = 32;  // states, from which on a set gets an index

uint64_t mix(uint64_t hash, uint64_t value) {
  hash = (hash ^ value) * 0x9E3779B97F4A7C15;
  return hash ^ (hash >> 29);
}

void set_bit(std::span<uint64_t> bits, int32_t token) {
  bits[static_cast<size_t>(token) / 64] |= uint64_t{1} << (token % 64);
}

int32_t counted(int32_t count, int32_t min, int32_t max) {
  return max == kUnbounded ? std::min(count + 1, min) : count + 1;
}

}  // namespace

template <class Equal>
uint32_t InternTable::find_or_insert(uint64_t hash, uint32_t next, Equal&& equal) {
  if (2 * (used_ + 1) > slots_.size()) grow();
  const auto tag = static_cast<uint32_t>(hash >> 32);
  const size_t mask = slots_.size() - 1;
  for (size_t i = tag & mask;; i = (i + 1) & mask) {
    Slot& slot = slots_[i];
    if (slot.id == UINT32_MAX) {
      slot = {tag, next};
      ++used_;
      return next;
    }
    if (slot.hash == tag && equal(slot.id)) return slot.id;
  }
}

void InternTable::grow() {
  std::vector<Slot> old(std::max<size_t>(64, 2 * slots_.size()));
  old.swap(slots_);
  const size_t mask = slots_.size() - 1;
  for (const Slot& slot : old) {
    if (slot.id == UINT32_MAX) continue;
    size_t i = slot.hash & mask;
    while (slots_[i].id != UINT32_MAX) i = (i + 1) & mask;
    slots_[i] = slot;
  }
}

Matcher::Matcher(const Automaton& automaton, const TokenTrie& trie) : automaton_(automaton), trie_(trie) {
  state_stamps_.resize(automaton.states.size());
  nodes_.push_back({});
  node_stamps_.push_back(0);
  begin_expansion();
  HEARTH_CHECK(finish_expansion() == kDead, "the first configuration");
  begin_expansion();
  push_states(set_of(automaton.start), kBottom);
  start_ = finish_expansion();
}

// ---- sets of states ----

void Matcher::begin_closure() {
  ++state_stamp_;
  closure_.clear();
  closure_accepts_ = false;
}

void Matcher::close_over(StateId first) {
  closure_work_.push_back(first);
  while (!closure_work_.empty()) {
    const StateId id = closure_work_.back();
    closure_work_.pop_back();
    if (state_stamps_[id] == state_stamp_) continue;
    state_stamps_[id] = state_stamp_;
    const State& state = automaton_.states[id];
    if (state.kind == State::Kind::kSplit) {
      closure_work_.push_back(state.b);
      closure_work_.push_back(state.a);
    } else if (state.kind == State::Kind::kAccept) {
      closure_accepts_ = true;
    } else {
      closure_.push_back(id);
    }
  }
}

uint32_t Matcher::intern_set() {
  std::ranges::sort(closure_, {},
                    [&](StateId id) { return std::pair(automaton_.states[id].kind != State::Kind::kByte, id); });
  uint64_t hash = closure_accepts_ ? 1 : 2;
  for (StateId id : closure_) hash = mix(hash, id);
  const auto next = static_cast<uint32_t>(sets_.size());
  const uint32_t id = set_table_.find_or_insert(hash, next, [&](uint32_t other) {
    const StateSet& set = sets_[other];
    return set.accepts == closure_accepts_ &&
           std::ranges::equal(closure_, std::span(set_states_).subspan(set.begin, set.end - set.begin));
  });
  if (id != next) return id;
  StateSet set{.accepts = closure_accepts_};
  set.begin = static_cast<uint32_t>(set_states_.size());
  set.bytes_end = set.begin;
  for (StateId state : closure_) {
    if (automaton_.states[state].kind == State::Kind::kByte) ++set.bytes_end;
    set_states_.push_back(state);
  }
  set.end = static_cast<uint32_t>(set_states_.size());
  sets_.push_back(set);
  return id;
}

uint32_t Matcher::set_of(StateId state) {
  begin_closure();
  close_over(state);
  return intern_set();
}

const Matcher::ByteIndex& Matcher::index_of(StateSet& set) {
  if (set.index < 0) {
    ByteIndex index{};
    const auto states = std::span(set_states_).subspan(set.begin, set.bytes_end - set.begin);
    for (StateId id : states) {
      const State& state = automaton_.states[id];
      for (int b = state.lo; b <= state.hi; ++b) ++index.begin[static_cast<size_t>(b) + 1];
    }
    for (size_t b = 0; b < 256; ++b) index.begin[b + 1] += index.begin[b];
    index.targets.resize(index.begin[256]);
    std::array<uint32_t, 257> next = index.begin;
    for (StateId id : states) {
      const State& state = automaton_.states[id];
      for (int b = state.lo; b <= state.hi; ++b) index.targets[next[static_cast<size_t>(b)]++] = state.a;
    }
    local_bytes_ += sizeof(ByteIndex) + index.targets.size() * sizeof(StateId);
    set.index = static_cast<int32_t>(indices_.size());
    indices_.push_back(std::move(index));
  }
  return indices_[static_cast<size_t>(set.index)];
}

// The set behind `byte`; UINT32_MAX: there is none.
uint32_t Matcher::set_after(const StateSet& set, uint8_t byte) {
  begin_closure();
  if (set.bytes_end - set.begin >= kLargeSet) {
    const ByteIndex& index = index_of(const_cast<StateSet&>(set));
    for (uint32_t i = index.begin[byte]; i < index.begin[byte + 1u]; ++i) close_over(index.targets[i]);
  } else {
    for (uint32_t i = set.begin; i < set.bytes_end; ++i) {
      const State& state = automaton_.states[set_states_[i]];
      if (state.lo <= byte && byte <= state.hi) close_over(state.a);
    }
  }
  if (closure_.empty() && !closure_accepts_) return UINT32_MAX;
  return intern_set();
}

void Matcher::find_calls(uint32_t id) {
  if (sets_[id].calls_known) return;
  std::vector<std::pair<std::pair<State::Kind, uint32_t>, StateId>> found;  // target, behind it
  for (uint32_t i = sets_[id].bytes_end; i < sets_[id].end; ++i) {
    const State& state = automaton_.states[set_states_[i]];
    found.push_back({{state.kind, state.a}, state.b});
  }
  std::ranges::sort(found);
  std::vector<Call> calls;
  for (size_t i = 0; i < found.size();) {
    begin_closure();
    const auto target = found[i].first;
    for (; i < found.size() && found[i].first == target; ++i) close_over(found[i].second);
    calls.push_back({target.first, target.second, intern_set()});
  }
  StateSet& set = sets_[id];
  set.calls_known = true;
  set.calls_begin = static_cast<uint32_t>(calls_.size());
  calls_.insert(calls_.end(), calls.begin(), calls.end());
  set.calls_end = static_cast<uint32_t>(calls_.size());
}

// ---- stacks ----

Matcher::NodeId Matcher::intern_node(const Frame& frame) {
  uint64_t hash = mix(static_cast<uint64_t>(frame.kind) << 8 | frame.run_state, frame.id);
  hash = mix(mix(hash, static_cast<uint32_t>(frame.count)), frame.below);
  const auto next = static_cast<NodeId>(nodes_.size());
  const NodeId id = node_table_.find_or_insert(hash, next, [&](uint32_t other) { return nodes_[other] == frame; });
  if (id == next) {
    nodes_.push_back(frame);
    node_stamps_.push_back(0);
  }
  return id;
}

void Matcher::begin_expansion() {
  ++node_stamp_;
  expand_work_.clear();
  expanded_.clear();
  expanded_matched_ = false;
}

void Matcher::pop_to(NodeId node) { expand_work_.push_back(node); }

void Matcher::push_states(uint32_t set, NodeId below) {
  const StateSet& s = sets_[set];
  // The rule has nothing left to do: what is below goes on, and calls in last place need no frame.
  if (s.begin == s.end && s.accepts) return pop_to(below);
  if (nodes_[below].depth >= kMaxDepth) return;
  pop_to(intern_node({.depth = static_cast<uint16_t>(nodes_[below].depth + 1), .id = set, .below = below}));
}

void Matcher::push_call(const Call& call, NodeId below) {
  const StateSet& back = sets_[call.back];
  if (back.begin != back.end || !back.accepts) {
    if (nodes_[below].depth >= kMaxDepth) return;
    below = intern_node({.depth = static_cast<uint16_t>(nodes_[below].depth + 1), .id = call.back, .below = below});
  }
  if (nodes_[below].depth >= kMaxDepth) return;
  const auto depth = static_cast<uint16_t>(nodes_[below].depth + 1);
  switch (call.kind) {
    case State::Kind::kCall:
      return push_states(set_of(automaton_.rule_starts[call.target]), below);
    case State::Kind::kRun:
      return pop_to(intern_node({.kind = Kind::kRun, .depth = depth, .id = call.target, .below = below}));
    case State::Kind::kRepeat:
      return pop_to(intern_node({.kind = Kind::kRepeat, .depth = depth, .id = call.target, .below = below}));
    default:
      HEARTH_CHECK(false, "a call of kind {}", static_cast<int>(call.kind));
  }
}

// Follows everything that needs no byte, from the stacks in expand_work_ on.
Matcher::Config Matcher::finish_expansion() {
  for (int64_t looked_at = 0; !expand_work_.empty() && looked_at < kMaxExpansion; ++looked_at) {
    const NodeId id = expand_work_.back();
    expand_work_.pop_back();
    if (id == kBottom) {
      expanded_matched_ = true;
      continue;
    }
    if (node_stamps_[id] == node_stamp_) continue;
    node_stamps_[id] = node_stamp_;
    const Frame frame = nodes_[id];
    if (frame.kind == Kind::kStates) {
      find_calls(frame.id);
      const StateSet set = sets_[frame.id];
      if (set.begin != set.bytes_end) expanded_.push_back(id);
      if (set.accepts) pop_to(frame.below);
      for (uint32_t i = set.calls_begin; i < set.calls_end; ++i) push_call(calls_[i], frame.below);
    } else if (frame.kind == Kind::kRun) {
      const Run& run = automaton_.runs[frame.id];
      const bool may_end = frame.run_state == 0 && frame.count >= run.min;
      const bool may_go_on = frame.run_state != 0 || run.max == kUnbounded || frame.count < run.max;
      if (may_go_on || run.tail >= 0) expanded_.push_back(id);
      if (may_end && run.tail < 0) pop_to(frame.below);
    } else {
      const Repetition& repetition = automaton_.repetitions[frame.id];
      if (frame.count >= repetition.min) pop_to(frame.below);
      if (repetition.max == kUnbounded || frame.count < repetition.max) {
        Frame next = frame;
        next.count = counted(frame.count, repetition.min, repetition.max);
        push_states(set_of(repetition.start), intern_node(next));
      }
    }
    if (expanded_.size() >= kMaxStacks) break;
  }
  return intern_config(expanded_matched_);
}

Matcher::Config Matcher::intern_config(bool matched) {
  uint64_t hash = matched ? 1 : 2;
  for (NodeId id : expanded_) hash = mix(hash, id);
  const auto next = static_cast<Config>(configs_.size());
  const Config id = config_table_.find_or_insert(hash, next, [&](uint32_t other) {
    const Configuration& config = configs_[other];
    return config.matched == matched &&
           std::ranges::equal(expanded_, std::span(config_nodes_).subspan(config.begin, config.end - config.begin));
  });
  if (id != next) return id;
  Configuration config{.matched = matched};
  config.begin = static_cast<uint32_t>(config_nodes_.size());
  config_nodes_.insert(config_nodes_.end(), expanded_.begin(), expanded_.end());
  config.end = static_cast<uint32_t>(config_nodes_.size());
  configs_.push_back(config);
  return id;
}

Matcher::Config Matcher::compute_step(Config id, uint8_t byte) {
  begin_expansion();
  const Configuration config = configs_[id];
  for (uint32_t i = config.end; i-- > config.begin;) {  // the work list is a stack: the first comes out first
    const Frame frame = nodes_[config_nodes_[i]];
    if (frame.kind == Kind::kStates) {
      const uint32_t set = set_after(sets_[frame.id], byte);
      if (set != UINT32_MAX) push_states(set, frame.below);
      continue;
    }
    const Run& run = automaton_.runs[frame.id];
    if (frame.run_state == 0 && run.tail == byte) {
      if (frame.count >= run.min) pop_to(frame.below);
      continue;
    }
    const uint8_t next = automaton_.bodies[run.body].next[frame.run_state][byte];
    if (next == RunBody::kDead) continue;
    Frame moved = frame;
    moved.run_state = next;
    if (frame.run_state == 0) {
      if (run.max != kUnbounded && frame.count >= run.max) continue;
      moved.count = counted(frame.count, run.min, run.max);
    }
    pop_to(intern_node(moved));
  }
  return finish_expansion();
}

Matcher::Config Matcher::step(Config id, uint8_t byte) {
  Configuration& config = configs_[id];
  if (config.begin == config.end) return kDead;
  if (config.table < 0) {
    if (++config.steps < kStepsBeforeTable) return compute_step(id, byte);
    config.table = static_cast<int32_t>(tables_.size());
    tables_.emplace_back().fill(UINT32_MAX);
  }
  const auto table = static_cast<size_t>(config.table);
  if (tables_[table][byte] == UINT32_MAX) {
    const Config next = compute_step(id, byte);
    tables_[table][byte] = next;
  }
  return tables_[table][byte];
}

Matcher::Config Matcher::step(Config config, std::string_view bytes) {
  for (char c : bytes) {
    config = step(config, static_cast<uint8_t>(c));
    if (config == kDead) break;
  }
  return config;
}

Matcher::Config Matcher::below(NodeId node) {
  begin_expansion();
  pop_to(node);
  return finish_expansion();
}

Matcher::Config Matcher::adopt(const Matcher& other, Config config) {
  const Configuration& theirs = other.configs_[config];
  std::vector<NodeId> nodes;
  std::vector<NodeId> chain;
  for (uint32_t i = theirs.begin; i < theirs.end; ++i) {
    chain.clear();
    for (NodeId n = other.config_nodes_[i]; n != kBottom; n = other.nodes_[n].below) chain.push_back(n);
    NodeId below = kBottom;
    for (size_t c = chain.size(); c-- > 0;) {
      Frame frame = other.nodes_[chain[c]];
      if (frame.kind == Kind::kStates) {
        const StateSet& set = other.sets_[frame.id];
        begin_closure();
        closure_.assign(other.set_states_.begin() + set.begin, other.set_states_.begin() + set.end);
        closure_accepts_ = set.accepts;
        frame.id = intern_set();
      }
      frame.below = below;
      below = intern_node(frame);
    }
    nodes.push_back(below);
  }
  expanded_ = std::move(nodes);
  return intern_config(theirs.matched);
}

size_t Matcher::size_bytes() const {
  return sets_.size() * sizeof(StateSet) + set_states_.size() * sizeof(StateId) + calls_.size() * sizeof(Call) +
         nodes_.size() * (sizeof(Frame) + 12) + configs_.size() * (sizeof(Configuration) + 12) +
         config_nodes_.size() * sizeof(NodeId) + tables_.size() * sizeof(Table) + local_bytes_;
}

// ---- tokens ----

template <class OnToken, class OnEnd>
void Matcher::walk(Config config, uint32_t from, OnToken&& on_token, OnEnd&& on_end) {
  const auto nodes = trie_.nodes();
  const auto sorted = trie_.sorted_tokens();
  path_[nodes[from].depth] = config;
  for (uint32_t i = from + 1; i < nodes[from].end && work_ < kMaxWork;) {
    const TokenTrie::Node& node = nodes[i];
    const Config before = path_[node.depth - 1u];
    work_ += configs_[before].end - configs_[before].begin;
    const Config next = step(before, node.byte);
    if (next == kDead) {
      i = node.end;
      continue;
    }
    path_[node.depth] = next;
    for (uint32_t t = 0; t < node.token_count; ++t) on_token(sorted[node.first_token + t]);
    if (configs_[next].matched) on_end(i);
    ++i;
  }
}

void Matcher::walk_into(NodeId node, std::span<const uint32_t> from, std::span<uint64_t> bits) {
  if (from.empty()) return;
  const Config config = below(node);
  const auto nodes = trie_.nodes();
  const auto sorted = trie_.sorted_tokens();
  for (uint32_t i : from) {
    for (uint32_t t = 0; t < nodes[i].token_count; ++t) set_bit(bits, sorted[nodes[i].first_token + t]);
    if (nodes[i].end == i + 1) continue;
    walk(
        config, i, [&](int32_t token) { set_bit(bits, token); }, [](uint32_t) {});
  }
}

const Matcher::LocalTokens& Matcher::local_tokens(uint32_t id) {
  if (sets_[id].tokens < 0) {
    // The stack of this set alone, on nothing: what it calls is on stacks of its own.
    begin_expansion();
    expanded_.push_back(intern_node({.depth = 1, .id = id}));
    const Config config = intern_config(false);
    LocalTokens local;
    walk(
        config, TokenTrie::kRoot, [&](int32_t token) { local.tokens.push_back(token); },
        [&](uint32_t node) { local.ends.push_back(node); });
    if (local.tokens.size() * 2 > trie_.words()) {
      local.bits.resize(trie_.words());
      for (int32_t token : local.tokens) set_bit(local.bits, token);
      local.tokens = {};
    }
    if (work_ >= kMaxWork) {  // cut short by what came before: the next time may see all of it
      unfinished_ = std::move(local);
      return unfinished_;
    }
    local_bytes_ += 8 * local.bits.size() + 4 * local.tokens.size() + 4 * local.ends.size() + sizeof(LocalTokens);
    sets_[id].tokens = static_cast<int32_t>(local_.size());
    local_.push_back(std::move(local));
  }
  return local_[static_cast<size_t>(sets_[id].tokens)];
}

void Matcher::mask_run(const Frame& frame, std::span<uint64_t> bits) {
  const Run& run = automaton_.runs[frame.id];
  const auto table = trie_.run_table(automaton_.bodies[run.body], run.tail, frame.run_state);
  const int64_t most = run.max == kUnbounded ? INT64_MAX : run.max - frame.count;  // characters that may begin
  const auto add = [&](const std::vector<uint64_t>& words) {
    for (size_t w = 0; w < words.size(); ++w) bits[w] |= words[w];
  };
  if (most < static_cast<int64_t>(RunTable::kSmall)) {
    add(table->up_to[static_cast<size_t>(most)]);
  } else if (most >= static_cast<int64_t>(table->ends.size()) - 1) {
    add(table->inside);
  } else {
    words_ = table->inside;
    for (size_t i = table->ends[static_cast<size_t>(most)]; i < table->tokens.size(); ++i) {
      const auto token = static_cast<size_t>(table->tokens[i]);
      words_[token / 64] &= ~(uint64_t{1} << (token % 64));
    }
    add(words_);
  }
  exits_.clear();
  const int64_t least = run.min - frame.count;
  for (const RunTable::Exit& exit : table->exits) {
    if (exit.starts <= most && exit.starts >= least) exits_.push_back(exit.node);
  }
  walk_into(frame.below, exits_, bits);
}

void Matcher::mask(Config id, std::span<uint64_t> bits) {
  work_ = 0;
  const Configuration config = configs_[id];
  for (uint32_t i = config.begin; i < config.end; ++i) {
    const Frame frame = nodes_[config_nodes_[i]];
    if (frame.kind == Kind::kRun) {
      mask_run(frame, bits);
      continue;
    }
    const LocalTokens& local = local_tokens(frame.id);
    for (size_t w = 0; w < local.bits.size(); ++w) bits[w] |= local.bits[w];
    for (int32_t token : local.tokens) set_bit(bits, token);
    if (frame.below != kBottom) walk_into(frame.below, local.ends, bits);
  }
}

}  // namespace hearth::grammar
