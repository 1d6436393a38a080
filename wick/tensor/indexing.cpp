// Tensor::operator[]: views by positions and slices.
#include <fmt/format.h>

#include <algorithm>

#include "wick/base/error.h"
#include "wick/tensor/tensor.h"

namespace wick {
namespace {

Tensor at_position(const Tensor& x, int dim, int64_t position) {
  const int64_t size = x.size(dim);
  if (position < -size || position >= size) {
    throw Error(ErrorKind::index, "index", "position out of range",
                fmt::format("{}, dim {} of {}", position, dim, x.str()),
                fmt::format("need {} <= position < {}", -size, size));
  }
  return x.narrow(dim, position < 0 ? position + size : position, 1).squeeze(dim);
}

Tensor at_slice(const Tensor& x, int dim, const Slice& slice) {
  const int64_t step = slice.step;
  if (step == 0) throw Error("index", "a slice of step 0", x.str());
  const int64_t size = x.size(dim);
  // Bounds clamped to the dim; a backward slice ends at -1, before the first element.
  const auto place = [&](const std::optional<int64_t>& bound, int64_t or_else) {
    if (!bound) return or_else;
    const int64_t from_start = *bound < 0 ? std::max(*bound, -size - 1) + size : *bound;
    return step > 0 ? std::clamp<int64_t>(from_start, 0, size)
                    : std::clamp<int64_t>(from_start, -1, size - 1);
  };
  const int64_t start = place(slice.start, step > 0 ? 0 : size - 1);
  const int64_t stop = place(slice.stop, step > 0 ? size : -1);
  const int64_t length = step > 0 ? stop - start : start - stop;
  if (length <= 0) return x.narrow(dim, 0, 0);
  // Tensor::slice counts a negative stop from the end.
  return x.slice(dim, start, stop < 0 ? -size - 1 : stop, step);
}

}  // namespace

Tensor Tensor::operator[](int64_t position) const {
  if (rank() == 0) throw Error("index", "the tensor has no dims", str());
  return at_position(*this, 0, position);
}

Tensor Tensor::operator[](std::initializer_list<Index> items) const {
  int taken = 0, gaps = 0;
  for (const Index& item : items) {
    taken += item.kind == Index::Kind::at || item.kind == Index::Kind::range ? 1 : 0;
    gaps += item.kind == Index::Kind::others ? 1 : 0;
  }
  if (taken > rank()) {
    throw Error("index", "more items than dims", fmt::format("{} items, {}", taken, str()));
  }
  if (gaps > 1) throw Error("index", "several ellipses", str(), "need one at most");
  Tensor x = *this;
  int dim = 0;
  for (const Index& item : items) {
    switch (item.kind) {
      case Index::Kind::at:
        x = at_position(x, dim, item.position);
        break;
      case Index::Kind::range:
        x = at_slice(x, dim++, item.slice);
        break;
      case Index::Kind::others:
        dim += rank() - taken;
        break;
      case Index::Kind::added:
        x = x.unsqueeze(dim++);
        break;
    }
  }
  return x;
}

}  // namespace wick
