#include "text/grammar/automaton.h"

#include <algorithm>
#include <map>
#include <optional>
#include <string_view>
#include <tuple>
#include <utility>

namespace hearth::grammar {
namespace {

using Kind = Expr::Kind;

constexpr size_t kMaxStates = size_t{1} << 20;
// Repetitions of up to that many states become copies; of more, counters.
constexpr int64_t kMaxCopiedStates = 64;
constexpr int32_t kMaxBodyStates = 200;

// A character set as sequences of byte ranges, each one range of characters of the same length.
struct ByteRange {
  uint8_t lo, hi;
};
using ByteSequence = std::vector<ByteRange>;

void append_utf8_ranges(uint32_t first, uint32_t last, std::vector<ByteSequence>& out) {
  static constexpr uint32_t kLongest[] = {0x7F, 0x7FF, 0xFFFF, 0x10FFFF};
  for (uint32_t most : kLongest) {
    if (first <= most && last > most) {
      append_utf8_ranges(first, most, out);
      append_utf8_ranges(most + 1, last, out);
      return;
    }
  }
  // Below the highest byte that differs, both ends must go over whole blocks of continuation bytes.
  for (int bits = 6; bits <= 18 && last > 0x7F; bits += 6) {
    const uint32_t mask = (1u << bits) - 1;
    if ((first & ~mask) == (last & ~mask)) continue;
    if ((first & mask) != 0) {
      append_utf8_ranges(first, first | mask, out);
      append_utf8_ranges((first | mask) + 1, last, out);
      return;
    }
    if ((last & mask) != mask) {
      append_utf8_ranges(first, (last & ~mask) - 1, out);
      append_utf8_ranges(last & ~mask, last, out);
      return;
    }
  }
  const int length = last <= 0x7F ? 1 : last <= 0x7FF ? 2 : last <= 0xFFFF ? 3 : 4;
  static constexpr uint32_t kLead[] = {0, 0, 0xC0, 0xE0, 0xF0};
  ByteSequence bytes;
  for (int i = 0; i < length; ++i) {
    const int shift = 6 * (length - 1 - i);
    const uint32_t lead = i == 0 ? kLead[length] : 0x80;
    const uint32_t mask = i == 0 ? 0xFF : 0x3F;
    bytes.push_back({static_cast<uint8_t>(lead | ((first >> shift) & mask)),
                     static_cast<uint8_t>(lead | ((last >> shift) & mask))});
  }
  out.push_back(std::move(bytes));
}

// For every expression: does a property hold that its parts decide? The smallest solution, in linear time.
class Solver {
 public:
  explicit Solver(const Rules& rules) : rules_(rules), parents_(rules.exprs.size()), users_(rules.rules.size()) {
    bodies_.resize(rules.exprs.size());
    for (size_t r = 0; r < rules.rules.size(); ++r) {
      bodies_[static_cast<size_t>(rules.rules[r].body)].push_back(static_cast<int32_t>(r));
    }
    for (size_t i = 0; i < rules.exprs.size(); ++i) {
      const Expr& e = rules.exprs[i];
      if (e.kind == Kind::kRule) users_[static_cast<size_t>(e.rule)].push_back(static_cast<ExprId>(i));
      for (size_t p = 0; p < e.parts.size(); ++p) {
        if (e.kind == Kind::kFields && (p == 0 || e.bytes[p - 1] == 0)) continue;
        parents_[static_cast<size_t>(e.parts[p])].push_back(static_cast<ExprId>(i));
      }
    }
  }

  // `missing(expr)`: how many notices of its parts an expression needs; 0: it holds already, -1: never.
  template <class F>
  std::vector<bool> solve(F&& missing) {
    std::vector<bool> holds(rules_.exprs.size());
    std::vector<int64_t> left(rules_.exprs.size());
    std::vector<ExprId> queue;
    for (size_t i = 0; i < left.size(); ++i) {
      left[i] = missing(rules_.exprs[i]);
      if (left[i] == 0) queue.push_back(static_cast<ExprId>(i));
    }
    const auto notice = [&](ExprId id) {
      int64_t& n = left[static_cast<size_t>(id)];
      if (n > 0 && --n == 0) queue.push_back(id);
    };
    while (!queue.empty()) {
      const auto id = static_cast<size_t>(queue.back());
      queue.pop_back();
      if (holds[id]) continue;
      holds[id] = true;
      for (ExprId parent : parents_[id]) notice(parent);
      for (int32_t rule : bodies_[id]) {
        for (ExprId user : users_[static_cast<size_t>(rule)]) notice(user);
      }
    }
    return holds;
  }

