#pragma once

#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "wick/text/jinja/parse/syntax.h"
#include "wick/text/jinja/values/operators.h"

namespace wick::text::jinja {

/// The variables of a block. Look-ups go on in the scope around it.
struct Scope {
  std::shared_ptr<Scope> outer;
  std::vector<std::pair<int, Value>> variables;

  explicit Scope(std::shared_ptr<Scope> around) : outer(std::move(around)) {}
  void set(int slot, Value value);
};
using ScopePtr = std::shared_ptr<Scope>;

/// Evaluates a template once.
class Evaluator {
 public:
  Evaluator(const Syntax& syntax, Run& run,
            const std::vector<std::pair<std::string, Value>>& variables);
  ~Evaluator();
  Evaluator(const Evaluator&) = delete;
  Evaluator& operator=(const Evaluator&) = delete;

  MarkedString render();

 private:
  class Macro;
  class Loop;
  class InScope;
  enum class Flow : uint8_t { next, break_loop, continue_loop };

  Flow execute(const Body& body, MarkedString& out);
  Flow statement(const Statement& node, MarkedString& out);
  Flow condition(const Statement& node, MarkedString& out);
  void loop(const Statement& node, const Value& items, int depth, MarkedString& out);
  void macro(const Statement& node);
  void call_block(const Statement& node, MarkedString& out);
  Value captured(const Body& body);
  void print(const MarkedString& text, MarkedString& out);
  void assign(const Expression& target, const Value& value);

  Value evaluate(const Expression& node);
  Value evaluate_node(const Expression& node);
  Value name(const Expression& node);
  Value compare(const Expression& node);
  Value filter(const Expression& node, const Value& value);
  /// Applies the filters of a block, whose innermost part is null.
  Value filters(const Expression& node, const Value& value);
  Arguments arguments(const CallArguments& given);
  std::shared_ptr<Scope> keep_scope();

  const Syntax& syntax_;
  Run& run_;
  std::vector<std::optional<Value>> globals_;  // by slot
  ScopePtr scope_;
  // Scopes that macros and recursive loops refer to, and loops that remember values. They are
  // emptied one by one at the end, because they may refer to each other in cycles and long chains.
  std::vector<ScopePtr> kept_;
  std::vector<std::shared_ptr<const Loop>> changed_;
};

}  // namespace wick::text::jinja
