#include "wick/text/jinja/values/run.h"

#include <fmt/format.h>

#include "wick/base/error.h"
#include "wick/base/printable.h"

namespace wick::text::jinja {
namespace {

constexpr size_t kShownTag = 100;

}  // namespace

void Run::fail(std::string_view what, std::string_view operands) const {
  std::string place = fmt::format("line {}", line_);
  if (tag_.size > 0) place += ", " + printable(source_.substr(tag_.begin, tag_.size), kShownTag);
  const std::string message = printable(what, 400);
  throw Error("chat template",
              operands.empty() ? message : fmt::format("{} ({})", message, printable(operands)),
              place);
}

void Run::fail_type(std::string_view expected, const Value& value) const {
  require_defined(value);
  fail(fmt::format("need {}, got '{}'", expected, value.type_name()));
}

void Run::fail_limit(std::string_view what, size_t limit, std::string_view unit) const {
  fail(fmt::format("{}: the limit is {} {}", what, limit, unit));
}

Value Run::string(MarkedString text, bool html) {
  check_size(text.bytes.size());
  make(text.bytes.size() + text.content.size() * sizeof(TextRange) + sizeof(String));
  return Value(std::move(text), html);
}

Value Run::sequence(Sequence::Kind kind, std::vector<Value> items) {
  make(items.size() * sizeof(Value) + sizeof(Sequence));
  step(items.size() / 4);
  auto made = std::make_shared<const Sequence>(kind, std::move(items));
  if (made->depth > kMaxDepth) {
    fail_limit("lists and dicts nested too deeply", kMaxDepth, "levels");
  }
  return Value(std::move(made));
}

Value Run::dict(Dict dict) {
  make(dict.entries.size() * 3 * sizeof(Value) + sizeof(Dict));
  if (dict.depth > kMaxDepth) fail_limit("lists and dicts nested too deeply", kMaxDepth, "levels");
  return Value(std::make_shared<const Dict>(std::move(dict)));
}

Value Run::names(Namespace names) {
  make((names.attributes.size() + 1) * 2 * sizeof(Value));
  auto made = std::make_shared<Namespace>(std::move(names));
  keep(made);
  return Value(std::move(made));
}

void Run::release() {
  for (const auto& names : kept_) names->attributes.clear();
  kept_.clear();
}

}  // namespace wick::text::jinja