 private:
  const Rules& rules_;
  std::vector<std::vector<ExprId>> parents_;  // once for each time it is a part
  std::vector<std::vector<ExprId>> users_;    // of each rule
  std::vector<std::vector<int32_t>> bodies_;  // the rules whose body an expression is
};

int64_t required_fields(const Expr& e) { return std::ranges::count(e.bytes, '\1'); }

class Builder {
 public:
  explicit Builder(const Rules& rules) : rules_(rules) {}

  Result<Automaton> build() {
    Solver solver(rules_);
    nullable_ = solver.solve([](const Expr& e) -> int64_t {
      switch (e.kind) {
        case Kind::kBytes:
          return e.bytes.empty() ? 0 : -1;
        case Kind::kSequence:
          return static_cast<int64_t>(e.parts.size());
        case Kind::kChoice:
        case Kind::kRule:
          return 1;
        case Kind::kRepeat:
          return e.min == 0 ? 0 : 1;
        case Kind::kFields:
          return required_fields(e) == 0 ? 0 : -1;
        case Kind::kChars:
        case Kind::kUntil:
          return -1;
      }
      return -1;
    });
    productive_ = solver.solve([](const Expr& e) -> int64_t {
      switch (e.kind) {
        case Kind::kBytes:
        case Kind::kUntil:
          return 0;
        case Kind::kChars:
          return e.chars.empty() ? -1 : 0;
        case Kind::kSequence:
          return static_cast<int64_t>(e.parts.size());
        case Kind::kChoice:
        case Kind::kRule:
          return 1;
        case Kind::kRepeat:
          return e.min == 0 ? 0 : 1;
        case Kind::kFields:
          return required_fields(e);
      }
      return -1;
    });
    const Rules::Rule& root = rules_.rules[static_cast<size_t>(rules_.root)];
    if (!productive_[static_cast<size_t>(root.body)]) {
      return fail(ErrorCode::kUsage, "no text can ever match: the root needs itself, or something that is empty");
    }
    HEARTH_TRY(check_left_recursion());
    out_.rule_starts.assign(rules_.rules.size(), kNoState);
    wanted_.assign(rules_.rules.size(), false);
    want(rules_.root);
    while (!queue_.empty()) {
      const int32_t rule = queue_.back();
      queue_.pop_back();
      const StateId end = add({});
      const StateId start = emit(rules_.rules[static_cast<size_t>(rule)].body, end);
      out_.rule_starts[static_cast<size_t>(rule)] = start;
      if (failure_) return std::move(*failure_);
    }
    out_.start = out_.rule_starts[static_cast<size_t>(rules_.root)];
    out_.states.shrink_to_fit();
    return std::move(out_);
  }

 private:
  void want(int32_t rule) {
    if (wanted_[static_cast<size_t>(rule)]) return;
    wanted_[static_cast<size_t>(rule)] = true;
    queue_.push_back(rule);
  }

  // The rules that an expression may begin with.
  void first_rules(ExprId id, std::vector<int32_t>& out) const {
    const Expr& e = rules_.at(id);
    switch (e.kind) {
      case Kind::kRule:
        out.push_back(e.rule);
        break;
      case Kind::kSequence:
        for (ExprId part : e.parts) {
          first_rules(part, out);
          if (!nullable_[static_cast<size_t>(part)]) break;
        }
        break;
      case Kind::kChoice:
        for (ExprId part : e.parts) first_rules(part, out);
        break;
      case Kind::kRepeat:
        if (e.max != 0) first_rules(e.parts[0], out);
        break;
      case Kind::kFields:
        for (size_t i = 1; i < e.parts.size(); ++i) first_rules(e.parts[i], out);
        if (e.rule >= 0) first_rules(e.rule, out);
        break;
      case Kind::kBytes:
      case Kind::kChars:
      case Kind::kUntil:
        break;
    }
  }

