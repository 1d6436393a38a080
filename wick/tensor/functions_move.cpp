// Functions composed of ops that move elements without computing.
#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "wick/base/error.h"
#include "wick/tensor/checks.h"
#include "wick/tensor/functions.h"
#include "wick/tensor/select.h"

namespace wick {
namespace {

/// The clamped bounds of a slice with a positive step along a dim.
struct Range {
  int64_t start, count;
};

int64_t place(int64_t bound, int64_t size) {
  return std::clamp<int64_t>(bound < 0 ? std::max(bound, -size) + size : bound, 0, size);
}

void check_step(const char* op, const Slice& s) {
  if (s.step < 1) throw Error(op, "a step below 1", fmt::format("{}", s.step));
}

Range range_of(const Slice& s, int64_t size) {
  const int64_t start = s.start ? place(*s.start, size) : 0;
  const int64_t length = std::max<int64_t>((s.stop ? place(*s.stop, size) : size) - start, 0);
  return {start, length / s.step + (length % s.step != 0 ? 1 : 0)};
}

/// A copy of x with `source` at start, start + step, … of a dim. The sizes must fit.
Tensor replaced(const Tensor& x, const Tensor& source, int d, int64_t start, int64_t step) {
  const int64_t n = source.size(d), size = x.size(d);
  if (step == 1 || n < 2) {
    const Tensor parts[] = {x.narrow(d, 0, start), source,
                            x.narrow(d, start + n, size - start - n)};
    return cat(parts, d);
  }
  std::vector<int64_t> sizes(static_cast<size_t>(x.rank()), 1);
  sizes[static_cast<size_t>(d)] = n;
  const Tensor ids = Tensor::arange(start, n, step, DType::i64, x.device()).reshape(Shape(sizes));
  return scatter(x, ids.broadcast_to(source.shape()), source, d);
}

/// A copy of x with `source` at the slices of its dims from `d` on. The sizes must fit.
Tensor assigned(const Tensor& x, const std::vector<Slice>& where, const Tensor& source, size_t d) {
  const int dim = static_cast<int>(d);
  if (d == where.size()) return source;
  const auto [start, count] = range_of(where[d], x.size(dim));
  const int64_t step = where[d].step;
  if (count == x.size(dim)) return assigned(x, where, source, d + 1);
  const Tensor part = count == 0 ? x.narrow(dim, start, 0)
                                 : x.slice(dim, start, start + (count - 1) * step + 1, step);
  return replaced(x, assigned(part, where, source, d + 1), dim, start, step);
}

void check_factor(const char* op, const Tensor& x, int64_t r) {
  if (!x.defined()) throw Error(op, "undefined tensor");
  if (x.rank() < 3) throw Error(op, "rank below 3", x.str(), "need [.., c, h, w]");
  constexpr int64_t kMost = INT64_C(1) << 31;  // its square is below 2^63
  if (r < 1 || r >= kMost) {
    throw Error(op, "factor out of range", fmt::format("{}", r), "need 1 or more, below 2^31");
  }
}

/// x's leading dims (all but the last three), followed by `last`.
Shape behind_lead(const Tensor& x, std::initializer_list<int64_t> last) {
  const auto dims = x.shape().dims();
  std::vector<int64_t> sizes(dims.begin(), dims.end() - 3);
  sizes.insert(sizes.end(), last);
  return Shape(sizes);
}

int64_t lead_of(const Tensor& x) {
  int64_t lead = 1;
  for (int d = 0; d < x.rank() - 3; ++d) lead *= x.shape()[d];
  return lead;
}

}  // namespace

Tensor broadcast_left(const Tensor& x, const Shape& shape) {
  if (!x.defined()) throw Error("broadcast_left", "undefined tensor");
  if (shape.rank() + x.rank() > Shape::kMaxRank) {
    throw Error("broadcast_left", "too many dimensions",
                fmt::format("{}, {}", x.str(), shape.str()), "need at most 8");
  }
  std::vector<int64_t> sizes(shape.dims().begin(), shape.dims().end());
  sizes.insert(sizes.end(), x.shape().dims().begin(), x.shape().dims().end());
  return x.broadcast_to(Shape(sizes));
}

Tensor embedding(const Tensor& ids, const Tensor& table) {
  if (!ids.defined() || !table.defined()) throw Error("embedding", "undefined tensor");
  if (table.rank() != 2) throw Error("embedding", "wrong rank", table.str(), "need a table [n, d]");
  return index_select_as("embedding", table, ids);
}

Tensor slice_scatter(const Tensor& x, const Tensor& source, int dim, const Slice& where) {
  check_operand(Op::scatter, x, "slice_scatter");
  check_same(Op::scatter, x, source, "slice_scatter");
  const int d = resolve_dim("slice_scatter", dim, x.rank());
  check_step("slice_scatter", where);
  const Range range = range_of(where, x.size(d));
  const bool ranks_fit = source.rank() == x.rank();
  const int64_t n = ranks_fit ? source.size(d) : 0;
  const bool counts_fit = where.stop ? n == range.count : n <= range.count;
  if (!ranks_fit || !counts_fit || source.shape() != x.shape().with(d, n)) {
    throw Error(
        "slice_scatter", "sizes don't fit",
        fmt::format("{}, source {}, dim {}", x.str(), source.str(), d),
        fmt::format("{}{} along the dim", where.stop ? "need " : "need up to ", range.count));
  }
  return replaced(x, source, d, range.start, where.step);
}

Tensor slice_assign(const Tensor& x, ListOf<Slice> where, const Tensor& source) {
  check_operand(Op::scatter, x, "slice_assign");
  check_same(Op::scatter, x, source, "slice_assign");
  if (where.size() > static_cast<size_t>(x.rank())) {
    throw Error("slice_assign", "more slices than dims",
                fmt::format("{} slices, {}", where.size(), x.str()));
  }
  const std::vector<Slice> slices(where.begin(), where.end());
  Shape region = x.shape();
  for (size_t d = 0; d < slices.size(); ++d) {
    check_step("slice_assign", slices[d]);
    const int dim = static_cast<int>(d);
    region = region.with(dim, range_of(slices[d], x.size(dim)).count);
  }
  const Shape both = broadcast_shapes("slice_assign", source.shape(), region);
  if (both != region) {
    throw Error("slice_assign", "sizes don't fit",
                fmt::format("source {}, {}", source.str(), region.str()),
                "need a source that broadcasts to the slices' sizes");
  }
  const Tensor spread = source.broadcast_to(region);
  if (region != x.shape()) return assigned(x, slices, spread, 0);
  // The region covers all of x, so source replaces every element, and x's gradient is zero.
  return x.rank() == 0 ? spread.clone() : replaced(x, spread, 0, 0, 1);
}

Tensor pixel_shuffle(const Tensor& x, int64_t r) {
  check_factor("pixel_shuffle", x, r);
  const int64_t channels = x.size(-3), h = x.size(-2), w = x.size(-1);
  if (channels % (r * r) != 0) {
    throw Error("pixel_shuffle", "channels don't divide", x.str(),
                fmt::format("need a multiple of {}", r * r));
  }
  const int64_t c = channels / (r * r);
  return x.reshape({lead_of(x), c, r, r, h, w})
      .permute({0, 1, 4, 2, 5, 3})
      .reshape(behind_lead(x, {c, h * r, w * r}));
}

Tensor pixel_unshuffle(const Tensor& x, int64_t r) {
  check_factor("pixel_unshuffle", x, r);
  const int64_t c = x.size(-3), h = x.size(-2) / r, w = x.size(-1) / r;
  if (h * r != x.size(-2) || w * r != x.size(-1)) {
    throw Error("pixel_unshuffle", "sizes don't divide", x.str(),
                fmt::format("need multiples of {}", r));
  }
  return x.reshape({lead_of(x), c, h, r, w, r})
      .permute({0, 1, 3, 5, 2, 4})
      .reshape(behind_lead(x, {c * r * r, h, w}));
}

}  // namespace wick
