#include "wick/io/printable.h"

#include <cstdint>

namespace wick::io {
namespace {

/// Bytes of the UTF-8 character that `text` starts with; 0 when there is none.
size_t character_bytes(std::string_view text) {
  const auto byte = [&](size_t i) { return static_cast<uint8_t>(text[i]); };
  const uint32_t first = byte(0);
  size_t count = 1;
  uint32_t code = first, smallest = 0;
  if (first >= 0x80) {
    if (first >= 0xf0 && first < 0xf8) {
      count = 4, code = first & 0x07, smallest = 0x10000;
    } else if (first >= 0xe0 && first < 0xf0) {
      count = 3, code = first & 0x0f, smallest = 0x800;
    } else if (first >= 0xc0 && first < 0xe0) {
      count = 2, code = first & 0x1f, smallest = 0x80;
    } else {
      return 0;
    }
  }
  if (count > text.size()) return 0;
  for (size_t i = 1; i < count; ++i) {
    if ((byte(i) & 0xc0) != 0x80) return 0;
    code = code << 6 | (byte(i) & 0x3f);
  }
  const bool surrogate = code >= 0xd800 && code < 0xe000;
  return code < smallest || code > 0x10ffff || surrogate ? 0 : count;
}

/// Characters that move the cursor, end the line or reorder the text around them.
bool is_control(std::string_view character) {
  const auto first = static_cast<uint8_t>(character[0]);
  if (character.size() == 1) return first < 0x20 || first == 0x7f;
  const auto second = static_cast<uint8_t>(character[1]);
  if (character.size() == 2) return first == 0xc2 && second < 0xa0;  // C1
  if (character.size() != 3 || first != 0xe2) return false;
  const auto third = static_cast<uint8_t>(character[2]);
  // U+2028..202E (separators, embeddings) and U+2066..2069 (isolates).
  return (second == 0x80 && third >= 0xa8 && third <= 0xae) ||
         (second == 0x81 && third >= 0xa6 && third <= 0xa9);
}

void append_escaped(std::string& out, char c) {
  constexpr char kHex[] = "0123456789abcdef";
  const auto byte = static_cast<uint8_t>(c);
  switch (c) {
    case '\n':
      out += "\\n";
      break;
    case '\t':
      out += "\\t";
      break;
    case '\r':
      out += "\\r";
      break;
    case '\\':
      out += "\\\\";
      break;
    default:
      out += "\\x";
      out += kHex[byte >> 4];
      out += kHex[byte & 15];
  }
}

}  // namespace

std::string printable(std::string_view text, size_t max_bytes) {
  std::string out;
  size_t i = 0;
  while (i < text.size()) {
    const size_t count = character_bytes(text.substr(i));
    const size_t step = count == 0 ? 1 : count;
    if (i + step > max_bytes) return out + "…";
    const std::string_view character = text.substr(i, step);
    if (count == 0 || is_control(character) || character == "\\") {
      for (char c : character) append_escaped(out, c);
    } else {
      out += character;
    }
    i += step;
  }
  return out;
}

}  // namespace wick::io
