#include "wick/text/jinja/values/value.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>

#include "wick/base/error.h"
#include "wick/text/jinja/values/limits.h"
#include "wick/text/jinja/values/unicode.h"

namespace wick::text::jinja {
namespace {

constexpr size_t kFewEntries = 8;
constexpr uint32_t kFree = ~uint32_t{0};

int depth_of(const std::vector<Value>& items) {
  int depth = 0;
  for (const Value& item : items) depth = std::max(depth, item.depth());
  return depth + 1;
}

size_t mix(size_t a, size_t b) { return (a ^ (b + 0x9e3779b97f4a7c15u)) * 0xff51afd7ed558ccdu; }

/// Checks the depth of a value that the caller of the evaluator made.
template <class T>
std::shared_ptr<const T> shallow(T value) {
  if (value.depth > kMaxDepth) {
    throw Error("chat", "lists and dicts nested too deeply", {},
                fmt::format("the limit is {} levels", kMaxDepth));
  }
  return std::make_shared<const T>(std::move(value));
}

}  // namespace

Value::Value(MarkedString text, bool html) {
  const size_t characters = count_characters(text.bytes);
  data_ = std::make_shared<const String>(String{std::move(text), characters, html});
}

Value Value::list(std::vector<Value> items) {
  return Value(shallow(Sequence(Sequence::Kind::list, std::move(items))));
}

Value Value::tuple(std::vector<Value> items) {
  return Value(shallow(Sequence(Sequence::Kind::tuple, std::move(items))));
}

Value Value::dict(Entries entries) {
  Dict dict;
  for (auto& [key, value] : entries) {
    if (!dict.set(key, value)) {
      throw Error("chat", fmt::format("unhashable type: '{}'", key.type_name()), "a key of a dict");
    }
  }
  return Value(shallow(std::move(dict)));
}

Value Value::undefined(std::string reason) {
  Value value;
  value.data_ = Undefined{std::make_shared<const std::string>(std::move(reason))};
  return value;
}

std::optional<int64_t> Value::integer() const {
  if (const int64_t* value = std::get_if<int64_t>(&data_)) return *value;
  if (const bool* value = std::get_if<bool>(&data_)) return *value ? 1 : 0;
  return std::nullopt;
}

std::optional<double> Value::number() const {
  if (const double* value = real()) return *value;
  if (const auto value = integer()) return static_cast<double>(*value);
  return std::nullopt;
}

const String* Value::string() const {
  const auto* value = std::get_if<std::shared_ptr<const String>>(&data_);
  return value != nullptr ? value->get() : nullptr;
}

const Sequence* Value::sequence() const {
  const auto* value = std::get_if<std::shared_ptr<const Sequence>>(&data_);
  return value != nullptr ? value->get() : nullptr;
}

const Dict* Value::dict() const {
  const auto* value = std::get_if<std::shared_ptr<const Dict>>(&data_);
  return value != nullptr ? value->get() : nullptr;
}

const Callable* Value::callable() const {
  const auto* value = std::get_if<std::shared_ptr<const Callable>>(&data_);
  return value != nullptr ? value->get() : nullptr;
}

int Value::depth() const {
  if (const Sequence* items = sequence()) return items->depth;
  if (const Dict* entries = dict()) return entries->depth;
  if (const Callable* function = callable()) return function->depth();
  return 0;
}

bool Value::same_object(const Value& other) const {
  if (data_.index() != other.data_.index()) return false;
  return std::visit(
      [&](const auto& a) {
        using T = std::decay_t<decltype(a)>;
        const auto& b = std::get<T>(other.data_);
        if constexpr (std::is_same_v<T, None>) {
          return true;
        } else if constexpr (std::is_same_v<T, Undefined>) {
          return a.reason == b.reason;
        } else {
          return a == b;
        }
      },
      data_);
}

bool Value::truth() const {
  if (const String* text = string()) return !text->text.bytes.empty();
  if (const Sequence* items = sequence()) {
    return items->kind == Sequence::Kind::generator || !items->items.empty();
  }
  if (const Dict* entries = dict()) return !entries->entries.empty();
  if (const auto value = number()) return *value != 0;
  return !is_none() && !is_undefined();
}

std::string_view Value::type_name() const {
  if (is_none()) return "NoneType";
  if (is_undefined()) return "Undefined";
  if (boolean() != nullptr) return "bool";
  if (integer()) return "int";
  if (real() != nullptr) return "float";
  if (string() != nullptr) return "str";
  if (dict() != nullptr) return "dict";
  if (names() != nullptr) return "Namespace";
  if (const Callable* function = callable()) return function->type_name();
  switch (sequence()->kind) {
    case Sequence::Kind::list:
      return "list";
    case Sequence::Kind::tuple:
      return "tuple";
    case Sequence::Kind::group:
      return "_GroupTuple";
    case Sequence::Kind::range:
      return "range";
    case Sequence::Kind::keys:
      return "dict_keys";
    case Sequence::Kind::values:
      return "dict_values";
    case Sequence::Kind::items:
      return "dict_items";
    case Sequence::Kind::generator:
      break;
  }
  return "generator";
}

Sequence::Sequence(Kind which, std::vector<Value> elements)
    : kind(which), items(std::move(elements)), depth(depth_of(items)) {
  for (const Value& item : items) {
    const Sequence* inner = item.sequence();
    weight = std::min(weight + (inner != nullptr ? inner->weight : 1), kMaxKey + 1);
  }
}

std::optional<size_t> hash_of(const Value& value) {
  if (const String* text = value.string()) {
    return std::hash<std::string_view>()(text->text.bytes);
  }
  // Equal numbers of different types have equal hashes.
  if (const auto number = value.number()) return std::hash<double>()(*number == 0 ? 0 : *number);
  if (value.is_none()) return 1;
  if (value.is_undefined()) return 2;
  const Sequence* items = value.sequence();
  if (items == nullptr || !items->is_tuple() || items->weight > kMaxKey) return std::nullopt;
  size_t hash = 3;
  for (const Value& item : items->items) {
    const auto part = hash_of(item);
    if (!part) return std::nullopt;
    hash = mix(hash, *part);
  }
  return hash;
}

bool equal_keys(const Value& a, const Value& b) {
  const String *x = a.string(), *y = b.string();
  if (x != nullptr || y != nullptr) {
    return x != nullptr && y != nullptr && x->text.bytes == y->text.bytes;
  }
  const auto i = a.integer(), j = b.integer();
  if (i && j) return *i == *j;
  const auto p = a.number(), q = b.number();
  if (p || q) return p && q && *p == *q;
  const Sequence *s = a.sequence(), *t = b.sequence();
  if (s != nullptr && t != nullptr) {
    return s->items.size() == t->items.size() &&
           std::equal(s->items.begin(), s->items.end(), t->items.begin(), equal_keys);
  }
  return (a.is_none() && b.is_none()) || (a.is_undefined() && b.is_undefined());
}

size_t Dict::position(const Value& key, size_t hash) const {
  if (table_.empty()) {
    for (size_t i = 0; i < entries.size(); ++i) {
      if (hashes_[i] == hash && equal_keys(entries[i].first, key)) return i;
    }
    return entries.size();
  }
  for (size_t slot = mix(hash, 0);; ++slot) {
    const uint32_t at = table_[slot & (table_.size() - 1)];
    if (at == kFree) return entries.size();
    if (hashes_[at] == hash && equal_keys(entries[at].first, key)) return at;
  }
}

bool Dict::set(const Value& key, const Value& value) {
  const auto hash = hash_of(key);
  if (!hash) return false;
  depth = std::max({depth, key.depth() + 1, value.depth() + 1});
  const size_t at = position(key, *hash);
  if (at < entries.size()) {
    entries[at].second = value;
    return true;
  }
  entries.emplace_back(key, value);
  hashes_.push_back(*hash);
  if (entries.size() <= kFewEntries) return true;
  const auto insert = [this](size_t i) {
    size_t slot = mix(hashes_[i], 0);
    while (table_[slot & (table_.size() - 1)] != kFree) ++slot;
    table_[slot & (table_.size() - 1)] = static_cast<uint32_t>(i);
  };
  if (table_.size() >= 2 * entries.size()) {
    insert(at);
    return true;
  }
  table_.assign(std::max<size_t>(4 * kFewEntries, 2 * table_.size()), kFree);
  for (size_t i = 0; i < entries.size(); ++i) insert(i);
  return true;
}

const Value* Dict::find(const Value& key) const {
  const auto hash = hash_of(key);
  if (!hash) return nullptr;
  const size_t at = position(key, *hash);
  return at < entries.size() ? &entries[at].second : nullptr;
}

const Value* Dict::find(std::string_view key) const { return find(Value::text(key)); }

const Value* Namespace::find(std::string_view name) const {
  for (const auto& [key, value] : attributes) {
    if (key == name) return &value;
  }
  return nullptr;
}

void Namespace::set(std::string_view name, Value value) {
  for (auto& [key, old] : attributes) {
    if (key == name) {
      old = std::move(value);
      return;
    }
  }
  attributes.emplace_back(std::string(name), std::move(value));
}

std::optional<Value> Callable::attribute(Run&, std::string_view) const { return std::nullopt; }

}  // namespace wick::text::jinja
