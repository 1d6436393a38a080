// Reads statements: the tags {% … %} and what is between them.
#include "wick/text/jinja/parse/parser.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "wick/base/error.h"
#include "wick/base/printable.h"
#include "wick/base/utf8.h"

namespace wick::text::jinja {
namespace {

using Kind = Statement::Kind;
using Names = std::initializer_list<std::string_view>;

class Parser : public ExpressionParser {
 public:
  using ExpressionParser::ExpressionParser;

  Body whole() { return body({}, {}); }
  std::vector<std::string> names() && { return std::move(names_); }

 private:
  /// Reads statements up to a tag in `stops`, whose name is then the current token. `opened` is the
  /// tag that such a tag closes.
  Body body(Names stops, const Token& opened) {
    if (++level_ > kMaxNesting / 2) {
      fail(fmt::format("blocks nested too deeply: the limit is {}", kMaxNesting / 2));
    }
    Body out;
    for (;;) {
      const Token token = take();
      if (token.kind == Token::Kind::end) {
        if (stops.size() > 0) {
          fail_at(opened, fmt::format("the block '{}' isn't closed", opened.text));
        }
        break;
      }
      if (token.kind == Token::Kind::data) {
        Statement& text = out.emplace_back();
        text.line = token.line;
        text.text = token.text;
      } else if (token.kind == Token::Kind::variable_begin) {
        Statement made = begin(Kind::output, token);
        made.expressions.push_back(tuple(true));
        if (current().kind != Token::Kind::variable_end) fail_unexpected();
        finish(made, token, out);
      } else {
        if (std::any_of(stops.begin(), stops.end(),
                        [&](std::string_view stop) { return current().is_name(stop); })) {
          break;
        }
        Statement made = begin(Kind::text, token);
        statement(made, token);
        if (current().kind != Token::Kind::block_end) fail_unexpected();
        finish(made, token, out);
      }
    }
    --level_;
    return out;
  }

  static Statement begin(Kind kind, const Token& token) {
    Statement made;
    made.kind = kind;
    made.line = token.line;
    return made;
  }

  /// Notes the extent of the tag if end_tag() hasn't, skips its end, and adds the statement.
  void finish(Statement& made, const Token& token, Body& out) {
    end_tag(made, token);
    out.push_back(std::move(made));
  }

  /// Skips the end of the opening tag of a statement.
  void end_tag(Statement& made, const Token& token) {
    if (current().kind != Token::Kind::block_end && current().kind != Token::Kind::variable_end) {
      fail_unexpected();
    }
    check_known();
    const Token end = take();
    if (made.tag.size == 0) made.tag = {token.position, end.position + end.size - token.position};
  }

  void statement(Statement& made, const Token& token) {
    const Token name = expect_name();
    if (name.text == "if") return condition(made, token, name);
    if (name.text == "for") return loop(made, token, name);
    if (name.text == "set") return set(made, token, name);
    if (name.text == "macro") return macro(made, token, name);
    if (name.text == "call") return call_block(made, token, name);
    if (name.text == "filter") {
      made.kind = Kind::filter_block;
      made.expressions.push_back(filters(nullptr));
      return block(made, token, name, "endfilter", true);
    }
    if (name.text == "with") return with(made, token, name);
    if (name.text == "generation") {
      // Marks the text that a model generates, for training; here it renders its body.
      made.kind = Kind::scope;
      return block(made, token, name, "endgeneration", true);
    }
    if (name.text == "print") {
      made.kind = Kind::output;
      while (current().kind != Token::Kind::block_end) {
        if (!made.expressions.empty()) expect_symbol(",");
        made.expressions.push_back(expression());
      }
      return;
    }
    if (name.text == "break" || name.text == "continue") {
      if (loops_ == 0) fail_at(name, fmt::format("'{}' outside of a loop", name.text));
      made.kind = name.text == "break" ? Kind::break_loop : Kind::continue_loop;
      return;
    }
    for (const std::string_view known :
         {"include", "import", "from", "extends", "block", "autoescape", "do", "trans"}) {
      if (name.text == known) {
        fail_at(name, fmt::format("the tag '{}' isn't supported in chat templates", known));
      }
    }
    fail_at(name, fmt::format("unknown tag '{}'", printable(name.text, 40)));
  }

  /// Reads the body of a block and its closing tag up to the end of that tag. `apart`: a loop
  /// around the block can't be left from its body.
  void block(Statement& made, const Token& token, const Token& name, std::string_view stop,
             bool apart) {
    end_tag(made, token);
    const int loops = loops_;
    const bool outer = std::exchange(conditional_, false);
    if (apart) loops_ = 0;
    made.bodies.push_back(body({stop}, name));
    loops_ = loops;
    conditional_ = outer;
    take();
  }

