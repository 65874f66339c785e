// The filters, tests, methods and global functions that a chat template can name.
#pragma once

#include <initializer_list>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "text/template/value.h"

namespace hearth::jinja {

class Interpreter;

struct Args {
  std::vector<Value> positional;
  std::vector<std::pair<std::string, Value>> named;
};

// Arguments sorted by parameter. An argument that is unknown, given twice or missing makes the interpreter fail.
class Parameters {
 public:
  Parameters(Interpreter& interpreter, std::string_view function, Args& args,
             std::initializer_list<std::string_view> names, size_t required = 0);
  // Null if it was not given.
  const Value* operator[](size_t i) const { return values_[i]; }

 private:
  std::vector<const Value*> values_;
};

using Filter = Value (*)(Interpreter&, const Value& input, Args&);
using Test = bool (*)(Interpreter&, const Value& input, Args&);
using Function = Value (*)(Interpreter&, Args&);

// Null if there is none of that name.
Filter find_filter(std::string_view name);
Test find_test(std::string_view name);
Function find_function(std::string_view name);

std::string unknown_filter_message(std::string_view name);
std::string unknown_test_message(std::string_view name);

// Python's methods of str, dict, list and tuple.
bool has_method(const Value& self, std::string_view name);
// True for those that change their object; Hugging Face's sandbox refuses them.
bool is_mutating_method(const Value& self, std::string_view name);
Value call_method(Interpreter& interpreter, const Value& self, std::string_view name, Args& args);

}  // namespace hearth::jinja
