#include "text/template/parser.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <initializer_list>
#include <optional>
#include <set>

#include "text/template/builtins.h"
#include "text/template/lexer.h"

namespace hearth::jinja {
namespace {

using Words = std::initializer_list<std::string_view>;

// After the first error every function returns at once with something harmless; parse_template() drops it.
class Parser {
 public:
  explicit Parser(std::vector<Token> tokens) : tokens_(std::move(tokens)) {}

  Result<Template> run() {
    Template result;
    result.body = parse_body({}, "", 1);
    if (error_) return std::move(*error_);
    result.names.assign(names_.begin(), names_.end());
    result.words.assign(words_.begin(), words_.end());
    return result;
  }

 private:
  // Restores a field when it goes out of scope.
  template <class T>
  struct Restore {
    T& field;
    T old;
    ~Restore() { field = old; }
  };
  template <class T>
  Restore<T> with(T& field, T value) {
    Restore<T> restore{field, field};
    field = value;
    return restore;
  }

  const Token& peek(size_t ahead = 0) const { return tokens_[std::min(index_ + ahead, tokens_.size() - 1)]; }
  const Token& take() {
    const Token& token = peek();
    if (index_ + 1 < tokens_.size()) ++index_;
    return token;
  }
  bool at_operator(std::string_view op) const { return peek().kind == TokenKind::kOperator && peek().text == op; }
  bool at_name(std::string_view name) const { return peek().kind == TokenKind::kName && peek().text == name; }
  bool at_any_name(Words names) const {
    return peek().kind == TokenKind::kName && std::find(names.begin(), names.end(), peek().text) != names.end();
  }
  bool skip_operator(std::string_view op) {
    if (!at_operator(op)) return false;
    take();
    return true;
  }
  bool skip_name(std::string_view name) {
    if (!at_name(name)) return false;
    take();
    return true;
  }

  void fail_at(int line, std::string_view message) {
    if (!error_) error_ = template_error(ErrorCode::kInvalidInput, line, message);
    index_ = tokens_.size() - 1;
  }
  void fail(std::string_view message) { fail_at(peek().line, message); }
  void fail_unexpected(std::string_view wanted) {
    const Token& token = peek();
    const std::string found = token.kind == TokenKind::kString ? string_repr(token.text)
                              : token.kind == TokenKind::kData ? "text"
                                                               : fmt::format("'{}'", token.text);
    fail(fmt::format("found {} where {} was expected", found, wanted));
  }
  void expect_operator(std::string_view op) {
    if (!skip_operator(op)) fail_unexpected(fmt::format("'{}'", op));
  }
  std::string expect_name(std::string_view what) {
    if (peek().kind != TokenKind::kName) {
      fail_unexpected(what);
      return {};
    }
    return take().text;
  }
  void expect_kind(TokenKind kind, std::string_view what) {
    if (peek().kind != kind) return fail_unexpected(what);
    take();
  }

  bool enter() {
    if (++depth_ <= kMaxParseDepth) return true;
    fail(fmt::format("nested more than {} levels deep", kMaxParseDepth));
    return false;
  }

  // --- expressions -------------------------------------------------------------------------------------------------

  static ExprPtr make(ExprKind kind, int line) {
    auto expr = std::make_unique<Expr>();
    expr->kind = kind;
    expr->line = line;
    return expr;
  }
  template <class... Args>
  ExprPtr make(ExprKind kind, int line, Args... args) {
    auto expr = make(kind, line);
    (expr->args.push_back(std::move(args)), ...);
    return measured(std::move(expr));
  }
  // Sets the height of a node whose children are complete. Chains like a+a+a grow without recursion here, but what
  // walks and frees the tree does recurse.
  ExprPtr measured(ExprPtr expr) {
    const auto include = [&](const ExprPtr& child) {
      if (child) expr->height = std::max(expr->height, child->height + 1);
    };
    for (const auto& child : expr->args) include(child);
    for (const auto& child : expr->call.positional) include(child);
    for (const auto& [_, child] : expr->call.named) include(child);
    include(expr->call.star);
    include(expr->call.double_star);
    if (expr->height > kMaxExpressionHeight) {
      fail_at(expr->line, fmt::format("an expression of more than {} steps", kMaxExpressionHeight));
    }
    return expr;
  }
  static ExprPtr constant(int line, Value value) {
    auto expr = make(ExprKind::kConst, line);
    expr->constant = std::move(value);
    return expr;
  }

