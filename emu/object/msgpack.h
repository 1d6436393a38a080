#pragma once

// Reads the subset of MessagePack that code object metadata uses. The input is untrusted: every
// length is checked against the remaining bytes. Values are views into the input, so that reading
// takes no memory, however many there are and however deep they are nested.

#include <cstdint>
#include <optional>
#include <string_view>

#include "emu/object/bytes.h"

namespace emu::msgpack {

struct Value {
  enum class Kind : uint8_t { nil, boolean, integer, string, array, map, other };
  Kind kind = Kind::nil;
  uint64_t integer = 0;  // also booleans; negative values are in two's complement
  std::string_view string;
  uint64_t count = 0;  // values in `inside`: elements, or keys and values
  Bytes inside;        // of an array or a map

  /// Returns the integer or boolean, and nothing for values of other kinds.
  std::optional<uint64_t> number() const;
  /// Calls `use(element)` for each element; does nothing if this isn't an array.
  template <class Use>
  void for_each_element(const Use& use) const;
  /// Calls `use(key, value)` for each entry whose key is a string; does nothing if this isn't a
  /// map.
  template <class Use>
  void for_each_entry(const Use& use) const;
};

/// Returns the value that the bytes start with. Throws ObjectError if the bytes are malformed; the
/// values within are then well-formed, too.
Value parse(Bytes bytes);

/// Returns the first value and removes it from the bytes.
Value take(Bytes& bytes);

template <class Use>
void Value::for_each_element(const Use& use) const {
  if (kind != Kind::array) return;
  Bytes rest = inside;
  for (uint64_t i = 0; i < count; ++i) use(take(rest));
}

template <class Use>
void Value::for_each_entry(const Use& use) const {
  if (kind != Kind::map) return;
  Bytes rest = inside;
  for (uint64_t i = 0; i < count; i += 2) {
    const Value key = take(rest), value = take(rest);
    if (key.kind == Kind::string) use(key.string, value);
  }
}

}  // namespace emu::msgpack
