#include "wick/base/shape.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "wick/base/error.h"

namespace wick {

Shape::Shape(std::span<const int64_t> dims) {
  if (dims.size() > kMaxRank) {
    throw Error("shape", "too many dimensions", fmt::format("[{}]", fmt::join(dims, ",")),
                fmt::format("at most {}", kMaxRank));
  }
  __int128 product = 1;
  for (int64_t size : dims) {
    if (size < 0) {
      throw Error("shape", "negative size", fmt::format("[{}]", fmt::join(dims, ",")),
                  "every size must be >= 0");
    }
    // Counts sizes of 0 as 1: strides are computed from the other sizes and must not overflow.
    product *= size > 0 ? size : 1;
    if (product > (__int128{1} << 62)) {
      throw Error("shape", "too many elements", fmt::format("[{}]", fmt::join(dims, ",")),
                  "the product must be <= 2^62");
    }
    dims_[static_cast<size_t>(rank_++)] = size;
  }
}

Shape Shape::with(int dim, int64_t size) const {
  Shape shape = *this;
  shape.dims_[static_cast<size_t>(dim)] = size;
  return shape;
}

Shape Shape::without(int dim) const {
  Shape shape = *this;
  std::copy(dims_.begin() + dim + 1, dims_.begin() + rank_, shape.dims_.begin() + dim);
  shape.dims_[static_cast<size_t>(--shape.rank_)] = 0;
  return shape;
}

Shape Shape::with_inserted(int dim, int64_t size) const {
  if (rank_ == kMaxRank)
    throw Error("shape", "too many dimensions", str() + " and one more", "at most 8");
  Shape shape = *this;
  std::copy(dims_.begin() + dim, dims_.begin() + rank_, shape.dims_.begin() + dim + 1);
  shape.dims_[static_cast<size_t>(dim)] = size;
  ++shape.rank_;
  return shape;
}

std::string Shape::str() const { return fmt::format("[{}]", fmt::join(dims(), ",")); }

int resolve_dim(const char* op, int dim, int rank) {
  const int resolved = dim < 0 ? dim + rank : dim;
  if (resolved < 0 || resolved >= rank) {
    throw Error(
        ErrorKind::index, op, "dimension out of range", fmt::format("dim {} of rank {}", dim, rank),
        rank == 0 ? "rank 0 has no dimensions" : fmt::format("need {} <= dim < {}", -rank, rank));
  }
  return resolved;
}

uint32_t resolve_dims(const char* op, std::span<const int> dims, int rank) {
  uint32_t set = 0;
  for (int dim : dims) {
    const uint32_t bit = 1u << resolve_dim(op, dim, rank);
    if ((set & bit) != 0) {
      throw Error(op, "dimension named twice",
                  fmt::format("dims ({}) of rank {}", fmt::join(dims, ","), rank),
                  "name each dimension once");
    }
    set |= bit;
  }
  return set;
}

}  // namespace wick
