#pragma once

#include <compare>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "wick/text/jinja/values/run.h"
#include "wick/text/jinja/values/value.h"

// Operations of Python's values. All throw through Run::fail where Python raises.
namespace wick::text::jinja {

enum class Operator : uint8_t {
  add,
  subtract,
  multiply,
  divide,
  floor_divide,
  modulo,
  power,
  equal,
  not_equal,
  less,
  less_equal,
  greater,
  greater_equal,
  in,
  not_in,
};

/// str(value), with the marks of the strings in it. Errors: Python's text would differ from run to
/// run, as that of a generator.
MarkedString to_text(Run& run, const Value& value);
/// repr(value).
MarkedString to_repr(Run& run, const Value& value);
/// repr() of a float: the shortest decimal number that reads as the same float.
std::string float_repr(double value);

bool equal(Run& run, const Value& a, const Value& b);
/// The order of two values. Errors: their types have none. Nullopt: a NaN.
std::optional<std::strong_ordering> order(Run& run, const Value& a, const Value& b);
/// The order of two numbers, in exact arithmetic; nullopt for a NaN.
std::optional<std::strong_ordering> order_numbers(const Value& a, const Value& b);
bool contains(Run& run, const Value& container, const Value& item);
Value arithmetic(Run& run, Operator op, const Value& a, const Value& b);
Value negate(Run& run, const Value& value);

/// value.name, as jinja2's sandbox finds it: an attribute of the object, then an item.
Value attribute(Run& run, const Value& value, std::string_view name);
/// value[key], as jinja2's sandbox finds it: an item, then an attribute.
Value item(Run& run, const Value& value, const Value& key);
/// value[start:stop:step]; each bound may be null.
Value slice(Run& run, const Value& value, const Value* start, const Value* stop, const Value* step);

/// The items that a loop over the value visits. Takes all that is left of a generator.
std::shared_ptr<const Sequence> iterate(Run& run, const Value& value);
/// The next item of an iterable value; nullopt at the end. Takes one item of a generator.
std::optional<Value> first_item(Run& run, const Value& value);
/// len(value).
int64_t length(Run& run, const Value& value);
/// value(arguments).
Value call(Run& run, const Value& value, Arguments& arguments);

/// str(value) as one line of bytes, for keys and names.
std::string plain_text(Run& run, const Value& value);
/// An int argument. Errors: another type.
int64_t need_integer(Run& run, const Value& value);
/// A str argument. Errors: another type.
const String& need_string(Run& run, const Value& value);

/// json.dumps(value, ensure_ascii, indent, separators, sort_keys). `indent` may be None.
MarkedString to_json(Run& run, const Value& value, bool ascii, const Value& indent,
                     std::string_view item_separator, std::string_view key_separator,
                     bool sort_keys);

/// format % values.
MarkedString format_percent(Run& run, const MarkedString& format, const Value& values);
/// format.format(*positional, **named).
MarkedString format_braces(Run& run, const MarkedString& format, const Arguments& arguments);

/// The method of a str, list or dict, bound to `value`; nullopt if Python has none of this name.
std::optional<Value> find_method(const Value& value, std::string_view name);
/// Whether a method changes its list or dict, so that jinja2's sandbox hides it.
bool changes_object(const Value& value, std::string_view name);

/// The arguments of a call by their parameters' names. Names that begin with / are those of
/// parameters that take no named arguments. Errors, when it is made: too many or unknown
/// arguments, or two for one parameter.
class Parameters {
 public:
  Parameters(Run& run, std::string_view function, Arguments& arguments,
             std::initializer_list<std::string_view> names);
  /// The argument of a parameter; null if it wasn't given.
  const Value* get(size_t parameter) const { return values_[parameter]; }
  /// Errors: it wasn't given.
  const Value& need(size_t parameter) const;
  bool flag(size_t parameter, bool otherwise) const;
  int64_t integer(size_t parameter, int64_t otherwise) const;
  std::string text(size_t parameter, std::string_view otherwise) const;

 private:
  Run& run_;
  std::string_view function_;
  std::vector<std::string_view> names_;
  std::vector<const Value*> values_;
};

}  // namespace wick::text::jinja
