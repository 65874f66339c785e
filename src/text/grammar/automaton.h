// The automaton of a grammar: nondeterministic over bytes of UTF-8, with calls of rules and counted repetitions.
//
// A control token takes part under its name behind the byte 0xFF, which no text has: a grammar that wants the token
// itself spells it so, and everything else excludes it.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "base/result.h"
#include "text/grammar/rules.h"

namespace hearth::grammar {

inline constexpr char kControlByte = '\xFF';

using StateId = uint32_t;
inline constexpr StateId kNoState = UINT32_MAX;

struct State {
  enum class Kind : uint8_t {
    kByte,    // a byte from lo to hi, then a
    kSplit,   // nothing, then a or b
    kCall,    // the rule a, then b
    kRun,     // the run a, then b
    kRepeat,  // the repetition a, then b
    kAccept,  // the rule ends
  };
  Kind kind = Kind::kAccept;
  uint8_t lo = 0, hi = 0;
  StateId a = kNoState, b = kNoState;
};

// How one character of a run is spelled: a deterministic automaton over bytes in which the end of a character is the
// start of the next, state 0.
struct RunBody {
  static constexpr uint8_t kDead = 0xFF;
  std::vector<std::array<uint8_t, 256>> next;
  bool operator==(const RunBody&) const = default;
};

// min to max characters, then the byte `tail`, if it has one. Its position is a counter and a state of the body.
struct Run {
  uint32_t body = 0;
  int32_t min = 0, max = kUnbounded;
  int16_t tail = -1;  // no character begins with it
  bool operator==(const Run&) const = default;
};

// The states from `start` to kAccept, min to max times.
struct Repetition {
  StateId start = 0;
  int32_t min = 0, max = kUnbounded;
};

struct Automaton {
  std::vector<State> states;
  std::vector<StateId> rule_starts;  // kNoState: not reachable
  std::vector<RunBody> bodies;
  std::vector<Run> runs;
  std::vector<Repetition> repetitions;
  StateId start = 0;

  size_t size_bytes() const;
};

// kUsage: a rule that begins with itself, a grammar that can never end or that is too large.
Result<Automaton> build_automaton(const Rules& rules);

// The body of a run of JSON string characters; build_automaton makes the same of json_char().
ExprId json_char(Rules& rules);

}  // namespace hearth::grammar
