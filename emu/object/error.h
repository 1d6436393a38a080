#pragma once

// What is wrong with a code object, as far as callers tell the cases apart.

#include <stdexcept>
#include <string>

namespace emu {

struct ObjectError : std::runtime_error {
  enum class Kind {
    image,     // not a code object, or a broken one
    kernel,    // its kernels' descriptions can't be used
    no_binary  // nothing in it is for the device
  };
  Kind kind;
  ObjectError(Kind kind, const std::string& what) : std::runtime_error(what), kind(kind) {}
};

[[noreturn]] inline void bad_image(const std::string& what) {
  throw ObjectError(ObjectError::Kind::image, what);
}

}  // namespace emu
