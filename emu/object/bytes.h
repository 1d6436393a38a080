#pragma once

// Bounds-checked reads from untrusted bytes.

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <span>
#include <string_view>

#include "emu/object/error.h"

namespace emu {

using Bytes = std::span<const uint8_t>;

/// Returns a subrange of `bytes`. Throws ObjectError if it isn't wholly within.
inline Bytes part(Bytes bytes, uint64_t offset, uint64_t size, const char* what) {
  if (offset > bytes.size() || size > bytes.size() - offset) {
    bad_image(std::string(what) + " reaches past the end");
  }
  return bytes.subspan(offset, size);
}

template <class T>
T read(Bytes bytes, uint64_t offset, const char* what) {
  T value;
  std::memcpy(&value, part(bytes, offset, sizeof(T), what).data(), sizeof value);
  return value;
}

/// Returns the zero-terminated string that starts at `offset`.
inline std::string_view read_string(Bytes bytes, uint64_t offset, const char* what) {
  const Bytes rest =
      part(bytes, offset, bytes.size() - std::min<uint64_t>(offset, bytes.size()), what);
  const void* end = rest.empty() ? nullptr : std::memchr(rest.data(), 0, rest.size());
  if (end == nullptr) bad_image(std::string(what) + " has no end");
  const auto* first = reinterpret_cast<const char*>(rest.data());
  return {first, static_cast<size_t>(static_cast<const char*>(end) - first)};
}

}  // namespace emu
