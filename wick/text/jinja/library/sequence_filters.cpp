// Filters of lists and dicts.
#include <fmt/format.h>

#include <algorithm>
#include <functional>

#include "wick/base/printable.h"
#include "wick/text/jinja/library/filters.h"
#include "wick/text/jinja/values/strings.h"

namespace wick::text::jinja {
namespace {

using Kind = Sequence::Kind;

/// Looks up an attribute of each item: a path such as "address.city", or an index. None: the item.
class Getter {
 public:
  Getter(Run& run, const Value* path, bool ignores_case = false, const Value* otherwise = nullptr)
      : run_(run), ignores_case_(ignores_case), otherwise_(otherwise) {
    if (path == nullptr || path->is_none()) return;
    if (path->integer()) {
      keys_.push_back(*path);
      return;
    }
    const std::string text = need_string(run, *path).text.bytes;
    for (size_t begin = 0; begin <= text.size();) {
      const size_t end = std::min(text.find('.', begin), text.size());
      const std::string part = text.substr(begin, end - begin);
      const bool digits = !part.empty() && part.size() < 10 &&
                          part.find_first_not_of("0123456789") == std::string::npos;
      keys_.push_back(digits ? Value(int64_t{std::stoi(part)}) : run.text(part));
      begin = end + 1;
    }
  }

  Value operator()(const Value& value) const {
    Value found = value;
    for (const Value& key : keys_) {
      run_.step();
      found = item(run_, found, key);
      if (found.is_undefined() && otherwise_ != nullptr && !otherwise_->is_none()) {
        found = *otherwise_;
      }
    }
    if (ignores_case_ && found.string() != nullptr) {
      return run_.string(in_case(run_, found.string()->text, false));
    }
    return found;
  }

