#pragma once

#include <cstdint>
#include <optional>

namespace wick {

/// Elements start, start + step, … before stop of a dim; negative bounds count from the end, and
/// bounds outside are the nearest end, as in Python. Left out: from an end of the dim to the other.
struct Slice {
  std::optional<int64_t> start = {}, stop = {};
  int64_t step = 1;
};

/// Stands for all dims that the other items of an index leave.
struct Ellipsis {};
inline constexpr Ellipsis ellipsis;
/// A new dim of size 1.
struct NewAxis {};
inline constexpr NewAxis new_axis;

/// An item of an index: x[{0, Slice{1, 3}, ellipsis, new_axis}].
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
