#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "wick/base/export.h"

namespace wick {

/// What the value of an environment variable must be.
enum class EnvironmentKind : uint8_t {
  choice,           ///< one of a list of words
  mebibytes,        ///< a whole number
  folder,           ///< a folder that exists or can be made, or "off"
  file,             ///< a file to write
  library,          ///< a shared library or its folder
  instruction_set,  ///< one that the processor has: wick/backend/cpu checks it
};

/// One row of the table of the environment variables that wick reads.
struct EnvironmentVariable {
  std::string_view name;
  EnvironmentKind kind;
  std::span<const std::string_view> choices;  ///< of EnvironmentKind::choice
};

/// All environment variables that wick reads, but for XDG_CACHE_HOME and HOME.
WICK_API std::span<const EnvironmentVariable> environment_variables();

/// The value of an environment variable; empty where it's unset.
WICK_API std::string_view environment(const char* variable);

/// The value of a variable of EnvironmentKind::choice; empty where it's unset. Errors: a word that
/// isn't in the variable's row of the table.
WICK_API std::string_view environment_choice(const char* variable);

/// The value of a variable of EnvironmentKind::mebibytes in bytes; `or_else` where it's unset.
/// Errors: no whole number, or one above 2^40.
WICK_API uint64_t environment_bytes(const char* variable, uint64_t or_else);

/// Checks the variables of the table whose values can be judged without a device: choices, sizes
/// and folders. Errors: the first bad value, named after its variable.
WICK_API void check_environment();

/// A variable that is set, begins with WICK_ and that no program of wick reads.
struct UnknownVariable {
  std::string name;
  std::string_view nearest;  ///< the variable of the table that it resembles; empty if none
};

/// Variables in the environment that begin with WICK_ and have a value, but are neither in the
/// table nor of the emulator (WICK_EMU_) nor of the tests (WICK_TEST_, WICK_STAND_IN_).
WICK_API std::vector<UnknownVariable> unknown_environment_variables();

}  // namespace wick
