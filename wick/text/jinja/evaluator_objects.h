#pragma once

#include <optional>
#include <string>
#include <vector>

#include "wick/text/jinja/evaluator.h"

// Objects of templates that run code of the template.
namespace wick::text::jinja {

/// Makes a scope the current one while it lives.
class Evaluator::InScope {
 public:
  InScope(Evaluator& evaluator, ScopePtr scope)
      : evaluator_(evaluator), outer_(std::exchange(evaluator.scope_, std::move(scope))) {}
  ~InScope() { evaluator_.scope_ = std::move(outer_); }
  InScope(const InScope&) = delete;
  InScope& operator=(const InScope&) = delete;

 private:
  Evaluator& evaluator_;
  ScopePtr outer_;
};

/// A macro, or the body of a call block: renders its body in the scope in which it was defined.
class Evaluator::Macro : public Callable {
 public:
  Macro(Evaluator& evaluator, const Statement& node, ScopePtr scope)
      : evaluator_(evaluator), node_(node), scope_(std::move(scope)) {}
  Value call(Run& run, Arguments& given) const override;
  std::optional<Value> attribute(Run& run, std::string_view name) const override;
  std::string_view type_name() const override { return "Macro"; }
  std::string printed() const override;

 private:
  Evaluator& evaluator_;
  const Statement& node_;
  ScopePtr scope_;
};

/// The variable `loop`.
class Evaluator::Loop : public Callable, public std::enable_shared_from_this<Evaluator::Loop> {
 public:
  Loop(Evaluator& evaluator, const Statement& node, ScopePtr scope,
       std::shared_ptr<const Sequence> items, int depth)
      : evaluator_(evaluator),
        node_(node),
        scope_(std::move(scope)),
        items_(std::move(items)),
        depth_(depth) {}
  /// Renders the loop for other items; only recursive loops can be called.
  Value call(Run& run, Arguments& arguments) const override;
  std::optional<Value> attribute(Run& run, std::string_view name) const override;
  std::string_view type_name() const override { return "LoopContext"; }
  int depth() const override { return items_->depth + 1; }

  /// Forgets the arguments of changed().
  void forget_values() const { last_values_.reset(); }

  size_t index = 0;

 private:
  struct LoopMethod : Callable {
    LoopMethod(std::shared_ptr<const Loop> of, bool cycle) : loop(std::move(of)), cycles(cycle) {}
    Value call(Run& run, Arguments& arguments) const override;
    int depth() const override { return loop->depth(); }
    std::shared_ptr<const Loop> loop;
    bool cycles;
  };

  Evaluator& evaluator_;
  const Statement& node_;
  ScopePtr scope_;
  std::shared_ptr<const Sequence> items_;
  int depth_;
  mutable std::optional<std::vector<Value>> last_values_;  // the arguments of changed()
};

}  // namespace wick::text::jinja
