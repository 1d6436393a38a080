#pragma once

// MessagePack, as far as a code object's metadata uses it. Reads what nobody vouches for: every
// length is held against what is there, and depth is limited.

#include <cstdint>
#include <string>
#include <vector>

#include "emu/object/bytes.h"

namespace emu::msgpack {

struct Value {
  enum class Kind : uint8_t { nil, boolean, integer, string, array, map, other };
  Kind kind = Kind::nil;
  uint64_t integer = 0;  // booleans too; negative ones as two's complement
  std::string string;
  std::vector<Value> array;
  std::vector<std::string> keys;  // of a map: its values are in `array`; other keys are dropped

  /// The entry of a map, null where there is none.
  const Value* find(std::string_view key) const;
  uint64_t integer_or(std::string_view key, uint64_t otherwise) const;
  std::string string_or(std::string_view key, std::string otherwise) const;
};

/// Throws ObjectError.
Value parse(Bytes bytes);

}  // namespace emu::msgpack
