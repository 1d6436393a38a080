// Ops whose result is copied part by part: cat, pad, roll, repeat, tril and triu. Each part is one
// copy or fill of the backend.

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <utility>
#include <vector>

#include "wick/base/error.h"
#include "wick/tensor/bodies.h"
#include "wick/tensor/checks.h"
#include "wick/tensor/ops.h"

namespace wick {
namespace {

View part_of(const View& whole, const Layout& part) { return {whole.data, whole.dtype, part}; }
ConstView part_of(const ConstView& whole, const Layout& part) {
  return {whole.data, whole.dtype, part};
}
void copy(Backend& backend, const View& out, const ConstView& in) {
  if (out.layout.elems() > 0) backend.copy(out, in);
}
void fill(Backend& backend, const View& out, Scalar value) {
  if (out.layout.elems() > 0) backend.fill(out, value);
}
/// The layout with a dim reversed.
Layout backwards(const Layout& x, int dim) { return x.slice(dim, -1, INT64_MIN, -1); }

// ---- cat ----

ResultSpec checked_cat(const OpCall& call) {
  const Tensor& first = call.x();
  const int d = call.get<AlongDim>().dim;
  int64_t total = 0;
  for (size_t i = 0; i < call.inputs.size(); ++i) {
    const Tensor& t = call.x(i);
    check_same(Op::cat, first, t);
    if (t.rank() != first.rank() || !(t.shape().with(d, 0) == first.shape().with(d, 0))) {
      throw Error("cat", "shapes differ outside the dimension",
                  fmt::format("{} and {}, dim {}", first.str(), t.str(), d));
    }
    if (__builtin_add_overflow(total, t.shape()[d], &total)) {
      throw Error("cat", "too many elements", fmt::format("{}, dim {}", first.str(), d));
    }
  }
  return dense(first.dtype(), first.shape().with(d, total));
}

void run_cat(Backend& backend, const OpCall& call, const Tensor* result) {
  const View out = result->mutable_view();
  const int d = call.get<AlongDim>().dim;
  int64_t start = 0;
  for (size_t i = 0; i < call.inputs.size(); ++i) {
    const int64_t size = call.x(i).shape()[d];
    copy(backend, part_of(out, out.layout.narrow(d, start, size)), call.x(i).view());
    start += size;
  }
}

// ---- roll ----

/// Rolls each block of elements that moves as a whole. Each rolled dim splits every block in two.
void run_roll(Backend& backend, const OpCall& call, const Tensor* result) {
  const View out = result->mutable_view();
  const ConstView in = call.x().view();
  const auto& [shifts, along] = call.get<Shifts>();
  std::vector<std::pair<Layout, Layout>> boxes = {{out.layout, in.layout}};
  for (size_t i = 0; i < static_cast<size_t>(along.count); ++i) {
    const int d = along.dims[i];
    const int64_t size = in.layout.shape()[d];
    if (size == 0) continue;
    const int64_t by = (shifts[i] % size + size) % size;
    if (by == 0) continue;
    std::vector<std::pair<Layout, Layout>> cut;
    for (const auto& [to, from] : boxes) {
      cut.emplace_back(to.narrow(d, by, size - by), from.narrow(d, 0, size - by));
      cut.emplace_back(to.narrow(d, 0, by), from.narrow(d, size - by, by));
    }
    boxes = std::move(cut);
  }
  for (const auto& [to, from] : boxes) copy(backend, part_of(out, to), part_of(in, from));
}

// ---- repeat ----

/// The repetitions of each dim of the result; x's missing leading dims have size 1.
std::vector<int64_t> times_of(const Repeats& repeats, int rank) {
  std::vector<int64_t> times(static_cast<size_t>(std::max(rank - repeats.count, 0)), 1);
  times.insert(times.end(), repeats.counts.begin(), repeats.counts.begin() + repeats.count);
  return times;
}

ResultSpec checked_repeat(const OpCall& call) {
  const Tensor& x = call.x();
  check_operand(Op::repeat, x);
  const auto& repeats = call.get<Repeats>();
  const std::vector<int64_t> times = times_of(repeats, x.rank());
  std::vector<int64_t> sizes(times.size(), 1);
  std::copy_backward(x.shape().dims().begin(), x.shape().dims().end(), sizes.end());
  for (size_t d = 0; d < sizes.size(); ++d) {
    if (times[d] < 0 || __builtin_mul_overflow(times[d], sizes[d], &sizes[d])) {
      throw Error("repeat", times[d] < 0 ? "a negative count" : "too many elements",
                  fmt::format("{}, counts ({})", x.str(),
                              fmt::join(repeats.counts.begin(),
                                        repeats.counts.begin() + repeats.count, ",")),
                  "need counts >= 0 and sizes below 2^63");
    }
  }
  return dense(x.dtype(), Shape(sizes));
}

/// A repeated dim becomes two dims of one broadcast copy. If that gives more than 8 dims, the first
/// repeated dim is copied once per repetition.
void repeat_into(Backend& backend, const View& out, const ConstView& in,
                 std::span<const int64_t> counts) {
  const Layout &x = in.layout, &y = out.layout;
  int rank = 0, first = -1;
  for (int d = 0; d < x.rank(); ++d) {
    const bool splits = counts[static_cast<size_t>(d)] > 1 && x.shape()[d] > 1;
    rank += splits ? 2 : 1;
    if (splits && first < 0) first = d;
  }
  if (rank > Shape::kMaxRank) {
    std::vector<int64_t> rest(counts.begin(), counts.end());
    rest[static_cast<size_t>(first)] = 1;
    const int64_t size = x.shape()[first];
    for (int64_t i = 0; i < counts[static_cast<size_t>(first)]; ++i) {
      repeat_into(backend, part_of(out, y.narrow(first, i * size, size)), in, rest);
    }
    return;
  }
  std::vector<int64_t> sizes;
  Layout::Strides to{}, from{};
  const auto add = [&](int64_t size, int64_t to_stride, int64_t from_stride) {
    to[sizes.size()] = to_stride;
    from[sizes.size()] = from_stride;
    sizes.push_back(size);
  };
  for (int d = 0; d < x.rank(); ++d) {
    const int64_t count = counts[static_cast<size_t>(d)], size = x.shape()[d];
    if (count > 1 && size > 1) add(count, y.stride(d) * size, 0);
    size > 1 ? add(size, y.stride(d), x.stride(d)) : add(count, y.stride(d), 0);
  }
  const Shape shape(sizes);
  copy(backend, part_of(out, Layout(shape, to, y.offset())),
       part_of(in, Layout(shape, from, x.offset())));
}

void run_repeat(Backend& backend, const OpCall& call, const Tensor* result) {
  if (result->elems() == 0) return;
  ConstView in = call.x().view();
  while (in.layout.rank() < result->rank()) in.layout = in.layout.unsqueeze(0);
  repeat_into(backend, result->mutable_view(), in, times_of(call.get<Repeats>(), call.x().rank()));
}

// ---- pad ----

ResultSpec checked_pad(const OpCall& call) {
  const Tensor& x = call.x();
  check_operand(Op::pad, x);
  const auto& [padding, count, mode, value] = call.get<PadParams>();
  const int first = x.rank() - count;
  std::vector<int64_t> sizes(x.shape().dims().begin(), x.shape().dims().end());
  for (int i = 0; i < count; ++i) {
    const Padding p = padding[static_cast<size_t>(i)];
    const int64_t size = x.shape()[first + i], most = std::max(p.before, p.after);
    const std::string what =
        fmt::format("{}, dim {}, {} before, {} after", x.str(), first + i, p.before, p.after);
    if (p.before < 0 || p.after < 0) throw Error("pad", "negative padding", what);
    if (mode == PadMode::reflect && most > 0 && most >= size) {
      throw Error("pad", "reflect padding is too large", what, "need less than the size");
    }
    if (mode == PadMode::replicate && most > 0 && size == 0) {
      throw Error("pad", "nothing to replicate", what);
    }
    int64_t& sum = sizes[static_cast<size_t>(first + i)];
    if (__builtin_add_overflow(sum, p.before, &sum) || __builtin_add_overflow(sum, p.after, &sum)) {
      throw Error("pad", "too many elements", what);
    }
  }
  return dense(x.dtype(), Shape(sizes));
}

/// Fills the padding before and after [start, start + size) of a dim from the elements inside.
void pad_dim(Backend& backend, const View& out, int d, int64_t start, int64_t size, PadMode mode,
             Scalar value) {
  const Layout& y = out.layout;
  const int64_t before = start, behind = start + size, after = y.shape()[d] - behind;
  const auto part = [&](int64_t from, int64_t count) {
    return part_of(out, y.narrow(d, from, count));
  };
  const auto mirrored = [&](int64_t from, int64_t count) {
    return part_of(out, backwards(y.narrow(d, from, count), d));
  };
  const auto spread = [&](int64_t from, int64_t count) {
    const Shape shape = y.shape().with(d, count);
    return part_of(out, y.narrow(d, from, 1).broadcast_to(shape));
  };
  if (mode == PadMode::constant) {
    fill(backend, part(0, before), value);
    fill(backend, part(behind, after), value);
  } else if (mode == PadMode::reflect) {
    if (before > 0) copy(backend, part(0, before), mirrored(start + 1, before));
    if (after > 0) copy(backend, part(behind, after), mirrored(behind - 1 - after, after));
  } else {
    if (before > 0) copy(backend, part(0, before), spread(start, before));
    if (after > 0) copy(backend, part(behind, after), spread(behind - 1, after));
  }
}

/// Copies x to the middle, then pads dim by dim, the last dim first.
void run_pad(Backend& backend, const OpCall& call, const Tensor* result) {
  const View out = result->mutable_view();
  if (out.layout.elems() == 0) return;
  const Tensor& x = call.x();
  const auto& [padding, count, mode, given] = call.get<PadParams>();
  const Scalar value = stored_number(result->dtype(), given);
  const int first = x.rank() - count;
  // Dims before i have x's size, the others are padded.
  std::vector<Layout> inside = {out.layout};
  for (int i = 0; i < count; ++i) {
    inside.push_back(inside.back().narrow(first + i, padding[static_cast<size_t>(i)].before,
                                          x.shape()[first + i]));
  }
  copy(backend, part_of(out, inside.back()), x.view());
  for (int i = count - 1; i >= 0; --i) {
    const auto at = static_cast<size_t>(i);
    pad_dim(backend, part_of(out, inside[at]), first + i, padding[at].before, x.shape()[first + i],
            mode, value);
  }
}

// ---- tril, triu ----

/// Copies one side of a diagonal of matrices and fills the other with 0.
class Triangles {
 public:
  Triangles(Backend& backend, const View& out, const ConstView& in, bool keep_lower)
      : backend_(backend), out_(out), in_(in), keep_lower_(keep_lower) {}

