#include "wick/models/hf/config.h"

#include <fmt/format.h>

#include <cmath>
#include <limits>
#include <utility>

#include "wick/base/error.h"
#include "wick/base/printable.h"
#include "wick/io/json.h"

namespace wick::models::hf {
namespace {

using Json = nlohmann::json;

std::optional<int64_t> integer_of(const Json& value) {
  constexpr int64_t kMost = std::numeric_limits<int32_t>::max();
  if (!value.is_number_integer()) return std::nullopt;
  if (value.is_number_unsigned() && value.get<uint64_t>() > uint64_t{kMost}) return std::nullopt;
  const auto integer = value.get<int64_t>();
  if (integer < 0 || integer > kMost) return std::nullopt;
  return integer;
}

std::optional<double> number_of(const Json& value) {
  if (!value.is_number()) return std::nullopt;
  const double number = value.get<double>();
  if (!(std::fabs(number) <= static_cast<double>(std::numeric_limits<float>::max()))) {
    return std::nullopt;
  }
  return number;
}

std::optional<std::string> text_of(const Json& value) {
  if (!value.is_string()) return std::nullopt;
  return value.get<std::string>();
}

/// Replaces the words Infinity and -Infinity, which Python writes and JSON doesn't have, by
/// null and spaces.
std::string without_infinities(std::string text) {
  constexpr std::string_view kWords[] = {"-Infinity", "Infinity"};
  bool in_string = false;
  for (size_t at = 0; at < text.size(); ++at) {
    if (text[at] == '"') in_string = !in_string;
    if (in_string && text[at] == '\\') ++at;
    if (in_string || at >= text.size()) continue;
    for (const std::string_view word : kWords) {
      if (text.compare(at, word.size(), word) != 0) continue;
      text.replace(at, word.size(), std::string("null") + std::string(word.size() - 4, ' '));
    }
  }
  return text;
}

constexpr const char* kIntegerRule = "an integer of 0 to 2147483647";
constexpr const char* kNumberRule = "a number within f32's range";

}  // namespace

Config::Config(Json members, std::string path, std::string place)
    : members_(std::move(members)), path_(std::move(path)), place_(std::move(place)) {
  if (!members_.is_object()) {
    throw Error(printable(path_), "not a JSON object", printable(place_));
  }
}

Config Config::read(const std::string& path, size_t most_bytes) {
  const std::string text = io::read_small_file(path, most_bytes);
  return {io::parse_json(without_infinities(text), path), path};
}

const Json* Config::find(Names names, const char** name) const {
  for (const char* one : names) {
    const auto found = members_.find(one);
    if (found == members_.end() || found->is_null()) continue;
    if (name != nullptr) *name = one;
    return &*found;
  }
  return nullptr;
}

void Config::add_missing(const Json& members) {
  for (const auto& [name, value] : members.items()) {
    Json& own = members_[name];
    if (own.is_null()) own = value;
  }
}

void Config::add_absent(const Json& members) {
  for (const auto& [name, value] : members.items()) {
    if (!members_.contains(name)) members_[name] = value;
  }
}

void Config::merge(const Json& members) {
  for (const auto& [name, value] : members.items()) members_[name] = value;
}

std::string Config::shown(const char* name) const {
  constexpr size_t kMostShown = 60;
  const auto found = members_.find(name);
  const bool nested = found != members_.end() && found->is_structured();
  const std::string value = found == members_.end() ? "nothing"
                            : nested                ? found->type_name()
                                     : found->dump(-1, ' ', false, Json::error_handler_t::replace);
  return fmt::format("{}{} = {}", printable(place_), name, printable(value, kMostShown));
}

void Config::invalid(const char* name, std::string_view rule) const {
  throw Error(printable(path_), "value out of range", shown(name), fmt::format("need {}", rule));
}

void Config::unsupported(const char* name, std::string_view rule) const {
  throw Error(ErrorKind::not_implemented, printable(path_), "value isn't supported", shown(name),
              rule);
}

void Config::missing(Names names) const {
  throw Error(printable(path_), "value is missing",
              fmt::format("{}{}", printable(place_), *names.begin()));
}

std::optional<int64_t> Config::integer(Names names) const {
  const char* name = nullptr;
  const Json* value = find(names, &name);
  if (value == nullptr) return std::nullopt;
  const std::optional<int64_t> result = integer_of(*value);
  if (!result) invalid(name, kIntegerRule);
  return result;
}

int64_t Config::require_integer(Names names) const {
  const std::optional<int64_t> value = integer(names);
  if (!value) missing(names);
  return *value;
}

std::optional<double> Config::number(Names names) const {
  const char* name = nullptr;
  const Json* value = find(names, &name);
  if (value == nullptr) return std::nullopt;
  const std::optional<double> result = number_of(*value);
  if (!result) invalid(name, kNumberRule);
  return result;
}

double Config::require_number(Names names) const {
  const std::optional<double> value = number(names);
  if (!value) missing(names);
  return *value;
}

bool Config::flag(const char* name, bool or_else) const {
  const Json* value = find({name});
  if (value == nullptr) return or_else;
  if (!value->is_boolean()) invalid(name, "true or false");
  return value->get<bool>();
}

std::optional<std::string> Config::text(Names names) const {
  const char* name = nullptr;
  const Json* value = find(names, &name);
  if (value == nullptr) return std::nullopt;
  const std::optional<std::string> result = text_of(*value);
  if (!result) invalid(name, "a string");
  return result;
}

std::optional<int64_t> Config::same_integers(const char* name) const {
  const Json* value = find({name});
  if (value == nullptr || !value->is_array()) return integer({name});
  const std::vector<int64_t> all = integers(name);
  for (const int64_t one : all) {
    if (one != all.front()) unsupported(name, "the values of all layers must be equal");
  }
  return all.empty() ? std::nullopt : std::optional(all.front());
}

std::vector<int64_t> Config::integers(const char* name) const {
  std::vector<int64_t> all;
  const Json* value = find({name});
  if (value == nullptr) return all;
  if (!value->is_array()) invalid(name, "an array of integers");
  for (const Json& one : *value) {
    const std::optional<int64_t> integer = integer_of(one);
    if (!integer) invalid(name, "an array of integers of 0 to 2147483647");
    all.push_back(*integer);
  }
  return all;
}

std::vector<double> Config::numbers(const char* name) const {
  std::vector<double> all;
  const Json* value = find({name});
  if (value == nullptr) return all;
  if (!value->is_array()) invalid(name, "an array of numbers");
  for (const Json& one : *value) {
    const std::optional<double> number = number_of(one);
    if (!number) invalid(name, "an array of numbers within f32's range");
    all.push_back(*number);
  }
  return all;
}

std::vector<std::string> Config::texts(const char* name) const {
  std::vector<std::string> all;
  const Json* value = find({name});
  if (value == nullptr) return all;
  if (!value->is_array()) invalid(name, "an array of strings");
  for (const Json& one : *value) {
    const std::optional<std::string> text = text_of(one);
    if (!text) invalid(name, "an array of strings");
    all.push_back(*text);
  }
  return all;
}

Config Config::object(const char* name) const {
  const Json* value = find({name});
  return {value == nullptr ? Json::object() : *value, path_, fmt::format("{}{}.", place_, name)};
}

}  // namespace wick::models::hf
