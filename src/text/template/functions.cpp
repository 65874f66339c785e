// The global functions of a chat template, and how arguments meet parameters.
#include <algorithm>
#include <ctime>

#include "text/template/interpreter.h"

namespace hearth::jinja {
namespace {

Value range(Interpreter& interpreter, Args& args) {
  Parameters parameters(interpreter, "range", args, {"start", "stop", "step"}, 1);
  if (!interpreter.ok()) return {};
  Int bounds[3] = {0, 0, 1};
  for (size_t i = 0; i < 3; ++i) {
    if (parameters[i] != nullptr) bounds[i] = interpreter.integer(*parameters[i], "an argument of range");
  }
  if (parameters[1] == nullptr) {
    bounds[1] = bounds[0];
    bounds[0] = 0;
  }
  const auto [start, stop, step] = bounds;
  if (!interpreter.ok() || step == 0) return interpreter.fail("range: the step cannot be zero");
  constexpr Int kHuge = Int{1} << 100;
  if (std::max({start, stop, step}) > kHuge || std::min({start, stop, step}) < -kHuge) {
    return interpreter.fail("range: an argument is too large");
  }
  const Int count = step > 0 ? (stop - start + step - 1) / step : (start - stop - step - 1) / -step;
  if (count > Int{interpreter.options().limits.max_range}) {
    return interpreter.fail("range: {} items; the limit is {}", count, interpreter.options().limits.max_range);
  }
  std::vector<Value> items;
  for (Int i = 0; i < count; ++i) items.push_back(Value(start + i * step));
  Value result = interpreter.list(std::move(items), SequenceKind::kRange);
  if (Sequence* sequence = result.sequence()) std::copy(std::begin(bounds), std::end(bounds), sequence->range);
  return result;
}

// namespace(...) and dict(...): an optional dict, then names.
Dict* dict_of(Interpreter& interpreter, std::string_view what, Args& args) {
  auto* dict = interpreter.heap().make<Dict>();
  if (args.positional.size() > 1 || (args.positional.size() == 1 && args.positional[0].dict() == nullptr)) {
    interpreter.fail("{}() takes one dict and named arguments", what);
    return dict;
  }
  if (!args.positional.empty()) {
    dict->entries = args.positional[0].dict()->entries;
    dict->positions = args.positional[0].dict()->positions;
  }
  for (auto& [name, value] : args.named) {
    interpreter.charge(name.size());
    dict->set(string_key(name), interpreter.text(name, true), value);
  }
  interpreter.charge(dict->entries.size() * 2 * sizeof(Value));
  interpreter.heap().charge(dict->entries.size() * 2 * sizeof(Value));
  return dict;
}

Value dict(Interpreter& interpreter, Args& args) { return Value(dict_of(interpreter, "dict", args)); }

Value make_namespace(Interpreter& interpreter, Args& args) {
  auto* result = interpreter.heap().make<Namespace>();
  for (const auto& [name, value] : dict_of(interpreter, "namespace", args)->entries) {
    if (name.is_string()) result->attributes.emplace_back(name.bytes(), value);
  }
  return Value(result);
}

Value raise_exception(Interpreter& interpreter, Args& args) {
  Parameters parameters(interpreter, "raise_exception", args, {"message"}, 1);
  if (!interpreter.ok()) return {};
  return interpreter.fail("the template refuses this conversation: {}", interpreter.str(*parameters[0])->bytes);
}

Value strftime_now(Interpreter& interpreter, Args& args) {
  Parameters parameters(interpreter, "strftime_now", args, {"format"}, 1);
  if (!interpreter.ok()) return {};
  if (!parameters[0]->is_string()) return interpreter.fail("strftime_now: the format must be a string");
  std::tm now{};
  if (interpreter.options().now) {
    now = *interpreter.options().now;
  } else {
    const std::time_t seconds = std::time(nullptr);
    localtime_r(&seconds, &now);
  }
  // strftime returns 0 for an empty result as well; the mark in front tells the two apart.
  const std::string format = "." + parameters[0]->bytes();
  if (format.size() > 4096)
    return interpreter.fail("strftime_now: a format of {} bytes; the limit is 4096", format.size());
  std::string out(format.size() * 16 + 256, '\0');
  const size_t size = std::strftime(out.data(), out.size(), format.c_str(), &now);
  if (size == 0) return interpreter.fail("strftime_now: the format makes too long a text");
  return interpreter.text(std::string_view(out).substr(1, size - 1), all_trusted(parameters[0]->text()));
}

Value joiner(Interpreter& interpreter, Args& args) {
  Parameters parameters(interpreter, "joiner", args, {"sep"});
  auto* callable = interpreter.heap().make<Callable>();
  callable->kind = Callable::kJoiner;
  callable->items.push_back(parameters[0] != nullptr ? *parameters[0] : interpreter.text(", ", true));
  return Value(callable);
}

Value cycler(Interpreter& interpreter, Args& args) {
  if (args.positional.empty() || !args.named.empty())
    return interpreter.fail("cycler() needs something to cycle through");
  auto* callable = interpreter.heap().make<Callable>();
  callable->kind = Callable::kCycler;
  interpreter.charge(args.positional.size() * sizeof(Value));
  callable->items = args.positional;
  return Value(callable);
}

}  // namespace

Function find_function(std::string_view name) {
  constexpr std::pair<std::string_view, Function> kFunctions[] = {
      {"cycler", cycler},
      {"dict", dict},
      {"joiner", joiner},
      {"namespace", make_namespace},
      {"raise_exception", raise_exception},
      {"range", range},
      {"strftime_now", strftime_now},
  };
  const auto* found = std::find_if(std::begin(kFunctions), std::end(kFunctions),
                                   [&](const auto& entry) { return entry.first == name; });
  return found == std::end(kFunctions) ? nullptr : found->second;
}

Parameters::Parameters(Interpreter& interpreter, std::string_view function, Args& args,
                       std::initializer_list<std::string_view> names, size_t required)
    : values_(names.size(), nullptr) {
  if (args.positional.size() > names.size()) {
    interpreter.fail("{} takes at most {} arguments, not {}", function, names.size(), args.positional.size());
    return;
  }
  for (size_t i = 0; i < args.positional.size(); ++i) values_[i] = &args.positional[i];
  for (const auto& [name, value] : args.named) {
    const auto* found = std::find(names.begin(), names.end(), name);
    if (found == names.end() || values_[static_cast<size_t>(found - names.begin())] != nullptr) {
      interpreter.fail("{} got the argument '{}' {}", function, name,
                       found == names.end() ? "that it does not have" : "twice");
      return;
    }
    values_[static_cast<size_t>(found - names.begin())] = &value;
  }
  for (size_t i = 0; i < required; ++i) {
    if (values_[i] == nullptr) {
      interpreter.fail("{} needs the argument '{}'", function, names.begin()[i]);
      return;
    }
  }
}

}  // namespace hearth::jinja