  /// Elements with j - i <= diagonal belong to the lower side.
  void split(int64_t diagonal) const {
    const int rank = in_.layout.rank();
    const int64_t m = in_.layout.shape()[rank - 2], n = in_.layout.shape()[rank - 1];
    diagonal = std::clamp(diagonal, -m, n);
    const int64_t top = std::max<int64_t>(0, -diagonal), left = top + diagonal;
    const int64_t side = std::max<int64_t>(0, std::min(m - top, n - left));
    // Fills or copies the rows above and below the diagonal's square, and the columns left and
    // right of it.
    put(false, 0, 0, top, n);
    put(true, top + side, 0, m - top - side, n);
    put(true, top, 0, side, left);
    put(false, top, left + side, side, n - left - side);
    split_square(top, left, side);
  }

 private:
  /// Splits a square at its diagonal, which belongs to the lower side. Smaller squares whose sizes
  /// are powers of two cover the regions below and above the diagonal: one strided copy and one
  /// fill for each size.
  void split_square(int64_t top, int64_t left, int64_t side) const {
    put_along(true, top, left, 1, 1, side, 1);
    for (int64_t half = 1; half < side; half *= 2) {
      const int64_t pairs = side / (2 * half), rest = side - pairs * 2 * half;
      put_along(true, top + half, left, half, half, pairs, 2 * half);
      put_along(false, top, left + half, half, half, pairs, 2 * half);
      if (rest <= half) continue;
      const int64_t at = pairs * 2 * half;
      put(true, top + at + half, left + at, rest - half, half);
      put(false, top + at, left + at + half, half, rest - half);
    }
  }

