// Follows a grammar's automaton byte by byte and finds the tokens that may come next. It builds what it needs of the
// deterministic automaton while it goes and keeps it, so that a place that was visited is cheap the next time.
//
// A stack is a linked list of frames: where a rule is now, below it where its caller goes on. A configuration is the
// set of all stacks that the text so far allows. A stack that ended its rule with nothing below it has matched.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "text/grammar/automaton.h"
#include "text/grammar/token_trie.h"

namespace hearth::grammar {

// Ids in a table from hashes to what has them; the caller keeps the values.
class InternTable {
 public:
  // The id of the equal value, or `next` after it was put in.
  template <class Equal>
  uint32_t find_or_insert(uint64_t hash, uint32_t next, Equal&& equal);

 private:
  struct Slot {
    uint32_t hash = 0;
    uint32_t id = UINT32_MAX;
  };
  void grow();
  std::vector<Slot> slots_;
  size_t used_ = 0;
};

class Matcher {
 public:
  using Config = uint32_t;
  static constexpr Config kDead = 0;

  Matcher(const Automaton& automaton, const TokenTrie& trie);

  Config start() const { return start_; }
  Config step(Config config, uint8_t byte);
  // kDead when the bytes do not fit.
  Config step(Config config, std::string_view bytes);
  bool complete(Config config) const { return configs_[config].matched; }

  // Sets the bits of the tokens that `config` allows, ends of generation apart. `bits` has TokenTrie::words() words.
  void mask(Config config, std::span<uint64_t> bits);

  // The same configuration of another matcher of the same automaton.
  Config adopt(const Matcher& other, Config config);

  // What was built so far.
  size_t size_bytes() const;

 private:
  using NodeId = uint32_t;
  static constexpr NodeId kBottom = 0;

  enum class Kind : uint8_t { kStates, kRun, kRepeat };
  struct Frame {
    Kind kind = Kind::kStates;
    uint8_t run_state = 0;  // kRun: of the body
    uint16_t depth = 0;
    uint32_t id = 0;    // of the set, the run or the repetition
    int32_t count = 0;  // kRun: characters begun; kRepeat: rounds begun; without an upper limit it stops at `min`
    NodeId below = kBottom;
    bool operator==(const Frame&) const = default;
  };

  // Calls of one set, those of the same target together; `back` is the set behind the call.
  struct Call {
    State::Kind kind;
    uint32_t target;
    uint32_t back;
  };
  // States of one rule that the same stack can be in.
  struct StateSet {
    uint32_t begin = 0, bytes_end = 0, end = 0;  // in set_states_: kByte first, then calls
    bool accepts = false;
    bool calls_known = false;
    uint32_t calls_begin = 0, calls_end = 0;  // in calls_
    int32_t index = -1;                       // in indices_, for large sets
    int32_t tokens = -1;                      // in local_
  };
  // The states that each first byte leads to.
  struct ByteIndex {
    std::array<uint32_t, 257> begin;
    std::vector<StateId> targets;
  };
  // The tokens that a set allows by itself, and the places in the trie where its rule may end.
  struct LocalTokens {
    std::vector<uint64_t> bits;   // or
    std::vector<int32_t> tokens;  // when they are few
    std::vector<uint32_t> ends;
  };
  struct Configuration {
    uint32_t begin = 0, end = 0;  // in config_nodes_
    bool matched = false;
    uint8_t steps = 0;   // taken so far, until it gets a table
    int32_t table = -1;  // in tables_
  };
  using Table = std::array<Config, 256>;

  uint32_t intern_set();  // of closure_
  void close_over(StateId state);
  void begin_closure();
  uint32_t set_after(const StateSet& set, uint8_t byte);
  uint32_t set_of(StateId state);
  const ByteIndex& index_of(StateSet& set);
  void find_calls(uint32_t set);

  NodeId intern_node(const Frame& frame);
  bool push(Kind kind, uint32_t id, NodeId below);
  void push_states(uint32_t set, NodeId below);
  void push_call(const Call& call, NodeId below);
  void pop_to(NodeId node);
  void begin_expansion();
  Config finish_expansion();
  Config intern_config(bool matched);
  Config compute_step(Config config, uint8_t byte);
  Config below(NodeId node);

  const LocalTokens& local_tokens(uint32_t set);
  void mask_run(const Frame& frame, std::span<uint64_t> bits);
  // Calls `token` for each token below trie node `from` that `config` allows, `end` for each node where it matches.
  template <class OnToken, class OnEnd>
  void walk(Config config, uint32_t from, OnToken&& on_token, OnEnd&& on_end);
  void walk_into(NodeId node, std::span<const uint32_t> from, std::span<uint64_t> bits);

  const Automaton& automaton_;
  const TokenTrie& trie_;
  Config start_ = kDead;

  std::vector<StateSet> sets_;
  std::vector<StateId> set_states_;
  std::vector<Call> calls_;
  std::vector<ByteIndex> indices_;
  std::vector<LocalTokens> local_;
  InternTable set_table_;

  std::vector<Frame> nodes_;
  InternTable node_table_;

  std::vector<Configuration> configs_;
  std::vector<NodeId> config_nodes_;
  std::vector<Table> tables_;
  InternTable config_table_;

  size_t local_bytes_ = 0;
  int64_t work_ = 0;  // done for the mask at hand

  // Scratch.
  std::vector<uint32_t> state_stamps_;
  uint32_t state_stamp_ = 0;
  std::vector<StateId> closure_, closure_work_;
  bool closure_accepts_ = false;
  std::vector<uint32_t> node_stamps_;
  uint32_t node_stamp_ = 0;
  std::vector<NodeId> expand_work_, expanded_;
  bool expanded_matched_ = false;
  std::array<Config, TokenTrie::kMaxTokenBytes + 1> path_{};
  std::vector<uint32_t> exits_;
  std::vector<uint64_t> words_;
  LocalTokens unfinished_;
};

}  // namespace hearth::grammar
