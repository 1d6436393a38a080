#pragma once

#include <cstdint>
#include <cstdio>
#include <string>

namespace emu {

/// An address or a word for messages: 0x, then lower-case digits.
inline std::string hex(uint64_t value) {
  char text[24];
  std::snprintf(text, sizeof text, "0x%llx", static_cast<unsigned long long>(value));
  return text;
}

}  // namespace emu
