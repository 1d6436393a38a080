#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

namespace wick::text {

/// A set of byte strings with numbers, as a double array (Aoe, "An efficient digital search
/// algorithm by using a double-array structure", 1989), which finds all prefixes of a text that are
/// in the set.
class Trie {
 public:
  static constexpr uint32_t kRoot = 0;
  static constexpr int32_t kNone = -1;

  /// `keys` are distinct non-empty strings, sorted by their bytes, with numbers of at least 0.
  explicit Trie(std::span<const std::pair<std::string_view, int32_t>> keys = {});

  /// Goes from `node` to its child for `byte`; false if there is none.
  bool step(uint32_t& node, unsigned char byte) const {
    const uint32_t at = units_[node].base ^ byte;
    if (at >= units_.size() || units_[at].label != byte) return false;
    node = at;
    return true;
  }
  /// The number of the key that ends at `node`, or kNone.
  int32_t value(uint32_t node) const { return units_[node].value; }

 private:
  struct Unit {
    uint32_t base = kNoBase;  // its children are at base ^ byte
    int32_t value = kNone;
    uint16_t label = kFree;  // the byte that leads here
  };
  static constexpr uint32_t kNoBase = 0xffffff00u;  // beyond all units
  static constexpr uint16_t kFree = 0xffff;
  uint32_t find_base(std::span<const unsigned char> labels);

  std::vector<Unit> units_;
  std::vector<bool> based_;     // whether a number is the base of a node
  std::vector<uint32_t> free_;  // free units of each block of 256
};

}  // namespace wick::text