  void put(bool lower, int64_t row, int64_t column, int64_t rows, int64_t columns) const {
    put_along(lower, row, column, rows, columns, 1, 1);
  }
  /// Copies or fills `count` boxes, each `apart` rows and columns after the one before.
  void put_along(bool lower, int64_t row, int64_t column, int64_t rows, int64_t columns,
                 int64_t count, int64_t apart) const {
    if (rows <= 0 || columns <= 0 || count <= 0) return;
    const auto boxes = [&](const Layout& x) {
      const int rank = x.rank();
      const Layout box = x.narrow(rank - 2, row, rows).narrow(rank - 1, column, columns);
      if (count == 1) return box;
      const Shape shape = box.shape().with_inserted(rank - 2, count);
      Layout::Strides strides{};
      for (int d = 0; d < rank - 2; ++d) strides[static_cast<size_t>(d)] = box.stride(d);
      const int64_t down = box.stride(rank - 2), across = box.stride(rank - 1);
      strides[static_cast<size_t>(rank - 2)] = apart * (down + across);
      strides[static_cast<size_t>(rank - 1)] = down;
      strides[static_cast<size_t>(rank)] = across;
      return Layout(shape, strides, box.offset());
    };
    const View to = part_of(out_, boxes(out_.layout));
    lower == keep_lower_ ? copy(backend_, to, part_of(in_, boxes(in_.layout)))
                         : fill(backend_, to, 0);
  }

