#include "wick/text/normalize/charsmap.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "wick/base/error.h"
#include "wick/base/utf8.h"

namespace wick::text {
namespace {

[[noreturn]] void throw_malformed(const char* what) {
  throw Error("tokenizer", "malformed precompiled character map", what);
}

}  // namespace

Charsmap::Charsmap(std::string_view blob) {
  if (blob.empty()) return;
  if (blob.size() < 4) throw_malformed("fewer than 4 bytes");
  uint32_t bytes;
  std::memcpy(&bytes, blob.data(), 4);
  if (bytes > blob.size() - 4 || bytes % 4 != 0) {
    throw Error("tokenizer", "malformed precompiled character map",
                fmt::format("{} bytes of units, {} bytes in all", bytes, blob.size()));
  }
  units_.resize(bytes / 4);
  if (bytes > 0) std::memcpy(units_.data(), blob.data() + 4, bytes);
  replacements_ = blob.substr(4 + bytes);
  if (find_invalid_utf8(replacements_) != std::string_view::npos) {
    throw_malformed("the replacements aren't UTF-8");
  }
  if (!replacements_.empty() && replacements_.back() != '\0') {
    throw_malformed("the last replacement has no end");
  }
}

// A unit holds a label in bits 0 to 7 (with bit 31, which labels of characters lack), whether a
// replacement ends here in bit 8, and the offset of its children in bits 10 to 30, times 256 if bit
// 9 is set. The unit of a replacement holds its position in bits 0 to 30.
std::optional<Charsmap::Match> Charsmap::find(std::string_view text, bool shortest) const {
  if (units_.empty()) return std::nullopt;
  const auto unit = [&](size_t at) {
    if (at >= units_.size()) throw_malformed("a unit lies outside the array");
    return units_[at];
  };
  const auto offset = [](uint32_t u) -> size_t { return (u >> 10) << ((u & (1u << 9)) >> 6); };
  std::optional<Match> found;
  size_t node = offset(unit(0));
  constexpr size_t kLongest = 1024;  // a malformed map may lead in a circle
  for (size_t i = 0; i < std::min(text.size(), kLongest) && text[i] != '\0'; ++i) {
    const auto byte = static_cast<unsigned char>(text[i]);
    node ^= byte;
    const uint32_t at = unit(node);
    if ((at & ((1u << 31) | 0xff)) != byte) break;
    node ^= offset(at);
    if (((at >> 8) & 1) == 0) continue;
    const size_t position = unit(node) & 0x7fffffffu;
    if (position >= replacements_.size()) throw_malformed("a replacement lies outside the block");
    found = Match{std::string_view(replacements_.c_str() + position), i + 1};
    if (shortest) break;
  }
  return found;
}

}  // namespace wick::text
