// Methods of str, list, tuple and dict.
#include <fmt/format.h>

#include <algorithm>
#include <span>

#include "wick/text/jinja/values/operators.h"
#include "wick/text/jinja/values/strings.h"

namespace wick::text::jinja {
namespace {

using Apply = Value (*)(Run&, const Value&, Arguments&);
struct Method {
  std::string_view name;
  Apply apply;  // null: Python has the method, but templates can't call it
};

/// A method with the object that it works on.
class Bound : public Callable {
 public:
  Bound(Value object, const Method& method) : object_(std::move(object)), method_(method) {}
  Value call(Run& run, Arguments& arguments) const override {
    if (method_.apply == nullptr) {
      run.fail(fmt::format("the method {}.{} can't be called in templates", object_.type_name(),
                           method_.name));
    }
    return method_.apply(run, object_, arguments);
  }
  std::string_view type_name() const override { return "builtin_function_or_method"; }
  int depth() const override { return object_.depth() + 1; }

 private:
  Value object_;
  const Method& method_;
};

Value dict_get(Run& run, const Value& value, Arguments& arguments) {
  const Parameters given(run, "get", arguments, {"/key", "/default"});
  run.read_key(given.need(0));
  if (!hash_of(given.need(0))) run.fail_type("a hashable key", given.need(0));
  if (const Value* found = value.dict()->find(given.need(0))) return *found;
  return given.get(1) != nullptr ? *given.get(1) : Value();
}

Value dict_view(Run& run, const Value& value, Arguments& arguments, Sequence::Kind kind) {
  const Parameters given(run, "a view of a dict", arguments, {});
  std::vector<Value> items;
  for (const auto& [key, element] : value.dict()->entries) {
    if (kind == Sequence::Kind::items) {
      items.push_back(run.sequence(Sequence::Kind::tuple, {key, element}));
    } else {
      items.push_back(kind == Sequence::Kind::keys ? key : element);
    }
  }
  return run.sequence(kind, std::move(items));
}

Value copy(Run& run, const Value& value, Arguments& arguments) {
  const Parameters given(run, "copy", arguments, {});
  return value;  // values don't change, so the same object serves
}

Value list_count(Run& run, const Value& value, Arguments& arguments) {
  const Parameters given(run, "count", arguments, {"/value"});
  int64_t count = 0;
  for (const Value& item : value.sequence()->items) count += equal(run, item, given.need(0));
  return Value(count);
}

Value list_index(Run& run, const Value& value, Arguments& arguments) {
  const Parameters given(run, "index", arguments, {"/value"});
  const std::vector<Value>& items = value.sequence()->items;
  for (size_t i = 0; i < items.size(); ++i) {
    if (equal(run, items[i], given.need(0))) return Value(static_cast<int64_t>(i));
  }
  run.fail("index: the list has no such value");
}

// The methods that change a list or dict are left out: the sandbox hides them.
constexpr Method kDict[] = {
    {"copy", copy},
    {"fromkeys", nullptr},
    {"get", dict_get},
    {"items",
     [](Run& run, const Value& value, Arguments& arguments) {
       return dict_view(run, value, arguments, Sequence::Kind::items);
     }},
    {"keys",
     [](Run& run, const Value& value, Arguments& arguments) {
       return dict_view(run, value, arguments, Sequence::Kind::keys);
     }},
    {"values",
     [](Run& run, const Value& value, Arguments& arguments) {
       return dict_view(run, value, arguments, Sequence::Kind::values);
     }},
};
constexpr Method kList[] = {{"copy", copy}, {"count", list_count}, {"index", list_index}};
constexpr Method kTuple[] = {{"count", list_count}, {"index", list_index}};
constexpr std::string_view kHiddenOfDict[] = {"clear", "pop", "popitem", "setdefault", "update"};
constexpr std::string_view kHiddenOfList[] = {"append", "clear",  "extend",  "insert",
                                              "pop",    "remove", "reverse", "sort"};
// Methods of str that templates can't call.
constexpr Method kNoString[] = {
    {"casefold", nullptr},   {"encode", nullptr},       {"expandtabs", nullptr},
    {"format_map", nullptr}, {"isidentifier", nullptr}, {"isprintable", nullptr},
    {"istitle", nullptr},    {"maketrans", nullptr},    {"swapcase", nullptr},
    {"translate", nullptr},
};

const Method* find_in(std::span<const Method> methods, std::string_view name) {
  const auto found = std::find_if(methods.begin(), methods.end(),
                                  [&](const Method& method) { return method.name == name; });
  return found != methods.end() ? &*found : nullptr;
}

/// A method of str: its function takes the text.
class BoundText : public Callable {
 public:
  BoundText(Value text, std::string_view name, StringMethod method)
      : text_(std::move(text)), name_(name), method_(method) {}
  Value call(Run& run, Arguments& arguments) const override {
    const Value result = method_(run, *text_.string(), arguments);
    return text_.string()->html ? as_html(run, result) : result;
  }
  std::string_view type_name() const override { return "builtin_function_or_method"; }

 private:
  Value as_html(Run& run, const Value& value) const {
    if (const String* text = value.string()) {
      if (!keeps_html(name_)) {
        run.fail(fmt::format("str.{} isn't supported after the filter safe", name_));
      }
      return run.string(text->text, true);
    }
    if (value.sequence() == nullptr) return value;
    std::vector<Value> items;
    for (const Value& item : value.sequence()->items) items.push_back(as_html(run, item));
    return run.sequence(value.sequence()->kind, std::move(items));
  }

  Value text_;
  std::string name_;
  StringMethod method_;
};

}  // namespace

bool changes_object(const Value& value, std::string_view name) {
  const auto has = [&](std::span<const std::string_view> names) {
    return std::find(names.begin(), names.end(), name) != names.end();
  };
  const Sequence* items = value.sequence();
  return (value.dict() != nullptr && has(kHiddenOfDict)) ||
         (items != nullptr && items->kind == Sequence::Kind::list && has(kHiddenOfList));
}

std::optional<Value> find_method(const Value& value, std::string_view name) {
  const Method* method = nullptr;
  if (value.string() != nullptr) {
    if (const StringMethod found = find_string_method(name)) {
      return Value(
          std::shared_ptr<const Callable>(std::make_shared<BoundText>(value, name, found)));
    }
    method = find_in(kNoString, name);
  } else if (value.dict() != nullptr) {
    method = find_in(kDict, name);
  } else if (const Sequence* items = value.sequence()) {
    if (items->kind == Sequence::Kind::list) method = find_in(kList, name);
    if (items->is_tuple() || items->kind == Sequence::Kind::range) method = find_in(kTuple, name);
  }
  if (method == nullptr) return std::nullopt;
  return Value(std::shared_ptr<const Callable>(std::make_shared<Bound>(value, *method)));
}

}  // namespace wick::text::jinja
