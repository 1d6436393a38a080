#include "wick/base/printable.h"

#include <cstdint>

#include "wick/base/utf8.h"

namespace wick {
namespace {

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
    const Utf8Step front = utf8_step(text.substr(i, 4));
    const bool valid = front.kind == Utf8Step::valid;
    const size_t step = valid ? front.length : 1;
    if (i + step > max_bytes) return out + "…";
    const std::string_view character = text.substr(i, step);
    if (!valid || is_control(character) || character == "\\") {
      for (char c : character) append_escaped(out, c);
    } else {
      out += character;
    }
    i += step;
  }
  return out;
}

}  // namespace wick