  Result<void> check_left_recursion() const {
    enum : uint8_t { kNew, kOpen, kDone };
    std::vector<uint8_t> marks(rules_.rules.size(), kNew);
    struct Frame {
      int32_t rule;
      std::vector<int32_t> next;
    };
    std::vector<Frame> stack;
    const auto open = [&](int32_t rule) {
      marks[static_cast<size_t>(rule)] = kOpen;
      stack.push_back({rule, {}});
      first_rules(rules_.rules[static_cast<size_t>(rule)].body, stack.back().next);
    };
    for (size_t r = 0; r < rules_.rules.size(); ++r) {
      if (marks[r] != kNew) continue;
      open(static_cast<int32_t>(r));
      while (!stack.empty()) {
        Frame& top = stack.back();
        if (top.next.empty()) {
          marks[static_cast<size_t>(top.rule)] = kDone;
          stack.pop_back();
          continue;
        }
        const int32_t next = top.next.back();
        top.next.pop_back();
        if (marks[static_cast<size_t>(next)] == kOpen) {
          return fail(ErrorCode::kUsage,
                      "the rule {} can begin with itself (left recursion); put what it begins with first, such as "
                      "list ::= item list? for list ::= list? item",
                      rules_.rules[static_cast<size_t>(next)].name);
        }
        if (marks[static_cast<size_t>(next)] == kNew) open(next);
      }
    }
    return {};
  }

  StateId add(State state) {
    if (out_.states.size() >= kMaxStates) {
      if (!failure_) {
        failure_ = fail(ErrorCode::kUsage,
                        "the grammar is too large: it needs more than {} states; fewer or smaller "
                        "repetitions would work",
                        kMaxStates);
      }
      return 0;
    }
    if (out_.states.size() % 1024 == 0 && !failure_ && rules_.cancelled()) failure_ = nobody_waits();
    out_.states.push_back(state);
    return static_cast<StateId>(out_.states.size()) - 1;
  }

  StateId byte(uint8_t lo, uint8_t hi, StateId next) {
    return add({.kind = State::Kind::kByte, .lo = lo, .hi = hi, .a = next});
  }

  // Either may be kNoState: a way that leads nowhere.
  StateId split(StateId a, StateId b) {
    if (a == kNoState) return b;
    if (b == kNoState || a == b) return a;
    return add({.kind = State::Kind::kSplit, .a = a, .b = b});
  }

  StateId emit_bytes(std::string_view bytes, StateId next) {
    for (size_t i = bytes.size(); i-- > 0;) {
      const auto b = static_cast<uint8_t>(bytes[i]);
      next = byte(b, b, next);
    }
    return next;
  }

  StateId emit_chars(const CharSet& set, StateId next) {
    std::vector<ByteSequence> sequences;
    for (const CharRange& r : set) append_utf8_ranges(r.first, r.last, sequences);
    std::map<std::pair<uint32_t, StateId>, StateId> shared;  // (lo, hi) and what follows
    StateId start = kNoState;
    for (const ByteSequence& sequence : sequences) {
      StateId state = next;
      for (size_t i = sequence.size(); i-- > 0;) {
        const auto key = std::pair(static_cast<uint32_t>(sequence[i].lo << 8 | sequence[i].hi), state);
        auto [it, inserted] = shared.try_emplace(key, kNoState);
        if (inserted) it->second = byte(sequence[i].lo, sequence[i].hi, state);
        state = it->second;
      }
      start = split(state, start);
    }
    return start;
  }

  // How many states a copy takes, at most `limit`.
  int64_t copied_states(ExprId id, int64_t limit) const {
    if (limit <= 0) return 1;
    const Expr& e = rules_.at(id);
    switch (e.kind) {
      case Kind::kBytes:
        return static_cast<int64_t>(e.bytes.size());
      case Kind::kRule:
        return 1;
      case Kind::kChars:
        return e.chars.size() == 1 && e.chars[0].last < 0x80 ? 1 : 4 + static_cast<int64_t>(e.chars.size());
      case Kind::kUntil:
        return 1000;
      default: {
        int64_t sum = 1;
        for (ExprId part : e.parts) {
          sum += copied_states(part, limit - sum);
          if (sum > limit) break;
        }
        return e.kind == Kind::kRepeat ? sum * std::max(1, std::max(e.min, e.max)) : sum;
      }
    }
  }

