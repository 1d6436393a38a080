#pragma once

#include <cstddef>
#include <string_view>

namespace wick {

/// Classification of the front of a byte string as UTF-8 (RFC 3629: no surrogates, no overlong
/// forms, nothing above U+10FFFF).
struct Utf8Step {
  enum Kind {
    valid,       // a whole character of `length` bytes
    invalid,     // `length` ≥ 1 bytes to replace by one U+FFFD (a maximal subpart, Unicode 3.9)
    incomplete,  // the rest of the string is a proper prefix of a character
  };
  Kind kind;
  size_t length;
};

/// Classifies the first character of non-empty `bytes`.
Utf8Step utf8_step(std::string_view bytes);

/// The offset of the first ill-formed sequence, or `npos` if there is none.
size_t find_invalid_utf8(std::string_view bytes);

}  // namespace wick
