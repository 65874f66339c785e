// Runs the syntax tree of a chat template with the semantics of Jinja on Python.
#pragma once

#include <fmt/format.h>

#include <ctime>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "text/template/ast.h"
#include "text/template/builtins.h"
#include "text/template/chat_template.h"
#include "text/template/value.h"

namespace hearth::jinja {

// The variables of a body. Lookups go outwards; assignments stay here.
struct Scope : Object {
  Scope* parent = nullptr;
  std::vector<std::pair<std::string_view, Value>> variables;  // names live in the tree

  Value* find_here(std::string_view name);
  void set(std::string_view name, Value value);
};

struct Loop : Object {
  const Stmt* stmt = nullptr;
  Scope* scope = nullptr;  // around the loop, for loop(...)
  Sequence* items = nullptr;
  Int index0 = 0;
  Int depth0 = 0;
  std::optional<std::vector<Value>> last_changed;
};

struct Callable : Object {
  enum Kind { kMacro, kMethod, kFunction, kLoopCycle, kLoopChanged, kCycler, kJoiner, kCyclerNext, kCyclerReset };
  Kind kind = kFunction;
  const Macro* macro = nullptr;
  Scope* scope = nullptr;  // where the macro was defined
  Value self;              // of a method; the loop of kLoop*; the cycler of kCycler*
  std::string name;
  Function function = nullptr;
  std::vector<Value> items;  // kCycler; the separator of kJoiner
  size_t position = 0;
};

// After the first error everything returns at once with something harmless; run() then returns that error.
class Interpreter {
 public:
  Interpreter(const Template& tree, const TemplateOptions& options);

  Result<Rendered> run(const nlohmann::ordered_json& context);

  // --- for the builtins ---

  bool ok() const { return !error_; }
  template <class... T>
  Value fail(fmt::format_string<T...> format, T&&... args) {
    return fail_with(ErrorCode::kInvalidInput, fmt::format(format, std::forward<T>(args)...));
  }
  Value fail_with(ErrorCode code, std::string_view message);
  Value fail_undefined(const Value& value);
  // Counts one step and the bytes that an operation touches. False once a limit is passed.
  bool charge(size_t bytes = 0);
  // The hashed form of a key. False for what Python cannot hash, or with an error when it is too large.
  bool hash(const Value& value, std::string& out);
  // Sets a variable; names are compared one by one, which counts as work.
  void define(Scope& scope, std::string_view name, Value value);
  // False, with an error, if a text or list of `bytes` would not fit.
  bool check_size(Int bytes);
  // The same for a text that grows by `added` to `total` bytes; only what was added counts as work.
  bool check_growth(size_t added, size_t total);

  Heap& heap() { return heap_; }
  const TemplateOptions& options() const { return options_; }

  Value text(TextBuilder&& builder, bool markup = false);
  Value text(std::string_view bytes, bool trusted) { return Value(heap_.text(bytes, trusted)); }
  Value list(std::vector<Value> items, SequenceKind kind = SequenceKind::kList);
  Value boolean(bool value) { return Value(value); }
  Value from_json(const nlohmann::ordered_json& json, bool trusted, int depth = 0);
  // Appends json.dumps(value); what is wrong with the value makes the render fail.
  struct JsonStyle {
    bool ensure_ascii = false;
    bool sort_keys = false;
    std::optional<std::string> indent;
    std::string item_separator = ", ";
    std::string key_separator = ": ";
  };
  Value to_json(const Value& value, const JsonStyle& style);

  bool truthy(const Value& value);
  bool equal(const Value& a, const Value& b, int depth = 0);
  // a < b, with Python's rules for what can be ordered.
  bool less(const Value& a, const Value& b, int depth = 0);
  bool contains(const Value& container, const Value& item);
  // Items of anything iterable. A generator is used up.
  std::vector<Value> iterate(const Value& value);
  std::optional<Int> length(const Value& value);
  TextPtr str(const Value& value);
  void repr(TextBuilder& out, const Value& value, int depth = 0);
  Value attribute(const Value& object, const std::string& name);
  Value item(const Value& object, const Value& key);
  Value slice(const Value& object, const Value& start, const Value& stop, const Value& step);
  Value binary(Operator op, const Value& a, const Value& b);
  Value call(const Value& callee, Args& args);
  Value filter(std::string_view name, const Value& input, Args& args);
  bool test(std::string_view name, const Value& input, Args& args);
  // The characters of a text, each a text.
  std::vector<Value> characters(const Text& text);
  Value substring(const Text& text, size_t begin, size_t end);
  // An integer argument; fails if it is something else.
  Int integer(const Value& value, std::string_view what);
  // "..." % value and "...".format(...).
  Value format_percent(const Text& format, const Value& value);
  Value format_braces(const Text& format, Args& args);

 private:
  enum class Flow { kNormal, kBreak, kContinue };

  // Counts nested evaluation; fails past the limit.
  struct Depth {
    explicit Depth(Interpreter& interpreter);
    ~Depth() { --interpreter_.depth_; }
    Interpreter& interpreter_;
  };

  Flow execute(const Body& body, Scope& scope);
  Flow execute(const Stmt& stmt, Scope& scope);
  Flow execute_for(const Stmt& stmt, Scope& scope, const Value& iterable, Int depth0);
  // Runs a body in a scope of its own and returns what it wrote.
  Value capture(const Body& body, Scope& parent, bool has_closure);
  void assign(const Target& target, Value value, Scope& scope);
  void emit(const Value& value);
  void emit(const Text& text);

  Value evaluate(const Expr& expr, Scope& scope);
  Value evaluate_compare(const Expr& expr, Scope& scope);
  Value evaluate_filter(const Expr& expr, Scope& scope, const Value* block_text);
  Args evaluate_arguments(const CallArguments& call, Scope& scope);
  Value lookup(const std::string& name, Scope& scope);
  Value call_macro(const Callable& callable, Args& args);
  Value make_method(const Value& self, std::string_view name);
  Value loop_attribute(Loop* loop, const std::string& name);
  Value arithmetic(Operator op, const Value& a, const Value& b);
  Value add(const Value& a, const Value& b);
  Value repeat(const Value& a, Int times);
  void json_value(TextBuilder& out, const Value& value, const JsonStyle& style, int depth);

  const Template& tree_;
  const TemplateOptions& options_;
  Heap heap_;
  std::optional<Error> error_;
  int line_ = 1;
  int depth_ = 0;
  int calls_ = 0;
  int64_t steps_ = 0;
  size_t output_bytes_ = 0;
  TextBuilder* out_ = nullptr;
};

}  // namespace hearth::jinja
