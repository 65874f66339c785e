#include "text/template/interpreter.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "text/template/lexer.h"
#include "text/template/unicode.h"

namespace hearth::jinja {
namespace {

const std::string kParameterNotGiven = "a parameter that the call leaves out";
const std::string kNoCaller = "caller";
const std::string kNoPreviousItem = "loop.previtem of the first item";
const std::string kNoNextItem = "loop.nextitem of the last item";
const std::string kMutation = "a method that changes its object, which the sandbox does not allow,";

}  // namespace

Value* Scope::find_here(std::string_view name) {
  for (auto& [candidate, value] : variables) {
    if (candidate == name) return &value;
  }
  return nullptr;
}

void Scope::set(std::string_view name, Value value) {
  if (Value* existing = find_here(name)) {
    *existing = std::move(value);
  } else {
    variables.emplace_back(name, std::move(value));
  }
}

Interpreter::Interpreter(const Template& tree, const TemplateOptions& options)
    : tree_(tree), options_(options), heap_(options.limits.max_memory_bytes) {}

Interpreter::Depth::Depth(Interpreter& interpreter) : interpreter_(interpreter) {
  if (++interpreter_.depth_ > interpreter_.options_.limits.max_depth) {
    interpreter_.fail("nested more than {} levels deep while rendering", interpreter_.options_.limits.max_depth);
  }
}

Result<Rendered> Interpreter::run(const nlohmann::ordered_json& context) {
  if (!context.is_object()) {
    return Error{ErrorCode::kUsage, "rendering a chat template: the context must be a JSON object"};
  }
  Scope root;
  root.set("bos_token", text(options_.bos_token, true));
  root.set("eos_token", text(options_.eos_token, true));
  for (const auto& [name, value] : context.items()) define(root, name, from_json(value, false));
  TextBuilder out;
  out_ = &out;
  execute(tree_.body, root);
  if (error_) return std::move(*error_);
  Rendered rendered;
  size_t begin = 0;
  for (const Run& run : out.runs_) {
    rendered.segments.push_back({out.bytes_.substr(begin, run.end - begin), run.trusted});
    begin = run.end;
  }
  return rendered;
}

Value Interpreter::fail_with(ErrorCode code, std::string_view message) {
  constexpr size_t kMostBytes = 2000;  // of a message: a template can put any text into one
  if (error_) return {};
  size_t end = std::min(message.size(), kMostBytes);
  while (end < message.size() && end > 0 && (message[end] & 0xC0) == 0x80) --end;
  error_ = template_error(code, line_, std::string(message.substr(0, end)) + (end < message.size() ? " ..." : ""));
  return {};
}

Value Interpreter::fail_undefined(const Value& value) {
  const std::string* what = value.get<Undefined>().what;
  return fail("{} is undefined", what == nullptr                        ? "a value"
                                 : what->find(' ') != std::string::npos ? *what
                                                                        : "'" + *what + "'");
}

bool Interpreter::charge(size_t bytes) {
  if (!ok()) return false;
  steps_ += 1 + static_cast<int64_t>(bytes >> 8);
  if (steps_ > options_.limits.max_steps) {
    fail("stopped after {} steps; the template loops too long for this conversation", options_.limits.max_steps);
  } else if (heap_.over_limit()) {
    fail("its values take more than {} bytes", options_.limits.max_memory_bytes);
  }
  return ok();
}

bool Interpreter::hash(const Value& value, std::string& out) {
  size_t bytes = value.is_string() ? value.bytes().size() : 0;
  if (const Sequence* tuple = value.sequence()) {
    for (const Value& item : tuple->items) bytes += sizeof(Value) + (item.is_string() ? item.bytes().size() : 0);
  }
  return check_size(static_cast<Int>(bytes)) && key_of(value, out);
}

void Interpreter::define(Scope& scope, std::string_view name, Value value) {
  charge(scope.variables.size() * (sizeof(std::string_view) + name.size()));
  scope.set(name, std::move(value));
}

bool Interpreter::check_size(Int bytes) {
  if (bytes > static_cast<Int>(options_.limits.max_memory_bytes)) {
    fail("a value of {} bytes; the limit is {}", bytes, options_.limits.max_memory_bytes);
    return false;
  }
  return charge(static_cast<size_t>(bytes));
}

bool Interpreter::check_growth(size_t added, size_t total) {
  if (total > options_.limits.max_memory_bytes) {
    fail("a text of {} bytes; the limit is {}", total, options_.limits.max_memory_bytes);
    return false;
  }
  return charge(added);
}

// --- statements ------------------------------------------------------------------------------------------------------

void Interpreter::emit(const Text& text) {
  if (!charge(text.bytes.size())) return;
  output_bytes_ += text.bytes.size();
  if (output_bytes_ > options_.limits.max_output_bytes) {
    fail("more than {} bytes of output", options_.limits.max_output_bytes);
    return;
  }
  out_->append(text);
}

void Interpreter::emit(const Value& value) {
  if (value.is_string()) {
    emit(value.text());
  } else if (!value.is_undefined()) {
    emit(*str(value));
  }
}

Interpreter::Flow Interpreter::execute(const Body& body, Scope& scope) {
  for (const auto& stmt : body) {
    if (!ok()) break;
    const Flow flow = execute(*stmt, scope);
    if (flow != Flow::kNormal) return flow;
  }
  return Flow::kNormal;
}

Interpreter::Flow Interpreter::execute(const Stmt& stmt, Scope& scope) {
  Depth depth(*this);
  line_ = stmt.line;
  if (!charge()) return Flow::kNormal;
  switch (stmt.kind) {
    case StmtKind::kData:
      emit(*stmt.text);
      break;
    case StmtKind::kOutput:
      emit(evaluate(*stmt.expr, scope));
      break;
    case StmtKind::kIf:
      for (const Branch& branch : stmt.branches) {
        if (!branch.condition || truthy(evaluate(*branch.condition, scope))) return execute(branch.body, scope);
        if (!ok()) break;
      }
      break;
    case StmtKind::kFor:
      return execute_for(stmt, scope, evaluate(*stmt.expr, scope), 0);
    case StmtKind::kSet:
      assign(stmt.target, evaluate(*stmt.expr, scope), scope);
      break;
    case StmtKind::kSetBlock: {
      Value block = capture(stmt.body, scope, stmt.has_closure);
      assign(stmt.target, stmt.expr ? evaluate_filter(*stmt.expr, scope, &block) : std::move(block), scope);
      break;
    }
    case StmtKind::kFilterBlock: {
      const Value block = capture(stmt.body, scope, stmt.has_closure);
      emit(evaluate_filter(*stmt.expr, scope, &block));
      break;
    }
    case StmtKind::kGeneration:
      emit(capture(stmt.body, scope, stmt.has_closure));
      break;
    case StmtKind::kWith: {
      Scope stack_scope;
      Scope& inner = stmt.has_closure ? *heap_.make<Scope>() : stack_scope;
      inner.parent = &scope;
      for (const auto& [target, expr] : stmt.bindings) assign(target, evaluate(*expr, scope), inner);
      return execute(stmt.body, inner);
    }
    case StmtKind::kMacro:
    case StmtKind::kCallBlock: {
      auto* macro = heap_.make<Callable>();
      macro->kind = Callable::kMacro;
      macro->macro = stmt.macro.get();
      macro->scope = &scope;
      if (stmt.kind == StmtKind::kMacro) {
        define(scope, stmt.macro->name, Value(macro));
        break;
      }
      const Value callee = evaluate(*stmt.expr->args[0], scope);
      Args args = evaluate_arguments(stmt.expr->call, scope);
      args.named.emplace_back("caller", Value(macro));
      emit(call(callee, args));
      break;
    }
    case StmtKind::kBreak:
      return Flow::kBreak;
    case StmtKind::kContinue:
      return Flow::kContinue;
  }
  return Flow::kNormal;
}

Interpreter::Flow Interpreter::execute_for(const Stmt& stmt, Scope& scope, const Value& iterable, Int depth0) {
  Sequence* items = iterable.sequence();
  if (items == nullptr || items->kind == SequenceKind::kGenerator || stmt.condition) {
    items = list(iterate(iterable)).sequence();
    if (items == nullptr) return Flow::kNormal;
  }
  if (stmt.condition) {
    std::vector<Value> kept;
    for (const Value& item : items->items) {
      Scope inner;
      inner.parent = &scope;
      assign(stmt.target, item, inner);
      if (truthy(evaluate(*stmt.condition, inner))) kept.push_back(item);
      if (!charge()) return Flow::kNormal;
    }
    items->items = std::move(kept);
  }
  auto* loop = heap_.make<Loop>();
  loop->stmt = &stmt;
  loop->scope = &scope;
  loop->items = items;
  loop->depth0 = depth0;
  bool finished_one = false;
  // The length is read anew each time: the body may append to the list.
  for (size_t i = 0; i < items->items.size() && ok(); ++i) {
    loop->index0 = static_cast<Int>(i);
    Scope stack_scope;
    Scope& inner = stmt.has_closure ? *heap_.make<Scope>() : stack_scope;
    inner.parent = &scope;
    inner.set("loop", Value(loop));
    assign(stmt.target, items->items[i], inner);
    const Flow flow = execute(stmt.body, inner);
    line_ = stmt.line;
    if (!charge() || flow == Flow::kBreak) break;
    if (flow == Flow::kNormal) finished_one = true;
  }
  loop->scope = nullptr;
  // Jinja notes at the end of the body that the loop ran, so `continue` and `break` do not count.
  if (finished_one || stmt.else_body.empty() || !ok()) return Flow::kNormal;
  Scope stack_scope;
  Scope& inner = stmt.has_closure ? *heap_.make<Scope>() : stack_scope;
  inner.parent = &scope;
  return execute(stmt.else_body, inner);
}

Value Interpreter::capture(const Body& body, Scope& parent, bool has_closure) {
  Scope stack_scope;
  Scope& inner = has_closure ? *heap_.make<Scope>() : stack_scope;
  inner.parent = &parent;
  TextBuilder builder;
  TextBuilder* outer = out_;
  out_ = &builder;
  execute(body, inner);
  out_ = outer;
  output_bytes_ -= std::min(output_bytes_, builder.size_bytes());
  return text(std::move(builder));
}

void Interpreter::assign(const Target& target, Value value, Scope& scope) {
  if (!ok()) return;
  switch (target.kind) {
    case Target::kName:
      define(scope, target.name, std::move(value));
      break;
    case Target::kAttribute: {
      const Value object = lookup(target.name, scope);
      if (!object.is<Namespace*>()) {
        fail("cannot set {}.{}: '{}' is not a namespace but {}", target.name, target.attribute, target.name,
             type_name(object));
        return;
      }
      auto& attributes = object.get<Namespace*>()->attributes;
      charge(attributes.size() * sizeof(std::string));
      auto it = std::find_if(attributes.begin(), attributes.end(),
                             [&](const auto& entry) { return entry.first == target.attribute; });
      if (it != attributes.end()) {
        it->second = std::move(value);
      } else {
        attributes.emplace_back(target.attribute, std::move(value));
      }
      break;
    }
    case Target::kTuple: {
      const std::vector<Value> parts = iterate(value);
      if (ok() && parts.size() != target.parts.size()) {
        fail("cannot unpack {} values into {} names", parts.size(), target.parts.size());
      }
      for (size_t i = 0; i < parts.size() && ok(); ++i) assign(target.parts[i], parts[i], scope);
      break;
    }
  }
}

// --- expressions -----------------------------------------------------------------------------------------------------

Value Interpreter::lookup(const std::string& name, Scope& scope) {
  for (Scope* at = &scope; at != nullptr && ok(); at = at->parent) {
    if (!at->variables.empty()) charge(at->variables.size() * (sizeof(std::string_view) + name.size()));
    if (const Value* found = at->find_here(name)) return *found;
  }
  if (const Function function = find_function(name)) {
    auto* callable = heap_.make<Callable>();
    callable->name = name;
    callable->function = function;
    return Value(callable);
  }
  return Value(Undefined{&name});
}

Value Interpreter::evaluate(const Expr& expr, Scope& scope) {
  Depth depth(*this);
  line_ = expr.line;
  if (!charge()) return {};
  const auto arg = [&](size_t i) { return evaluate(*expr.args[i], scope); };
  const auto items = [&] {
    std::vector<Value> values;
    for (const auto& child : expr.args) values.push_back(evaluate(*child, scope));
    return values;
  };
  switch (expr.kind) {
    case ExprKind::kConst:
      return expr.constant;
    case ExprKind::kName:
      return lookup(expr.name, scope);
    case ExprKind::kAttribute:
      return attribute(arg(0), expr.name);
    case ExprKind::kItem: {
      const Value object = arg(0);
      return item(object, arg(1));
    }
    case ExprKind::kSlice: {
      const Value object = arg(0);
      Value bounds[3] = {None{}, None{}, None{}};
      for (size_t i = 0; i < 3; ++i) {
        if (expr.args[i + 1]) bounds[i] = arg(i + 1);
      }
      return slice(object, bounds[0], bounds[1], bounds[2]);
    }
    case ExprKind::kCall: {
      const Value callee = arg(0);
      Args args = evaluate_arguments(expr.call, scope);
      line_ = expr.line;
      return call(callee, args);
    }
    case ExprKind::kFilter:
      return evaluate_filter(expr, scope, nullptr);
    case ExprKind::kTest: {
      const Value input = arg(0);
      Args args = evaluate_arguments(expr.call, scope);
      line_ = expr.line;
      return boolean(test(expr.name, input, args));
    }
    case ExprKind::kList:
      return list(items());
    case ExprKind::kTuple:
      return list(items(), SequenceKind::kTuple);
    case ExprKind::kDict: {
      auto* dict = heap_.make<Dict>();
      for (size_t i = 0; i + 1 < expr.args.size() && ok(); i += 2) {
        Value name = arg(i);
        Value value = arg(i + 1);
        std::string key;
        if (ok() && !hash(name, key)) fail("{} cannot be a key of a dict", type_name(name));
        heap_.charge(2 * sizeof(Value) + key.size());
        dict->set(std::move(key), std::move(name), std::move(value));
      }
      return Value(dict);
    }
    case ExprKind::kNot:
      return boolean(!truthy(arg(0)));
    case ExprKind::kNegate:
    case ExprKind::kPlus: {
      const Value value = arg(0);
      if (value.is_undefined()) return fail_undefined(value);
      const bool negate = expr.kind == ExprKind::kNegate;
      if (value.is<double>()) return Value(negate ? -value.get<double>() : value.get<double>());
      if (!value.is_integral()) return fail("{} has no sign", type_name(value));
      return Value(negate ? -value.integral() : value.integral());
    }
    case ExprKind::kAnd: {
      Value left = arg(0);
      return truthy(left) ? arg(1) : left;
    }
    case ExprKind::kOr: {
      Value left = arg(0);
      return truthy(left) ? left : arg(1);
    }
    case ExprKind::kConditional:
      if (truthy(arg(0))) return arg(1);
      return expr.args[2] ? arg(2) : Value();
    case ExprKind::kCompare:
      return evaluate_compare(expr, scope);
    case ExprKind::kConcat: {
      TextBuilder builder;
      for (const auto& child : expr.args) {
        const TextPtr part = str(evaluate(*child, scope));
        if (!check_growth(part->bytes.size(), builder.size_bytes() + part->bytes.size())) return {};
        builder.append(*part);
      }
      return text(std::move(builder));
    }
    case ExprKind::kBinary: {
      const Value left = arg(0);
      const Value right = arg(1);
      line_ = expr.line;
      return ok() ? binary(expr.operators[0], left, right) : Value();
    }
  }
  return {};
}

Value Interpreter::evaluate_compare(const Expr& expr, Scope& scope) {
  Value left = evaluate(*expr.args[0], scope);
  Value result = true;
  for (size_t i = 0; i < expr.operators.size(); ++i) {
    Value right = evaluate(*expr.args[i + 1], scope);
    if (!ok()) return {};
    line_ = expr.line;
    result = binary(expr.operators[i], left, right);
    if (!ok() || !truthy(result)) break;
    left = std::move(right);
  }
  return result;
}

Args Interpreter::evaluate_arguments(const CallArguments& call, Scope& scope) {
  Args args;
  for (const auto& expr : call.positional) args.positional.push_back(evaluate(*expr, scope));
  for (const auto& [name, expr] : call.named) args.named.emplace_back(name, evaluate(*expr, scope));
  if (call.star) {
    for (Value& value : iterate(evaluate(*call.star, scope))) args.positional.push_back(std::move(value));
  }
  if (call.double_star) {
    const Value value = evaluate(*call.double_star, scope);
    if (value.dict() == nullptr) {
      fail("** needs a dict, not {}", type_name(value));
      return args;
    }
    for (const auto& [name, item] : value.dict()->entries) {
      if (!name.is_string()) {
        fail("** needs a dict whose keys are strings");
        return args;
      }
      if (!charge(name.bytes().size() + sizeof(Value))) return args;
      args.named.emplace_back(name.bytes(), item);
    }
  }
  return args;
}

Value Interpreter::evaluate_filter(const Expr& expr, Scope& scope, const Value* block_text) {
  Value input;
  if (expr.args[0] == nullptr) {
    input = *block_text;
  } else if (block_text != nullptr) {
    input = evaluate_filter(*expr.args[0], scope, block_text);
  } else {
    input = evaluate(*expr.args[0], scope);
  }
  Args args = evaluate_arguments(expr.call, scope);
  line_ = expr.line;
  return filter(expr.name, input, args);
}

Value Interpreter::filter(std::string_view name, const Value& input, Args& args) {
  if (!ok()) return {};
  const Filter function = find_filter(name);
  if (function == nullptr) return fail("{}", unknown_filter_message(name));
  return function(*this, input, args);
}

bool Interpreter::test(std::string_view name, const Value& input, Args& args) {
  if (!ok()) return false;
  const Test function = find_test(name);
  if (function == nullptr) {
    fail("{}", unknown_test_message(name));
    return false;
  }
  return function(*this, input, args);
}

// --- calls -----------------------------------------------------------------------------------------------------------

Value Interpreter::call(const Value& callee, Args& args) {
  if (!charge()) return {};
  if (callee.is_undefined()) return fail_undefined(callee);
  if (callee.is<Loop*>()) {
    const Loop& loop = *callee.get<Loop*>();
    if (!loop.stmt->recursive) return fail("loop(...) needs {{% for ... recursive %}}");
    if (loop.scope == nullptr || args.positional.size() != 1 || !args.named.empty()) {
      return fail("loop(...) takes one argument and can be called inside its loop only");
    }
    TextBuilder builder;
    TextBuilder* outer = out_;
    out_ = &builder;
    execute_for(*loop.stmt, *loop.scope, args.positional[0], loop.depth0 + 1);
    out_ = outer;
    output_bytes_ -= std::min(output_bytes_, builder.size_bytes());
    return text(std::move(builder));
  }
  if (!callee.is<Callable*>()) return fail("{} cannot be called", type_name(callee));
  Callable& callable = *callee.get<Callable*>();
  switch (callable.kind) {
    case Callable::kMacro: {
      if (calls_ >= options_.limits.max_calls) {
        return fail("more than {} macros call each other", options_.limits.max_calls);
      }
      ++calls_;
      Value result = call_macro(callable, args);
      --calls_;
      return result;
    }
    case Callable::kMethod:
      return call_method(*this, callable.self, callable.name, args);
    case Callable::kFunction:
      return callable.function(*this, args);
    case Callable::kLoopCycle: {
      const Loop& loop = *callable.self.get<Loop*>();
      if (args.positional.empty()) return fail("loop.cycle() needs something to cycle through");
      return args.positional[static_cast<size_t>(loop.index0) % args.positional.size()];
    }
    case Callable::kLoopChanged: {
      Loop& loop = *callable.self.get<Loop*>();
      bool same = loop.last_changed && loop.last_changed->size() == args.positional.size();
      for (size_t i = 0; same && i < args.positional.size(); ++i) {
        same = equal(args.positional[i], (*loop.last_changed)[i]);
      }
      charge(args.positional.size() * sizeof(Value));
      if (!same) loop.last_changed = args.positional;
      return boolean(!same);
    }
    case Callable::kJoiner:
      return callable.position++ == 0 ? text("", true) : callable.items[0];
    case Callable::kCyclerNext: {
      Callable& cycler = *callable.self.get<Callable*>();
      Value value = cycler.items[cycler.position];
      cycler.position = (cycler.position + 1) % cycler.items.size();
      return value;
    }
    case Callable::kCyclerReset:
      callable.self.get<Callable*>()->position = 0;
      return None{};
    case Callable::kCycler:
      return fail("a cycler cannot be called; use its next()");
  }
  return {};
}

Value Interpreter::call_macro(const Callable& callable, Args& args) {
  const Macro& macro = *callable.macro;
  Scope stack_scope;
  Scope& scope = macro.has_closure ? *heap_.make<Scope>() : stack_scope;
  scope.parent = callable.scope;
  const int line = line_;
  const size_t count = macro.parameters.size();
  for (size_t i = 0; i < count; ++i) {
    const std::string& name = macro.parameters[i];
    if (!charge(args.named.size() * sizeof(std::string))) return {};
    if (i < args.positional.size()) {
      define(scope, name, args.positional[i]);
      continue;
    }
    auto named = std::find_if(args.named.begin(), args.named.end(), [&](const auto& arg) { return arg.first == name; });
    if (named != args.named.end()) {
      define(scope, name, std::move(named->second));
      args.named.erase(named);
    } else if (i + macro.defaults.size() >= count) {
      define(scope, name, evaluate(*macro.defaults[i + macro.defaults.size() - count], scope));
    } else {
      define(scope, name, Value(Undefined{&kParameterNotGiven}));
    }
  }
  line_ = line;
  if (macro.uses_caller) {
    auto named =
        std::find_if(args.named.begin(), args.named.end(), [](const auto& arg) { return arg.first == "caller"; });
    if (named != args.named.end()) {
      scope.set("caller", std::move(named->second));
      args.named.erase(named);
    } else {
      scope.set("caller", Value(Undefined{&kNoCaller}));
    }
  }
  if (macro.uses_kwargs) {
    auto* dict = heap_.make<Dict>();
    for (auto& [name, value] : args.named) {
      charge(name.size());
      heap_.charge(2 * sizeof(Value) + name.size());
      dict->set(string_key(name), text(name, true), std::move(value));
    }
    scope.set("kwargs", Value(dict));
  } else if (!args.named.empty()) {
    return fail("macro '{}' has no parameter '{}'", macro.name, args.named[0].first);
  }
  const size_t extra = args.positional.size() > count ? args.positional.size() - count : 0;
  if (macro.uses_varargs) {
    scope.set("varargs", list(std::vector<Value>(args.positional.end() - static_cast<std::ptrdiff_t>(extra),
                                                 args.positional.end()),
                              SequenceKind::kTuple));
  } else if (extra != 0) {
    return fail("macro '{}' takes {} arguments, not {}", macro.name, count, args.positional.size());
  }
  TextBuilder builder;
  TextBuilder* outer = out_;
  out_ = &builder;
  execute(macro.body, scope);
  out_ = outer;
  line_ = line;
  output_bytes_ -= std::min(output_bytes_, builder.size_bytes());
  return text(std::move(builder));
}

Value Interpreter::make_method(const Value& self, std::string_view name) {
  if (options_.strict_sandbox && is_mutating_method(self, name)) return Value(Undefined{&kMutation});
  auto* method = heap_.make<Callable>();
  method->kind = Callable::kMethod;
  method->self = self;
  method->name = name;
  return Value(method);
}

// --- attributes ------------------------------------------------------------------------------------------------------

Value Interpreter::loop_attribute(Loop* loop, const std::string& name) {
  const Int length = static_cast<Int>(loop->items->items.size());
  const auto bound = [&](Callable::Kind kind) {
    auto* callable = heap_.make<Callable>();
    callable->kind = kind;
    callable->self = Value(loop);
    return Value(callable);
  };
  if (name == "index") return Value(loop->index0 + 1);
  if (name == "index0") return Value(loop->index0);
  if (name == "first") return boolean(loop->index0 == 0);
  if (name == "last") return boolean(loop->index0 + 1 == length);
  if (name == "length") return Value(length);
  if (name == "revindex") return Value(length - loop->index0);
  if (name == "revindex0") return Value(length - loop->index0 - 1);
  if (name == "depth") return Value(loop->depth0 + 1);
  if (name == "depth0") return Value(loop->depth0);
  if (name == "cycle") return bound(Callable::kLoopCycle);
  if (name == "changed") return bound(Callable::kLoopChanged);
  if (name == "previtem") {
    if (loop->index0 == 0) return Value(Undefined{&kNoPreviousItem});
    return loop->items->items[static_cast<size_t>(loop->index0 - 1)];
  }
  if (name == "nextitem") {
    if (loop->index0 + 1 >= length) return Value(Undefined{&kNoNextItem});
    return loop->items->items[static_cast<size_t>(loop->index0 + 1)];
  }
  return Value(Undefined{&name});
}

Value Interpreter::attribute(const Value& object, const std::string& name) {
  if (object.is_undefined()) return fail_undefined(object);
  if (!charge(name.size())) return {};
  if (name.starts_with("__")) return Value(Undefined{&name});
  if (has_method(object, name)) return make_method(object, name);
  if (const Dict* dict = object.dict()) {
    const Value* found = dict->find(string_key(name));
    return found != nullptr ? *found : Value(Undefined{&name});
  }
  if (object.is<Namespace*>()) {
    charge(object.get<Namespace*>()->attributes.size() * sizeof(std::string));
    for (const auto& [candidate, value] : object.get<Namespace*>()->attributes) {
      if (candidate == name) return value;
    }
  } else if (object.is<Loop*>()) {
    return loop_attribute(object.get<Loop*>(), name);
  } else if (const Sequence* sequence = object.sequence(); sequence != nullptr && sequence->is_group) {
    if (name == "grouper") return sequence->items[0];
    if (name == "list") return sequence->items[1];
  } else if (object.is<Callable*>()) {
    Callable& callable = *object.get<Callable*>();
    if (callable.kind == Callable::kMacro && name == "name") return text(callable.macro->name, true);
    if (callable.kind == Callable::kCycler) {
      if (name == "current") return callable.items[callable.position];
      if (name == "next" || name == "reset") {
        auto* method = heap_.make<Callable>();
        method->kind = name == "next" ? Callable::kCyclerNext : Callable::kCyclerReset;
        method->self = object;
        return Value(method);
      }
    }
  }
  return Value(Undefined{&name});
}

Value Interpreter::item(const Value& object, const Value& key) {
  if (!ok()) return {};
  if (object.is_undefined()) return fail_undefined(object);
  const std::string* what = key.is_string() ? &key.bytes() : nullptr;
  // A name made while rendering may be gone when the message is written.
  if (key.is_string() && key.text().heap != nullptr) what = nullptr;
  if (const Dict* dict = object.dict()) {
    std::string hashed;
    if (hash(key, hashed)) {
      if (const Value* found = dict->find(hashed)) return *found;
    }
  } else if (key.is_integral()) {
    Int index = key.integral();
    if (const Sequence* sequence = object.sequence(); sequence != nullptr && sequence->has_index()) {
      const Int size = static_cast<Int>(sequence->items.size());
      if (index < 0) index += size;
      if (index >= 0 && index < size) return sequence->items[static_cast<size_t>(index)];
    } else if (object.is_string()) {
      const Int size = *length(object);
      if (index < 0) index += size;
      if (index >= 0 && index < size) return slice(object, Value(index), Value(index + 1), None{});
    }
    return Value(Undefined{what});
  }
  if (!key.is_string()) return Value(Undefined{what});
  // Python objects have their attributes under string keys as well.
  if (key.bytes().starts_with("__")) return Value(Undefined{what});
  if (has_method(object, key.bytes())) return make_method(object, key.bytes());
  if (object.dict() != nullptr) return Value(Undefined{what});
  Value found = attribute(object, key.bytes());
  return found.is_undefined() ? Value(Undefined{what}) : found;
}

}  // namespace hearth::jinja
