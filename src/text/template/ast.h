// The syntax tree of a chat template.
#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "text/template/value.h"

namespace hearth::jinja {

enum class ExprKind {
  kConst,      // constant
  kName,       // name
  kAttribute,  // args[0].name
  kItem,       // args[0][args[1]]
  kSlice,      // args[0][args[1]:args[2]:args[3]], absent bounds are null
  kCall,       // args[0](...)
  kFilter,     // args[0] | name(...); args[0] is null inside a filter block: the block's text
  kTest,       // args[0] is name(...)
  kList,
  kTuple,
  kDict,  // args = key, value, key, value ...
  kNot,
  kNegate,
  kPlus,
  kAnd,
  kOr,
  kConditional,  // args[1] if args[0] else args[2] (may be null)
  kCompare,      // args[0] operators[0] args[1] operators[1] args[2] ...
  kConcat,       // args joined by ~
  kBinary,       // args[0] operators[0] args[1]
};

enum class Operator { kAdd, kSub, kMul, kDiv, kFloorDiv, kMod, kPow, kEq, kNe, kLt, kLe, kGt, kGe, kIn, kNotIn };

struct Expr;
using ExprPtr = std::unique_ptr<Expr>;

struct CallArguments {
  std::vector<ExprPtr> positional;
  std::vector<std::pair<std::string, ExprPtr>> named;
  ExprPtr star;         // *expr
  ExprPtr double_star;  // **expr
};

struct Expr {
  ExprKind kind;
  int line;
  int height = 1;
  std::string name;
  Value constant;
  std::vector<ExprPtr> args;
  std::vector<Operator> operators;
  CallArguments call;
};

enum class StmtKind {
  kOutput,       // expr
  kData,         // text
  kIf,           // branches: (condition or null for else) -> body
  kFor,          // target in expr if condition: body else else_body
  kSet,          // target = expr
  kSetBlock,     // target = body, through the filters of expr if there are any
  kWith,         // targets[i] = exprs[i]: body
  kMacro,        // macro
  kCallBlock,    // expr is the call, macro its caller
  kFilterBlock,  // body through the filters of expr
  kGeneration,   // body, in a scope of its own
  kBreak,
  kContinue,
};

// What can stand on the left of an assignment.
struct Target {
  enum Kind { kName, kAttribute, kTuple } kind = kName;
  std::string name;       // kName; of the namespace for kAttribute
  std::string attribute;  // kAttribute
  std::vector<Target> parts;
};

struct Stmt;
using Body = std::vector<std::unique_ptr<Stmt>>;

struct Macro {
  std::string name;  // empty for the body of a call block
  std::vector<std::string> parameters;
  std::vector<ExprPtr> defaults;  // for the last parameters
  Body body;
  bool uses_caller = false;
  bool uses_varargs = false;
  bool uses_kwargs = false;
  bool has_closure = false;
};

struct Branch {
  ExprPtr condition;
  Body body;
};

struct Stmt {
  StmtKind kind;
  int line;
  ExprPtr expr;
  TextPtr text;
  Target target;
  ExprPtr condition;
  Body body;
  Body else_body;
  std::vector<Branch> branches;
  std::vector<std::pair<Target, ExprPtr>> bindings;  // kWith
  std::unique_ptr<Macro> macro;
  bool recursive = false;
  bool has_closure = false;  // a macro or call block inside may outlive the scope of this body
};

// A parsed template. `names` are the variables it reads, `words` its attribute names and string constants: what a
// caller may want to know about a template without running it.
struct Template {
  Body body;
  std::vector<std::string> names;
  std::vector<std::string> words;
};

}  // namespace hearth::jinja