  ExprPtr parse_expression(bool with_conditional = true) {
    auto restore_depth = with(depth_, depth_);
    if (!enter()) return constant(peek().line, None{});
    return with_conditional ? parse_conditional() : parse_or();
  }

  ExprPtr parse_conditional() {
    // Which filters may be missing depends on whether an `if` follows, so unknown ones are noted and judged after.
    auto restore_soft = with(soft_, soft_);
    const size_t unknown_before = unknown_.size();
    ExprPtr expr = parse_or();
    bool conditional = false;
    while (at_name("if") && !error_) {
      conditional = true;
      soft_ = true;
      const int line = take().line;
      ExprPtr test = parse_or();
      ExprPtr otherwise;
      if (skip_name("else")) {
        auto restore_depth = with(depth_, depth_);
        if (enter()) otherwise = parse_conditional();
      }
      expr = make(ExprKind::kConditional, line, std::move(test), std::move(expr), std::move(otherwise));
    }
    if (conditional) unknown_.resize(std::min(unknown_.size(), unknown_before));
    return expr;
  }

  ExprPtr parse_or() {
    ExprPtr left = parse_and();
    while (at_name("or")) {
      const int line = take().line;
      left = make(ExprKind::kOr, line, std::move(left), parse_and());
    }
    return left;
  }
  ExprPtr parse_and() {
    ExprPtr left = parse_not();
    while (at_name("and")) {
      const int line = take().line;
      left = make(ExprKind::kAnd, line, std::move(left), parse_not());
    }
    return left;
  }
  ExprPtr parse_not() {
    if (!at_name("not")) return parse_compare();
    auto restore_depth = with(depth_, depth_);
    if (!enter()) return constant(peek().line, None{});
    const int line = take().line;
    return make(ExprKind::kNot, line, parse_not());
  }

  std::optional<Operator> take_comparison() {
    constexpr std::pair<std::string_view, Operator> kComparisons[] = {{"==", Operator::kEq}, {"!=", Operator::kNe},
                                                                      {"<", Operator::kLt},  {"<=", Operator::kLe},
                                                                      {">", Operator::kGt},  {">=", Operator::kGe}};
    if (peek().kind == TokenKind::kOperator) {
      for (const auto& [text, op] : kComparisons) {
        if (skip_operator(text)) return op;
      }
    }
    if (skip_name("in")) return Operator::kIn;
    if (at_name("not") && peek(1).kind == TokenKind::kName && peek(1).text == "in") {
      take();
      take();
      return Operator::kNotIn;
    }
    return std::nullopt;
  }
  ExprPtr parse_compare() {
    ExprPtr first = parse_sum();
    const int line = peek().line;
    auto op = take_comparison();
    if (!op) return first;
    ExprPtr compare = make(ExprKind::kCompare, line, std::move(first));
    for (; op; op = take_comparison()) {
      compare->operators.push_back(*op);
      compare->args.push_back(parse_sum());
    }
    return measured(std::move(compare));
  }

