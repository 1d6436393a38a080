#include "wick/text/utf8.h"

#include <fmt/format.h>

#include <cstdint>
#include <cstring>

namespace wick::text {

Utf8Step utf8_step(std::string_view bytes) {
  const auto at = [&](std::size_t i) { return static_cast<unsigned char>(bytes[i]); };
  const unsigned char lead = at(0);
  if (lead < 0x80) return {Utf8Step::kValid, 1};
  std::size_t length = 0;
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
    return {Utf8Step::kInvalid, 1};
  }
  for (std::size_t i = 1; i < length; ++i) {
    if (i == bytes.size()) return {Utf8Step::kIncomplete, i};
    if (at(i) < low || at(i) > high) return {Utf8Step::kInvalid, i};
    low = 0x80;
    high = 0xbf;
  }
  return {Utf8Step::kValid, length};
}

std::size_t find_invalid_utf8(std::string_view bytes) {
  std::size_t i = 0;
  while (i < bytes.size()) {
    if (bytes.size() - i >= 8) {
      std::uint64_t word;
      std::memcpy(&word, bytes.data() + i, 8);
      if ((word & 0x8080808080808080u) == 0) {
        i += 8;
        continue;
      }
    }
    const Utf8Step step = utf8_step(bytes.substr(i, 4));
    if (step.kind != Utf8Step::kValid) return i;
    i += step.length;
  }
  return std::string_view::npos;
}

std::string printable(std::string_view bytes) {
  constexpr std::size_t kMost = 60;
  std::string out;
  for (std::size_t i = 0; i < bytes.size();) {
    if (i >= kMost) return out + "...";
    const Utf8Step step = utf8_step(bytes.substr(i, 4));
    const auto lead = static_cast<unsigned char>(bytes[i]);
    if (step.kind == Utf8Step::kValid && lead >= 0x20 && lead != 0x7f) {
      out += bytes.substr(i, step.length);
      i += step.length;
    } else {
      out += fmt::format("\\x{:02x}", lead);
      ++i;
    }
  }
  return out;
}

}  // namespace wick::text
