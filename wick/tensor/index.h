#pragma once

#include <cstdint>
#include <optional>

namespace wick {

/// The elements start, start + step, … before stop along a dim, with Python's semantics: negative
/// bounds count from the end, bounds out of range are clamped, and missing bounds mean the ends of
/// the dim.
struct Slice {
  std::optional<int64_t> start = {}, stop = {};
  int64_t step = 1;
};

/// Stands for all dims that the other entries of an index don't name.
struct Ellipsis {};
inline constexpr Ellipsis ellipsis;
/// Inserts a new dim of size 1.
struct NewAxis {};
inline constexpr NewAxis new_axis;

/// One entry of an index such as x[{0, Slice{1, 3}, ellipsis, new_axis}].
class Index {
 public:
  enum class Kind : uint8_t { at, range, others, added };

  Index(int i) : Index(static_cast<int64_t>(i)) {}
  Index(int64_t i) : kind(Kind::at), position(i) {}
  Index(const Slice& s) : kind(Kind::range), slice(s) {}
  Index(Ellipsis) : kind(Kind::others) {}
  Index(NewAxis) : kind(Kind::added) {}

  Kind kind;
  int64_t position = 0;
  Slice slice = {};
};

}  // namespace wick