  template <class Next>
  ExprPtr parse_binary(std::initializer_list<std::pair<std::string_view, Operator>> operators, Next next) {
    ExprPtr left = next();
    while (!error_) {
      const auto* found = std::find_if(operators.begin(), operators.end(),
                                       [&](const auto& candidate) { return at_operator(candidate.first); });
      if (found == operators.end()) break;
      const int line = take().line;
      left = make(ExprKind::kBinary, line, std::move(left), next());
      left->operators.push_back(found->second);
    }
    return left;
  }
  ExprPtr parse_sum() {
    return parse_binary({{"+", Operator::kAdd}, {"-", Operator::kSub}}, [&] { return parse_concat(); });
  }
  ExprPtr parse_concat() {
    ExprPtr first = parse_product();
    if (!at_operator("~")) return first;
    ExprPtr concat = make(ExprKind::kConcat, peek().line, std::move(first));
    while (skip_operator("~")) concat->args.push_back(parse_product());
    return measured(std::move(concat));
  }
  ExprPtr parse_product() {
    return parse_binary(
        {{"*", Operator::kMul}, {"/", Operator::kDiv}, {"//", Operator::kFloorDiv}, {"%", Operator::kMod}}, [&] {
          // Jinja's power binds to the left and after the sign: -2**2 is 4.
          return parse_binary({{"**", Operator::kPow}}, [&] { return parse_unary(true); });
        });
  }
  ExprPtr parse_unary(bool with_filter) {
    auto restore_depth = with(depth_, depth_);
    if (!enter()) return constant(peek().line, None{});
    ExprPtr expr;
    const int line = peek().line;
    if (skip_operator("-")) {
      expr = make(ExprKind::kNegate, line, parse_unary(false));
    } else if (skip_operator("+")) {
      expr = make(ExprKind::kPlus, line, parse_unary(false));
    } else {
      expr = parse_primary();
    }
    expr = parse_postfix(std::move(expr));
    return with_filter ? parse_filters_and_tests(std::move(expr)) : std::move(expr);
  }

  ExprPtr parse_primary() {
    const Token& token = peek();
    const int line = token.line;
    switch (token.kind) {
      case TokenKind::kName: {
        take();
        const std::string& name = token.text;
        if (name == "true" || name == "True") return constant(line, true);
        if (name == "false" || name == "False") return constant(line, false);
        if (name == "none" || name == "None") return constant(line, None{});
        names_.insert(name);
        for (Macro* macro : macros_) {
          macro->uses_caller |= name == "caller";
          macro->uses_varargs |= name == "varargs";
          macro->uses_kwargs |= name == "kwargs";
        }
        ExprPtr expr = make(ExprKind::kName, line);
        expr->name = name;
        return expr;
      }
      case TokenKind::kString: {
        std::string text = take().text;
        while (peek().kind == TokenKind::kString) text += take().text;
        words_.insert(text);
        return constant(line, literal_text(text));
      }
      case TokenKind::kInteger:
        take();
        return constant(line, token.integer);
      case TokenKind::kFloat:
        take();
        return constant(line, token.real);
      case TokenKind::kOperator:
        if (skip_operator("(")) {
          ExprPtr expr = parse_tuple(true, false, true);
          expect_operator(")");
          return expr;
        }
        if (skip_operator("[")) return parse_list(line);
        if (skip_operator("{")) return parse_dict(line);
        [[fallthrough]];
      default:
        fail_unexpected("an expression");
        return constant(line, None{});
    }
  }

  ExprPtr parse_list(int line) {
    ExprPtr list = make(ExprKind::kList, line);
    while (!error_ && !skip_operator("]")) {
      if (!list->args.empty()) {
        expect_operator(",");
        if (skip_operator("]")) break;
      }
      list->args.push_back(parse_expression());
    }
    return measured(std::move(list));
  }
  ExprPtr parse_dict(int line) {
    ExprPtr dict = make(ExprKind::kDict, line);
    while (!error_ && !skip_operator("}")) {
      if (!dict->args.empty()) {
        expect_operator(",");
        if (skip_operator("}")) break;
      }
      dict->args.push_back(parse_expression());
      expect_operator(":");
      dict->args.push_back(parse_expression());
    }
    return measured(std::move(dict));
  }

  // One expression, or a tuple without parentheses. `stop_at_recursive` is the one extra end that Jinja knows.
  ExprPtr parse_tuple(bool with_conditional, bool stop_at_recursive, bool in_parentheses) {
    const int line = peek().line;
    std::vector<ExprPtr> items;
    bool is_tuple = false;
    while (!error_) {
      if (!items.empty()) expect_operator(",");
      if (peek().kind == TokenKind::kVariableEnd || peek().kind == TokenKind::kBlockEnd || at_operator(")") ||
          (stop_at_recursive && at_name("recursive"))) {
        break;
      }
      items.push_back(parse_expression(with_conditional));
      if (!at_operator(",")) break;
      is_tuple = true;
    }
    if (!is_tuple && !items.empty()) return std::move(items[0]);
    if (!is_tuple && !in_parentheses) fail_unexpected("an expression");
    ExprPtr tuple = make(ExprKind::kTuple, line);
    tuple->args = std::move(items);
    return measured(std::move(tuple));
  }

