#pragma once

#include <algorithm>
#include <initializer_list>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "wick/text/jinja/parse/lexer.h"
#include "wick/text/jinja/parse/syntax.h"

namespace wick::text::jinja {

/// Reads tokens and makes expressions of them: the part of the parser that statements share.
class ExpressionParser {
 public:
  ExpressionParser(std::string_view source, Run& run);

 protected:
  const Token& current() const { return tokens_[next_]; }
  const Token& following() const { return tokens_[std::min(next_ + 1, tokens_.size() - 1)]; }
  Token take() { return tokens_[next_ + 1 < tokens_.size() ? next_++ : next_]; }
  bool skip_symbol(std::string_view symbol);
  bool skip_name(std::string_view name);
  void expect_symbol(std::string_view symbol);
  Token expect_name();
  [[noreturn]] void fail(std::string_view what) const;
  [[noreturn]] void fail_at(const Token& token, std::string_view what) const;
  /// "unexpected …", for the current token.
  [[noreturn]] void fail_unexpected() const;

  /// The slot of a variable.
  int slot(const std::string& name);

  ExpressionPtr expression(bool with_condition = true);
  /// Reads an expression, or a tuple without brackets; in brackets it may be empty.
  ExpressionPtr tuple(bool with_condition, bool bracketed = false);
  /// Reads what a value is assigned to: a variable, variables in a tuple, or `name.attribute`.
  ExpressionPtr target(bool with_tuple, bool with_namespace);
  /// Reads filters of a value; of a block if `value` is null, whose first filter has no |.
  ExpressionPtr filters(ExpressionPtr value);

  /// Fails if an expression has a filter or test that doesn't exist. Conditional code may have
  /// such: they are errors when they are evaluated.
  void check_known();

  Run& run_;
  std::vector<std::string> names_;
  bool conditional_ = false;  // whether statements at this point are in an if block
  // How often the special variables were read so far.
  size_t caller_reads_ = 0, varargs_reads_ = 0, kwargs_reads_ = 0;

 private:
  ExpressionPtr make(Expression::Kind kind, uint32_t line, std::vector<ExpressionPtr> parts);
  ExpressionPtr finish(ExpressionPtr made) const;
  ExpressionPtr logical_or();
  ExpressionPtr logical_and();
  ExpressionPtr logical_not();
  ExpressionPtr compare();
  ExpressionPtr sum();
  ExpressionPtr concatenation();
  ExpressionPtr product();
  ExpressionPtr power();
  ExpressionPtr unary(bool with_filters);
  ExpressionPtr primary();
  ExpressionPtr postfix(ExpressionPtr value);
  ExpressionPtr filters_and_tests(ExpressionPtr value);
  ExpressionPtr filter(ExpressionPtr value);
  ExpressionPtr test(ExpressionPtr value);
  ExpressionPtr subscript(ExpressionPtr value);
  ExpressionPtr call(ExpressionPtr value);
  std::unique_ptr<CallArguments> arguments();
  ExpressionPtr literal(Value value, uint32_t line);
  ExpressionPtr number(const Token& token);

  /// Notes a filter or test that doesn't exist.
  void unknown(const Token& token, std::string_view kind);

  class Level;  // held while a nested expression is read

  std::string_view source_;
  std::vector<Token> tokens_;
  size_t next_ = 0;
  int level_ = 0;
  std::vector<std::pair<Token, std::string>> unknown_;
  std::unordered_map<std::string, int> slots_;
};

}  // namespace wick::text::jinja
