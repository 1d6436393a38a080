#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "wick/text/jinja/values/operators.h"
#include "wick/text/jinja/values/run.h"
#include "wick/text/jinja/values/value.h"

// The syntax tree of a template.
namespace wick::text::jinja {

struct Expression;
using ExpressionPtr = std::unique_ptr<Expression>;

/// The arguments of a call: f(a, name=b, *rest, **named_rest).
struct CallArguments {
  std::vector<ExpressionPtr> positional;
  std::vector<std::pair<std::string, ExpressionPtr>> named;
  ExpressionPtr rest, named_rest;
};

struct Expression {
  enum class Kind : uint8_t {
    literal,              // value
    name,                 // slot
    namespace_attribute,  // only a target: slot, name
    list,
    tuple,      // parts
    dict,       // parts: key, value, key, value …
    attribute,  // parts[0].name
    item,       // parts[0][parts[1]]
    slice,      // parts[0][parts[1] : parts[2] : parts[3]], of which the last may be null
    call,       // parts[0](arguments)
    filter,     // parts[0] | name(arguments); parts[0] is null in filter blocks
    test,       // parts[0] is name(arguments)
    negate,
    plus,
    logical_not,
    logical_and,
    logical_or,
    binary,       // parts[0] operators[0] parts[1]
    concatenate,  // parts joined by ~
    compare,      // parts[0] operators[0] parts[1] operators[1] parts[2] …
    conditional,  // parts[0] if parts[1] else parts[2], which may be null
  };
  Kind kind = Kind::literal;
  uint32_t line = 1;
  int nesting = 1;  // the height of the tree
  int slot = -1;    // number of a variable's name
  Value value;
  std::string name;
  std::vector<ExpressionPtr> parts;
  std::vector<Operator> operators;
  std::unique_ptr<CallArguments> arguments;
};

struct Statement;
using Body = std::vector<Statement>;

/// The parameters of a macro or a call block; the last ones have defaults.
struct Signature {
  std::vector<int> slots;
  std::vector<std::string> names;
  std::vector<ExpressionPtr> defaults;
  bool uses_caller = false, uses_varargs = false, uses_kwargs = false;
};

struct Statement {
  enum class Kind : uint8_t {
    text,          // text
    output,        // expressions
    condition,     // bodies[i] if expressions[i]; one more body for else
    loop,          // for target in expressions[0] if expressions[1]: bodies[0], else bodies[1]
    set,           // target = expressions[0]
    set_block,     // target = bodies[0], through the filters expressions[0]
    macro,         // slot, text (its name), signature, bodies[0]
    call_block,    // expressions[0] with a caller of signature and bodies[0]
    filter_block,  // bodies[0] through the filters expressions[0]
    with,          // targets = expressions, in bodies[0]
    scope,         // bodies[0] with variables of its own
    break_loop,
    continue_loop,
  };
  Kind kind = Kind::text;
  uint32_t line = 1;
  Tag tag;
  int slot = -1;
  bool recursive = false;
  std::string text;
  std::vector<ExpressionPtr> expressions;  // may contain null
  std::vector<ExpressionPtr> targets;
  std::vector<Body> bodies;
  std::unique_ptr<Signature> signature;
};

/// A parsed template.
struct Syntax {
  std::string source;
  Body body;
  std::vector<std::string> names;  // variables by slot
};

/// Slots that each template has.
inline constexpr int kLoopSlot = 0, kCallerSlot = 1, kVarargsSlot = 2, kKwargsSlot = 3;

/// Parses a template as jinja2 does with trim_blocks and lstrip_blocks. Errors: syntax that jinja2
/// refuses; tags that wick doesn't have; a limit is exceeded; ill-formed UTF-8. Errors name the
/// line and the construct.
Syntax parse(std::string_view source);

}  // namespace wick::text::jinja