  void condition(Statement& made, const Token& token, const Token& name) {
    made.kind = Kind::condition;
    const bool outer = std::exchange(conditional_, true);
    for (;;) {
      made.expressions.push_back(tuple(false));
      end_tag(made, token);
      made.bodies.push_back(body({"elif", "else", "endif"}, name));
      const std::string stop = take().text;
      if (stop == "elif") continue;
      if (stop == "else") {
        end_tag(made, token);
        made.bodies.push_back(body({"endif"}, name));
        take();
      }
      conditional_ = outer;
      return;
    }
  }

  void loop(Statement& made, const Token& token, const Token& name) {
    made.kind = Kind::loop;
    made.targets.push_back(target(true, false));
    if (!skip_name("in")) fail("expected 'in'");
    made.expressions.push_back(tuple(false));
    made.expressions.push_back(skip_name("if") ? expression() : nullptr);
    made.recursive = skip_name("recursive");
    end_tag(made, token);
    const bool outer = std::exchange(conditional_, false);
    ++loops_;
    made.bodies.push_back(body({"else", "endfor"}, name));
    --loops_;
    if (take().text == "else") {
      end_tag(made, token);
      made.bodies.push_back(body({"endfor"}, name));
      take();
    }
    conditional_ = outer;
  }

  void set(Statement& made, const Token& token, const Token& name) {
    made.targets.push_back(target(true, true));
    if (skip_symbol("=")) {
      made.kind = Kind::set;
      made.expressions.push_back(tuple(true));
      return;
    }
    made.kind = Kind::set_block;
    made.expressions.push_back(current().is("|") ? filters(nullptr) : nullptr);
    block(made, token, name, "endset", true);
  }

  void with(Statement& made, const Token& token, const Token& name) {
    made.kind = Kind::with;
    while (current().kind != Token::Kind::block_end) {
      if (!made.targets.empty()) expect_symbol(",");
      made.targets.push_back(target(true, false));
      expect_symbol("=");
      made.expressions.push_back(expression());
    }
    block(made, token, name, "endwith", false);
  }

  std::unique_ptr<Signature> signature() {
    auto made = std::make_unique<Signature>();
    expect_symbol("(");
    while (!current().is(")")) {
      if (!made->slots.empty()) expect_symbol(",");
      if (current().is(")")) break;
      const ExpressionPtr name = target(false, false);
      if (made->names.size() == kMaxParameters) {
        fail(fmt::format("a macro has at most {} parameters", kMaxParameters));
      }
      if (std::find(made->names.begin(), made->names.end(), name->name) != made->names.end()) {
        fail(fmt::format("two parameters have the name '{}'", printable(name->name, 40)));
      }
      made->slots.push_back(name->slot);
      made->names.push_back(name->name);
      if (skip_symbol("=")) {
        made->defaults.push_back(expression());
      } else if (!made->defaults.empty()) {
        fail("a parameter without default follows one with a default");
      }
    }
    expect_symbol(")");
    return made;
  }

  /// Reads the body of a macro, and notes which special variables it reads.
  void macro_body(Statement& made, const Token& token, const Token& name, std::string_view stop) {
    const size_t callers = caller_reads_, varargs = varargs_reads_, kwargs = kwargs_reads_;
    block(made, token, name, stop, true);
    made.signature->uses_caller = caller_reads_ > callers;
    made.signature->uses_varargs = varargs_reads_ > varargs;
    made.signature->uses_kwargs = kwargs_reads_ > kwargs;
  }

  void macro(Statement& made, const Token& token, const Token& name) {
    made.kind = Kind::macro;
    const ExpressionPtr called = target(false, false);
    made.slot = called->slot;
    made.text = called->name;
    made.signature = signature();
    macro_body(made, token, name, "endmacro");
  }

  void call_block(Statement& made, const Token& token, const Token& name) {
    made.kind = Kind::call_block;
    made.signature = current().is("(") ? signature() : std::make_unique<Signature>();
    ExpressionPtr called = expression();
    if (called->kind != Expression::Kind::call) fail("a call block needs a call");
    made.expressions.push_back(std::move(called));
    macro_body(made, token, name, "endcall");
  }

  int loops_ = 0;  // loops that a break can leave
  int level_ = 0;
};

}  // namespace

Syntax parse(std::string_view source) {
  if (source.size() > kMaxSource) {
    throw Error("chat template", "the template is too long", fmt::format("{} bytes", source.size()),
                fmt::format("the limit is {} bytes", kMaxSource));
  }
  if (const size_t at = find_invalid_utf8(source); at != std::string_view::npos) {
    throw Error("chat template", "invalid UTF-8", fmt::format("byte {}", at));
  }
  Syntax syntax;
  syntax.source = normalized(source);
  Run run(syntax.source, 0);
  Parser parser(syntax.source, run);
  syntax.body = parser.whole();
  syntax.names = std::move(parser).names();
  return syntax;
}

}  // namespace wick::text::jinja
