// What Python's operators and built-in functions do with values.
#include <algorithm>
#include <cmath>
#include <numeric>

#include "text/template/interpreter.h"
#include "text/template/search.h"
#include "text/template/unicode.h"

namespace hearth::jinja {
namespace {

// Nesting beyond which values are not compared or printed; a namespace or an appended list can contain itself.
constexpr int kMaxValueDepth = 200;

// &, <, >, ', " as markupsafe writes them.
void append_escaped(TextBuilder& out, const Text& text) {
  size_t begin = 0;
  size_t hint = 0;
  for (size_t i = 0; i < text.bytes.size(); ++i) {
    std::string_view entity;
    switch (text.bytes[i]) {
      case '&':
        entity = "&amp;";
        break;
      case '<':
        entity = "&lt;";
        break;
      case '>':
        entity = "&gt;";
        break;
      case '\'':
        entity = "&#39;";
        break;
      case '"':
        entity = "&#34;";
        break;
      default:
        continue;
    }
    out.append_range(text, begin, i);
    out.append(entity, trusted_at(text, i, hint));
    begin = i + 1;
  }
  out.append_range(text, begin, text.bytes.size());
}

// Starts of all code points of a text, and its end.
std::vector<size_t> code_point_starts(std::string_view text) {
  std::vector<size_t> starts;
  starts.reserve(text.size() + 1);
  for (size_t pos = 0; pos < text.size(); pos += code_point_bytes(text, pos)) starts.push_back(pos);
  starts.push_back(text.size());
  return starts;
}

bool is_ascii(std::string_view text) {
  return std::all_of(text.begin(), text.end(), [](char c) { return static_cast<uint8_t>(c) < 0x80; });
}

}  // namespace

Value Interpreter::text(TextBuilder&& builder, bool markup) { return Value(heap_.text(std::move(builder), markup)); }

Value Interpreter::list(std::vector<Value> items, SequenceKind kind) {
  heap_.charge(items.size() * sizeof(Value));
  if (!charge(items.size() * sizeof(Value))) return {};
  auto* sequence = heap_.make<Sequence>();
  sequence->kind = kind;
  sequence->items = std::move(items);
  return Value(sequence);
}

bool Interpreter::truthy(const Value& value) {
  if (value.is<bool>()) return value.get<bool>();
  if (value.is_undefined() || value.is_none()) return false;
  if (value.is<Int>()) return value.get<Int>() != 0;
  if (value.is<double>()) return value.get<double>() != 0;
  if (value.is_string()) return !value.bytes().empty();
  if (const Sequence* sequence = value.sequence()) return !sequence->has_length() || !sequence->items.empty();
  if (const Dict* dict = value.dict()) return !dict->entries.empty();
  return true;
}

bool Interpreter::equal(const Value& a, const Value& b, int depth) {
  if (!charge()) return false;
  if (depth > kMaxValueDepth) {
    fail("values nested more than {} levels deep cannot be compared", kMaxValueDepth);
    return false;
  }
  if (a.is_number() && b.is_number()) {
    if (a.is_integral() && b.is_integral()) return a.integral() == b.integral();
    return a.real() == b.real();
  }
  if (a.index() != b.index()) return false;
  if (a.is_undefined() || a.is_none()) return true;
  if (a.is_string()) {
    charge(std::min(a.bytes().size(), b.bytes().size()));
    return a.bytes() == b.bytes();
  }
  if (const Sequence* left = a.sequence()) {
    const Sequence* right = b.sequence();
    if (left == right) return true;
    if (left->kind != right->kind || left->items.size() != right->items.size()) return false;
    if (left->kind == SequenceKind::kGenerator || left->kind == SequenceKind::kDictValues) return false;
    for (size_t i = 0; i < left->items.size(); ++i) {
      if (!equal(left->items[i], right->items[i], depth + 1)) return false;
    }
    return true;
  }
  if (const Dict* left = a.dict()) {
    const Dict* right = b.dict();
    if (left == right) return true;
    if (left->entries.size() != right->entries.size()) return false;
    for (const auto& [name, value] : left->entries) {
      std::string key;
      if (!hash(name, key)) return false;
      const Value* other = right->find(key);
      if (other == nullptr || !equal(value, *other, depth + 1)) return false;
    }
    return true;
  }
  if (a.is<Namespace*>()) return a.get<Namespace*>() == b.get<Namespace*>();
  if (a.is<Loop*>()) return a.get<Loop*>() == b.get<Loop*>();
  const Callable* left = a.get<Callable*>();
  const Callable* right = b.get<Callable*>();
  return left == right || (left->kind == Callable::kFunction && left->function == right->function);
}

bool Interpreter::less(const Value& a, const Value& b, int depth) {
  if (!charge()) return false;
  if (a.is_undefined() || b.is_undefined()) {
    fail_undefined(a.is_undefined() ? a : b);
    return false;
  }
  if (a.is_number() && b.is_number()) {
    if (a.is_integral() && b.is_integral()) return a.integral() < b.integral();
    return a.real() < b.real();
  }
  // UTF-8 sorts like code points.
  if (a.is_string() && b.is_string()) {
    charge(std::min(a.bytes().size(), b.bytes().size()));
    return a.bytes() < b.bytes();
  }
  const Sequence* left = a.sequence();
  const Sequence* right = b.sequence();
  if (left != nullptr && right != nullptr && left->kind == right->kind && (left->is_list() || left->is_tuple()) &&
      depth <= kMaxValueDepth) {
    const size_t common = std::min(left->items.size(), right->items.size());
    for (size_t i = 0; i < common; ++i) {
      if (!equal(left->items[i], right->items[i])) return less(left->items[i], right->items[i], depth + 1);
    }
    return left->items.size() < right->items.size();
  }
  fail("cannot order {} and {}", type_name(a), type_name(b));
  return false;
}

bool Interpreter::contains(const Value& container, const Value& item) {
  if (container.is_string()) {
    if (item.is_undefined()) {
      fail_undefined(item);
      return false;
    }
    if (!item.is_string()) {
      fail("'in' a string needs a string on its left, not {}", type_name(item));
      return false;
    }
    if (!charge(container.bytes().size() + item.bytes().size())) return false;
    return Search(item.bytes(), Search::kForwards).find(container.bytes()) != std::string::npos;
  }
  if (const Dict* dict = container.dict()) {
    std::string key;
    if (!hash(item, key)) {
      fail("{} cannot be a key of a dict", type_name(item));
      return false;
    }
    return dict->find(key) != nullptr;
  }
  if (container.is_undefined()) return false;
  for (const Value& candidate : iterate(container)) {
    if (equal(candidate, item)) return true;
    if (!ok()) break;
  }
  return false;
}

std::vector<Value> Interpreter::iterate(const Value& value) {
  if (!ok()) return {};
  if (Sequence* sequence = value.sequence()) {
    charge(sequence->items.size() * sizeof(Value));
    if (sequence->kind == SequenceKind::kGenerator) {
      sequence->consumed = true;
      return std::exchange(sequence->items, {});
    }
    return sequence->items;
  }
  if (const Dict* dict = value.dict()) {
    std::vector<Value> keys;
    if (!charge(dict->entries.size() * sizeof(Value))) return keys;
    for (const auto& [name, _] : dict->entries) keys.push_back(name);
    return keys;
  }
  if (value.is_string()) return characters(value.text());
  if (value.is<Loop*>()) {
    // Iterating a loop takes what is left of it; templates do not do that on purpose.
    fail("a loop cannot be iterated");
    return {};
  }
  if (!value.is_undefined()) fail("{} cannot be iterated", type_name(value));
  return {};
}

std::optional<Int> Interpreter::length(const Value& value) {
  if (value.is_undefined()) return Int{0};
  if (value.is_string()) {
    charge(value.bytes().size());
    return Int{count_code_points(value.bytes())};
  }
  if (const Sequence* sequence = value.sequence(); sequence != nullptr && sequence->has_length()) {
    return static_cast<Int>(sequence->items.size());
  }
  if (const Dict* dict = value.dict()) return static_cast<Int>(dict->entries.size());
  if (value.is<Loop*>()) return static_cast<Int>(value.get<Loop*>()->items->items.size());
  return std::nullopt;
}

TextPtr Interpreter::str(const Value& value) {
  if (value.is_string()) return value.get<TextPtr>();
  TextBuilder builder;
  if (!value.is_undefined()) repr(builder, value);
  return heap_.text(std::move(builder));
}

void Interpreter::repr(TextBuilder& out, const Value& value, int depth) {
  if (!charge()) return;
  if (depth > kMaxValueDepth) {
    fail("a value nested more than {} levels deep cannot be printed", kMaxValueDepth);
    return;
  }
  if (value.is_undefined()) {
    out.append("Undefined", true);
  } else if (value.is_none()) {
    out.append("None", true);
  } else if (value.is<bool>()) {
    out.append(value.get<bool>() ? "True" : "False", true);
  } else if (value.is<Int>()) {
    out.append(int_repr(value.get<Int>()), true);
  } else if (value.is<double>()) {
    out.append(float_repr(value.get<double>()), true);
  } else if (value.is_string()) {
    const Text& text = value.text();
    if (!check_growth(text.bytes.size(), out.size_bytes() + text.bytes.size())) return;
    if (text.markup) out.append("Markup(", true);
    out.append(string_repr(text.bytes), all_trusted(text));
    if (text.markup) out.append(")", true);
  } else if (const Sequence* sequence = value.sequence()) {
    switch (sequence->kind) {
      case SequenceKind::kRange:
        out.append(fmt::format("range({}, {}", sequence->range[0], sequence->range[1]), true);
        out.append(sequence->range[2] == 1 ? ")" : fmt::format(", {})", sequence->range[2]), true);
        return;
      case SequenceKind::kGenerator:
        out.append("<generator>", true);
        return;
      case SequenceKind::kList:
      case SequenceKind::kTuple:
        break;
      default:
        out.append(fmt::format("{}(", type_name(value)), true);
    }
    out.append(sequence->is_tuple() ? "(" : "[", true);
    for (size_t i = 0; i < sequence->items.size() && ok(); ++i) {
      if (i != 0) out.append(", ", true);
      repr(out, sequence->items[i], depth + 1);
    }
    if (sequence->is_tuple() && sequence->items.size() == 1) out.append(",", true);
    out.append(sequence->is_tuple() ? ")" : "]", true);
    if (!sequence->is_list() && !sequence->is_tuple()) out.append(")", true);
  } else if (value.dict() != nullptr || value.is<Namespace*>()) {
    if (value.is<Namespace*>()) out.append("<Namespace ", true);
    out.append("{", true);
    bool first = true;
    const auto entry = [&](const Value* name, const std::string* attribute, const Value& item) {
      if (!std::exchange(first, false)) out.append(", ", true);
      if (name != nullptr) repr(out, *name, depth + 1);
      if (attribute != nullptr && check_growth(attribute->size(), out.size_bytes() + attribute->size())) {
        out.append(string_repr(*attribute), true);
      }
      out.append(": ", true);
      repr(out, item, depth + 1);
    };
    if (const Dict* dict = value.dict()) {
      for (const auto& [name, item] : dict->entries) entry(&name, nullptr, item);
    } else {
      for (const auto& [name, item] : value.get<Namespace*>()->attributes) entry(nullptr, &name, item);
    }
    out.append(value.dict() != nullptr ? "}" : "}>", true);
  } else if (value.is<Loop*>()) {
    const Loop& loop = *value.get<Loop*>();
    out.append(fmt::format("<LoopContext {}/{}>", loop.index0 + 1, loop.items->items.size()), true);
  } else {
    const Callable& callable = *value.get<Callable*>();
    out.append(callable.kind == Callable::kMacro && callable.macro->name.empty() ? std::string("<Macro anonymous>")
               : callable.kind == Callable::kMacro ? fmt::format("<Macro '{}'>", callable.macro->name)
                                                   : fmt::format("<function {}>", callable.name),
               callable.kind == Callable::kMacro);
  }
}

std::vector<Value> Interpreter::characters(const Text& text) {
  std::vector<Value> out;
  if (!check_size(static_cast<Int>(text.bytes.size()) * Int{sizeof(Value) + sizeof(Text)})) return out;
  for (size_t pos = 0; pos < text.bytes.size();) {
    const size_t next = pos + code_point_bytes(text.bytes, pos);
    TextBuilder builder;  // plain even if the text is markup
    builder.append_range(text, pos, next);
    out.push_back(this->text(std::move(builder)));
    pos = next;
  }
  return out;
}

Value Interpreter::substring(const Text& source, size_t begin, size_t end) {
  charge(end - begin);
  TextBuilder builder;
  builder.append_range(source, begin, end);
  return text(std::move(builder), source.markup);
}

Int Interpreter::integer(const Value& value, std::string_view what) {
  if (value.is_integral()) return value.integral();
  fail("{} must be an integer, not {}", what, type_name(value));
  return 0;
}

Value Interpreter::slice(const Value& object, const Value& start, const Value& stop, const Value& step) {
  if (!ok()) return {};
  if (object.is_undefined()) return fail_undefined(object);
  const Sequence* sequence = object.sequence();
  if (!object.is_string() && (sequence == nullptr || !sequence->has_index())) {
    return fail("{} cannot be sliced", type_name(object));
  }
  const Int stride = step.is_none() ? Int{1} : integer(step, "the step of a slice");
  if (ok() && stride == 0) return fail("the step of a slice cannot be zero");
  if (object.is_string() && !charge(object.bytes().size())) return {};
  const bool ascii = object.is_string() && is_ascii(object.bytes());
  std::vector<size_t> starts;
  if (object.is_string() && !ascii) {
    if (!check_size(static_cast<Int>(object.bytes().size() * sizeof(size_t)))) return {};
    starts = code_point_starts(object.bytes());
  }
  const Int size = static_cast<Int>(sequence != nullptr ? sequence->items.size()
                                    : ascii             ? object.bytes().size()
                                                        : starts.size() - 1);
  const auto bound = [&](const Value& value, Int fallback) {
    if (value.is_none()) return fallback;
    Int index = integer(value, "a bound of a slice");
    if (index < 0) index = std::max(index, -size - 1) + size;
    return stride > 0 ? std::clamp(index, Int{0}, size) : std::clamp(index, Int{-1}, size - 1);
  };
  const Int first = bound(start, stride > 0 ? Int{0} : size - 1);
  const Int last = bound(stop, stride > 0 ? size : Int{-1});
  if (!ok()) return {};
  const auto byte_at = [&](Int index) {
    return ascii ? static_cast<size_t>(index) : starts[static_cast<size_t>(index)];
  };
  if (object.is_string() && stride == 1) {
    return first < last ? substring(object.text(), byte_at(first), byte_at(last)) : text("", true);
  }
  TextBuilder builder;
  std::vector<Value> items;
  for (Int i = first; stride > 0 ? i < last : i > last; i += stride) {
    if (sequence != nullptr) {
      items.push_back(sequence->items[static_cast<size_t>(i)]);
    } else {
      builder.append_range(object.text(), byte_at(i), byte_at(i + 1));
    }
    // Beyond the size there is nothing left, and the sum could overflow.
    if (stride > size || stride < -size) break;
  }
  if (sequence == nullptr) {
    charge(builder.size_bytes());
    return text(std::move(builder), object.text().markup);
  }
  Value result = list(std::move(items), sequence->kind);
  if (Sequence* sliced = result.sequence(); sliced != nullptr && sequence->kind == SequenceKind::kRange) {
    sliced->range[0] = sequence->range[0] + first * sequence->range[2];
    sliced->range[1] = sequence->range[0] + last * sequence->range[2];
    sliced->range[2] = sequence->range[2] * std::clamp(stride, -size - 1, size + 1);
  }
  return result;
}

Value Interpreter::binary(Operator op, const Value& a, const Value& b) {
  switch (op) {
    case Operator::kEq:
      return boolean(equal(a, b));
    case Operator::kNe:
      return boolean(!equal(a, b));
    case Operator::kLt:
      return boolean(less(a, b));
    case Operator::kGt:
      return boolean(less(b, a));
    // NaN is neither below nor above.
    case Operator::kLe:
      return boolean(a.is_number() && b.is_number() ? less(a, b) || equal(a, b) : !less(b, a));
    case Operator::kGe:
      return boolean(a.is_number() && b.is_number() ? less(b, a) || equal(a, b) : !less(a, b));
    case Operator::kIn:
      return boolean(contains(b, a));
    case Operator::kNotIn:
      return boolean(!contains(b, a));
    default:
      return arithmetic(op, a, b);
  }
}

Value Interpreter::add(const Value& a, const Value& b) {
  if (a.is_string() && b.is_string()) {
    if (!check_size(static_cast<Int>(a.bytes().size() + b.bytes().size()))) return {};
    const bool markup = a.text().markup || b.text().markup;
    TextBuilder builder;
    for (const Value* part : {&a, &b}) {
      if (markup && !part->text().markup) {
        append_escaped(builder, part->text());
      } else {
        builder.append(part->text());
      }
    }
    return text(std::move(builder), markup);
  }
  const Sequence* left = a.sequence();
  const Sequence* right = b.sequence();
  if (left != nullptr && right != nullptr && left->kind == right->kind && (left->is_list() || left->is_tuple())) {
    if (!check_size(static_cast<Int>((left->items.size() + right->items.size()) * sizeof(Value)))) return {};
    std::vector<Value> items = left->items;
    items.insert(items.end(), right->items.begin(), right->items.end());
    return list(std::move(items), left->kind);
  }
  return fail("cannot add {} and {}", type_name(a), type_name(b));
}

Value Interpreter::repeat(const Value& a, Int times) {
  times = std::max(times, Int{0});
  const Sequence* sequence = a.sequence();
  const Int unit = a.is_string() ? static_cast<Int>(a.bytes().size() + sizeof(Run))
                                 : static_cast<Int>(sequence->items.size() * sizeof(Value));
  if (unit == 0) times = 0;
  if (unit != 0 && times > (Int{1} << 62) / unit) times = (Int{1} << 62) / unit;
  if (!check_size(unit * times)) return {};
  if (a.is_string()) {
    TextBuilder builder;
    for (Int i = 0; i < times; ++i) builder.append(a.text());
    return text(std::move(builder), a.text().markup);
  }
  std::vector<Value> items;
  for (Int i = 0; i < times; ++i) items.insert(items.end(), sequence->items.begin(), sequence->items.end());
  return list(std::move(items), sequence->kind);
}

Value Interpreter::arithmetic(Operator op, const Value& a, const Value& b) {
  constexpr std::string_view kSymbols[] = {"+", "-", "*", "/", "//", "%", "**"};
  if (!ok()) return {};
  if (a.is_undefined() || b.is_undefined()) {
    // "..." % undefined formats nothing's text.
    if (op != Operator::kMod || !a.is_string()) return fail_undefined(a.is_undefined() ? a : b);
  }
  if (op == Operator::kMod && a.is_string()) return format_percent(a.text(), b);
  if (!a.is_number() || !b.is_number()) {
    if (op == Operator::kAdd) return add(a, b);
    const auto repeatable = [](const Value& value) {
      return value.is_string() ||
             (value.sequence() != nullptr && (value.sequence()->is_list() || value.sequence()->is_tuple()));
    };
    if (op == Operator::kMul && repeatable(a) && b.is_integral()) return repeat(a, b.integral());
    if (op == Operator::kMul && repeatable(b) && a.is_integral()) return repeat(b, a.integral());
    return fail("cannot compute {} {} {}", type_name(a), kSymbols[static_cast<size_t>(op)], type_name(b));
  }
  const bool integers = a.is_integral() && b.is_integral();
  const bool divides = op == Operator::kDiv || op == Operator::kFloorDiv || op == Operator::kMod;
  if (divides && b.real() == 0) return fail("division by zero");
  if (integers && op != Operator::kDiv && !(op == Operator::kPow && b.integral() < 0)) {
    const Int x = a.integral();
    const Int y = b.integral();
    Int result = 0;
    bool overflow = false;
    switch (op) {
      case Operator::kAdd:
        overflow = __builtin_add_overflow(x, y, &result);
        break;
      case Operator::kSub:
        overflow = __builtin_sub_overflow(x, y, &result);
        break;
      case Operator::kMul:
        overflow = __builtin_mul_overflow(x, y, &result);
        break;
      case Operator::kFloorDiv:
      case Operator::kMod: {
        if (y == -1) {  // the one quotient that can overflow
          overflow = __builtin_sub_overflow(Int{0}, x, &result);
          if (op == Operator::kMod) result = 0, overflow = false;
          break;
        }
        Int quotient = x / y;
        Int remainder = x % y;
        if (remainder != 0 && (remainder < 0) != (y < 0)) {
          --quotient;
          remainder += y;
        }
        result = op == Operator::kMod ? remainder : quotient;
        break;
      }
      default:  // kPow by squaring; |x| > 1 overflows within 128 steps
        result = 1;
        if (x == 0 || x == 1 || x == -1) {
          result = y == 0 ? Int{1} : x == -1 && y % 2 == 0 ? Int{1} : x;
          break;
        }
        for (Int i = 0; i < y && !overflow; ++i) overflow = __builtin_mul_overflow(result, x, &result);
    }
    if (overflow) return fail("the result of {} {} {} does not fit 128 bits", x, kSymbols[static_cast<size_t>(op)], y);
    return Value(result);
  }
  const double x = a.real();
  const double y = b.real();
  switch (op) {
    case Operator::kAdd:
      return Value(x + y);
    case Operator::kSub:
      return Value(x - y);
    case Operator::kMul:
      return Value(x * y);
    case Operator::kDiv:
      return Value(x / y);
    case Operator::kFloorDiv:
    case Operator::kMod: {
      double remainder = std::fmod(x, y);
      double quotient = (x - remainder) / y;
      if (remainder != 0 && (remainder < 0) != (y < 0)) {
        remainder += y;
        quotient -= 1;
      }
      if (remainder == 0) remainder = std::copysign(0.0, y);
      if (op == Operator::kMod) return Value(remainder);
      if (quotient == 0) return Value(std::copysign(0.0, x / y));
      const double floor = std::floor(quotient);
      return Value(quotient - floor > 0.5 ? floor + 1 : floor);
    }
    default:
      if (x == 0 && y < 0) return fail("zero cannot be raised to a negative power");
      if (x < 0 && y != std::floor(y)) return fail("a negative number raised to a fraction is not supported");
      const double power = std::pow(x, y);
      if (std::isinf(power) && !std::isinf(x) && !std::isinf(y)) return fail("the power is too large for a float");
      return Value(power);
  }
}

}  // namespace hearth::jinja
