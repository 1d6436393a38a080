#pragma once

#include <cstddef>
#include <string_view>

namespace wick {

/// What stands at the front of a byte string, read as UTF-8 (RFC 3629: no surrogates, no overlong
/// forms, nothing above U+10FFFF).
struct Utf8Step {
  enum Kind {
    valid,    // one whole character of `length` bytes
    invalid,  // `length` ≥ 1 bytes that stand for one U+FFFD (the maximal subpart of Unicode 3.9)
    incomplete,  // all that is left is a proper prefix of a character
  };
  Kind kind;
  size_t length;
};

/// Classifies the first character of non-empty `bytes`.
Utf8Step utf8_step(std::string_view bytes);

/// Offset of the first byte of the first ill-formed sequence, or `npos` where all is well-formed.
size_t find_invalid_utf8(std::string_view bytes);

}  // namespace wick
