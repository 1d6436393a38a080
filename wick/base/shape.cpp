#include "wick/base/shape.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <vector>

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
    // Sizes of zero don't hide an overflow of the others: strides are computed from these.
    product *= size > 0 ? size : 1;
    if (product > (__int128{1} << 62)) {
      throw Error("shape", "too many elements", fmt::format("[{}]", fmt::join(dims, ",")),
                  "the product must be <= 2^62");
    }
    dims_[static_cast<size_t>(rank_++)] = size;
  }
}

Shape Shape::with(int dim, int64_t size) const {
  std::vector<int64_t> d(dims().begin(), dims().end());
  d[static_cast<size_t>(dim)] = size;
  return Shape(d);
}

Shape Shape::without(int dim) const {
  std::vector<int64_t> d(dims().begin(), dims().end());
  d.erase(d.begin() + dim);
  return Shape(d);
}

Shape Shape::with_inserted(int dim, int64_t size) const {
  std::vector<int64_t> d(dims().begin(), dims().end());
  d.insert(d.begin() + dim, size);
  return Shape(d);
}

std::string Shape::str() const { return fmt::format("[{}]", fmt::join(dims(), ",")); }

int resolve_dim(const char* op, int dim, int rank) {
  const int resolved = dim < 0 ? dim + rank : dim;
  if (resolved < 0 || resolved >= rank) {
    throw Error(op, "dimension out of range", fmt::format("dim {} of rank {}", dim, rank),
                fmt::format("need {} <= dim < {}", -rank, rank));
  }
  return resolved;
}

}  // namespace wick