  ExprPtr parse_postfix(ExprPtr expr) {
    while (!error_) {
      const int line = peek().line;
      if (skip_operator(".")) {
        if (peek().kind == TokenKind::kInteger) {
          expr = make(ExprKind::kItem, line, std::move(expr), constant(line, take().integer));
        } else {
          expr = make(ExprKind::kAttribute, line, std::move(expr));
          expr->name = expect_name("a name or a number");
          words_.insert(expr->name);
        }
      } else if (skip_operator("[")) {
        expr = parse_subscript(std::move(expr), line);
      } else if (at_operator("(")) {
        expr = parse_call(std::move(expr));
      } else {
        break;
      }
    }
    return expr;
  }

  ExprPtr parse_subscript(ExprPtr object, int line) {
    ExprPtr bounds[3];
    const auto at_end = [&] { return at_operator("]") || at_operator(",") || at_operator(":"); };
    if (!at_operator(":")) {
      bounds[0] = parse_expression();
      if (!at_operator(":")) {
        if (at_operator(",")) {
          ExprPtr key = make(ExprKind::kTuple, line, std::move(bounds[0]));
          while (skip_operator(",")) key->args.push_back(parse_expression());
          bounds[0] = measured(std::move(key));
        }
        expect_operator("]");
        return make(ExprKind::kItem, line, std::move(object), std::move(bounds[0]));
      }
    }
    for (int i = 1; i <= 2 && skip_operator(":"); ++i) {
      if (!at_end()) bounds[i] = parse_expression();
    }
    expect_operator("]");
    return make(ExprKind::kSlice, line, std::move(object), std::move(bounds[0]), std::move(bounds[1]),
                std::move(bounds[2]));
  }

  ExprPtr parse_call(ExprPtr callee) {
    const int line = peek().line;
    ExprPtr call = make(ExprKind::kCall, line, std::move(callee));
    call->call = parse_arguments();
    return measured(std::move(call));
  }

  CallArguments parse_arguments() {
    CallArguments out;
    expect_operator("(");
    bool first = true;
    while (!error_ && !skip_operator(")")) {
      if (!first) {
        expect_operator(",");
        if (skip_operator(")")) break;
      }
      first = false;
      if (at_operator("*") && !out.star && !out.double_star) {
        take();
        out.star = parse_expression();
      } else if (at_operator("**") && !out.double_star) {
        take();
        out.double_star = parse_expression();
      } else if (peek().kind == TokenKind::kName && peek(1).kind == TokenKind::kOperator && peek(1).text == "=" &&
                 !out.double_star) {
        std::string name = take().text;
        take();
        out.named.emplace_back(std::move(name), parse_expression());
      } else if (!out.star && !out.double_star && out.named.empty()) {
        out.positional.push_back(parse_expression());
      } else {
        fail("arguments without a name must stand before the others");
      }
    }
    return out;
  }

  std::string parse_dotted_name(std::string_view what) {
    std::string name = expect_name(what);
    while (skip_operator(".")) name += "." + expect_name(what);
    return name;
  }

  // Notes an unknown filter or test; judge_unknown() makes it an error unless a conditional around it forgave it.
  void note_unknown(int line, std::string message) {
    if (!soft_) unknown_.push_back({line, std::move(message)});
  }
  void judge_unknown() {
    if (!unknown_.empty()) fail_at(unknown_[0].first, unknown_[0].second);
    unknown_.clear();
  }

  ExprPtr parse_filter(ExprPtr input) {
    const int line = peek().line;
    ExprPtr filter = make(ExprKind::kFilter, line, std::move(input));
    filter->name = parse_dotted_name("the name of a filter");
    if (!error_ && find_filter(filter->name) == nullptr) note_unknown(line, unknown_filter_message(filter->name));
    if (at_operator("(")) filter->call = parse_arguments();
    return measured(std::move(filter));
  }

