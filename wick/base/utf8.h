#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
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

/// Whether a number is a character's: at most 0x10ffff, and no surrogate.
constexpr bool is_character(uint64_t point) {
  return point <= 0x10ffff && (point < 0xd800 || point > 0xdfff);
}

/// Appends a character as UTF-8.
inline void append_utf8(std::string& out, char32_t point) {
  const auto byte = [&](char32_t value) { out += static_cast<char>(value); };
  const auto trail = [&](int shift) { byte(0x80 | (point >> shift & 0x3f)); };
  if (point < 0x80) {
    byte(point);
  } else if (point < 0x800) {
    byte(0xc0 | point >> 6);
    trail(0);
  } else if (point < 0x10000) {
    byte(0xe0 | point >> 12);
    trail(6), trail(0);
  } else {
    byte(0xf0 | point >> 18);
    trail(12), trail(6), trail(0);
  }
}

}  // namespace wick
