// Executes statements.
#include "wick/text/jinja/evaluator.h"

#include <fmt/format.h>

#include <algorithm>

#include "wick/base/printable.h"
#include "wick/text/jinja/evaluator_objects.h"
#include "wick/text/jinja/library/library.h"

namespace wick::text::jinja {

using Kind = Statement::Kind;

void Scope::set(int slot, Value value) {
  for (auto& [known, old] : variables) {
    if (known == slot) {
      old = std::move(value);
      return;
    }
  }
  variables.emplace_back(slot, std::move(value));
}

Evaluator::Evaluator(const Syntax& syntax, Run& run,
                     const std::vector<std::pair<std::string, Value>>& variables)
    : syntax_(syntax),
      run_(run),
      globals_(syntax.names.size()),
      scope_(std::make_shared<Scope>(nullptr)) {
  for (size_t slot = 0; slot < syntax.names.size(); ++slot) {
    globals_[slot] = find_function(syntax.names[slot]);
    for (const auto& [name, value] : variables) {
      if (name == syntax.names[slot]) globals_[slot] = value;
    }
  }
}

Evaluator::~Evaluator() {
  for (const ScopePtr& scope : kept_) scope->variables.clear();
  for (const auto& loop : changed_) loop->forget_values();
  run_.release();
}

MarkedString Evaluator::render() {
  MarkedString out;
  execute(syntax_.body, out);
  return out;
}

void Evaluator::print(const MarkedString& text, MarkedString& out) {
  run_.check_size(out.bytes.size() + text.bytes.size());
  run_.read(text.bytes.size());
  out.append(text);
}

Evaluator::Flow Evaluator::execute(const Body& body, MarkedString& out) {
  for (const Statement& node : body) {
    const Flow flow = statement(node, out);
    if (flow != Flow::next) return flow;
  }
  return Flow::next;
}

Evaluator::Flow Evaluator::statement(const Statement& node, MarkedString& out) {
  const Run::Nested nested(run_);
  run_.step();
  run_.at(node.line, node.tag);
  switch (node.kind) {
    case Kind::text:
      run_.check_size(out.bytes.size() + node.text.size());
      run_.read(node.text.size());
      out.append(node.text, false);
      break;
    case Kind::output:
      for (const auto& expression : node.expressions) {
        const Value value = evaluate(*expression);
        run_.at(node.line, node.tag);
        if (const String* text = value.string()) {
          print(text->text, out);
        } else {
          print(to_text(run_, value), out);
        }
      }
      break;
    case Kind::condition:
      return condition(node, out);
    case Kind::loop:
      loop(node, evaluate(*node.expressions[0]), 0, out);
      break;
    case Kind::set:
      assign(*node.targets[0], evaluate(*node.expressions[0]));
      break;
    case Kind::set_block: {
      Value value = captured(node.bodies[0]);
      run_.at(node.line, node.tag);
      if (node.expressions[0] != nullptr) value = filters(*node.expressions[0], value);
      assign(*node.targets[0], value);
      break;
    }
    case Kind::macro:
      macro(node);
      break;
    case Kind::call_block:
      call_block(node, out);
      break;
    case Kind::filter_block: {
      const Value value = captured(node.bodies[0]);
      run_.at(node.line, node.tag);
      print(to_text(run_, filters(*node.expressions[0], value)), out);
      break;
    }
    case Kind::with: {
      std::vector<Value> values;
      for (const auto& expression : node.expressions) values.push_back(evaluate(*expression));
      const InScope inner(*this, std::make_shared<Scope>(scope_));
      for (size_t i = 0; i < values.size(); ++i) assign(*node.targets[i], values[i]);
      return execute(node.bodies[0], out);
    }
    case Kind::scope: {
      const InScope inner(*this, std::make_shared<Scope>(scope_));
      execute(node.bodies[0], out);
      break;
    }
    case Kind::break_loop:
      return Flow::break_loop;
    case Kind::continue_loop:
      return Flow::continue_loop;
  }
  return Flow::next;
}

Evaluator::Flow Evaluator::condition(const Statement& node, MarkedString& out) {
  for (size_t i = 0; i < node.expressions.size(); ++i) {
    if (evaluate(*node.expressions[i]).truth()) return execute(node.bodies[i], out);
  }
  if (node.bodies.size() > node.expressions.size()) return execute(node.bodies.back(), out);
  return Flow::next;
}

/// Renders a body to a string, in a scope of its own.
Value Evaluator::captured(const Body& body) {
  const InScope inner(*this, std::make_shared<Scope>(scope_));
  MarkedString text;
  execute(body, text);
  return run_.string(std::move(text));
}

void Evaluator::loop(const Statement& node, const Value& value, int depth, MarkedString& out) {
  run_.at(node.line, node.tag);
  std::shared_ptr<const Sequence> items = iterate(run_, value);
  if (node.expressions[1] != nullptr) {
    std::vector<Value> chosen;
    for (const Value& item : items->items) {
      const InScope inner(*this, std::make_shared<Scope>(scope_));
      assign(*node.targets[0], item);
      if (evaluate(*node.expressions[1]).truth()) chosen.push_back(item);
    }
    run_.make(chosen.size() * sizeof(Value));
    items = std::make_shared<const Sequence>(Sequence::Kind::list, std::move(chosen));
  }
  const auto state =
      std::make_shared<Loop>(*this, node, node.recursive ? keep_scope() : nullptr, items, depth);
  const Value loop_value{std::shared_ptr<const Callable>(state)};
  bool finished = false;  // whether an iteration wasn't left by break or continue
  for (; state->index < items->items.size(); ++state->index) {
    run_.step();
    const InScope inner(*this, std::make_shared<Scope>(scope_));
    run_.at(node.line, node.tag);
    assign(*node.targets[0], items->items[state->index]);
    scope_->set(kLoopSlot, loop_value);
    const Flow flow = execute(node.bodies[0], out);
    finished = finished || flow == Flow::next;
    if (flow == Flow::break_loop) break;
  }
  if (finished || node.bodies.size() == 1) return;
  const InScope inner(*this, std::make_shared<Scope>(scope_));
  execute(node.bodies[1], out);  // else
}

void Evaluator::assign(const Expression& target, const Value& value) {
  if (target.kind == Expression::Kind::name) {
    run_.search(scope_->variables.size());
    scope_->set(target.slot, value);
    return;
  }
  if (target.kind == Expression::Kind::namespace_attribute) {
    const Value object = name(target);
    if (object.names() == nullptr) {
      run_.require_defined(object);
      run_.fail(fmt::format("can't set an attribute of a '{}': only namespaces have such",
                            object.type_name()));
    }
    run_.make(sizeof(Value) + target.name.size());
    run_.search((*object.names())->attributes.size());
    (*object.names())->set(target.name, value);
    return;
  }
  const auto items = iterate(run_, value);
  if (items->items.size() != target.parts.size()) {
    run_.fail(fmt::format("can't unpack {} values into {} variables", items->items.size(),
                          target.parts.size()));
  }
  for (size_t i = 0; i < target.parts.size(); ++i) assign(*target.parts[i], items->items[i]);
}

/// Returns the current scope, which outlives its block because a macro or loop refers to it.
ScopePtr Evaluator::keep_scope() {
  if (kept_.empty() || kept_.back() != scope_) {
    run_.make(sizeof(Scope) + sizeof(ScopePtr));
    kept_.push_back(scope_);
  }
  return scope_;
}

void Evaluator::macro(const Statement& node) {
  const auto made = std::make_shared<const Macro>(*this, node, keep_scope());
  scope_->set(node.slot, Value(std::shared_ptr<const Callable>(made)));
}

void Evaluator::call_block(const Statement& node, MarkedString& out) {
  const Expression& called = *node.expressions[0];
  const Value function = evaluate(*called.parts[0]);
  Arguments given = arguments(*called.arguments);
  const auto caller = std::make_shared<const Macro>(*this, node, keep_scope());
  given.named.emplace_back("caller", Value(std::shared_ptr<const Callable>(caller)));
  run_.at(node.line, node.tag);
  print(to_text(run_, call(run_, function, given)), out);
}

std::string Evaluator::Macro::printed() const { return fmt::format("<Macro '{}'>", node_.text); }

std::optional<Value> Evaluator::Macro::attribute(Run& run, std::string_view name) const {
  if (name == "name") return run.text(node_.text);
  return std::nullopt;
}

Value Evaluator::Macro::call(Run& run, Arguments& given) const {
  const Run::Nested nested(run);
  const Signature& signature = *node_.signature;
  const std::string name = node_.text.empty() ? "caller" : node_.text;
  const InScope inner(evaluator_, std::make_shared<Scope>(scope_));
  Scope& scope = *evaluator_.scope_;
  const size_t count = signature.slots.size();
  std::vector<bool> bound(count);
  for (size_t i = 0; i < std::min(count, given.positional.size()); ++i) {
    scope.set(signature.slots[i], given.positional[i]);
    bound[i] = true;
  }
  std::vector<Value> extra;
  if (given.positional.size() > count) {
    if (!signature.uses_varargs) {
      run.fail(
          fmt::format("the macro '{}' takes at most {} arguments", printable(name, 40), count));
    }
    extra.assign(given.positional.begin() + static_cast<long>(count), given.positional.end());
  }
  Dict others;
  std::optional<Value> caller;
  for (const auto& [key, value] : given.named) {
    const auto found = std::find(signature.names.begin(), signature.names.end(), key);
    const auto at = static_cast<size_t>(found - signature.names.begin());
    if (at < count) {
      if (bound[at]) run.fail(fmt::format("the macro got two values of '{}'", printable(key, 40)));
      scope.set(signature.slots[at], value);
      bound[at] = true;
    } else if (key == "caller" && signature.uses_caller) {
      caller = value;
    } else if (signature.uses_kwargs) {
      others.set(run.text(key), value);
    } else {
      run.fail(fmt::format("the macro '{}' has no parameter '{}'", printable(name, 40),
                           printable(key, 40)));
    }
  }
  const size_t required = count - signature.defaults.size();
  for (size_t i = 0; i < count; ++i) {
    if (bound[i]) continue;
    scope.set(signature.slots[i], i >= required
                                      ? evaluator_.evaluate(*signature.defaults[i - required])
                                      : Value::undefined(fmt::format(
                                            "the argument '{}' wasn't given", signature.names[i])));
  }
  const auto special = [&](bool used, int slot, auto make) {
    const auto& slots = signature.slots;
    if (used && std::find(slots.begin(), slots.end(), slot) == slots.end()) scope.set(slot, make());
  };
  special(signature.uses_caller, kCallerSlot,
          [&] { return caller ? *caller : Value::undefined("no caller is defined"); });
  special(signature.uses_varargs, kVarargsSlot,
          [&] { return run.sequence(Sequence::Kind::tuple, std::move(extra)); });
  special(signature.uses_kwargs, kKwargsSlot, [&] { return run.dict(std::move(others)); });
  MarkedString out;
  evaluator_.execute(node_.bodies[0], out);
  return run.string(std::move(out));
}

Value Evaluator::Loop::call(Run& run, Arguments& arguments) const {
  if (!node_.recursive) run.fail("the loop isn't recursive, so it can't be called");
  const Parameters given(run, "loop", arguments, {"iterable"});
  const Run::Nested nested(run);
  const InScope outer(evaluator_, scope_);
  MarkedString out;
  evaluator_.loop(node_, given.need(0), depth_ + 1, out);
  return run.string(std::move(out));
}

std::optional<Value> Evaluator::Loop::attribute(Run&, std::string_view name) const {
  const auto place = static_cast<int64_t>(index);
  const auto count = static_cast<int64_t>(items_->items.size());
  if (name == "index") return Value(place + 1);
  if (name == "index0") return Value(place);
  if (name == "revindex") return Value(count - place);
  if (name == "revindex0") return Value(count - place - 1);
  if (name == "first") return Value(place == 0);
  if (name == "last") return Value(place + 1 == count);
  if (name == "length") return Value(count);
  if (name == "depth") return Value(depth_ + 1);
  if (name == "depth0") return Value(depth_);
  if (name == "previtem") {
    return place > 0 ? items_->items[index - 1] : Value::undefined("there is no previous item");
  }
  if (name == "nextitem") {
    return place + 1 < count ? items_->items[index + 1] : Value::undefined("there is no next item");
  }
  if (name == "cycle" || name == "changed") {
    return Value(std::shared_ptr<const Callable>(
        std::make_shared<LoopMethod>(shared_from_this(), name == "cycle")));
  }
  return std::nullopt;
}

Value Evaluator::Loop::LoopMethod::call(Run& run, Arguments& arguments) const {
  if (!arguments.named.empty()) run.fail("the method of a loop takes no named arguments");
  const std::vector<Value>& values = arguments.positional;
  if (cycles) {
    if (values.empty()) run.fail("loop.cycle needs at least one item");
    return values[loop->index % values.size()];
  }
  auto& last = loop->last_values_;
  bool same = last && last->size() == values.size();
  for (size_t i = 0; same && i < values.size(); ++i) same = equal(run, (*last)[i], values[i]);
  if (same) return Value(false);
  for (const Value& value : values) {
    if (value.depth() >= kMaxDepth) run.fail("lists and dicts nested too deeply");
  }
  if (!last) {
    run.make(sizeof(Loop));
    loop->evaluator_.changed_.push_back(loop);
  }
  last = values;
  return Value(true);
}

}  // namespace wick::text::jinja
