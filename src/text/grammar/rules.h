// A grammar as rules made of expressions, before it is an automaton. GBNF, JSON Schema, patterns and the forms of tool
// calls are all brought to this.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace hearth::grammar {

// Unicode scalar values, both ends included.
struct CharRange {
  uint32_t first = 0, last = 0;
  bool operator==(const CharRange&) const = default;
};

inline constexpr uint32_t kLastChar = 0x10FFFF;

// A set of characters: ranges in ascending order that neither overlap nor touch, without surrogates.
using CharSet = std::vector<CharRange>;
CharSet normalized(CharSet ranges);  // of ranges in any order
CharSet inverted(const CharSet& set);
CharSet intersection(const CharSet& a, const CharSet& b);
bool contains(const CharSet& set, uint32_t character);

// How compiling ends when GrammarSource::wanted says no.
Error nobody_waits();

using ExprId = int32_t;
inline constexpr int32_t kUnbounded = -1;

struct Expr {
  enum class Kind : uint8_t {
    kBytes,     // `bytes`; the empty expression is one of no bytes
    kChars,     // one character of `chars`
    kSequence,  // all `parts`
    kChoice,    // one of `parts`; of none: matches nothing
    kRepeat,    // parts[0], `min` to `max` times
    kRule,      // the rule `rule`
    kFields,    // some of `parts` in their order, parts[0] between each two; see fields()
    kUntil,     // any characters up to the first occurrence of `bytes` (ASCII), which is part of it
  };
  Kind kind = Kind::kBytes;
  bool counted = false;  // kRepeat: as a run with a counter, even where copies or a loop would do
  int32_t min = 0, max = 0;
  int32_t rule = -1;
  std::string bytes;  // kFields: one byte for each field, 1 = required
  CharSet chars;
  std::vector<ExprId> parts;
};

struct Rules {
  struct Rule {
    std::string name;
    ExprId body = -1;
  };
  std::vector<Expr> exprs;
  std::vector<Rule> rules;
  int32_t root = 0;
  size_t pattern_bytes = 0;      // of all regular expressions that parts were made of
  std::function<bool()> wanted;  // GrammarSource::wanted

  bool cancelled() const { return wanted && !wanted(); }

  ExprId bytes(std::string_view text);
  ExprId chars(CharSet set);
  ExprId sequence(std::vector<ExprId> parts);
  ExprId choice(std::vector<ExprId> parts);
  ExprId repeat(ExprId body, int32_t min, int32_t max);
  ExprId counted(ExprId body, int32_t min, int32_t max);
  ExprId optional(ExprId body) { return repeat(body, 0, 1); }
  ExprId rule(int32_t index);
  // Those of `fields` that are required and any of the others, in order, then any number of `rest` (-1: none), with
  // `separator` between each two.
  ExprId fields(ExprId separator, const std::vector<ExprId>& fields, const std::vector<bool>& required, ExprId rest);
  ExprId until(std::string_view end);

  int32_t add_rule(std::string name, ExprId body = -1);

  const Expr& at(ExprId id) const { return exprs[static_cast<size_t>(id)]; }

 private:
  ExprId add(Expr expr);
};

}  // namespace hearth::grammar