  // A text of one part of a run, if the states from `start` to `end` are deterministic once made into sets, and no end
  // of a character continues it.
  std::optional<RunBody> run_body(StateId start, StateId end) const {
    std::map<std::vector<StateId>, uint8_t> known;
    std::vector<std::vector<StateId>> sets;
    const auto closed = [&](std::vector<StateId> work, bool& plain) {
      std::vector<StateId> out;
      std::vector<StateId> seen;
      while (!work.empty()) {
        const StateId s = work.back();
        work.pop_back();
        if (std::ranges::find(seen, s) != seen.end()) continue;
        seen.push_back(s);
        if (seen.size() > 1000) plain = false;
        const State& state = out_.states[s];
        if (s == end || state.kind == State::Kind::kByte) {
          out.push_back(s);
        } else if (state.kind == State::Kind::kSplit) {
          work.push_back(state.a);
          work.push_back(state.b);
        } else {
          plain = false;
        }
        if (!plain) break;
      }
      std::ranges::sort(out);
      return out;
    };
    bool plain = true;
    RunBody body;
    sets.push_back(closed({start}, plain));
    known[sets[0]] = 0;
    if (std::ranges::find(sets[0], end) != sets[0].end()) return std::nullopt;
    for (size_t i = 0; i < sets.size() && plain; ++i) {
      body.next.emplace_back().fill(RunBody::kDead);
      for (int b = 0; b < 256; ++b) {
        std::vector<StateId> next;
        for (StateId s : sets[i]) {
          const State& state = out_.states[s];
          if (state.lo <= b && b <= state.hi) next.push_back(state.a);
        }
        if (next.empty()) continue;
        next = closed(std::move(next), plain);
        if (!plain) return std::nullopt;
        uint8_t& target = body.next[i][static_cast<size_t>(b)];
        if (std::ranges::find(next, end) != next.end()) {
          if (next.size() > 1) return std::nullopt;
          target = 0;
          continue;
        }
        const auto [it, inserted] = known.try_emplace(next, static_cast<uint8_t>(sets.size()));
        if (inserted) {
          if (sets.size() >= kMaxBodyStates) return std::nullopt;
          sets.push_back(next);
        }
        target = it->second;
      }
    }
    if (!plain) return std::nullopt;
    return body;
  }

  std::optional<uint32_t> body_of(ExprId id) {
    const auto it = bodies_.find(id);
    if (it != bodies_.end()) return it->second;
    std::optional<uint32_t> result;
    const size_t before = out_.states.size();
    if (copied_states(id, 1000) < 1000 && productive_[static_cast<size_t>(id)] && !has_rule(id)) {
      const StateId end = add({});
      const StateId start = emit(id, end);
      if (auto body = start == end || failure_ ? std::nullopt : run_body(start, end)) {
        const auto known = std::ranges::find(out_.bodies, *body);
        result = static_cast<uint32_t>(known - out_.bodies.begin());
        if (known == out_.bodies.end()) out_.bodies.push_back(std::move(*body));
      }
      out_.states.resize(std::min(before, out_.states.size()));
    }
    bodies_[id] = result;
    return result;
  }

  bool has_rule(ExprId id) const {
    const Expr& e = rules_.at(id);
    return e.kind == Kind::kRule || e.kind == Kind::kFields ||
           std::ranges::any_of(e.parts, [&](ExprId part) { return has_rule(part); });
  }

  // `tail`: the byte that follows, or -1.
  StateId emit_run(uint32_t body, const Expr& e, int16_t tail, StateId next) {
    const Run run{.body = body, .min = e.min, .max = e.max, .tail = tail};
    const auto [it, inserted] =
        runs_.try_emplace({run.body, run.min, run.max, run.tail}, static_cast<uint32_t>(out_.runs.size()));
    if (inserted) out_.runs.push_back(run);
    return add({.kind = State::Kind::kRun, .a = it->second, .b = next});
  }