  ExprPtr parse_test(ExprPtr input) {
    const int line = take().line;  // is
    const bool negated = skip_name("not");
    ExprPtr test = make(ExprKind::kTest, line, std::move(input));
    test->name = parse_dotted_name("the name of a test");
    if (!error_ && find_test(test->name) == nullptr) note_unknown(line, unknown_test_message(test->name));
    const TokenKind kind = peek().kind;
    if (at_operator("(")) {
      test->call = parse_arguments();
    } else if ((kind == TokenKind::kName || kind == TokenKind::kString || kind == TokenKind::kInteger ||
                kind == TokenKind::kFloat || at_operator("[") || at_operator("{")) &&
               !at_any_name({"else", "or", "and"})) {
      if (at_name("is")) fail("tests cannot be chained with is");
      test->call.positional.push_back(parse_postfix(parse_primary()));
    }
    test = measured(std::move(test));
    return negated ? make(ExprKind::kNot, line, std::move(test)) : std::move(test);
  }

  ExprPtr parse_filters_and_tests(ExprPtr expr) {
    while (!error_) {
      if (skip_operator("|")) {
        expr = parse_filter(std::move(expr));
      } else if (at_name("is")) {
        expr = parse_test(std::move(expr));
      } else if (at_operator("(")) {
        expr = parse_call(std::move(expr));
      } else {
        break;
      }
    }
    return expr;
  }

  // --- statements --------------------------------------------------------------------------------------------------

  std::unique_ptr<Stmt> statement(StmtKind kind, int line) {
    auto stmt = std::make_unique<Stmt>();
    stmt->kind = kind;
    stmt->line = line;
    return stmt;
  }

  // Statements up to a tag named in `ends`, which is left as the current token.
  Body parse_body(Words ends, std::string_view opener, int opener_line) {
    Body body;
    auto restore_depth = with(depth_, depth_);
    if (!enter()) return body;
    while (!error_) {
      const Token& token = peek();
      if (token.kind == TokenKind::kEnd) {
        if (ends.size() != 0) {
          fail_at(opener_line, fmt::format("{} is never closed; expected {}", opener, fmt::join(ends, " or ")));
        }
        break;
      }
      if (token.kind == TokenKind::kData) {
        body.push_back(statement(StmtKind::kData, token.line));
        body.back()->text = literal_text(take().text);
      } else if (token.kind == TokenKind::kVariableBegin) {
        take();
        body.push_back(statement(StmtKind::kOutput, token.line));
        body.back()->expr = parse_tuple(true, false, false);
        judge_unknown();
        expect_kind(TokenKind::kVariableEnd, "'}}'");
      } else {
        take();  // {%
        if (at_any_name(ends)) break;
        if (auto stmt = parse_statement()) body.push_back(std::move(stmt));
        judge_unknown();
        expect_kind(TokenKind::kBlockEnd, "'%}'");
      }
    }
    return body;
  }

  // The body of a tag that makes a scope, from the end of its opening tag to behind the name of `end`.
  Body parse_block(std::string_view end, std::string_view opener, int line) {
    open_block();
    auto restore_soft = with(soft_, false);
    Body body = parse_body({end}, opener, line);
    take();
    return body;
  }
  void open_block() {
    judge_unknown();
    skip_operator(":");
    expect_kind(TokenKind::kBlockEnd, "'%}'");
  }

