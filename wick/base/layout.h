#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>

#include "wick/base/shape.h"

namespace wick {

/// Where each element of a tensor lies in its storage: shape, strides and offset in elements.
/// A stride of 0 repeats (broadcasts); strides may be negative. Views are pure functions.
class WICK_API Layout {
 public:
  using Strides = std::array<int64_t, Shape::kMaxRank>;

  Layout() = default;
  /// Row-major and dense, starting at `offset`.
  static Layout contiguous(const Shape& shape, int64_t offset = 0);
  Layout(const Shape& shape, const Strides& strides, int64_t offset)
      : shape_(shape), strides_(strides), offset_(offset) {}

  const Shape& shape() const { return shape_; }
  int rank() const { return shape_.rank(); }
  int64_t stride(int dim) const { return strides_[static_cast<size_t>(dim)]; }
  const Strides& strides() const { return strides_; }
  int64_t offset() const { return offset_; }
  int64_t elems() const { return shape_.elems(); }

  /// True when the elements lie row-major without gaps (sizes of one don't count).
  bool is_contiguous() const;
  /// True when two indices may name the same element.
  bool overlaps_itself() const;

  // Views. `op` names the operation in errors; dims count from either end.
  Layout narrow(int dim, int64_t start, int64_t length) const;
  /// Elements start, start+step, … before `stop`; step may be negative, never 0.
  Layout slice(int dim, int64_t start, int64_t stop, int64_t step) const;
  Layout transpose(int dim_a, int dim_b) const;
  Layout permute(std::span<const int> order) const;
  Layout broadcast_to(const Shape& shape) const;
  Layout squeeze(int dim) const;
  Layout unsqueeze(int dim) const;
  /// The layout with another shape of as many elements, if strides can express it without a copy.
  std::optional<Layout> reshape(const Shape& shape) const;

 private:
  Shape shape_;
  Strides strides_{};
  int64_t offset_ = 0;
};

/// The shape two operands broadcast to (NumPy's rule). Errors are named after `op`.
WICK_API Shape broadcast_shapes(const char* op, const Shape& a, const Shape& b);

}  // namespace wick
