#pragma once

#include <initializer_list>
#include <string_view>

#include "wick/base/export.h"

namespace wick {

/// What an environment variable says; empty where it's unset.
WICK_API std::string_view environment(const char* variable);

/// The same of one that chooses by name; empty: nothing. Errors: it's none of these.
WICK_API std::string_view environment_choice(const char* variable,
                                             std::initializer_list<std::string_view> choices);

}  // namespace wick
