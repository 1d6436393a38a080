// Evaluates expressions.
#include <fmt/format.h>

#include <algorithm>

#include "wick/base/printable.h"
#include "wick/text/jinja/evaluator.h"
#include "wick/text/jinja/library/library.h"

namespace wick::text::jinja {

using Kind = Expression::Kind;

Value Evaluator::evaluate(const Expression& node) {
  const Run::Nested nested(run_);
  run_.step();
  return evaluate_node(node);
}

Value Evaluator::name(const Expression& node) {
  for (const Scope* scope = scope_.get(); scope != nullptr; scope = scope->outer.get()) {
    run_.search(scope->variables.size());
    for (const auto& [slot, value] : scope->variables) {
      if (slot == node.slot) return value;
    }
  }
  const auto slot = static_cast<size_t>(node.slot);
  if (globals_[slot]) return *globals_[slot];
  return Value::undefined(fmt::format("'{}' is undefined", printable(syntax_.names[slot], 60)));
}

Arguments Evaluator::arguments(const CallArguments& given) {
  Arguments result;
  for (const auto& part : given.positional) result.positional.push_back(evaluate(*part));
  for (const auto& [name, part] : given.named) result.named.emplace_back(name, evaluate(*part));
  if (given.rest != nullptr) {
    const auto items = iterate(run_, evaluate(*given.rest));
    run_.make(items->items.size() * sizeof(Value));
    result.positional.insert(result.positional.end(), items->items.begin(), items->items.end());
  }
  if (given.named_rest != nullptr) {
    const Value rest = evaluate(*given.named_rest);
    if (rest.dict() == nullptr) run_.fail_type("a dict after **", rest);
    for (const auto& [key, value] : rest.dict()->entries) {
      result.named.emplace_back(need_string(run_, key).text.bytes, value);
    }
  }
  return result;
}

Value Evaluator::compare(const Expression& node) {
  Value left = evaluate(*node.parts[0]);
  bool holds = true;
  for (size_t i = 0; i < node.operators.size() && holds; ++i) {
    Value right = evaluate(*node.parts[i + 1]);
    run_.at(node.line, run_.tag());
    switch (node.operators[i]) {
      case Operator::equal:
        holds = equal(run_, left, right);
        break;
      case Operator::not_equal:
        holds = !equal(run_, left, right);
        break;
      case Operator::in:
        holds = contains(run_, right, left);
        break;
      case Operator::not_in:
        holds = !contains(run_, right, left);
        break;
      default: {
        const auto found = order(run_, left, right);
        const Operator op = node.operators[i];
        holds = found && (op == Operator::less         ? *found < 0
                          : op == Operator::less_equal ? *found <= 0
                          : op == Operator::greater    ? *found > 0
                                                       : *found >= 0);
      }
    }
    left = std::move(right);
  }
  return Value(holds);
}

Value Evaluator::filter(const Expression& node, const Value& value) {
  Arguments given = arguments(*node.arguments);
  run_.at(node.line, run_.tag());
  const Filter found = find_filter(node.name);
  if (found == nullptr) run_.fail(fmt::format("there is no filter '{}'", printable(node.name, 40)));
  return found(run_, value, given);
}

Value Evaluator::filters(const Expression& node, const Value& value) {
  const Run::Nested nested(run_);
  run_.step();
  return filter(node, node.parts[0] == nullptr ? value : filters(*node.parts[0], value));
}

Value Evaluator::evaluate_node(const Expression& node) {
  const auto part = [&](size_t i) { return evaluate(*node.parts[i]); };
  const auto back = [&] { run_.at(node.line, run_.tag()); };  // from a part's line to this one's
  switch (node.kind) {
    case Kind::literal:
      return node.value;
    case Kind::name:
    case Kind::namespace_attribute:
      return name(node);
    case Kind::list:
    case Kind::tuple: {
      std::vector<Value> items;
      for (size_t i = 0; i < node.parts.size(); ++i) items.push_back(part(i));
      back();
      return run_.sequence(node.kind == Kind::list ? Sequence::Kind::list : Sequence::Kind::tuple,
                           std::move(items));
    }
    case Kind::dict: {
      Dict dict;
      for (size_t i = 0; i < node.parts.size(); i += 2) {
        const Value key = part(i), value = part(i + 1);
        back();
        run_.read_key(key);
        if (!dict.set(key, value)) {
          run_.fail(fmt::format("unhashable type: '{}'", key.type_name()));
        }
      }
      return run_.dict(std::move(dict));
    }
    case Kind::attribute: {
      const Value object = part(0);
      back();
      return attribute(run_, object, node.name);
    }
    case Kind::item: {
      const Value object = part(0), key = part(1);
      back();
      return item(run_, object, key);
    }
    case Kind::slice: {
      const Value object = part(0);
      Value bounds[3];
      for (size_t i = 0; i < 3; ++i) {
        if (node.parts[i + 1] != nullptr) bounds[i] = part(i + 1);
      }
      back();
      return slice(run_, object, &bounds[0], &bounds[1], &bounds[2]);
    }
    case Kind::call: {
      const Value function = part(0);
      Arguments given = arguments(*node.arguments);
      back();
      return call(run_, function, given);
    }
    case Kind::filter:
      return filter(node, part(0));
    case Kind::test: {
      const Value value = part(0);
      Arguments given = arguments(*node.arguments);
      back();
      const Test found = find_test(node.name);
      if (found == nullptr)
        run_.fail(fmt::format("there is no test '{}'", printable(node.name, 40)));
      return Value(found(run_, value, given));
    }
    case Kind::negate: {
      const Value value = part(0);
      back();
      return negate(run_, value);
    }
    case Kind::plus: {
      const Value value = part(0);
      back();
      if (!value.number()) run_.fail_type("a number", value);
      return value.real() != nullptr ? value : Value(*value.integer());
    }
    case Kind::logical_not:
      return Value(!part(0).truth());
    case Kind::logical_and: {
      Value left = part(0);
      return left.truth() ? part(1) : left;
    }
    case Kind::logical_or: {
      Value left = part(0);
      return left.truth() ? left : part(1);
    }
    case Kind::binary: {
      const Value left = part(0), right = part(1);
      back();
      return arithmetic(run_, node.operators[0], left, right);
    }
    case Kind::concatenate: {
      MarkedString text;
      for (size_t i = 0; i < node.parts.size(); ++i) {
        const Value value = part(i);
        back();
        const MarkedString next = to_text(run_, value);
        run_.check_size(text.bytes.size() + next.bytes.size());
        text.append(next);
      }
      return run_.string(std::move(text));
    }
    case Kind::compare:
      return compare(node);
    case Kind::conditional:
      if (part(1).truth()) return part(0);
      if (node.parts[2] != nullptr) return part(2);
      return Value::undefined("an inline if without else evaluated to false");
  }
  return Value();
}

}  // namespace wick::text::jinja