  std::unique_ptr<Stmt> parse_statement() {
    const Token& token = peek();
    if (token.kind != TokenKind::kName) {
      fail_unexpected("the name of a tag");
      return nullptr;
    }
    const int line = token.line;
    const std::string& name = token.text;
    if (name == "if") return parse_if(line);
    if (name == "for") return parse_for(line);
    if (name == "set") return parse_set(line);
    if (name == "macro") return parse_macro(line);
    if (name == "call") return parse_call_block(line);
    if (name == "with") return parse_with(line);
    if (name == "filter") {
      take();
      auto stmt = statement(StmtKind::kFilterBlock, line);
      const int closures = closures_;
      stmt->expr = parse_filter_chain(parse_filter(nullptr));
      stmt->body = parse_block("endfilter", "{% filter %}", line);
      stmt->has_closure = closures_ != closures;
      return stmt;
    }
    if (name == "generation") {
      take();
      auto stmt = statement(StmtKind::kGeneration, line);
      const int closures = closures_;
      auto restore_loops = with(loops_, 0);
      stmt->body = parse_block("endgeneration", "{% generation %}", line);
      stmt->has_closure = closures_ != closures;
      return stmt;
    }
    if (name == "break" || name == "continue") {
      take();
      if (loops_ == 0) fail_at(line, fmt::format("{{% {} %}} outside of a loop", name));
      return statement(name == "break" ? StmtKind::kBreak : StmtKind::kContinue, line);
    }
    if (name == "print") {
      take();
      auto stmt = statement(StmtKind::kOutput, line);
      stmt->expr = parse_tuple(true, false, false);
      return stmt;
    }
    fail(
        fmt::format("found tag '{}'; supported are break, call, continue, filter, for, generation, if, macro, print, "
                    "raw, set and with",
                    name));
    return nullptr;
  }

  ExprPtr parse_filter_chain(ExprPtr filter) {
    while (skip_operator("|")) filter = parse_filter(std::move(filter));
    return filter;
  }

  Target parse_target_name(bool with_attribute) {
    Target target;
    target.name = expect_name("a name to assign to");
    if (with_attribute && skip_operator(".")) {
      target.kind = Target::kAttribute;
      target.attribute = expect_name("the name of an attribute");
      words_.insert(target.attribute);
      names_.insert(target.name);
    }
    static constexpr std::string_view kConstants[] = {"true", "True", "false", "False", "none", "None"};
    if (std::find(std::begin(kConstants), std::end(kConstants), target.name) != std::end(kConstants)) {
      fail(fmt::format("cannot assign to '{}'", target.name));
    }
    return target;
  }
  Target parse_target_part() {
    if (!skip_operator("(")) return parse_target_name(false);
    auto restore_depth = with(depth_, depth_);
    Target target;
    if (enter()) target = parse_target_tuple();
    expect_operator(")");
    return target;
  }
  Target parse_target_tuple() {
    Target first = parse_target_part();
    if (!at_operator(",")) return first;
    Target tuple;
    tuple.kind = Target::kTuple;
    tuple.parts.push_back(std::move(first));
    while (!error_ && skip_operator(",")) {
      if (at_operator("=") || at_operator(")") || at_name("in") || peek().kind == TokenKind::kBlockEnd) break;
      tuple.parts.push_back(parse_target_part());
    }
    return tuple;
  }

  std::unique_ptr<Stmt> parse_if(int line) {
    auto stmt = statement(StmtKind::kIf, line);
    auto restore_soft = with(soft_, true);
    while (!error_) {
      take();  // if, elif
      Branch branch;
      branch.condition = parse_tuple(false, false, false);
      open_block();
      branch.body = parse_body({"elif", "else", "endif"}, "{% if %}", line);
      stmt->branches.push_back(std::move(branch));
      if (at_name("elif")) continue;
      if (skip_name("else")) {
        open_block();
        Branch otherwise;
        otherwise.body = parse_body({"endif"}, "{% else %}", line);
        stmt->branches.push_back(std::move(otherwise));
      }
      take();  // endif
      break;
    }
    return stmt;
  }

  std::unique_ptr<Stmt> parse_for(int line) {
    take();
    auto stmt = statement(StmtKind::kFor, line);
    const int closures = closures_;
    stmt->target = parse_target_tuple();
    if (!skip_name("in")) fail_unexpected("'in'");
    stmt->expr = parse_tuple(false, true, false);
    judge_unknown();
    if (skip_name("if")) {
      auto restore_soft = with(soft_, false);
      stmt->condition = parse_expression();
    }
    stmt->recursive = skip_name("recursive");
    open_block();
    {
      auto restore_soft = with(soft_, false);
      {
        auto restore_loops = with(loops_, loops_ + 1);
        stmt->body = parse_body({"endfor", "else"}, "{% for %}", line);
      }
      if (skip_name("else")) {
        open_block();
        stmt->else_body = parse_body({"endfor"}, "{% else %}", line);
      }
    }
    take();  // endfor
    stmt->has_closure = closures_ != closures || stmt->recursive;
    return stmt;
  }

