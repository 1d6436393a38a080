#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "wick/base/export.h"
#include "wick/text/marked/marked_string.h"

namespace wick::text::jinja {

class Value;
struct Sequence;
struct Dict;
struct Namespace;
struct Callable;
class Run;

/// The value of a variable that isn't defined. `reason` is the message of the error that most
/// operations raise.
struct Undefined {
  std::shared_ptr<const std::string> reason;
};
struct None {};

/// A string with its number of characters.
struct String {
  MarkedString text;
  size_t characters;
  /// Whether it is jinja2's Markup: the result of the filters safe and escape. Concatenation
  /// escapes the other operand.
  bool html = false;
};

using Entries = std::vector<std::pair<Value, Value>>;

/// A value of a template, with the meaning of the Python value that it stands for. Values are
/// immutable, except namespaces; copies share their contents.
class WICK_API Value {
 public:
  Value() : data_(None{}) {}
  Value(bool value) : data_(value) {}
  Value(int64_t value) : data_(value) {}
  Value(int value) : data_(int64_t{value}) {}
  Value(double value) : data_(value) {}
  Value(const void*) = delete;  // pointers would become bools
  Value(MarkedString text, bool html = false);
  /// Text of a template. Use content() for text of a conversation.
  static Value text(std::string_view text) { return Value(MarkedString::plain(text)); }
  /// Text of a conversation: control tokens that it spells stay text.
  static Value content(std::string_view text) { return Value(MarkedString::from_content(text)); }
  static Value list(std::vector<Value> items);
  static Value tuple(std::vector<Value> items);
  /// A dict; of equal keys the last value counts. Keys must be hashable.
  static Value dict(Entries entries);
  static Value undefined(std::string reason);

  explicit Value(std::shared_ptr<const Sequence> items) : data_(std::move(items)) {}
  explicit Value(std::shared_ptr<const Dict> dict) : data_(std::move(dict)) {}
  explicit Value(std::shared_ptr<Namespace> names) : data_(std::move(names)) {}
  explicit Value(std::shared_ptr<const Callable> callable) : data_(std::move(callable)) {}

  bool is_undefined() const { return std::holds_alternative<Undefined>(data_); }
  bool is_none() const { return std::holds_alternative<None>(data_); }
  const Undefined* undefined() const { return std::get_if<Undefined>(&data_); }
  const bool* boolean() const { return std::get_if<bool>(&data_); }
  /// The value of an int, or of a bool, which Python counts as one.
  std::optional<int64_t> integer() const;
  const int64_t* strict_integer() const { return std::get_if<int64_t>(&data_); }
  const double* real() const { return std::get_if<double>(&data_); }
  /// The value of a number.
  std::optional<double> number() const;
  const String* string() const;
  const Sequence* sequence() const;
  const Dict* dict() const;
  const std::shared_ptr<Namespace>* names() const {
    return std::get_if<std::shared_ptr<Namespace>>(&data_);
  }
  const Callable* callable() const;

  /// How deeply lists and dicts are nested in this value.
  int depth() const;
  /// Whether both are the same object, or equal values that Python holds once.
  bool same_object(const Value& other) const;
  /// bool(value).
  bool truth() const;
  /// The name of Python's type: "str", "dict", "NoneType" …
  std::string_view type_name() const;

 private:
  std::variant<None, Undefined, bool, int64_t, double, std::shared_ptr<const String>,
               std::shared_ptr<const Sequence>, std::shared_ptr<const Dict>,
               std::shared_ptr<Namespace>, std::shared_ptr<const Callable>>
      data_;
};

/// A list or another iterable object of Python.
struct Sequence {
  enum class Kind : uint8_t { list, tuple, group, range, keys, values, items, generator };
  Kind kind = Kind::list;
  std::vector<Value> items;
  int depth = 1;
  size_t weight = 1;         // 1, and 1 for each value in it at any level, as often as it is there
  mutable size_t taken = 0;  // generator: the number of items that were read

  Sequence(Kind which, std::vector<Value> elements);
  /// Whether it has a length and can be subscripted.
  bool subscriptable() const {
    return kind == Kind::list || kind == Kind::tuple || kind == Kind::group || kind == Kind::range;
  }
  bool is_tuple() const { return kind == Kind::tuple || kind == Kind::group; }
  /// Whether len() is defined.
  bool sized() const { return kind != Kind::generator; }
};

/// A dict, which keeps the order in which keys were added.
struct Dict {
  Entries entries;
  int depth = 1;

  /// Adds an entry or replaces the value of an equal key. Returns false if the key isn't hashable.
  bool set(const Value& key, const Value& value);
  /// Returns the value of a key; null if there is none.
  const Value* find(const Value& key) const;
  const Value* find(std::string_view key) const;

 private:
  size_t position(const Value& key, size_t hash) const;
  // (hash, position) of each entry in an open-addressing table; empty for few entries.
  std::vector<uint32_t> table_;
  std::vector<size_t> hashes_;
};

/// What namespace() returns: the only object whose attributes a template can set.
struct Namespace {
  std::vector<std::pair<std::string, Value>> attributes;
  const Value* find(std::string_view name) const;
  void set(std::string_view name, Value value);
};

/// The arguments of a call.
struct Arguments {
  std::vector<Value> positional;
  std::vector<std::pair<std::string, Value>> named;
};

/// A function, method or macro, or an object of the evaluator such as `loop`.
struct Callable {
  virtual ~Callable() = default;
  virtual Value call(Run& run, Arguments& arguments) const = 0;
  /// The value of an attribute; nullopt if there is none.
  virtual std::optional<Value> attribute(Run& run, std::string_view name) const;
  /// The name of Python's type.
  virtual std::string_view type_name() const { return "function"; }
  /// What str() gives; empty if Python's text isn't the same in each run.
  virtual std::string printed() const { return {}; }
  virtual int depth() const { return 1; }
};

/// Hash of a hashable value; nullopt for others, and for tuples with a weight above kMaxKey.
std::optional<size_t> hash_of(const Value& value);
/// Equality of hashable values: None, numbers, strings and tuples of them.
bool equal_keys(const Value& a, const Value& b);

}  // namespace wick::text::jinja
