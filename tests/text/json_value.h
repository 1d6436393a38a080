#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "wick/text/jinja/values/value.h"

namespace wick::text {

/// Converts JSON to a value; its strings are content of a conversation.
inline jinja::Value value_of(const nlohmann::ordered_json& json) {
  using jinja::Value;
  if (json.is_null()) return {};
  if (json.is_boolean()) return Value(json.get<bool>());
  if (json.is_number_integer()) return Value(json.get<int64_t>());
  if (json.is_number()) return Value(json.get<double>());
  if (json.is_string()) return Value::content(json.get<std::string>());
  if (json.is_array()) {
    std::vector<Value> items;
    for (const auto& item : json) items.push_back(value_of(item));
    return Value::list(std::move(items));
  }
  jinja::Entries entries;
  for (const auto& [key, item] : json.items()) {
    entries.emplace_back(Value::content(key), value_of(item));
  }
  return Value::dict(std::move(entries));
}

/// Converts an object to the variables of a template.
inline std::vector<std::pair<std::string, jinja::Value>> variables_of(
    const nlohmann::ordered_json& json) {
  std::vector<std::pair<std::string, jinja::Value>> variables;
  for (const auto& [key, item] : json.items()) variables.emplace_back(key, value_of(item));
  return variables;
}

}  // namespace wick::text