  std::unique_ptr<Stmt> parse_set(int line) {
    take();
    auto stmt = statement(StmtKind::kSet, line);
    if (peek().kind == TokenKind::kName && peek(1).kind == TokenKind::kOperator && peek(1).text == ".") {
      stmt->target = parse_target_name(true);
    } else {
      stmt->target = parse_target_tuple();
    }
    if (skip_operator("=")) {
      stmt->expr = parse_tuple(true, false, false);
      return stmt;
    }
    stmt->kind = StmtKind::kSetBlock;
    const int closures = closures_;
    if (skip_operator("|")) stmt->expr = parse_filter_chain(parse_filter(nullptr));
    stmt->body = parse_block("endset", "{% set %}", line);
    stmt->has_closure = closures_ != closures;
    return stmt;
  }

  std::unique_ptr<Stmt> parse_with(int line) {
    take();
    auto stmt = statement(StmtKind::kWith, line);
    const int closures = closures_;
    while (!error_ && peek().kind != TokenKind::kBlockEnd) {
      if (!stmt->bindings.empty()) expect_operator(",");
      Target target = parse_target_tuple();
      expect_operator("=");
      stmt->bindings.emplace_back(std::move(target), parse_expression());
    }
    stmt->body = parse_block("endwith", "{% with %}", line);
    stmt->has_closure = closures_ != closures;
    return stmt;
  }

  void parse_parameters(Macro& macro) {
    expect_operator("(");
    while (!error_ && !skip_operator(")")) {
      if (!macro.parameters.empty()) expect_operator(",");
      macro.parameters.push_back(parse_target_name(false).name);
      if (skip_operator("=")) {
        macro.defaults.push_back(parse_expression());
      } else if (!macro.defaults.empty()) {
        fail("a parameter without a default follows one with a default");
      }
    }
  }
  void parse_macro_body(Macro& macro, std::string_view end, std::string_view opener, int line) {
    macros_.push_back(&macro);
    const int closures = closures_;
    auto restore_loops = with(loops_, 0);
    macro.body = parse_block(end, opener, line);
    macro.has_closure = closures_ != closures;
    ++closures_;
    macros_.pop_back();
  }
  std::unique_ptr<Stmt> parse_macro(int line) {
    take();
    auto stmt = statement(StmtKind::kMacro, line);
    stmt->macro = std::make_unique<Macro>();
    stmt->macro->name = parse_target_name(false).name;
    parse_parameters(*stmt->macro);
    parse_macro_body(*stmt->macro, "endmacro", "{% macro %}", line);
    return stmt;
  }
  std::unique_ptr<Stmt> parse_call_block(int line) {
    take();
    auto stmt = statement(StmtKind::kCallBlock, line);
    stmt->macro = std::make_unique<Macro>();
    if (at_operator("(")) parse_parameters(*stmt->macro);
    stmt->expr = parse_expression();
    if (!error_ && stmt->expr->kind != ExprKind::kCall) fail("{% call %} needs a call of a macro");
    parse_macro_body(*stmt->macro, "endcall", "{% call %}", line);
    return stmt;
  }

  std::vector<Token> tokens_;
  size_t index_ = 0;
  std::optional<Error> error_;
  int depth_ = 0;
  int loops_ = 0;      // loops around the current statement, within its macro
  int closures_ = 0;   // macros and call blocks seen so far
  bool soft_ = false;  // directly inside an if
  std::vector<std::pair<int, std::string>> unknown_;
  std::vector<Macro*> macros_;
  std::set<std::string> names_;
  std::set<std::string> words_;
};

}  // namespace

Result<Template> parse_template(std::string_view source) {
  auto tokens = tokenize(source);
  if (!tokens) return std::move(tokens).error();
  return Parser(std::move(*tokens)).run();
}

}  // namespace hearth::jinja
