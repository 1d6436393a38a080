#pragma once

// Checked access to the parts of a tokenizer.json. Errors name the part.

#include <fmt/format.h>

#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>

#include "wick/base/error.h"
#include "wick/base/printable.h"

namespace wick::text {

/// A value of the document, and its place in it for error messages.
class JsonNode {
 public:
  using Json = nlohmann::json;

  JsonNode(const Json& value, std::string place, int depth = 0)
      : value_(&value), place_(std::move(place)), depth_(depth) {
    constexpr int kDeepest = 64;
    if (depth > kDeepest) fail("nested too deeply");
  }

  const Json& json() const { return *value_; }
  const std::string& place() const { return place_; }

  /// Whether there is a member that isn't null.
  bool has(const char* key) const {
    const auto found = value_->is_object() ? value_->find(key) : value_->end();
    return found != value_->end() && !found->is_null();
  }
  JsonNode operator[](const char* key) const {
    if (!has(key)) fail(fmt::format("lacks '{}'", key));
    return {*value_->find(key), place_.empty() ? key : fmt::format("{}.{}", place_, key),
            depth_ + 1};
  }
  std::string type() const { return (*this)["type"].text(); }

  std::string text() const {
    if (!value_->is_string()) fail("need a string");
    return value_->get<std::string>();
  }
  std::string text(const char* key, std::string or_else) const {
    return has(key) ? (*this)[key].text() : or_else;
  }
  bool flag(const char* key, bool or_else) const {
    if (!has(key)) return or_else;
    const JsonNode node = (*this)[key];
    if (!node.json().is_boolean()) node.fail("need true or false");
    return node.json().get<bool>();
  }
  /// An integer from 0 to 2^31 - 2.
  int32_t id() const {
    const bool whole = value_->is_number_integer();
    if (!whole || value_->get<int64_t>() < 0 || value_->get<int64_t>() > 0x7ffffffe ||
        (value_->is_number_unsigned() && value_->get<uint64_t>() > 0x7ffffffe)) {
      fail("need an id");
    }
    return static_cast<int32_t>(value_->get<int64_t>());
  }
  double number() const {
    if (!value_->is_number()) fail("need a number");
    return value_->get<double>();
  }
  /// Calls `each` with every element of an array.
  template <typename Each>
  void for_each(const Each& each) const {
    if (!value_->is_array()) fail("need an array");
    size_t i = 0;
    for (const Json& element : *value_) {
      each(JsonNode(element, fmt::format("{}[{}]", place_, i++), depth_ + 1));
    }
  }

  [[noreturn]] void fail(std::string_view what) const {
    throw Error("tokenizer.json", place_.empty() ? "the document" : printable(place_), what);
  }
  [[noreturn]] void unsupported(std::string_view what) const {
    throw Error(ErrorKind::not_implemented, "tokenizer.json", "unsupported part",
                fmt::format("{} '{}'", printable(place_), printable(what, 60)));
  }

 private:
  const Json* value_;
  std::string place_;
  int depth_;
};

}  // namespace wick::text
