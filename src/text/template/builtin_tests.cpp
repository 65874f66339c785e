// Jinja's tests: what stands after `is`, and the names that select() and its like take.
#include <algorithm>

#include "text/template/text_functions.h"

namespace hearth::jinja {
namespace {

struct Entry {
  std::string_view name;
  Test test;
};

// A test of the value alone.
template <auto predicate>
bool plain(Interpreter& interpreter, const Value& input, Args& args) {
  Parameters parameters(interpreter, "this test", args, {});
  return predicate(input);
}

// A test against one other value.
template <Operator op, bool swapped = false>
bool compares(Interpreter& interpreter, const Value& input, Args& args) {
  Parameters parameters(interpreter, "this test", args, {"other"}, 1);
  if (!interpreter.ok()) return false;
  return interpreter.truthy(swapped ? interpreter.binary(op, *parameters[0], input)
                                    : interpreter.binary(op, input, *parameters[0]));
}

bool divisible(Interpreter& interpreter, const Value& input, const Value& by) {
  const Value rest = interpreter.binary(Operator::kMod, input, by);
  return interpreter.ok() && interpreter.equal(rest, Value(Int{0}));
}

bool test_same(Interpreter& interpreter, const Value& input, Args& args) {
  Parameters parameters(interpreter, "sameas", args, {"other"}, 1);
  if (!interpreter.ok()) return false;
  const Value& other = *parameters[0];
  if (input.index() != other.index()) return false;
  if (input.sequence() != nullptr) return input.sequence() == other.sequence();
  if (input.dict() != nullptr) return input.dict() == other.dict();
  return interpreter.equal(input, other);
}

// Names are looked up in a dict of Python's, which refuses what it cannot hash.
bool is_name(Interpreter& interpreter, const Value& input) {
  const bool list = input.sequence() != nullptr && input.sequence()->is_list();
  if (list || input.dict() != nullptr) interpreter.fail("{} cannot be the name of a filter or test", type_name(input));
  return input.is_string();
}

template <CharClass wanted>
bool test_case(Interpreter& interpreter, const Value& input, Args& args) {
  Parameters parameters(interpreter, "lower and upper", args, {});
  return is_case(interpreter, interpreter.str(input)->bytes, wanted);
}

constexpr Entry kTests[] = {
    {"!=", compares<Operator::kNe>},
    {"<", compares<Operator::kLt>},
    {"<=", compares<Operator::kLe>},
    {"==", compares<Operator::kEq>},
    {">", compares<Operator::kGt>},
    {">=", compares<Operator::kGe>},
    {"boolean", plain<[](const Value& v) { return v.is<bool>(); }>},
    {"callable", plain<[](const Value& v) { return v.is<Callable*>() || v.is_undefined() || v.is<Loop*>(); }>},
    {"defined", plain<[](const Value& v) { return !v.is_undefined(); }>},
    {"divisibleby",
     [](Interpreter& interpreter, const Value& input, Args& args) {
       Parameters parameters(interpreter, "divisibleby", args, {"num"}, 1);
       return interpreter.ok() && divisible(interpreter, input, *parameters[0]);
     }},
    {"eq", compares<Operator::kEq>},
    {"equalto", compares<Operator::kEq>},
    {"escaped", plain<[](const Value& v) { return v.is_string() && v.text().markup; }>},
    {"even",
     [](Interpreter& interpreter, const Value& input, Args& args) {
       Parameters parameters(interpreter, "even", args, {});
       return divisible(interpreter, input, Value(Int{2}));
     }},
    {"false", plain<[](const Value& v) { return v.is<bool>() && !v.get<bool>(); }>},
    {"filter",
     [](Interpreter& interpreter, const Value& input, Args& args) {
       Parameters parameters(interpreter, "filter", args, {});
       return is_name(interpreter, input) && find_filter(input.bytes()) != nullptr;
     }},
    {"float", plain<[](const Value& v) { return v.is<double>(); }>},
    {"ge", compares<Operator::kGe>},
    {"greaterthan", compares<Operator::kGt>},
    {"gt", compares<Operator::kGt>},
    {"in", compares<Operator::kIn>},
    {"integer", plain<[](const Value& v) { return v.is<Int>(); }>},
    {"iterable", plain<[](const Value& v) {
       return v.is_string() || v.is_undefined() || v.sequence() != nullptr || v.dict() != nullptr || v.is<Loop*>();
     }>},
    {"le", compares<Operator::kLe>},
    {"lessthan", compares<Operator::kLt>},
    {"lower", test_case<kLower>},
    {"lt", compares<Operator::kLt>},
    {"mapping", plain<[](const Value& v) { return v.dict() != nullptr; }>},
    {"ne", compares<Operator::kNe>},
    {"none", plain<[](const Value& v) { return v.is_none(); }>},
    {"number", plain<[](const Value& v) { return v.is_number(); }>},
    {"odd",
     [](Interpreter& interpreter, const Value& input, Args& args) {
       Parameters parameters(interpreter, "odd", args, {});
       const Value rest = interpreter.binary(Operator::kMod, input, Value(Int{2}));
       return interpreter.ok() && interpreter.equal(rest, Value(Int{1}));
     }},
    {"sameas", test_same},
    {"sequence", plain<[](const Value& v) {
       return v.is_string() || v.is_undefined() || v.dict() != nullptr ||
              (v.sequence() != nullptr && v.sequence()->has_index());
     }>},
    {"string", plain<[](const Value& v) { return v.is_string(); }>},
    {"test",
     [](Interpreter& interpreter, const Value& input, Args& args) {
       Parameters parameters(interpreter, "test", args, {});
       return is_name(interpreter, input) && find_test(input.bytes()) != nullptr;
     }},
    {"true", plain<[](const Value& v) { return v.is<bool>() && v.get<bool>(); }>},
    {"undefined", plain<[](const Value& v) { return v.is_undefined(); }>},
    {"upper", test_case<kUpper>},
};

}  // namespace

Test find_test(std::string_view name) {
  const auto* found =
      std::find_if(std::begin(kTests), std::end(kTests), [&](const Entry& entry) { return entry.name == name; });
  return found == std::end(kTests) ? nullptr : found->test;
}

std::string unknown_test_message(std::string_view name) {
  std::string names;
  for (const Entry& entry : kTests) names += fmt::format("{}{}", names.empty() ? "" : ", ", entry.name);
  return fmt::format("found test '{}'; supported are {}", name, names);
}

}  // namespace hearth::jinja
