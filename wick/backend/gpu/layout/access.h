#pragma once

// What a kernel may assume of an operand's layout. Some kernels take only some layouts: those that
// move vectors of elements, count bytes in unsigned 32-bit numbers, or pass a pitch to tensor
// copies or a vendor's library. Host code asks an Access of each operand before it chooses such a
// kernel, and otherwise launches the kernel for any layout. docs/design/architecture.md lists what
// each kernel needs.

#include <algorithm>
#include <cstdint>
#include <optional>

#include "wick/base/dtype.h"

namespace wick::gpu {

/// The most bytes that a kernel moves at once. Larger vectors are moved in pieces of this size.
inline constexpr int64_t kMostVectorBytes = 16;

/// An operand's layout: the address of its first element, one dim along which vectors are read or
/// written (the run), and the other dims, which say where runs begin. Strides count elements and
/// may be negative or 0. The stride of a size-1 dim is meaningless and is ignored.
class Access {
 public:
  /// The first element lies `start` elements behind `data`.
  Access(const void* data, int64_t elem_bytes, int64_t start)
      : bytes_(elem_bytes),
        places_(reinterpret_cast<uintptr_t>(data) + static_cast<uintptr_t>(start * elem_bytes)) {}
  Access(const void* data, DType dtype, int64_t start = 0)
      : Access(data, info(dtype).block_bytes, start) {}

  /// Adds the dim along which vectors lie; there is at most one.
  Access& run(int64_t size, int64_t stride) {
    if (size <= 1) return *this;
    run_stride_ = stride;
    reach(size, stride * bytes_);
    return *this;
  }
  /// Adds a dim along which runs begin.
  Access& dim(int64_t size, int64_t stride) {
    if (size <= 1) return *this;
    places_ |= static_cast<uintptr_t>(stride * bytes_);
    reach(size, stride * bytes_);
    return *this;
  }

  /// Whether neighbours along the run are neighbours in memory, in ascending order.
  bool is_dense() const { return run_stride_ == 1; }
  /// Whether all runs begin at multiples of `bytes`, a power of two.
  bool begins_at(int64_t bytes) const {
    return (places_ & (static_cast<uintptr_t>(bytes) - 1)) == 0;
  }
  /// Whether n neighbours, from a multiple of n along the run on, may be moved as one vector, or as
  /// vectors of 16 bytes if n elements are larger. n is a power of two. A kernel that doesn't
  /// handle the last elements separately also needs the run's size to be a multiple of n.
  bool vectors_of(int64_t n) const {
    return is_dense() && begins_at(std::min(n * bytes_, kMostVectorBytes));
  }
  /// The largest power of two up to `most` that divides the addresses of all runs.
  int64_t alignment(int64_t most) const {
    const auto bits = places_ | static_cast<uintptr_t>(most);
    return static_cast<int64_t>(bits & (~bits + 1));
  }

  /// Whether the first element has the lowest address: no stride is negative.
  bool ascends() const { return below_ == 0; }
  /// Whether the distance from the first element to every other one, in units of `unit_bytes`, fits
  /// an unsigned 32-bit number.
  bool has_u32_distances(int64_t unit_bytes) const {
    return ascends() && above_ / unit_bytes <= int64_t{UINT32_MAX};
  }

 private:
  void reach(int64_t size, int64_t step_bytes) {
    (step_bytes < 0 ? below_ : above_) += (size - 1) * step_bytes;
  }

  int64_t bytes_;     // bytes of an element
  uintptr_t places_;  // a power of two divides this if it divides the addresses of all runs
  int64_t run_stride_ = 1;
  int64_t below_ = 0, above_ = 0;  // bytes from the first element to the lowest and to the highest
};

/// The distance, in elements, of the rows of a matrix [rows, cols] whose rows are dense and ascend
/// without overlapping, as tensor copies and vendors' libraries require. With one row it is cols.
inline std::optional<int64_t> pitch_of_rows(int64_t rows, int64_t cols, int64_t row_stride,
                                            int64_t col_stride) {
  if (cols > 1 && col_stride != 1) return std::nullopt;
  if (rows <= 1) return cols;
  if (row_stride < cols) return std::nullopt;
  return row_stride;
}

}  // namespace wick::gpu
