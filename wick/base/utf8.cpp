#include "wick/base/utf8.h"

#include <cstdint>
#include <cstring>

namespace wick {

Utf8Step utf8_step(std::string_view bytes) {
  const auto at = [&](size_t i) { return static_cast<unsigned char>(bytes[i]); };
  const unsigned char lead = at(0);
  if (lead < 0x80) return {Utf8Step::valid, 1};
  size_t length = 0;
  // The second byte's range excludes overlong forms, surrogates and code points beyond U+10FFFF.
  unsigned char low = 0x80, high = 0xbf;
  if (lead >= 0xc2 && lead <= 0xdf) {
    length = 2;
  } else if (lead >= 0xe0 && lead <= 0xef) {
    length = 3;
    if (lead == 0xe0) low = 0xa0;
    if (lead == 0xed) high = 0x9f;
  } else if (lead >= 0xf0 && lead <= 0xf4) {
    length = 4;
    if (lead == 0xf0) low = 0x90;
    if (lead == 0xf4) high = 0x8f;
  } else {
    return {Utf8Step::invalid, 1};
  }
  for (size_t i = 1; i < length; ++i) {
    if (i == bytes.size()) return {Utf8Step::incomplete, i};
    if (at(i) < low || at(i) > high) return {Utf8Step::invalid, i};
    low = 0x80;
    high = 0xbf;
  }
  return {Utf8Step::valid, length};
}

size_t find_invalid_utf8(std::string_view bytes) {
  size_t i = 0;
  while (i < bytes.size()) {
    if (bytes.size() - i >= 8) {
      uint64_t word;
      std::memcpy(&word, bytes.data() + i, 8);
      if ((word & 0x8080808080808080u) == 0) {
        i += 8;
        continue;
      }
    }
    const Utf8Step step = utf8_step(bytes.substr(i, 4));
    if (step.kind != Utf8Step::valid) return i;
    i += step.length;
  }
  return std::string_view::npos;
}

}  // namespace wick
