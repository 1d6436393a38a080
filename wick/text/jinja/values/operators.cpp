#include "wick/text/jinja/values/operators.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "wick/base/printable.h"
#include "wick/text/jinja/values/strings.h"
#include "wick/text/jinja/values/unicode.h"

namespace wick::text::jinja {
namespace {

std::string_view symbol(Operator op) {
  constexpr std::string_view kSymbols[] = {
      "+", "-", "*", "/", "//", "%", "**", "==", "!=", "<", "<=", ">", ">=", "in", "not in"};
  return kSymbols[static_cast<size_t>(op)];
}

[[noreturn]] void fail_operands(Run& run, Operator op, const Value& a, const Value& b) {
  run.require_defined(a);
  run.require_defined(b);
  run.fail(fmt::format("unsupported operands of {}: '{}' and '{}'", symbol(op), a.type_name(),
                       b.type_name()));
}

[[noreturn]] void fail_overflow(Run& run) {
  run.fail("an integer is out of range: integers have 64 bits");
}

Value integer_power(Run& run, int64_t base, int64_t exponent) {
  if (exponent < 0) {
    if (base == 0) run.fail("0 can't be raised to a negative power");
    return Value(std::pow(static_cast<double>(base), static_cast<double>(exponent)));
  }
  int64_t result = 1;
  while (exponent > 0) {
    if ((exponent & 1) != 0 && __builtin_mul_overflow(result, base, &result)) fail_overflow(run);
    exponent >>= 1;
    if (exponent > 0 && __builtin_mul_overflow(base, base, &base)) fail_overflow(run);
  }
  return Value(result);
}

Value integer_arithmetic(Run& run, Operator op, int64_t a, int64_t b) {
  int64_t result = 0;
  bool overflow = false;
  switch (op) {
    case Operator::add:
      overflow = __builtin_add_overflow(a, b, &result);
      break;
    case Operator::subtract:
      overflow = __builtin_sub_overflow(a, b, &result);
      break;
    case Operator::multiply:
      overflow = __builtin_mul_overflow(a, b, &result);
      break;
    case Operator::divide:
      if (b == 0) run.fail("division by zero");
      return Value(static_cast<double>(a) / static_cast<double>(b));
    case Operator::floor_divide:
    case Operator::modulo: {
      if (b == 0) run.fail("division by zero");
      if (b == -1) {  // a / -1 overflows for the least integer
        if (op == Operator::modulo) return Value(int64_t{0});
        overflow = __builtin_sub_overflow(int64_t{0}, a, &result);
        break;
      }
      int64_t quotient = a / b, rest = a % b;
      if (rest != 0 && (rest < 0) != (b < 0)) {
        --quotient;
        rest += b;
      }
      return Value(op == Operator::modulo ? rest : quotient);
    }
    default:
      return integer_power(run, a, b);
  }
  if (overflow) fail_overflow(run);
  return Value(result);
}

Value real_arithmetic(Run& run, Operator op, double a, double b) {
  switch (op) {
    case Operator::add:
      return Value(a + b);
    case Operator::subtract:
      return Value(a - b);
    case Operator::multiply:
      return Value(a * b);
    case Operator::power:
      if (a == 0 && b < 0) run.fail("0 can't be raised to a negative power");
      if (a < 0 && b != std::floor(b)) run.fail("complex numbers aren't supported");
      return Value(std::pow(a, b));
    default:
      break;
  }
  if (b == 0) run.fail("division by zero");
  if (op == Operator::divide) return Value(a / b);
  double rest = std::fmod(a, b);
  if (rest != 0 && (rest < 0) != (b < 0)) rest += b;
  if (rest == 0) rest = std::copysign(0.0, b);
  if (op == Operator::modulo) return Value(rest);
  double quotient = (a - rest) / b;
  const double whole = std::floor(quotient);
  quotient = quotient - whole > 0.5 ? whole + 1 : whole;
  return Value(quotient == 0 ? std::copysign(0.0, a / b) : quotient);
}

Value repeated(Run& run, const Value& value, int64_t count) {
  count = std::max<int64_t>(count, 0);
  if (const String* text = value.string()) {
    const size_t size = text->text.bytes.size();
    if (size > 0 && static_cast<uint64_t>(count) > kMaxString / size)
      run.check_size(kMaxString + 1);
    run.make(size * static_cast<size_t>(count));
    MarkedString result;
    for (int64_t i = 0; i < count; ++i) result.append(text->text);
    return run.string(std::move(result), text->html);
  }
  const Sequence& items = *value.sequence();
  if (!items.items.empty() &&
      static_cast<uint64_t>(count) > kMaxMemory / sizeof(Value) / items.items.size()) {
    run.make(kMaxMemory + 1);
  }
  run.make(items.items.size() * static_cast<size_t>(count) * sizeof(Value));
  std::vector<Value> result;
  for (int64_t i = 0; i < count; ++i) {
    result.insert(result.end(), items.items.begin(), items.items.end());
  }
  return run.sequence(items.kind, std::move(result));
}

bool repeatable(const Value& value) {
  const Sequence* items = value.sequence();
  return value.string() != nullptr ||
         (items != nullptr && (items->kind == Sequence::Kind::list || items->is_tuple()));
}

Value concatenated(Run& run, const Value& a, const Value& b) {
  if (const String* x = a.string(), *y = b.string(); x != nullptr && y != nullptr) {
    const bool html = x->html || y->html;
    MarkedString result = html && !x->html ? escaped(run, x->text) : x->text;
    const MarkedString& next = html && !y->html ? escaped(run, y->text) : y->text;
    run.check_size(result.bytes.size() + next.bytes.size());
    result.append(next);
    return run.string(std::move(result), html);
  }
  const Sequence *x = a.sequence(), *y = b.sequence();
  if (x != nullptr && y != nullptr && repeatable(a) && repeatable(b) &&
      x->is_tuple() == y->is_tuple()) {
    run.make((x->items.size() + y->items.size()) * sizeof(Value));
    std::vector<Value> items = x->items;
    items.insert(items.end(), y->items.begin(), y->items.end());
    return run.sequence(x->is_tuple() ? Sequence::Kind::tuple : Sequence::Kind::list,
                        std::move(items));
  }
  fail_operands(run, Operator::add, a, b);
}

/// The number as an exact long double, where that type holds 64-bit integers.
long double exact(const Value& value) {
  if (const auto integer = value.integer()) return static_cast<long double>(*integer);
  return *value.real();
}

}  // namespace

std::optional<std::strong_ordering> order_numbers(const Value& a, const Value& b) {
  const auto i = a.integer(), j = b.integer();
  if (i && j) return *i <=> *j;
  const long double x = exact(a), y = exact(b);
  if (x < y) return std::strong_ordering::less;
  if (x > y) return std::strong_ordering::greater;
  if (x == y) return std::strong_ordering::equal;
  return std::nullopt;
}

bool equal(Run& run, const Value& a, const Value& b) {
  const Run::Nested nested(run);
  run.step();
  if (a.number() && b.number()) return order_numbers(a, b) == std::strong_ordering::equal;
  if (const String* x = a.string(), *y = b.string(); x != nullptr && y != nullptr) {
    run.read(std::min(x->text.bytes.size(), y->text.bytes.size()));
    return x->text.bytes == y->text.bytes;
  }
  if (a.is_undefined() && b.is_undefined()) return true;
  if (a.same_object(b)) return true;
  if (const Dict* x = a.dict(), *y = b.dict(); x != nullptr && y != nullptr) {
    if (x->entries.size() != y->entries.size()) return false;
    for (const auto& [key, value] : x->entries) {
      const Value* other = y->find(key);
      if (other == nullptr || !equal(run, value, *other)) return false;
    }
    return true;
  }
  const Sequence *x = a.sequence(), *y = b.sequence();
  if (x == nullptr || y == nullptr) return false;
  const bool comparable =
      (x->is_tuple() && y->is_tuple()) || (x->kind == y->kind && x->subscriptable());
  if (!comparable || x->items.size() != y->items.size()) return false;
  for (size_t i = 0; i < x->items.size(); ++i) {
    if (!equal(run, x->items[i], y->items[i])) return false;
  }
  return true;
}

std::optional<std::strong_ordering> order(Run& run, const Value& a, const Value& b) {
  const Run::Nested nested(run);
  run.step();
  if (a.number() && b.number()) return order_numbers(a, b);
  if (const String* x = a.string(), *y = b.string(); x != nullptr && y != nullptr) {
    run.read(std::min(x->text.bytes.size(), y->text.bytes.size()));
    return x->text.bytes <=> y->text.bytes;  // UTF-8 has the order of code points
  }
  const Sequence *x = a.sequence(), *y = b.sequence();
  if (x == nullptr || y == nullptr || !repeatable(a) || !repeatable(b) ||
      x->is_tuple() != y->is_tuple()) {
    fail_operands(run, Operator::less, a, b);
  }
  const size_t common = std::min(x->items.size(), y->items.size());
  for (size_t i = 0; i < common; ++i) {
    if (!equal(run, x->items[i], y->items[i])) return order(run, x->items[i], y->items[i]);
  }
  return x->items.size() <=> y->items.size();
}

bool contains(Run& run, const Value& container, const Value& item) {
  if (const String* text = container.string()) {
    const String* part = item.string();
    if (part == nullptr) {
      run.require_defined(item);
      run.fail(
          fmt::format("'in <string>' needs a string as left operand, not '{}'", item.type_name()));
    }
    run.read(text->text.bytes.size());
    return text->text.bytes.find(part->text.bytes) != std::string::npos;
  }
  if (const Dict* dict = container.dict()) {
    run.read_key(item);
    if (!hash_of(item)) run.fail(fmt::format("unhashable type: '{}'", item.type_name()));
    return dict->find(item) != nullptr;
  }
  if (container.sequence() == nullptr && !container.is_undefined()) {
    run.fail(
        fmt::format("'in' needs a container as right operand, not '{}'", container.type_name()));
  }
  const auto items = iterate(run, container);
  for (const Value& candidate : items->items) {
    if (equal(run, candidate, item)) return true;
  }
  return false;
}

Value arithmetic(Run& run, Operator op, const Value& a, const Value& b) {
  const auto i = a.integer(), j = b.integer();
  if (i && j) return integer_arithmetic(run, op, *i, *j);
  const auto x = a.number(), y = b.number();
  if (x && y) return real_arithmetic(run, op, *x, *y);
  if (op == Operator::add) return concatenated(run, a, b);
  if (op == Operator::multiply && repeatable(a) && j) return repeated(run, a, *j);
  if (op == Operator::multiply && repeatable(b) && i) return repeated(run, b, *i);
  if (op == Operator::modulo && a.string() != nullptr) {
    if (a.string()->html) run.fail("the operator % isn't supported after the filter safe");
    return run.string(format_percent(run, a.string()->text, b));
  }
  fail_operands(run, op, a, b);
}

Value negate(Run& run, const Value& value) {
  if (const auto integer = value.integer()) {
    return integer_arithmetic(run, Operator::subtract, 0, *integer);
  }
  if (const double* real = value.real()) return Value(-*real);
  run.fail_type("a number", value);
}

Value attribute(Run& run, const Value& value, std::string_view name) {
  run.require_defined(value);
  if (name.starts_with('_') || changes_object(value, name)) {
    return Value::undefined(
        fmt::format("access to attribute '{}' of a '{}' is unsafe", name, value.type_name()));
  }
  if (const auto method = find_method(value, name)) return *method;
  if (const auto* names = value.names()) {
    run.search((*names)->attributes.size());
    if (const Value* found = (*names)->find(name)) return *found;
  } else if (const Callable* callable = value.callable()) {
    if (auto found = callable->attribute(run, name)) return *std::move(found);
  } else if (const Dict* dict = value.dict()) {
    if (const Value* found = dict->find(name)) return *found;
  } else if (const Sequence* items = value.sequence();
             items != nullptr && items->kind == Sequence::Kind::group) {
    if (name == "grouper") return items->items[0];
    if (name == "list") return items->items[1];
  }
  const bool none = value.is_none();
  return Value::undefined(
      none ? fmt::format("'None' has no attribute '{}'", name)
           : fmt::format("'{} object' has no attribute '{}'", value.type_name(), name));
}

Value item(Run& run, const Value& value, const Value& key) {
  run.require_defined(value);
  run.read_key(key);
  if (const Dict* dict = value.dict()) {
    if (const Value* found = dict->find(key)) return *found;
  } else if (const auto index = key.integer()) {
    const Sequence* items = value.sequence();
    const String* text = value.string();
    const bool subscriptable = text != nullptr || (items != nullptr && items->subscriptable());
    const auto size = static_cast<int64_t>(text != nullptr ? text->characters
                                           : subscriptable ? items->items.size()
                                                           : 0);
    const int64_t at = *index < 0 ? *index + size : *index;
    if (at >= 0 && at < size) {
      if (text == nullptr) return items->items[static_cast<size_t>(at)];
      const Value from(at), to(at + 1);
      return slice(run, value, &from, &to, nullptr);
    }
  }
  if (const String* name = key.string()) {
    // An item that doesn't exist may be an attribute: its name was not found as a key.
    return attribute(run, value, name->text.bytes);
  }
  return Value::undefined(fmt::format("'{} object' has no element {}", value.type_name(),
                                      printable(to_repr(run, key).bytes, 60)));
}

Value slice(Run& run, const Value& value, const Value* start, const Value* stop,
            const Value* step) {
  run.require_defined(value);
  const auto bound = [&](const Value* given) -> std::optional<int64_t> {
    if (given == nullptr || given->is_none()) return std::nullopt;
    return need_integer(run, *given);
  };
  const auto from = bound(start), to = bound(stop), by = bound(step);
  const String* text = value.string();
  const Sequence* items = value.sequence();
  if (text == nullptr && (items == nullptr || !items->subscriptable())) {
    run.fail(fmt::format("'{}' can't be sliced", value.type_name()));
  }
  const int64_t stride = by.value_or(1);
  if (stride == 0) run.fail("the step of a slice is zero");
  const auto size = static_cast<int64_t>(text != nullptr ? text->characters : items->items.size());
  const int64_t lowest = stride > 0 ? 0 : -1, highest = stride > 0 ? size : size - 1;
  const auto clamped = [&](std::optional<int64_t> given, int64_t otherwise) {
    if (!given) return otherwise;
    return std::clamp(*given < 0 ? *given + size : *given, lowest, highest);
  };
  const int64_t first = clamped(from, stride > 0 ? 0 : size - 1);
  const int64_t last = clamped(to, stride > 0 ? size : -1);
  int64_t count = 0;
  if (stride > 0 && last > first) {
    count = (last - first - 1) / stride + 1;
  } else if (stride < 0 && first > last) {
    const int64_t down = stride == INT64_MIN ? INT64_MAX : -stride;
    count = (first - last - 1) / down + 1;
  }
  if (text == nullptr) {
    std::vector<Value> result;
    result.reserve(static_cast<size_t>(count));
    for (int64_t i = 0; i < count; ++i) {
      result.push_back(items->items[static_cast<size_t>(first + i * stride)]);
    }
    const auto kind = items->kind == Sequence::Kind::group ? Sequence::Kind::tuple : items->kind;
    return run.sequence(kind, std::move(result));
  }
  const MarkedString& source = text->text;
  const bool ascii = text->characters == source.bytes.size();
  run.read(source.bytes.size());
  if (stride == 1) {
    const auto offset = [&](int64_t index) {
      return ascii ? static_cast<size_t>(index)
                   : offset_of(source.bytes, static_cast<size_t>(index));
    };
    return run.string(count > 0 ? source.slice(offset(first), offset(last)) : MarkedString(),
                      text->html);
  }
  std::vector<size_t> offsets;  // of each character, and the end
  run.make(text->characters * sizeof(size_t));
  for (size_t at = 0; at < source.bytes.size();) {
    offsets.push_back(at);
    at += first_character(std::string_view(source.bytes).substr(at)).length;
  }
  offsets.push_back(source.bytes.size());
  MarkedString result;
  for (int64_t i = 0; i < count; ++i) {
    const auto at = static_cast<size_t>(first + i * stride);
    result.append(source, offsets[at], offsets[at + 1]);
  }
  return run.string(std::move(result), text->html);
}

std::shared_ptr<const Sequence> iterate(Run& run, const Value& value) {
  using Kind = Sequence::Kind;
  if (const Sequence* items = value.sequence()) {
    if (items->kind != Kind::generator) {
      return std::shared_ptr<const Sequence>(std::make_shared<Value>(value), items);
    }
    std::vector<Value> rest(items->items.begin() + static_cast<long>(items->taken),
                            items->items.end());
    items->taken = items->items.size();
    run.make(rest.size() * sizeof(Value));
    return std::make_shared<const Sequence>(Kind::list, std::move(rest));
  }
  std::vector<Value> items;
  if (const Dict* dict = value.dict()) {
    run.make(dict->entries.size() * sizeof(Value));
    for (const auto& entry : dict->entries) items.push_back(entry.first);
  } else if (const String* text = value.string()) {
    run.make(text->characters * (sizeof(Value) + sizeof(String)));
    run.step(text->characters);
    const std::string& bytes = text->text.bytes;
    for (size_t at = 0; at < bytes.size();) {
      const size_t size = first_character(std::string_view(bytes).substr(at)).length;
      items.emplace_back(text->text.slice(at, at + size));
      at += size;
    }
  } else if (!value.is_undefined()) {
    run.fail(fmt::format("'{}' can't be iterated over", value.type_name()));
  }
  return std::make_shared<const Sequence>(Kind::list, std::move(items));
}

std::optional<Value> first_item(Run& run, const Value& value) {
  const Sequence* items = value.sequence();
  if (items != nullptr && items->kind == Sequence::Kind::generator) {
    if (items->taken == items->items.size()) return std::nullopt;
    return items->items[items->taken++];
  }
  if (const String* text = value.string(); text != nullptr && text->characters > 0) {
    return item(run, value, Value(0));
  }
  const auto all = iterate(run, value);
  if (all->items.empty()) return std::nullopt;
  return all->items.front();
}

int64_t length(Run& run, const Value& value) {
  if (value.is_undefined()) return 0;
  if (const String* text = value.string()) return static_cast<int64_t>(text->characters);
  if (const Dict* dict = value.dict()) return static_cast<int64_t>(dict->entries.size());
  const Sequence* items = value.sequence();
  if (items != nullptr && items->sized()) return static_cast<int64_t>(items->items.size());
  run.fail(fmt::format("'{}' has no length", value.type_name()));
}

Value call(Run& run, const Value& value, Arguments& arguments) {
  run.require_defined(value);
  const Callable* callable = value.callable();
  if (callable == nullptr) run.fail(fmt::format("'{}' can't be called", value.type_name()));
  return callable->call(run, arguments);
}

std::string plain_text(Run& run, const Value& value) { return to_text(run, value).bytes; }

int64_t need_integer(Run& run, const Value& value) {
  const auto integer = value.integer();
  if (!integer) run.fail_type("an integer", value);
  return *integer;
}

const String& need_string(Run& run, const Value& value) {
  const String* text = value.string();
  if (text == nullptr) run.fail_type("a string", value);
  return *text;
}

Parameters::Parameters(Run& run, std::string_view function, Arguments& arguments,
                       std::initializer_list<std::string_view> names)
    : run_(run), function_(function), names_(names), values_(names.size()) {
  if (arguments.positional.size() > names_.size()) {
    run.fail(fmt::format("{} takes at most {} arguments, got {}", function, names_.size(),
                         arguments.positional.size()));
  }
  for (size_t i = 0; i < arguments.positional.size(); ++i) values_[i] = &arguments.positional[i];
  for (const auto& [name, value] : arguments.named) {
    const auto found = std::find(names_.begin(), names_.end(), name);
    if (found == names_.end()) {
      run.fail(fmt::format("{} has no parameter '{}'", function, printable(name, 40)));
    }
    const Value*& given = values_[static_cast<size_t>(found - names_.begin())];
    if (given != nullptr) run.fail(fmt::format("{} got two values of '{}'", function, name));
    given = &value;
  }
}

const Value& Parameters::need(size_t parameter) const {
  if (values_[parameter] == nullptr) {
    std::string_view name = names_[parameter];
    if (name.starts_with('/')) name.remove_prefix(1);
    run_.fail(fmt::format("{} needs an argument '{}'", function_, name));
  }
  return *values_[parameter];
}

bool Parameters::flag(size_t parameter, bool otherwise) const {
  return values_[parameter] != nullptr ? values_[parameter]->truth() : otherwise;
}

int64_t Parameters::integer(size_t parameter, int64_t otherwise) const {
  return values_[parameter] != nullptr ? need_integer(run_, *values_[parameter]) : otherwise;
}

std::string Parameters::text(size_t parameter, std::string_view otherwise) const {
  return values_[parameter] != nullptr ? need_string(run_, *values_[parameter]).text.bytes
                                       : std::string(otherwise);
}

}  // namespace wick::text::jinja