 private:
  Run& run_;
  bool ignores_case_;
  const Value* otherwise_;
  std::vector<Value> keys_;
};

bool less(Run& run, const Value& a, const Value& b) {
  return order(run, a, b) == std::strong_ordering::less;
}

/// Sorts items by their keys, stably.
std::vector<Value> sorted(Run& run, const std::vector<Value>& items, const std::vector<Value>& keys,
                          bool reverse) {
  std::vector<size_t> places(items.size());
  for (size_t i = 0; i < places.size(); ++i) places[i] = i;
  std::stable_sort(places.begin(), places.end(), [&](size_t a, size_t b) {
    return reverse ? less(run, keys[b], keys[a]) : less(run, keys[a], keys[b]);
  });
  std::vector<Value> out;
  for (const size_t place : places) out.push_back(items[place]);
  return out;
}

Value first(Run& run, const Value& value, Arguments& arguments) {
  const Parameters given(run, "first", arguments, {});
  const auto found = first_item(run, value);
  return found ? *found : Value::undefined("the sequence has no first item");
}

Value last(Run& run, const Value& value, Arguments& arguments) {
  const Parameters given(run, "last", arguments, {});
  const Sequence* items = value.sequence();
  if (items != nullptr && !items->sized()) run.fail("a generator has no last item");
  if (value.string() != nullptr) {
    return value.truth() ? item(run, value, Value(-1))
                         : Value::undefined("the sequence has no last item");
  }
  const auto all = iterate(run, value);
  return all->items.empty() ? Value::undefined("the sequence has no last item") : all->items.back();
}

Value count(Run& run, const Value& value, Arguments& arguments) {
  const Parameters given(run, "length", arguments, {});
  return Value(length(run, value));
}

Value to_list(Run& run, const Value& value, Arguments& arguments) {
  const Parameters given(run, "list", arguments, {});
  return run.list(iterate(run, value)->items);
}

Value join(Run& run, const Value& value, Arguments& arguments) {
  const Parameters given(run, "join", arguments, {"d", "attribute"});
  const Getter get(run, given.get(1));
  const MarkedString between =
      given.get(0) != nullptr ? to_text(run, *given.get(0)) : MarkedString();
  const auto items = iterate(run, value);
  MarkedString out;
  for (size_t i = 0; i < items->items.size(); ++i) {
    run.step();
    if (i > 0) out.append(between);
    out.append(to_text(run, get(items->items[i])));
    run.check_size(out.bytes.size());
  }
  return run.string(std::move(out));
}

Value reverse(Run& run, const Value& value, Arguments& arguments) {
  const Parameters given(run, "reverse", arguments, {});
  if (value.string() != nullptr) {
    const Value back(-1);
    return slice(run, value, nullptr, nullptr, &back);
  }
  const bool generator = value.sequence() != nullptr && !value.sequence()->sized();
  std::vector<Value> items = iterate(run, value)->items;
  std::reverse(items.begin(), items.end());
  return run.sequence(generator ? Kind::list : Kind::generator, std::move(items));
}

Value sort(Run& run, const Value& value, Arguments& arguments) {
  const Parameters given(run, "sort", arguments, {"reverse", "case_sensitive", "attribute"});
  const bool ignores_case = !given.flag(1, false);
  // Several attributes are separated by commas.
  std::vector<Getter> getters;
  const Value* path = given.get(2);
  std::vector<Value> paths;
  if (path != nullptr && path->string() != nullptr) {
    const std::string& text = path->string()->text.bytes;
    for (size_t begin = 0; begin <= text.size();) {
      const size_t end = std::min(text.find(',', begin), text.size());
      paths.push_back(run.text(text.substr(begin, end - begin)));
      begin = end + 1;
    }
    for (const Value& one : paths) getters.emplace_back(run, &one, ignores_case);
  } else {
    getters.emplace_back(run, path, ignores_case);
  }
  const auto items = iterate(run, value);
  std::vector<Value> keys;
  for (const Value& element : items->items) {
    std::vector<Value> parts;
    for (const Getter& get : getters) parts.push_back(get(element));
    keys.push_back(run.list(std::move(parts)));
  }
  return run.list(sorted(run, items->items, keys, given.flag(0, false)));
}

Value dictsort(Run& run, const Value& value, Arguments& arguments) {
  const Parameters given(run, "dictsort", arguments, {"case_sensitive", "by", "reverse"});
  const std::string by = given.text(1, "key");
  if (by != "key" && by != "value") run.fail("dictsort sorts by key or by value");
  if (value.dict() == nullptr) run.fail_type("a dict", value);
  const Getter get(run, nullptr, !given.flag(0, false));
  std::vector<Value> items, keys;
  for (const auto& [key, element] : value.dict()->entries) {
    items.push_back(run.sequence(Kind::tuple, {key, element}));
    keys.push_back(get(by == "key" ? key : element));
  }
  return run.list(sorted(run, items, keys, given.flag(2, false)));
}

Value unique(Run& run, const Value& value, Arguments& arguments) {
  const Parameters given(run, "unique", arguments, {"case_sensitive", "attribute"});
  const Getter get(run, given.get(1), !given.flag(0, false));
  Dict seen;
  std::vector<Value> out;
  const auto all = iterate(run, value);
  for (const Value& element : all->items) {
    const Value key = get(element);
    run.read_key(key);
    const size_t before = seen.entries.size();
    if (!seen.set(key, Value())) {
      run.fail(fmt::format("unhashable type: '{}'", key.type_name()));
    }
    if (seen.entries.size() > before) out.push_back(element);
  }
  return run.sequence(Kind::generator, std::move(out));
}

template <bool greatest>
Value extreme(Run& run, const Value& value, Arguments& arguments) {
  const Parameters given(run, greatest ? "max" : "min", arguments, {"case_sensitive", "attribute"});
  const Getter get(run, given.get(1), !given.flag(0, false));
  const auto items = iterate(run, value);
  if (items->items.empty()) return Value::undefined("the sequence is empty");
  size_t best = 0;
  Value best_key = get(items->items[0]);
  for (size_t i = 1; i < items->items.size(); ++i) {
    Value key = get(items->items[i]);
    if (greatest ? less(run, best_key, key) : less(run, key, best_key)) {
      best = i;
      best_key = std::move(key);
    }
  }
  return items->items[best];
}

Value sum(Run& run, const Value& value, Arguments& arguments) {
  const Parameters given(run, "sum", arguments, {"attribute", "start"});
  const Getter get(run, given.get(0));
  Value total = given.get(1) != nullptr ? *given.get(1) : Value(0);
  if (total.string() != nullptr) run.fail("sum can't add strings: use join");
  const auto all = iterate(run, value);
  for (const Value& element : all->items) {
    run.step();
    total = arithmetic(run, Operator::add, total, get(element));
  }
  return total;
}

Value groupby(Run& run, const Value& value, Arguments& arguments) {
  const Parameters given(run, "groupby", arguments, {"attribute", "default", "case_sensitive"});
  const bool case_sensitive = given.flag(2, false);
  const Getter get(run, &given.need(0), !case_sensitive, given.get(1));
  const Getter shown(run, &given.need(0), false, given.get(1));
  const auto items = iterate(run, value);
  std::vector<Value> keys;
  for (const Value& element : items->items) keys.push_back(get(element));
  const std::vector<Value> ordered = sorted(run, items->items, keys, false);
  std::vector<Value> groups, members;
  Value key;
  const auto close = [&] {
    if (members.empty()) return;
    const Value name = shown(members.front());
    groups.push_back(run.sequence(Kind::group, {name, run.list(std::exchange(members, {}))}));
  };
  for (const Value& element : ordered) {
    Value next = get(element);
    if (!members.empty() && !equal(run, key, next)) close();
    key = std::move(next);
    members.push_back(element);
  }
  close();
  return run.list(std::move(groups));
}

Value batch(Run& run, const Value& value, Arguments& arguments) {
  const Parameters given(run, "batch", arguments, {"linecount", "fill_with"});
  const int64_t size = need_integer(run, given.need(0));
  const bool fills = given.get(1) != nullptr && !given.get(1)->is_none();
  if (size < 1) run.fail("batch: the count must be at least 1");
  std::vector<Value> out, row;
  const auto all = iterate(run, value);
  for (const Value& element : all->items) {
    if (static_cast<int64_t>(row.size()) == size) out.push_back(run.list(std::exchange(row, {})));
    row.push_back(element);
  }
  if (!row.empty()) {
    if (fills) run.make(static_cast<size_t>(std::min<int64_t>(size, kMaxMemory)) * sizeof(Value));
    while (fills && static_cast<int64_t>(row.size()) < size) row.push_back(*given.get(1));
    out.push_back(run.list(std::move(row)));
  }
  return run.sequence(Kind::generator, std::move(out));
}

Value columns(Run& run, const Value& value, Arguments& arguments) {
  const Parameters given(run, "slice", arguments, {"slices", "fill_with"});
  const int64_t slices = need_integer(run, given.need(0));
  if (slices < 1) run.fail("slice: the count must be at least 1");
  const bool fills = given.get(1) != nullptr && !given.get(1)->is_none();
  const auto items = iterate(run, value);
  const auto size = static_cast<int64_t>(items->items.size());
  std::vector<Value> out;
  int64_t begin = 0;
  for (int64_t i = 0; i < slices; ++i) {
    const int64_t end = begin + size / slices + (i < size % slices ? 1 : 0);
    std::vector<Value> part(items->items.begin() + begin, items->items.begin() + end);
    if (fills && i >= size % slices) part.push_back(*given.get(1));
    out.push_back(run.list(std::move(part)));
    begin = end;
  }
  return run.sequence(Kind::generator, std::move(out));
}

Value items_of(Run& run, const Value& value, Arguments& arguments) {
  const Parameters given(run, "items", arguments, {});
  std::vector<Value> out;
  if (!value.is_undefined()) {
    if (value.dict() == nullptr) run.fail_type("a dict", value);
    for (const auto& [key, element] : value.dict()->entries) {
      out.push_back(run.sequence(Kind::tuple, {key, element}));
    }
  }
  return run.sequence(Kind::generator, std::move(out));
}

Value attr(Run& run, const Value& value, Arguments& arguments) {
  const Parameters given(run, "attr", arguments, {"name"});
  const std::string name = need_string(run, given.need(0)).text.bytes;
  if (value.dict() != nullptr && !find_method(value, name)) {
    return Value::undefined(fmt::format("'dict object' has no attribute '{}'", name));
  }
  return attribute(run, value, name);
}

/// Removes the first positional argument and returns it.
Value take_first(Run& run, std::string_view function, Arguments& arguments) {
  if (arguments.positional.empty()) run.fail(fmt::format("{} needs an argument", function));
  Value found = std::move(arguments.positional.front());
  arguments.positional.erase(arguments.positional.begin());
  return found;
}

Value map(Run& run, const Value& value, Arguments& arguments) {
  if (!value.truth()) return run.sequence(Kind::generator, {});  // also for None
  std::vector<Value> out;
  const bool by_attribute = arguments.positional.empty() &&
                            std::any_of(arguments.named.begin(), arguments.named.end(),
                                        [](const auto& n) { return n.first == "attribute"; });
  if (by_attribute) {
    const Parameters given(run, "map", arguments, {"attribute", "default"});
    const Getter get(run, given.get(0), false, given.get(1));
    const auto all = iterate(run, value);
    for (const Value& element : all->items) out.push_back(get(element));
    return run.sequence(Kind::generator, std::move(out));
  }
  const std::string name = need_string(run, take_first(run, "map", arguments)).text.bytes;
  const Filter filter = find_filter(name);
  if (filter == nullptr) run.fail(fmt::format("there is no filter '{}'", printable(name, 40)));
  const auto all = iterate(run, value);
  for (const Value& element : all->items) {
    run.step();
    Arguments copied = arguments;
    out.push_back(filter(run, element, copied));
  }
  return run.sequence(Kind::generator, std::move(out));
}

/// select, reject, selectattr and rejectattr.
template <bool by_attribute, bool wanted>
Value chosen(Run& run, const Value& value, Arguments& arguments) {
  if (!value.truth()) return run.sequence(Kind::generator, {});  // also for None
  Value path;
  if (by_attribute) path = take_first(run, "selectattr", arguments);
  const Getter get(run, &path);
  Test test = nullptr;
  if (!arguments.positional.empty()) {
    const std::string name = need_string(run, take_first(run, "select", arguments)).text.bytes;
    test = find_test(name);
    if (test == nullptr) run.fail(fmt::format("there is no test '{}'", printable(name, 40)));
  }
  std::vector<Value> out;
  const auto all = iterate(run, value);
  for (const Value& element : all->items) {
    run.step();
    const Value tested = get(element);
    Arguments copied = arguments;
    const bool passes = test != nullptr ? test(run, tested, copied) : tested.truth();
    if (passes == wanted) out.push_back(element);
  }
  return run.sequence(Kind::generator, std::move(out));
}

constexpr NamedFilter kFilters[] = {
    {"attr", attr},
    {"batch", batch},
    {"count", count},
    {"dictsort", dictsort},
    {"first", first},
    {"groupby", groupby},
    {"items", items_of},
    {"join", join},
    {"last", last},
    {"length", count},
    {"list", to_list},
    {"map", map},
    {"max", extreme<true>},
    {"min", extreme<false>},
    {"reject", chosen<false, false>},
    {"rejectattr", chosen<true, false>},
    {"reverse", reverse},
    {"select", chosen<false, true>},
    {"selectattr", chosen<true, true>},
    {"slice", columns},
    {"sort", sort},
    {"sum", sum},
    {"unique", unique},
};

}  // namespace

std::span<const NamedFilter> sequence_filters() { return kFilters; }

Filter find_filter(std::string_view name) {
  for (const auto filters : {text_filters(), sequence_filters()}) {
    for (const NamedFilter& filter : filters) {
      if (filter.name == name) return filter.filter;
    }
  }
  return nullptr;
}

}  // namespace wick::text::jinja