  Backend& backend_;
  const View out_;
  const ConstView in_;
  bool keep_lower_;
};

ResultSpec checked_triangle(const OpCall& call) {
  check_operand(call.op, call.x());
  if (call.x().rank() < 2) {
    throw Error(call.name(), "rank below 2", call.x().str(), "need matrices");
  }
  return like(call.x());
}

void run_triangle(Backend& backend, const OpCall& call, const Tensor* result) {
  const View out = result->mutable_view();
  const ConstView in = call.x().view();
  if (out.layout.elems() == 0) return;
  const bool lower = call.op == Op::tril;
  const int64_t given = call.get<Diagonal>().diagonal;
  // The diagonal itself belongs to triu's upper side.
  const int64_t diagonal = lower ? given : std::max(given, INT64_MIN + 1) - 1;
  if (in.layout.rank() < Shape::kMaxRank) {
    return Triangles(backend, out, in, lower).split(diagonal);
  }
  for (int64_t i = 0; i < in.layout.shape()[0]; ++i) {  // the boxes need one more dim
    const auto matrix = [&](const Layout& x) { return x.narrow(0, i, 1).squeeze(0); };
    Triangles(backend, part_of(out, matrix(out.layout)), part_of(in, matrix(in.layout)), lower)
        .split(diagonal);
  }
}

}  // namespace

namespace bodies {

const OpBody cat{checked_cat, run_cat};
const OpBody roll{[](const OpCall& call) {
                    check_operand(Op::roll, call.x());
                    return like(call.x());
                  },
                  run_roll};
const OpBody repeat{checked_repeat, run_repeat};
const OpBody pad{checked_pad, run_pad};
const OpBody triangle{checked_triangle, run_triangle};

}  // namespace bodies

Tensor cat(std::span<const Tensor> tensors, int dim) {
  if (tensors.empty()) throw Error("cat", "no tensors", {}, "need one or more");
  check_operand(Op::cat, tensors.front());
  std::vector<const Tensor*> all;
  for (const Tensor& t : tensors) all.push_back(&t);
  const int d = resolve_dim("cat", dim, tensors.front().rank());
  return apply({Op::cat, Operands(all), AlongDim{d}});
}

Tensor roll(const Tensor& x, ListOf<int64_t> shifts, ListOf<int> dims) {
  check_operand(Op::roll, x);
  if (shifts.size() != dims.size()) {
    throw Error("roll", "numbers of shifts and dims differ",
                fmt::format("{} and {}", shifts.size(), dims.size()), "need one shift per dim");
  }
  resolve_dims("roll", dims, x.rank());
  Shifts by;
  by.along.count = static_cast<int>(dims.size());
  for (size_t i = 0; i < dims.size(); ++i) {
    by.along.dims[i] = resolve_dim("roll", dims[i], x.rank());
    // Reduced modulo the size, so that the negated shift of the gradient doesn't overflow.
    by.shifts[i] = shifts[i] % std::max<int64_t>(x.shape()[by.along.dims[i]], 1);
  }
  return apply({Op::roll, {&x}, by});
}

Tensor repeat(const Tensor& x, ListOf<int64_t> counts) {
  check_operand(Op::repeat, x);
  if (counts.size() > Shape::kMaxRank) {
    throw Error("repeat", "too many dimensions", fmt::format("{} counts", counts.size()),
                "need at most 8");
  }
  Repeats repeats{{}, static_cast<int>(counts.size())};
  std::ranges::copy(counts, repeats.counts.begin());
  return apply({Op::repeat, {&x}, repeats});
}

Tensor pad(const Tensor& x, ListOf<Padding> padding, PadMode mode, Scalar value) {
  check_operand(Op::pad, x);
  if (padding.size() > static_cast<size_t>(x.rank())) {
    throw Error("pad", "more paddings than dimensions",
                fmt::format("{}, {} paddings", x.str(), padding.size()));
  }
  PadParams params{{}, static_cast<int>(padding.size()), mode, value};
  std::ranges::copy(padding, params.padding.begin());
  return apply({Op::pad, {&x}, params});
}

Tensor tril(const Tensor& x, int64_t diagonal) {
  return apply({Op::tril, {&x}, Diagonal{diagonal}});
}
Tensor triu(const Tensor& x, int64_t diagonal) {
  return apply({Op::triu, {&x}, Diagonal{diagonal}});
}

}  // namespace wick
