#include "text/grammar/rules.h"

#include <algorithm>
#include <utility>

namespace hearth::grammar {
namespace {

constexpr uint32_t kFirstSurrogate = 0xD800, kLastSurrogate = 0xDFFF;

}  // namespace

CharSet normalized(CharSet ranges) {
  CharSet valid;
  for (CharRange r : ranges) {
    r.last = std::min(r.last, kLastChar);
    if (r.first > r.last) continue;
    if (r.first < kFirstSurrogate) valid.push_back({r.first, std::min(r.last, kFirstSurrogate - 1)});
    if (r.last > kLastSurrogate) valid.push_back({std::max(r.first, kLastSurrogate + 1), r.last});
  }
  std::ranges::sort(valid, {}, &CharRange::first);
  CharSet out;
  for (const CharRange& r : valid) {
    if (!out.empty() && r.first <= out.back().last + 1) {
      out.back().last = std::max(out.back().last, r.last);
    } else {
      out.push_back(r);
    }
  }
  return out;
}

CharSet inverted(const CharSet& set) {
  CharSet out;
  uint32_t next = 0;
  for (const CharRange& r : set) {
    if (r.first > next) out.push_back({next, r.first - 1});
    next = r.last + 1;
  }
  if (next <= kLastChar) out.push_back({next, kLastChar});
  return normalized(std::move(out));
}

CharSet intersection(const CharSet& a, const CharSet& b) {
  CharSet out;
  for (size_t i = 0, j = 0; i < a.size() && j < b.size();) {
    const uint32_t first = std::max(a[i].first, b[j].first);
    const uint32_t last = std::min(a[i].last, b[j].last);
    if (first <= last) out.push_back({first, last});
    if (a[i].last < b[j].last) {
      ++i;
    } else {
      ++j;
    }
  }
  return out;
}

bool contains(const CharSet& set, uint32_t character) {
  return std::ranges::any_of(set, [&](const CharRange& r) { return r.first <= character && character <= r.last; });
}

Error nobody_waits() { return fail(ErrorCode::kCancelled, "compile a grammar: nobody waits for it any longer"); }

ExprId Rules::add(Expr expr) {
  exprs.push_back(std::move(expr));
  return static_cast<ExprId>(exprs.size()) - 1;
}

ExprId Rules::bytes(std::string_view text) { return add({.kind = Expr::Kind::kBytes, .bytes = std::string(text)}); }

ExprId Rules::chars(CharSet set) { return add({.kind = Expr::Kind::kChars, .chars = std::move(set)}); }

ExprId Rules::sequence(std::vector<ExprId> parts) {
  if (parts.size() == 1) return parts[0];
  return add({.kind = Expr::Kind::kSequence, .parts = std::move(parts)});
}

ExprId Rules::choice(std::vector<ExprId> parts) {
  if (parts.size() == 1) return parts[0];
  return add({.kind = Expr::Kind::kChoice, .parts = std::move(parts)});
}

ExprId Rules::repeat(ExprId body, int32_t min, int32_t max) {
  return add({.kind = Expr::Kind::kRepeat, .min = min, .max = max, .parts = {body}});
}

ExprId Rules::counted(ExprId body, int32_t min, int32_t max) {
  return add({.kind = Expr::Kind::kRepeat, .counted = true, .min = min, .max = max, .parts = {body}});
}

ExprId Rules::rule(int32_t index) { return add({.kind = Expr::Kind::kRule, .rule = index}); }

ExprId Rules::fields(ExprId separator, const std::vector<ExprId>& fields, const std::vector<bool>& required,
                     ExprId rest) {
  Expr expr{.kind = Expr::Kind::kFields, .rule = rest};
  expr.parts.push_back(separator);
  expr.parts.insert(expr.parts.end(), fields.begin(), fields.end());
  for (bool r : required) expr.bytes.push_back(r ? '\1' : '\0');
  return add(std::move(expr));
}

ExprId Rules::until(std::string_view end) { return add({.kind = Expr::Kind::kUntil, .bytes = std::string(end)}); }

int32_t Rules::add_rule(std::string name, ExprId body) {
  rules.push_back({.name = std::move(name), .body = body});
  return static_cast<int32_t>(rules.size()) - 1;
}

}  // namespace hearth::grammar