  bool needs_counter(const Expr& e) const {
    if (e.counted) return true;
    const int64_t times = std::max(e.min, e.max);
    return times > 1 && times * copied_states(e.parts[0], kMaxCopiedStates) > kMaxCopiedStates;
  }

  StateId emit_repeat(const Expr& e, StateId next) {
    const ExprId body = e.parts[0];
    if (!productive_[static_cast<size_t>(body)] || e.max == 0) return e.min == 0 ? next : kNoState;
    if (needs_counter(e)) {
      if (const auto run = body_of(body)) return emit_run(*run, e, -1, next);
      if (nullable_[static_cast<size_t>(body)]) {
        if (!failure_) {
          failure_ = fail(ErrorCode::kUsage,
                          "something that may be empty is repeated up to {} times; that many must "
                          "not be empty, or fewer be wanted",
                          std::max(e.min, e.max));
        }
        return next;
      }
      const StateId start = emit(body, add({}));
      out_.repetitions.push_back({.start = start, .min = e.min, .max = e.max});
      return add({.kind = State::Kind::kRepeat, .a = static_cast<StateId>(out_.repetitions.size()) - 1, .b = next});
    }
    int32_t copies = e.min;
    if (e.max == kUnbounded) {
      const StateId loop = add({.kind = State::Kind::kSplit, .a = next, .b = next});
      const StateId start = emit(body, loop);
      if (!failure_) out_.states[loop].b = start;
      next = e.min == 0 ? loop : start;
      copies = std::max(0, e.min - 1);
    } else {
      const StateId end = next;
      for (int32_t i = e.min; i < e.max; ++i) next = split(emit(body, next), end);
    }
    for (int32_t i = 0; i < copies; ++i) next = emit(body, next);
    return next;
  }

  StateId emit_sequence(const Expr& e, StateId next) {
    for (size_t i = e.parts.size(); i-- > 0;) {
      // A run that ends at a fixed byte is told apart from what follows it without leaving it.
      if (i > 0) {
        const Expr& before = rules_.at(e.parts[i - 1]);
        const Expr& tail = rules_.at(e.parts[i]);
        if (before.kind == Kind::kRepeat && tail.kind == Kind::kBytes && !tail.bytes.empty() && needs_counter(before)) {
          const auto b = static_cast<uint8_t>(tail.bytes[0]);
          const auto body = body_of(before.parts[0]);
          if (body && out_.bodies[*body].next[0][b] == RunBody::kDead) {
            next = emit_run(*body, before, b, emit_bytes(std::string_view(tail.bytes).substr(1), next));
            --i;
            continue;
          }
        }
      }
      next = emit(e.parts[i], next);
    }
    return next;
  }

  StateId emit_fields(const Expr& e, StateId next) {
    const ExprId separator = e.parts[0];
    StateId choose = kNoState;  // where a field must follow
    if (e.rule >= 0 && productive_[static_cast<size_t>(e.rule)]) {
      const StateId loop = add({.kind = State::Kind::kSplit, .a = next, .b = next});
      choose = emit(e.rule, loop);
      const StateId again = emit(separator, choose);
      if (!failure_) out_.states[loop].b = again;
    }
    bool end_allowed = true;
    for (size_t i = e.parts.size(); i-- > 1;) {
      const bool required = e.bytes[i - 1] != 0;
      if (!productive_[static_cast<size_t>(e.parts[i])]) continue;  // and so not required
      const StateId more = choose == kNoState ? kNoState : emit(separator, choose);
      const StateId done = split(more, end_allowed ? next : kNoState);
      choose = split(emit(e.parts[i], done), required ? kNoState : choose);
      if (required) end_allowed = false;
    }
    return split(choose, end_allowed ? next : kNoState);
  }

