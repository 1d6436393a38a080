#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "wick/base/export.h"

namespace wick {

/// The kinds of values of environment variables.
enum class EnvironmentKind : uint8_t {
  choice,           ///< one of a list of words
  mebibytes,        ///< an integer number of MiB
  folder,           ///< a folder that exists or can be made, or "off"
  file,             ///< a file to write
  library,          ///< a shared library or its folder
  instruction_set,  ///< an instruction set of this CPU; wick/backend/cpu checks it
};

/// One row of the table of the environment variables that wick reads.
struct EnvironmentVariable {
  std::string_view name;
  EnvironmentKind kind;
  std::span<const std::string_view> choices;  ///< the words of EnvironmentKind::choice
};

/// All environment variables that wick reads, except XDG_CACHE_HOME and HOME.
WICK_API std::span<const EnvironmentVariable> environment_variables();

/// The value of an environment variable; empty if it is unset.
WICK_API std::string_view environment(const char* variable);

/// The value of a variable of EnvironmentKind::choice; empty if it is unset. Errors: the value
/// isn't one of the variable's choices.
WICK_API std::string_view environment_choice(const char* variable);

/// The value of a variable of EnvironmentKind::mebibytes, in bytes; `or_else` if it is unset.
/// Errors: the value isn't an integer, or is above 2^40.
WICK_API uint64_t environment_bytes(const char* variable, uint64_t or_else);

/// $XDG_CACHE_HOME or ~/.cache, where programs of this user keep what they can make again; empty if
/// neither is known.
WICK_API std::string user_cache_folder();

/// Checks the values that can be checked without a device: choices, sizes and folders. Errors: the
/// first invalid value, named after its variable.
WICK_API void check_environment();

/// An environment variable that begins with WICK_ and that no program of wick reads.
struct UnknownVariable {
  std::string name;
  std::string_view nearest;  ///< the most similar variable of the table; empty if none is similar
};

/// Finds non-empty environment variables that begin with WICK_ and are neither in the table nor
/// read by the emulator (WICK_EMU_) or the tests (WICK_TEST_, WICK_STAND_IN_).
WICK_API std::vector<UnknownVariable> unknown_environment_variables();

}  // namespace wick
