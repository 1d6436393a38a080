#include "wick/base/layout.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <utility>
#include <vector>

#include "wick/base/error.h"

namespace wick {

Layout Layout::contiguous(const Shape& shape, int64_t offset) {
  Strides strides{};
  int64_t step = 1;
  for (int d = shape.rank() - 1; d >= 0; --d) {
    strides[static_cast<size_t>(d)] = step;
    step *= std::max<int64_t>(shape[d], 1);
  }
  return {shape, strides, offset};
}

bool Layout::is_contiguous() const {
  if (elems() == 0) return true;
  int64_t step = 1;
  for (int d = rank() - 1; d >= 0; --d) {
    const int64_t size = shape_[d];
    if (size != 1 && stride(d) != step) return false;
    step *= size;
  }
  return true;
}

bool Layout::overlaps_itself() const {
  // With the dims sorted by stride, each stride must exceed the span of all smaller dims.
  std::vector<std::pair<int64_t, int64_t>> dims;
  for (int d = 0; d < rank(); ++d) {
    if (shape_[d] == 0) return false;
    if (shape_[d] > 1) dims.emplace_back(std::abs(stride(d)), shape_[d]);
  }
  std::sort(dims.begin(), dims.end());
  int64_t reach = 0;
  for (auto [step, size] : dims) {
    if (step <= reach) return true;
    reach += step * (size - 1);
  }
  return false;
}

Layout Layout::narrow(int dim, int64_t start, int64_t length) const {
  const int d = resolve_dim("narrow", dim, rank());
  if (start < 0 || length < 0 || start > shape_[d] || length > shape_[d] - start) {
    throw Error(ErrorKind::index, "narrow", "range outside the dimension",
                fmt::format("{}, dim {}, start {}, length {}", shape_.str(), d, start, length),
                fmt::format("need 0 <= start and start + length <= {}", shape_[d]));
  }
  return {shape_.with(d, length), strides_, offset_ + start * stride(d)};
}

Layout Layout::slice(int dim, int64_t start, int64_t stop, int64_t step) const {
  const int d = resolve_dim("slice", dim, rank());
  const int64_t size = shape_[d];
  if (step == 0 || step == INT64_MIN) {
    throw Error("slice", "step is 0 or too large", shape_.str(), "need step != 0");
  }
  // Python's rule: negative positions count from the end, and positions out of range are clamped.
  auto clamp = [&](int64_t i) {
    if (i < 0) i += size;
    return std::clamp<int64_t>(i, step > 0 ? 0 : -1, step > 0 ? size : size - 1);
  };
  const int64_t first = clamp(start), last = clamp(stop);
  const int64_t span = step > 0 ? last - first : first - last;
  const int64_t count = span > 0 ? (span - 1) / std::abs(step) + 1 : 0;
  Strides strides = strides_;
  strides[static_cast<size_t>(d)] *= count > 1 ? step : 1;
  return {shape_.with(d, count), strides, offset_ + (count > 0 ? first * stride(d) : 0)};
}

Layout Layout::transpose(int dim_a, int dim_b) const {
  const int a = resolve_dim("transpose", dim_a, rank()),
            b = resolve_dim("transpose", dim_b, rank());
  Strides strides = strides_;
  std::swap(strides[static_cast<size_t>(a)], strides[static_cast<size_t>(b)]);
  return {shape_.with(a, shape_[b]).with(b, shape_[a]), strides, offset_};
}

Layout Layout::permute(std::span<const int> order) const {
  std::vector<int64_t> dims(order.size());
  Strides strides{};
  unsigned seen = 0;
  bool valid = static_cast<int>(order.size()) == rank();
  for (size_t i = 0; valid && i < order.size(); ++i) {
    const int from = resolve_dim("permute", order[i], rank());
    valid = !((seen >> from) & 1u);
    seen |= 1u << from;
    dims[i] = shape_[from];
    strides[i] = stride(from);
  }
  if (!valid) {
    throw Error("permute", "not a permutation of the dimensions",
                fmt::format("{}, order ({})", shape_.str(), fmt::join(order, ",")),
                "name each dimension once");
  }
  return {Shape(dims), strides, offset_};
}

Layout Layout::broadcast_to(const Shape& shape) const {
  const int extra = shape.rank() - rank();
  Strides strides{};
  bool valid = extra >= 0;
  for (int d = 0; valid && d < rank(); ++d) {
    const auto to = static_cast<size_t>(d + extra);
    valid = shape_[d] == shape[d + extra] || shape_[d] == 1;
    strides[to] = shape_[d] == shape[d + extra] ? stride(d) : 0;
  }
  if (!valid) {
    throw Error("broadcast_to", "shapes don't fit",
                fmt::format("{} to {}", shape_.str(), shape.str()),
                "each size must be equal or 1, counted from the last dimension");
  }
  return {shape, strides, offset_};
}

Layout Layout::squeeze(int dim) const {
  const int d = resolve_dim("squeeze", dim, rank());
  if (shape_[d] != 1) {
    throw Error("squeeze", "dimension isn't 1", fmt::format("{}, dim {}", shape_.str(), d));
  }
  Strides strides{};
  for (int i = 0, o = 0; i < rank(); ++i) {
    if (i != d) strides[static_cast<size_t>(o++)] = stride(i);
  }
  return {shape_.without(d), strides, offset_};
}

Layout Layout::unsqueeze(int dim) const {
  const int d = resolve_dim("unsqueeze", dim, rank() + 1);
  const Shape shape = shape_.with_inserted(d, 1);
  Strides strides{};
  for (int i = 0; i < rank(); ++i) strides[static_cast<size_t>(i < d ? i : i + 1)] = stride(i);
  strides[static_cast<size_t>(d)] = d < rank() ? stride(d) * shape_[d] : 1;
  return {shape, strides, offset_};
}

std::optional<Layout> Layout::reshape(const Shape& shape) const {
  if (shape.elems() != elems()) {
    throw Error("reshape", "element counts differ",
                fmt::format("{} to {}", shape_.str(), shape.str()),
                fmt::format("{} != {}", elems(), shape.elems()));
  }
  if (elems() == 0 || is_contiguous()) return contiguous(shape, offset_);
  // Matches groups of old dims to groups of new dims with the same product. Each group of old dims
  // must be dense.
  Strides strides{};
  int from = 0, to = 0;
  while (from < rank() || to < shape.rank()) {
    int64_t old_size = from < rank() ? shape_[from] : 1,
            new_size = to < shape.rank() ? shape[to] : 1;
    int from_end = std::min(from + 1, rank()), to_end = std::min(to + 1, shape.rank());
    while (old_size != new_size) {
      if (old_size < new_size) {
        old_size *= shape_[from_end++];
      } else {
        new_size *= shape[to_end++];
      }
    }
    int64_t inner_stride = 1;
    bool first = true;
    int64_t expected = 0;
    for (int d = from_end - 1; d >= from; --d) {
      if (shape_[d] == 1) continue;
      if (first) inner_stride = stride(d);
      if (!first && stride(d) != expected) return std::nullopt;
      expected = stride(d) * shape_[d];
      first = false;
    }
    for (int d = to_end - 1; d >= to; --d) {
      strides[static_cast<size_t>(d)] = inner_stride;
      inner_stride *= shape[d];
    }
    from = from_end;
    to = to_end;
  }
  return Layout(shape, strides, offset_);
}

Shape broadcast_shapes(const char* op, const Shape& a, const Shape& b) {
  const int rank = std::max(a.rank(), b.rank());
  std::vector<int64_t> dims(static_cast<size_t>(rank));
  for (int i = 0; i < rank; ++i) {
    const int64_t x = i < a.rank() ? a.back(i) : 1, y = i < b.rank() ? b.back(i) : 1;
    if (x != y && x != 1 && y != 1) {
      throw Error(op, "shapes don't broadcast", fmt::format("lhs {}, rhs {}", a.str(), b.str()),
                  "each size must be equal or 1, counted from the last dimension");
    }
    dims[static_cast<size_t>(rank - 1 - i)] = x == 1 ? y : x;
  }
  return Shape(dims);
}

}  // namespace wick
