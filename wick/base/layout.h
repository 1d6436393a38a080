#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>

#include "wick/base/shape.h"

namespace wick {

/// The position of each element of a tensor in its storage: shape, strides and offset, in elements.
/// A stride of 0 broadcasts; strides may be negative. Functions that make views return new layouts.
class WICK_API Layout {
 public:
  using Strides = std::array<int64_t, Shape::kMaxRank>;

  Layout() = default;
  /// A dense row-major layout that starts at `offset`.
  static Layout contiguous(const Shape& shape, int64_t offset = 0);
  Layout(const Shape& shape, const Strides& strides, int64_t offset)
      : shape_(shape), strides_(strides), offset_(offset) {}

  const Shape& shape() const { return shape_; }
  int rank() const { return shape_.rank(); }
  int64_t stride(int dim) const { return strides_[static_cast<size_t>(dim)]; }
  const Strides& strides() const { return strides_; }
  int64_t offset() const { return offset_; }
  int64_t elems() const { return shape_.elems(); }

  /// True if the elements are row-major without gaps. Strides of size-1 dims don't matter.
  bool is_contiguous() const;
  /// True if two indices may refer to the same element.
  bool overlaps_itself() const;

  // Views. `op` is the name in error messages; negative dims count from the end.
  Layout narrow(int dim, int64_t start, int64_t length) const;
  /// The elements start, start + step, … before `stop`. The step may be negative, but not 0.
  Layout slice(int dim, int64_t start, int64_t stop, int64_t step) const;
  Layout transpose(int dim_a, int dim_b) const;
  Layout permute(std::span<const int> order) const;
  Layout broadcast_to(const Shape& shape) const;
  Layout squeeze(int dim) const;
  Layout unsqueeze(int dim) const;
  /// A layout with another shape and as many elements, if strides can express it without a copy.
  std::optional<Layout> reshape(const Shape& shape) const;

 private:
  Shape shape_;
  Strides strides_{};
  int64_t offset_ = 0;
};

/// The shape that two operands broadcast to, by NumPy's rules. Error messages name `op`.
WICK_API Shape broadcast_shapes(const char* op, const Shape& a, const Shape& b);

}  // namespace wick
