// Functions that every template can call.
#include <fmt/format.h>

#include <array>

#include "wick/text/jinja/library/library.h"
#include "wick/text/jinja/values/operators.h"

namespace wick::text::jinja {
namespace {

using Apply = Value (*)(Run&, Arguments&);

class Function : public Callable {
 public:
  Function(std::string_view name, Apply apply) : name_(name), apply_(apply) {}
  Value call(Run& run, Arguments& arguments) const override { return apply_(run, arguments); }
  std::string_view name() const { return name_; }

 private:
  std::string_view name_;
  Apply apply_;
};

template <class T, class... Args>
Value object(Args&&... args) {
  return Value(std::shared_ptr<const Callable>(std::make_shared<T>(std::forward<Args>(args)...)));
}

Value range(Run& run, Arguments& arguments) {
  const Parameters given(run, "range", arguments, {"start", "stop", "step"});
  int64_t start = 0, stop = need_integer(run, given.need(0));
  if (given.get(1) != nullptr) {
    start = stop;
    stop = need_integer(run, *given.get(1));
  }
  const int64_t step = given.integer(2, 1);
  if (step == 0) run.fail("range: the step is zero");
  std::vector<Value> items;
  for (int64_t i = start; step > 0 ? i < stop : i > stop;) {
    if (static_cast<int64_t>(items.size()) == kMaxRange) {
      run.fail(fmt::format("range: the limit is {} elements", kMaxRange));
    }
    items.emplace_back(i);
    if (__builtin_add_overflow(i, step, &i)) break;
  }
  return run.sequence(Sequence::Kind::range, std::move(items));
}

/// Reads the arguments of dict() and namespace(): a dict or pairs, and names.
Dict read_dict(Run& run, Arguments& arguments) {
  Dict dict;
  const auto set = [&](const Value& key, const Value& value) {
    run.read_key(key);
    if (!dict.set(key, value)) run.fail(fmt::format("unhashable type: '{}'", key.type_name()));
  };
  if (arguments.positional.size() > 1) run.fail("dict takes at most one positional argument");
  for (const Value& given : arguments.positional) {
    if (const Dict* other = given.dict()) {
      for (const auto& [key, value] : other->entries) set(key, value);
      continue;
    }
    run.require_defined(given);
    const auto all = iterate(run, given);
    for (const Value& pair : all->items) {
      const auto both = iterate(run, pair);
      if (both->items.size() != 2) run.fail("dict needs pairs of a key and a value");
      set(both->items[0], both->items[1]);
    }
  }
  for (const auto& [name, value] : arguments.named) set(run.text(name), value);
  return dict;
}

Value make_dict(Run& run, Arguments& arguments) { return run.dict(read_dict(run, arguments)); }

Value make_namespace(Run& run, Arguments& arguments) {
  Namespace names;
  size_t count = 0;
  for (const auto& [key, value] : read_dict(run, arguments).entries) {
    run.search(count++);
    names.set(need_string(run, key).text.bytes, value);
  }
  return run.names(std::move(names));
}

/// What joiner() returns: the first call gives "", later calls the separator.
class Joiner : public Callable {
 public:
  explicit Joiner(Value separator) : separator_(std::move(separator)) {}
  Value call(Run& run, Arguments& arguments) const override {
    const Parameters given(run, "a joiner", arguments, {});
    return std::exchange(used_, true) ? separator_ : run.text("");
  }
  std::string_view type_name() const override { return "Joiner"; }
  int depth() const override { return separator_.depth() + 1; }

 private:
  Value separator_;
  mutable bool used_ = false;
};

Value joiner(Run& run, Arguments& arguments) {
  const Parameters given(run, "joiner", arguments, {"sep"});
  const Value separator = given.get(0) != nullptr ? *given.get(0) : run.text(", ");
  run.list({separator});  // checks its depth
  return object<Joiner>(separator);
}

/// What cycler() returns: next() gives its items one after the other, again and again.
class Cycler : public Callable, public std::enable_shared_from_this<Cycler> {
 public:
  explicit Cycler(Value items) : items_(std::move(items)) {}
  Value call(Run& run, Arguments&) const override { run.fail("'Cycler' can't be called"); }
  std::string_view type_name() const override { return "Cycler"; }
  int depth() const override { return items_.depth() + 1; }

  std::optional<Value> attribute(Run&, std::string_view name) const override {
    if (name == "current") return items_.sequence()->items[place_];
    if (name == "next" || name == "reset") return object<Step>(shared_from_this(), name == "next");
    return std::nullopt;
  }

 private:
  struct Step : Callable {
    Step(std::shared_ptr<const Cycler> of, bool advances) : cycler(std::move(of)), next(advances) {}
    Value call(Run& run, Arguments& arguments) const override {
      const Parameters given(run, "a cycler", arguments, {});
      const size_t place = cycler->place_;
      cycler->place_ = next ? (place + 1) % cycler->items_.sequence()->items.size() : 0;
      return next ? cycler->items_.sequence()->items[place] : Value();
    }
    int depth() const override { return cycler->depth(); }
    std::shared_ptr<const Cycler> cycler;
    bool next;
  };

  Value items_;  // a list
  mutable size_t place_ = 0;
};

Value cycler(Run& run, Arguments& arguments) {
  if (arguments.positional.empty()) run.fail("cycler needs at least one item");
  return object<Cycler>(run.list(std::move(arguments.positional)));
}

Value raise_exception(Run& run, Arguments& arguments) {
  const Parameters given(run, "raise_exception", arguments, {"message"});
  run.fail(plain_text(run, given.need(0)));
}

Value strftime_now(Run& run, Arguments& arguments) {
  const Parameters given(run, "strftime_now", arguments, {"format"});
  const MarkedString& given_format = need_string(run, given.need(0)).text;
  const std::string& format = given_format.bytes;
  const std::time_t now = run.now();
  std::tm local{};
  localtime_r(&now, &local);
  if (format.empty()) return run.text("");
  std::array<char, 1024> text{};
  const size_t size = std::strftime(text.data(), text.size(), format.c_str(), &local);
  if (size == 0) run.fail("strftime_now: the date is too long or empty");
  MarkedString result;
  result.append(std::string_view(text.data(), size), given_format.has_content());
  return run.string(std::move(result));
}

struct Entry {
  std::string_view name;
  Apply apply;
};
constexpr Entry kFunctions[] = {
    {"cycler", cycler},
    {"dict", make_dict},
    {"joiner", joiner},
    {"namespace", make_namespace},
    {"raise_exception", raise_exception},
    {"range", range},
    {"strftime_now", strftime_now},
};

}  // namespace

std::optional<Value> find_function(std::string_view name) {
  for (const Entry& entry : kFunctions) {
    if (entry.name == name) return object<Function>(entry.name, entry.apply);
  }
  return std::nullopt;
}

}  // namespace wick::text::jinja
