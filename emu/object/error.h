#pragma once

// The kinds of errors in a code object that callers distinguish.

#include <stdexcept>
#include <string>

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

}  // namespace emu