  // Knuth-Morris-Pratt as states: state k has matched k bytes of the end.
  StateId emit_until(const Expr& e, StateId next) {
    const std::string& end = e.bytes;
    std::string alphabet = end;
    std::ranges::sort(alphabet);
    alphabet.erase(std::unique(alphabet.begin(), alphabet.end()), alphabet.end());
    CharSet known;
    for (char c : alphabet) known.push_back({static_cast<uint8_t>(c), static_cast<uint8_t>(c)});
    std::vector<StateId> entries;
    for (size_t k = 0; k < end.size(); ++k) {
      entries.push_back(add({.kind = State::Kind::kSplit, .a = next, .b = next}));
    }
    const StateId others = emit_chars(inverted(normalized(known)), entries[0]);
    for (size_t k = 0; k < end.size(); ++k) {
      StateId start = others;
      for (char c : alphabet) {
        const std::string seen = end.substr(0, k) + c;
        size_t length = std::min(seen.size(), end.size());
        while (!seen.ends_with(std::string_view(end).substr(0, length))) --length;
        const auto b = static_cast<uint8_t>(c);
        start = split(byte(b, b, length == end.size() ? next : entries[length]), start);
      }
      if (failure_) return next;
      out_.states[entries[k]] = {.kind = State::Kind::kSplit, .a = start, .b = start};
    }
    return entries[0];
  }

  // The state from which the expression, then `next`, is matched; kNoState when nothing matches.
  StateId emit(ExprId id, StateId next) {
    if (failure_) return next;
    const Expr& e = rules_.at(id);
    if (!productive_[static_cast<size_t>(id)] || next == kNoState) return kNoState;
    switch (e.kind) {
      case Kind::kBytes:
        return emit_bytes(e.bytes, next);
      case Kind::kChars:
        return emit_chars(e.chars, next);
      case Kind::kSequence:
        return emit_sequence(e, next);
      case Kind::kChoice: {
        StateId start = kNoState;
        for (size_t i = e.parts.size(); i-- > 0;) start = split(emit(e.parts[i], next), start);
        return start;
      }
      case Kind::kRepeat:
        return emit_repeat(e, next);
      case Kind::kRule:
        want(e.rule);
        return add({.kind = State::Kind::kCall, .a = static_cast<StateId>(e.rule), .b = next});
      case Kind::kFields:
        return emit_fields(e, next);
      case Kind::kUntil:
        return emit_until(e, next);
    }
    return kNoState;
  }

  const Rules& rules_;
  Automaton out_;
  std::vector<bool> nullable_, productive_;
  std::vector<bool> wanted_;
  std::vector<int32_t> queue_;
  std::map<ExprId, std::optional<uint32_t>> bodies_;
  std::map<std::tuple<uint32_t, int32_t, int32_t, int16_t>, uint32_t> runs_;
  std::optional<Error> failure_;
};

}  // namespace

size_t Automaton::size_bytes() const {
  return states.size() * sizeof(State) + rule_starts.size() * sizeof(StateId) + runs.size() * sizeof(Run) +
         repetitions.size() * sizeof(Repetition) + bodies.size() * 20 * 256;
}

Result<Automaton> build_automaton(const Rules& rules) { return Builder(rules).build(); }

ExprId json_char(Rules& rules) {
  const CharSet plain = inverted(normalized({{0, 0x1F}, {'"', '"'}, {'\\', '\\'}}));
  const CharSet hex = normalized({{'0', '9'}, {'a', 'f'}, {'A', 'F'}});
  const CharSet short_escapes =
      normalized({{'"', '"'}, {'\\', '\\'}, {'/', '/'}, {'b', 'b'}, {'f', 'f'}, {'n', 'n'}, {'r', 'r'}, {'t', 't'}});
  const ExprId digit = rules.chars(hex);
  // No surrogates: a lone one is no character, and what a pair stands for can be written as it is.
  const CharSet not_d = normalized({{'0', '9'}, {'a', 'c'}, {'A', 'C'}, {'e', 'f'}, {'E', 'F'}});
  const ExprId unicode = rules.sequence(
      {rules.bytes("u"),
       rules.choice({rules.sequence({rules.chars(not_d), digit}),
                     rules.sequence({rules.chars({{'D', 'D'}, {'d', 'd'}}), rules.chars({{'0', '7'}})})}),
       digit, digit});
  return rules.choice(
      {rules.chars(plain), rules.sequence({rules.bytes("\\"), rules.choice({rules.chars(short_escapes), unicode})})});
}

}  // namespace hearth::grammar
