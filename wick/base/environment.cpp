#include "wick/base/environment.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstdlib>

#include "wick/base/error.h"

namespace wick {

std::string_view environment(const char* variable) {
  const char* const text = std::getenv(variable);
  return text == nullptr ? "" : text;
}

std::string_view environment_choice(const char* variable,
                                    std::initializer_list<std::string_view> choices) {
  const std::string_view wanted = environment(variable);
  if (wanted.empty() || std::find(choices.begin(), choices.end(), wanted) != choices.end()) {
    return wanted;
  }
  throw Error(ErrorKind::runtime, variable, "no such choice", fmt::format("'{}'", wanted),
              fmt::format("use {}", fmt::join(choices, ", ")));
}

}  // namespace wick
