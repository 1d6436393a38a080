#pragma once

// The kinds of errors in a code object that callers distinguish.

#include <stdexcept>
#include <string>
#include <string_view>

namespace emu {

struct ObjectError : std::runtime_error {
  enum class Kind {
    image,     // not a code object, or a broken one
    kernel,    // its kernel descriptions are invalid
    no_binary  // it has no code for the device
  };
  Kind kind;
  ObjectError(Kind k, const std::string& what) : std::runtime_error(what), kind(k) {}
};

[[noreturn]] inline void bad_image(const std::string& what) {
  throw ObjectError(ObjectError::Kind::image, what);
}

/// Returns a name for an error's text; long ones are cut.
inline std::string shown(std::string_view name) {
  constexpr size_t kMost = 200;
  if (name.size() <= kMost) return std::string(name);
  return std::string(name.substr(0, kMost)) + "... (" + std::to_string(name.size()) + " bytes)";
}

}  // namespace emu
