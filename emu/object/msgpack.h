#pragma once

// Reads the subset of MessagePack that code object metadata uses. The input is untrusted: every
// length is checked against the remaining bytes, and nesting is limited.

#include <cstdint>
#include <string>
#include <vector>

#include "emu/object/bytes.h"

namespace emu::msgpack {

struct Value {
  enum class Kind : uint8_t { nil, boolean, integer, string, array, map, other };
  Kind kind = Kind::nil;
  uint64_t integer = 0;  // also booleans; negative values are in two's complement
  std::string string;
  std::vector<Value> array;
  // Keys of a map, whose values are in `array`; keys that aren't strings are dropped.
  std::vector<std::string> keys;

  /// Returns the entry of a map, or null if there is none.
  const Value* find(std::string_view key) const;
  uint64_t integer_or(std::string_view key, uint64_t otherwise) const;
  std::string string_or(std::string_view key, std::string otherwise) const;
};

/// Throws ObjectError if the bytes are malformed.
Value parse(Bytes bytes);

}  // namespace emu::msgpack
