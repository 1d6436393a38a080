#pragma once

// Parses the argument list of a row of ops.def into single arguments at compile time.

#include <array>
#include <cstddef>
#include <string_view>

#include "wick/op/op.h"

namespace wick {

/// One argument of an op's function, for example `dim = -1`.
struct Argument {
  std::string_view name;
  std::string_view otherwise;  ///< the default value; empty: the argument is required

  constexpr bool is_optional() const { return !otherwise.empty(); }
  /// Whether the default value is None.
  constexpr bool is_none() const { return otherwise == "None"; }
};

struct Arguments {
  static constexpr size_t kMost = 12;
  std::array<Argument, kMost> all{};
  size_t count = 0;

  constexpr const Argument& operator[](size_t i) const { return all[i]; }
  constexpr bool has(std::string_view name) const {
    for (size_t i = 0; i < count; ++i) {
      if (all[i].name == name) return true;
    }
    return false;
  }
};

constexpr std::string_view trimmed(std::string_view text) {
  while (!text.empty() && text.front() == ' ') text.remove_prefix(1);
  while (!text.empty() && text.back() == ' ') text.remove_suffix(1);
  return text;
}

/// The arguments that a row declares. A default value must not contain a comma.
constexpr Arguments arguments_of(Op op) {
  std::string_view text = info(op).arguments;
  text = text.substr(1, text.size() - 2);
  Arguments arguments;
  while (!text.empty()) {
    const size_t end = text.find(',');
    const std::string_view one = text.substr(0, end);
    const size_t equals = one.find('=');
    const bool is_optional = equals != std::string_view::npos;
    arguments.all[arguments.count++] = {
        trimmed(one.substr(0, equals)),
        is_optional ? trimmed(one.substr(equals + 1)) : std::string_view()};
    text = end == std::string_view::npos ? std::string_view() : text.substr(end + 1);
  }
  return arguments;
}

}  // namespace wick
