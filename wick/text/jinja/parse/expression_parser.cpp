// Reads expressions by jinja2's grammar, with one function per precedence.
#include <fmt/format.h>

#include <algorithm>
#include <charconv>

#include "wick/base/printable.h"
#include "wick/text/jinja/library/library.h"
#include "wick/text/jinja/parse/parser.h"

namespace wick::text::jinja {
namespace {

using Kind = Expression::Kind;

bool is_constant(std::string_view name) {
  return name == "true" || name == "false" || name == "none" || name == "True" || name == "False" ||
         name == "None";
}

template <class... Parts>
std::vector<ExpressionPtr> parts_of(Parts... parts) {
  std::vector<ExpressionPtr> result;
  (result.push_back(std::move(parts)), ...);
  return result;
}

}  // namespace

class ExpressionParser::Level {
 public:
  explicit Level(ExpressionParser& parser) : parser_(parser) {
    if (++parser_.level_ > kMaxNesting) {
      parser_.fail(fmt::format("nested too deeply: the limit is {} levels", kMaxNesting));
    }
  }
  ~Level() { --parser_.level_; }
  Level(const Level&) = delete;
  Level& operator=(const Level&) = delete;

 private:
  ExpressionParser& parser_;
};

ExpressionParser::ExpressionParser(std::string_view source, Run& run)
    : run_(run), source_(source), tokens_(tokenize(source, run)) {
  for (const char* name : {"loop", "caller", "varargs", "kwargs"}) slot(name);
}

void ExpressionParser::fail_at(const Token& token, std::string_view what) const {
  const size_t end = std::min(source_.find('\n', token.position), source_.size());
  run_.at(token.line, {token.position, std::max<size_t>(end, token.position) - token.position});
  run_.fail(what);
}

void ExpressionParser::fail(std::string_view what) const { fail_at(current(), what); }

void ExpressionParser::fail_unexpected() const {
  switch (current().kind) {
    case Token::Kind::end:
      fail("unexpected end of the template");
    case Token::Kind::variable_end:
    case Token::Kind::block_end:
      fail("unexpected end of the tag");
    default:
      fail(fmt::format("unexpected '{}'", printable(current().text, 40)));
  }
}

bool ExpressionParser::skip_symbol(std::string_view symbol) {
  if (!current().is(symbol)) return false;
  take();
  return true;
}

bool ExpressionParser::skip_name(std::string_view name) {
  if (!current().is_name(name)) return false;
  take();
  return true;
}

void ExpressionParser::expect_symbol(std::string_view symbol) {
  if (!skip_symbol(symbol)) fail(fmt::format("expected '{}'", symbol));
}

Token ExpressionParser::expect_name() {
  if (current().kind != Token::Kind::name) fail("expected a name");
  return take();
}

int ExpressionParser::slot(const std::string& name) {
  const auto [found, added] = slots_.try_emplace(name, static_cast<int>(names_.size()));
  if (added) names_.push_back(name);
  return found->second;
}

ExpressionPtr ExpressionParser::make(Kind kind, uint32_t line, std::vector<ExpressionPtr> parts) {
  auto made = std::make_unique<Expression>();
  made->kind = kind;
  made->line = line;
  made->parts = std::move(parts);
  return finish(std::move(made));
}

/// Computes the height of a tree. The limit bounds the recursion of all later passes.
ExpressionPtr ExpressionParser::finish(ExpressionPtr made) const {
  const auto cover = [&](const ExpressionPtr& part) {
    if (part != nullptr) made->nesting = std::max(made->nesting, part->nesting + 1);
  };
  for (const auto& part : made->parts) cover(part);
  if (made->arguments != nullptr) {
    for (const auto& part : made->arguments->positional) cover(part);
    for (const auto& [name, part] : made->arguments->named) cover(part);
    cover(made->arguments->rest);
    cover(made->arguments->named_rest);
  }
  if (made->nesting > kMaxNesting) {
    fail(fmt::format("nested too deeply: the limit is {} levels", kMaxNesting));
  }
  return made;
}

ExpressionPtr ExpressionParser::literal(Value value, uint32_t line) {
  auto made = make(Kind::literal, line, {});
  made->value = std::move(value);
  return made;
}

void ExpressionParser::unknown(const Token& token, std::string_view kind) {
  unknown_.emplace_back(token, fmt::format("there is no {} '{}'", kind, printable(token.text, 40)));
}

void ExpressionParser::check_known() {
  if (!conditional_ && !unknown_.empty()) fail_at(unknown_[0].first, unknown_[0].second);
  unknown_.clear();
}

ExpressionPtr ExpressionParser::expression(bool with_condition) {
  const Level level(*this);
  const size_t unknown_before = unknown_.size();
  ExpressionPtr value = logical_or();
  while (with_condition && skip_name("if")) {
    const uint32_t line = current().line;
    ExpressionPtr condition = logical_or(), otherwise;
    if (skip_name("else")) otherwise = expression();
    value = make(Kind::conditional, line,
                 parts_of(std::move(value), std::move(condition), std::move(otherwise)));
    unknown_.resize(unknown_before);
  }
  return value;
}

ExpressionPtr ExpressionParser::logical_or() {
  ExpressionPtr left = logical_and();
  while (current().is_name("or")) {
    const uint32_t line = take().line;
    left = make(Kind::logical_or, line, parts_of(std::move(left), logical_and()));
  }
  return left;
}

ExpressionPtr ExpressionParser::logical_and() {
  ExpressionPtr left = logical_not();
  while (current().is_name("and")) {
    const uint32_t line = take().line;
    left = make(Kind::logical_and, line, parts_of(std::move(left), logical_not()));
  }
  return left;
}

ExpressionPtr ExpressionParser::logical_not() {
  if (!current().is_name("not")) return compare();
  const Level level(*this);
  const uint32_t line = take().line;
  return make(Kind::logical_not, line, parts_of(logical_not()));
}

ExpressionPtr ExpressionParser::compare() {
  static constexpr std::pair<std::string_view, Operator> kOperators[] = {
      {"==", Operator::equal},      {"!=", Operator::not_equal}, {"<", Operator::less},
      {"<=", Operator::less_equal}, {">", Operator::greater},    {">=", Operator::greater_equal}};
  const uint32_t line = current().line;
  std::vector<ExpressionPtr> parts;
  std::vector<Operator> operators;
  parts.push_back(sum());
  for (;;) {
    const auto* found = std::find_if(std::begin(kOperators), std::end(kOperators),
                                     [&](const auto& op) { return current().is(op.first); });
    if (found != std::end(kOperators)) {
      operators.push_back(found->second);
      take();
    } else if (skip_name("in")) {
      operators.push_back(Operator::in);
    } else if (current().is_name("not") && following().is_name("in")) {
      take();
      take();
      operators.push_back(Operator::not_in);
    } else {
      break;
    }
    parts.push_back(sum());
  }
  if (operators.empty()) return std::move(parts[0]);
  ExpressionPtr made = make(Kind::compare, line, std::move(parts));
  made->operators = std::move(operators);
  return made;
}

ExpressionPtr ExpressionParser::sum() {
  ExpressionPtr left = concatenation();
  while (current().is("+") || current().is("-")) {
    const Token token = take();
    left = make(Kind::binary, token.line, parts_of(std::move(left), concatenation()));
    left->operators = {token.text == "+" ? Operator::add : Operator::subtract};
  }
  return left;
}

ExpressionPtr ExpressionParser::concatenation() {
  const uint32_t line = current().line;
  std::vector<ExpressionPtr> parts;
  parts.push_back(product());
  while (skip_symbol("~")) parts.push_back(product());
  if (parts.size() == 1) return std::move(parts[0]);
  return make(Kind::concatenate, line, std::move(parts));
}

ExpressionPtr ExpressionParser::product() {
  static constexpr std::pair<std::string_view, Operator> kOperators[] = {
      {"*", Operator::multiply},
      {"/", Operator::divide},
      {"//", Operator::floor_divide},
      {"%", Operator::modulo}};
  ExpressionPtr left = power();
  for (;;) {
    const auto* found = std::find_if(std::begin(kOperators), std::end(kOperators),
                                     [&](const auto& op) { return current().is(op.first); });
    if (found == std::end(kOperators)) return left;
    const uint32_t line = take().line;
    left = make(Kind::binary, line, parts_of(std::move(left), power()));
    left->operators = {found->second};
  }
}

ExpressionPtr ExpressionParser::power() {
  ExpressionPtr left = unary(true);
  while (current().is("**")) {
    const uint32_t line = take().line;
    left = make(Kind::binary, line, parts_of(std::move(left), unary(true)));
    left->operators = {Operator::power};
  }
  return left;
}

ExpressionPtr ExpressionParser::unary(bool with_filters) {
  const Level level(*this);
  ExpressionPtr value;
  if (current().is("-") || current().is("+")) {
    const Token token = take();
    value = make(token.text == "-" ? Kind::negate : Kind::plus, token.line, parts_of(unary(false)));
  } else {
    value = primary();
  }
  value = postfix(std::move(value));
  return with_filters ? filters_and_tests(std::move(value)) : std::move(value);
}

ExpressionPtr ExpressionParser::number(const Token& token) {
  const char* const end = token.text.data() + token.text.size();
  if (token.kind == Token::Kind::real) {
    double value = 0;
    const auto [stop, error] = std::from_chars(token.text.data(), end, value);
    if (error != std::errc() || stop != end) fail_at(token, "a number is out of range");
    return literal(Value(value), token.line);
  }
  std::string_view digits = token.text;
  int base = 10;
  if (digits.size() > 1 && digits[0] == '0') {
    const char prefix = static_cast<char>(digits[1] | 0x20);
    base = prefix == 'x' ? 16 : prefix == 'o' ? 8 : prefix == 'b' ? 2 : 10;
    if (base != 10) digits.remove_prefix(2);
  }
  int64_t value = 0;
  const auto [stop, error] = std::from_chars(digits.data(), end, value, base);
  if (error != std::errc() || stop != end) {
    fail_at(token, "an integer is out of range: integers have 64 bits");
  }
  return literal(Value(value), token.line);
}

ExpressionPtr ExpressionParser::primary() {
  const Token token = current();
  switch (token.kind) {
    case Token::Kind::name: {
      take();
      if (token.text == "true" || token.text == "True") return literal(Value(true), token.line);
      if (token.text == "false" || token.text == "False") return literal(Value(false), token.line);
      if (token.text == "none" || token.text == "None") return literal(Value(), token.line);
      ExpressionPtr made = make(Kind::name, token.line, {});
      made->name = token.text;
      made->slot = slot(token.text);
      caller_reads_ += made->slot == kCallerSlot;
      varargs_reads_ += made->slot == kVarargsSlot;
      kwargs_reads_ += made->slot == kKwargsSlot;
      return made;
    }
    case Token::Kind::string: {
      std::string text;
      while (current().kind == Token::Kind::string) text += take().text;
      return literal(Value::text(text), token.line);
    }
    case Token::Kind::integer:
    case Token::Kind::real:
      take();
      return number(token);
    default:
      break;
  }
  std::vector<ExpressionPtr> parts;
  if (skip_symbol("(")) {
    ExpressionPtr inner = tuple(true, true);
    expect_symbol(")");
    return inner;
  }
  if (skip_symbol("[")) {
    while (!current().is("]")) {
      if (!parts.empty()) expect_symbol(",");
      if (current().is("]")) break;
      parts.push_back(expression());
    }
    expect_symbol("]");
    return make(Kind::list, token.line, std::move(parts));
  }
  if (skip_symbol("{")) {
    while (!current().is("}")) {
      if (!parts.empty()) expect_symbol(",");
      if (current().is("}")) break;
      parts.push_back(expression());
      expect_symbol(":");
      parts.push_back(expression());
    }
    expect_symbol("}");
    return make(Kind::dict, token.line, std::move(parts));
  }
  fail_unexpected();
}

ExpressionPtr ExpressionParser::tuple(bool with_condition, bool bracketed) {
  const uint32_t line = current().line;
  std::vector<ExpressionPtr> parts;
  bool is_tuple = false;
  for (;;) {
    if (!parts.empty()) expect_symbol(",");
    const Token::Kind kind = current().kind;
    if (kind == Token::Kind::variable_end || kind == Token::Kind::block_end || current().is(")")) {
      break;
    }
    parts.push_back(expression(with_condition));
    if (!current().is(",")) break;
    is_tuple = true;
  }
  if (!is_tuple && !parts.empty()) return std::move(parts[0]);
  if (!is_tuple && !bracketed) fail("expected an expression");
  return make(Kind::tuple, line, std::move(parts));
}

ExpressionPtr ExpressionParser::target(bool with_tuple, bool with_namespace) {
  const Level level(*this);
  const uint32_t line = current().line;
  std::vector<ExpressionPtr> parts;
  bool is_tuple = false;
  for (;;) {
    if (!parts.empty()) expect_symbol(",");
    if (is_tuple && (current().kind == Token::Kind::block_end || current().is(")"))) break;
    if (with_tuple && skip_symbol("(")) {
      parts.push_back(target(true, with_namespace));
      expect_symbol(")");
    } else {
      const Token token = expect_name();
      if (is_constant(token.text)) {
        fail_at(token, fmt::format("can't assign to '{}'", token.text));
      }
      ExpressionPtr made = make(Kind::name, token.line, {});
      made->name = token.text;
      made->slot = slot(token.text);
      if (with_namespace && skip_symbol(".")) {
        made->kind = Kind::namespace_attribute;
        made->name = expect_name().text;
      }
      parts.push_back(std::move(made));
    }
    if (!with_tuple || !current().is(",")) break;
    is_tuple = true;
  }
  if (!is_tuple) return std::move(parts[0]);
  return make(Kind::tuple, line, std::move(parts));
}

ExpressionPtr ExpressionParser::postfix(ExpressionPtr value) {
  for (;;) {
    if (current().is(".") || current().is("[")) {
      value = subscript(std::move(value));
    } else if (current().is("(")) {
      value = call(std::move(value));
    } else {
      return value;
    }
  }
}

ExpressionPtr ExpressionParser::filters_and_tests(ExpressionPtr value) {
  for (;;) {
    if (current().is("|")) {
      value = filters(std::move(value));
    } else if (current().is_name("is")) {
      value = test(std::move(value));
    } else if (current().is("(")) {
      value = call(std::move(value));
    } else {
      return value;
    }
  }
}

ExpressionPtr ExpressionParser::filters(ExpressionPtr value) {
  if (value == nullptr && !current().is("|")) value = filter(nullptr);
  while (skip_symbol("|")) value = filter(std::move(value));
  return value;
}

ExpressionPtr ExpressionParser::filter(ExpressionPtr value) {
  const Token token = expect_name();
  if (find_filter(token.text) == nullptr) unknown(token, "filter");
  auto made = std::make_unique<Expression>();
  made->kind = Kind::filter;
  made->line = token.line;
  made->name = token.text;
  made->parts.push_back(std::move(value));
  made->arguments = current().is("(") ? arguments() : std::make_unique<CallArguments>();
  return finish(std::move(made));
}

ExpressionPtr ExpressionParser::test(ExpressionPtr value) {
  take();  // is
  const bool negated = skip_name("not");
  const Token token = expect_name();
  if (find_test(token.text) == nullptr) unknown(token, "test");
  auto made = std::make_unique<Expression>();
  made->kind = Kind::test;
  made->line = token.line;
  made->name = token.text;
  made->parts.push_back(std::move(value));
  made->arguments = std::make_unique<CallArguments>();
  const Token& next = current();
  const bool operand = next.kind == Token::Kind::name || next.kind == Token::Kind::string ||
                       next.kind == Token::Kind::integer || next.kind == Token::Kind::real ||
                       next.is("[") || next.is("{");
  if (next.is("(")) {
    made->arguments = arguments();
  } else if (operand && !next.is_name("else") && !next.is_name("or") && !next.is_name("and")) {
    if (next.is_name("is")) fail("tests can't be chained");
    made->arguments->positional.push_back(postfix(primary()));
  }
  ExpressionPtr result = finish(std::move(made));
  if (negated) result = make(Kind::logical_not, token.line, parts_of(std::move(result)));
  return result;
}

ExpressionPtr ExpressionParser::subscript(ExpressionPtr value) {
  const Token token = take();
  if (token.text == ".") {
    if (current().kind == Token::Kind::integer) {
      const Token index = take();
      return make(Kind::item, token.line, parts_of(std::move(value), number(index)));
    }
    const std::string name = expect_name().text;
    ExpressionPtr made = make(Kind::attribute, token.line, parts_of(std::move(value)));
    made->name = name;
    return made;
  }
  ExpressionPtr bounds[3];
  bool slice = false;
  if (!current().is(":")) bounds[0] = expression();
  for (int i = 1; i < 3 && skip_symbol(":"); ++i) {
    slice = true;
    if (!current().is(":") && !current().is("]")) bounds[i] = expression();
  }
  if (current().is(",")) fail("subscripts of several values aren't supported");
  expect_symbol("]");
  if (!slice) return make(Kind::item, token.line, parts_of(std::move(value), std::move(bounds[0])));
  return make(
      Kind::slice, token.line,
      parts_of(std::move(value), std::move(bounds[0]), std::move(bounds[1]), std::move(bounds[2])));
}

ExpressionPtr ExpressionParser::call(ExpressionPtr value) {
  auto made = std::make_unique<Expression>();
  made->kind = Kind::call;
  made->line = current().line;
  made->parts.push_back(std::move(value));
  made->arguments = arguments();
  return finish(std::move(made));
}

std::unique_ptr<CallArguments> ExpressionParser::arguments() {
  auto result = std::make_unique<CallArguments>();
  expect_symbol("(");
  for (bool first = true; !current().is(")"); first = false) {
    if (!first) {
      expect_symbol(",");
      if (current().is(")")) break;
    }
    if (current().is("*")) {
      if (result->rest || result->named_rest) fail("invalid arguments");
      take();
      result->rest = expression();
    } else if (current().is("**")) {
      if (result->named_rest) fail("invalid arguments");
      take();
      result->named_rest = expression();
    } else if (current().kind == Token::Kind::name && following().is("=")) {
      if (result->named_rest) fail("invalid arguments");
      const std::string name = take().text;
      take();
      result->named.emplace_back(name, expression());
    } else {
      if (result->rest || result->named_rest || !result->named.empty()) {
        fail("a positional argument follows named ones");
      }
      result->positional.push_back(expression());
    }
  }
  expect_symbol(")");
  return result;
}

}  // namespace wick::text::jinja
