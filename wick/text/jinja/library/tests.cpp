// The tests of templates: what follows "is".
#include <fmt/format.h>

#include "wick/text/jinja/library/library.h"
#include "wick/text/jinja/values/operators.h"
#include "wick/text/jinja/values/unicode.h"

namespace wick::text::jinja {
namespace {

const Value& operand(Run& run, Arguments& arguments) {
  if (arguments.positional.size() != 1 || !arguments.named.empty()) {
    run.fail("the test needs one argument");
  }
  return arguments.positional[0];
}

template <bool (*holds)(const Value&)>
bool plain(Run& run, const Value& value, Arguments& arguments) {
  const Parameters given(run, "the test", arguments, {});
  return holds(value);
}

bool is_boolean(const Value& value, bool wanted) {
  return value.boolean() != nullptr && *value.boolean() == wanted;
}

bool is_sequence(const Value& value) {
  const Sequence* items = value.sequence();
  return value.is_undefined() || value.string() != nullptr || value.dict() != nullptr ||
         (items != nullptr && items->subscriptable());
}

template <Operator op>
bool compares(Run& run, const Value& value, Arguments& arguments) {
  const Value& other = operand(run, arguments);
  if (op == Operator::equal) return equal(run, value, other);
  if (op == Operator::not_equal) return !equal(run, value, other);
  const auto found = order(run, value, other);
  if (!found) return false;
  return op == Operator::less         ? *found < 0
         : op == Operator::greater    ? *found > 0
         : op == Operator::less_equal ? *found <= 0
                                      : *found >= 0;
}

template <int64_t rest>
bool parity(Run& run, const Value& value, Arguments& arguments) {
  const Parameters given(run, "the test", arguments, {});
  if (!value.number()) run.fail_type("a number", value);
  return equal(run, arithmetic(run, Operator::modulo, value, Value(2)), Value(rest));
}

template <CharacterClass wanted, CharacterClass other>
bool has_case(Run& run, const Value& value, Arguments& arguments) {
  const Parameters given(run, "the test", arguments, {});
  const std::string text = plain_text(run, value);
  return any_in_class(text, wanted) && !any_in_class(text, other);
}

struct Entry {
  std::string_view name;
  Test test;
};
constexpr Entry kTests[] = {
    {"!=", compares<Operator::not_equal>},
    {"<", compares<Operator::less>},
    {"<=", compares<Operator::less_equal>},
    {"==", compares<Operator::equal>},
    {">", compares<Operator::greater>},
    {">=", compares<Operator::greater_equal>},
    {"boolean", plain<[](const Value& v) { return v.boolean() != nullptr; }>},
    {"callable", plain<[](const Value& v) { return v.callable() != nullptr || v.is_undefined(); }>},
    {"defined", plain<[](const Value& v) { return !v.is_undefined(); }>},
    {"divisibleby",
     [](Run& run, const Value& value, Arguments& arguments) {
       const Value rest = arithmetic(run, Operator::modulo, value, operand(run, arguments));
       return equal(run, rest, Value(0));
     }},
    {"eq", compares<Operator::equal>},
    {"equalto", compares<Operator::equal>},
    {"escaped", plain<[](const Value& v) { return v.string() != nullptr && v.string()->html; }>},
    {"even", parity<0>},
    {"false", plain<[](const Value& v) { return is_boolean(v, false); }>},
    {"filter",
     [](Run& run, const Value& value, Arguments& arguments) {
       const Parameters given(run, "the test", arguments, {});
       return value.string() != nullptr && find_filter(value.string()->text.bytes) != nullptr;
     }},
    {"float", plain<[](const Value& v) { return v.real() != nullptr; }>},
    {"ge", compares<Operator::greater_equal>},
    {"greaterthan", compares<Operator::greater>},
    {"gt", compares<Operator::greater>},
    {"in", [](Run& run, const Value& value,
              Arguments& arguments) { return contains(run, operand(run, arguments), value); }},
    {"integer", plain<[](const Value& v) { return v.strict_integer() != nullptr; }>},
    {"iterable", plain<[](const Value& v) {
       return v.is_undefined() || v.string() != nullptr || v.dict() != nullptr ||
              v.sequence() != nullptr;
     }>},
    {"le", compares<Operator::less_equal>},
    {"lessthan", compares<Operator::less>},
    {"lower", has_case<CharacterClass::lower, CharacterClass::upper>},
    {"lt", compares<Operator::less>},
    {"mapping", plain<[](const Value& v) { return v.dict() != nullptr; }>},
    {"ne", compares<Operator::not_equal>},
    {"none", plain<[](const Value& v) { return v.is_none(); }>},
    {"number", plain<[](const Value& v) { return v.number().has_value(); }>},
    {"odd", parity<1>},
    {"sameas", [](Run& run, const Value& value,
                  Arguments& arguments) { return value.same_object(operand(run, arguments)); }},
    {"sequence", plain<is_sequence>},
    {"string", plain<[](const Value& v) { return v.string() != nullptr; }>},
    {"test",
     [](Run& run, const Value& value, Arguments& arguments) {
       const Parameters given(run, "the test", arguments, {});
       return value.string() != nullptr && find_test(value.string()->text.bytes) != nullptr;
     }},
    {"true", plain<[](const Value& v) { return is_boolean(v, true); }>},
    {"undefined", plain<[](const Value& v) { return v.is_undefined(); }>},
    {"upper", has_case<CharacterClass::upper, CharacterClass::lower>},
};

}  // namespace

Test find_test(std::string_view name) {
  for (const Entry& entry : kTests) {
    if (entry.name == name) return entry.test;
  }
  return nullptr;
}

}  // namespace wick::text::jinja
