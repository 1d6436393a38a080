#include "wick/tensor/shape_ops.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <vector>

#include "wick/backend/backend.h"
#include "wick/base/error.h"
#include "wick/tensor/checks.h"
#include "wick/tensor/ops.h"
#include "wick/tensor/tape.h"

namespace wick {
namespace {

void copy_into(const Tensor& out, const Tensor& x) {
  if (x.elems() > 0) apply_into({Op::copy, {&x}}, out);
}
void fill_into(const Tensor& out, Scalar value) {
  if (out.elems() > 0) apply_into({Op::fill, {}, Numbers{value}}, out);
}

Tensor backwards(const Tensor& x, int dim) { return x.slice(dim, -1, INT64_MIN, -1); }

}  // namespace

Tensor flip(const Tensor& x, std::span<const int> dims) {
  check_operand(Op::copy, x, "flip");
  const uint32_t mask = dims.empty() ? ~uint32_t{0} : resolve_dims("flip", dims, x.rank());
  Tensor view = x;
  for (int d = 0; d < x.rank(); ++d) {
    if (((mask >> d) & 1u) != 0) view = backwards(view, d);
  }
  return view;
}

Tensor roll(const Tensor& x, std::span<const int64_t> shifts, std::span<const int> dims) {
  check_operand(Op::copy, x, "roll");
  if (shifts.size() != dims.size()) {
    throw Error("roll", "other numbers of shifts and dims",
                fmt::format("{} and {}", shifts.size(), dims.size()), "need one shift a dim");
  }
  resolve_dims("roll", dims, x.rank());
  Tensor out = Tensor::empty(x.shape(), x.dtype(), x.device());
  // Boxes that move as a whole: every rolled dim cuts each in two.
  std::vector<std::pair<Tensor, Tensor>> boxes = {{out, x.detach()}};
  for (size_t i = 0; i < dims.size(); ++i) {
    const int d = resolve_dim("roll", dims[i], x.rank());
    const int64_t size = x.shape()[d];
    if (size == 0) continue;
    const int64_t by = (shifts[i] % size + size) % size;
    if (by == 0) continue;
    std::vector<std::pair<Tensor, Tensor>> cut;
    for (const auto& [to, from] : boxes) {
      cut.emplace_back(to.narrow(d, by, size - by), from.narrow(d, 0, size - by));
      cut.emplace_back(to.narrow(d, 0, by), from.narrow(d, size - by, by));
    }
    boxes = std::move(cut);
  }
  for (const auto& [to, from] : boxes) copy_into(to, from);
  if (tape::is_wanted(x)) {
    Shifts back;
    back.along.count = static_cast<int>(dims.size());
    for (size_t i = 0; i < dims.size(); ++i) {
      // The remainder comes first, since −INT64_MIN overflows.
      back.shifts[i] = -(shifts[i] % std::max<int64_t>(x.size(dims[i]), 1));
      back.along.dims[i] = dims[i];
    }
    tape::record(
        out, "roll",
        [](const tape::Vjp& v) {
          const auto& [by, along] = v.get<Shifts>();
          const auto count = static_cast<size_t>(along.count);
          v.to_x(roll(v.grad(), std::span(by.data(), count), std::span(along.dims.data(), count)));
        },
        {x}, back);
  }
  return out;
}

namespace {

/// Copies x repeatedly along its dims. A repeated dim becomes two dims of one broadcast copy; if
/// that gives more than 8 dims, the first repeated one is copied count by count.
void repeat_into(const Tensor& out, const Tensor& x, std::span<const int64_t> counts) {
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
      repeat_into(out.narrow(first, i * size, size), x, rest);
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
    const int64_t to_stride = out.layout().stride(d), from_stride = x.layout().stride(d);
    if (count > 1 && size > 1) add(count, to_stride * size, 0);
    size > 1 ? add(size, to_stride, from_stride) : add(count, to_stride, 0);
  }
  const Shape shape(sizes);
  copy_into(Tensor(out.storage(), out.dtype(), Layout(shape, to, out.layout().offset())),
            Tensor(x.storage(), x.dtype(), Layout(shape, from, x.layout().offset())));
}

}  // namespace

namespace {

/// Sums over the repetitions of each dim.
void repeat_rule(const tape::Vjp& v) {
  const Shape& shape = v.x().shape();
  Tensor sums = v.grad();
  const std::span<const int64_t> whole = sums.shape().dims();
  std::vector<int64_t> sizes(whole.begin(), whole.end());
  const int more = sums.rank() - shape.rank();
  for (int d = 0; d < sums.rank(); ++d) {
    const auto at = static_cast<size_t>(d);
    const int64_t size = d < more ? 1 : shape[d - more], all = sizes[at];
    if (all == size) continue;
    int64_t outer = 1, inner = 1;
    for (size_t i = 0; i < at; ++i) outer *= sizes[i];
    for (size_t i = at + 1; i < sizes.size(); ++i) inner *= sizes[i];
    sizes[at] = size;
    sums = sum(sums.reshape({outer, all / size, size, inner}), 1).reshape(Shape(sizes));
  }
  v.to_x(sums.reshape(shape));
}

}  // namespace

Tensor repeat(const Tensor& x, std::span<const int64_t> counts) {
  check_operand(Op::copy, x, "repeat");
  const size_t rank = std::max(counts.size(), static_cast<size_t>(x.rank()));
  if (rank > Shape::kMaxRank) {
    throw Error("repeat", "too many dimensions", fmt::format("{} counts", counts.size()),
                "need at most 8");
  }
  std::vector<int64_t> times(rank - counts.size(), 1);
  times.insert(times.end(), counts.begin(), counts.end());
  Tensor source = x.detach();
  while (static_cast<size_t>(source.rank()) < rank) source = source.unsqueeze(0);
  std::vector<int64_t> sizes(rank);
  for (size_t d = 0; d < rank; ++d) {
    if (times[d] < 0 ||
        __builtin_mul_overflow(times[d], source.shape()[static_cast<int>(d)], &sizes[d])) {
      throw Error("repeat", times[d] < 0 ? "a negative count" : "too many elements",
                  fmt::format("{}, counts ({})", x.str(), fmt::join(counts, ",")),
                  "need counts >= 0 and sizes below 2^63");
    }
  }
  Tensor out = Tensor::empty(Shape(sizes), x.dtype(), x.device());
  if (out.elems() > 0) repeat_into(out, source, times);
  if (tape::is_wanted(x)) tape::record(out, "repeat", repeat_rule, {x});
  return out;
}

namespace {

/// Fills the padding before and after [start, start + size) along a dim from the elements inside.
void pad_dim(const Tensor& out, int d, int64_t start, int64_t size, PadMode mode, Scalar value) {
  const int64_t before = start, behind = start + size, after = out.shape()[d] - behind;
  const Tensor front = out.narrow(d, 0, before), back = out.narrow(d, behind, after);
  if (mode == PadMode::constant) {
    fill_into(front, value);
    fill_into(back, value);
    return;
  }
  if (mode == PadMode::reflect) {
    if (before > 0) copy_into(front, backwards(out.narrow(d, start + 1, before), d));
    if (after > 0) copy_into(back, backwards(out.narrow(d, behind - 1 - after, after), d));
    return;
  }
  if (before > 0) copy_into(front, out.narrow(d, start, 1).broadcast_to(front.shape()));
  if (after > 0) copy_into(back, out.narrow(d, behind - 1, 1).broadcast_to(back.shape()));
}

/// Adds the gradients of copied padding to the source elements, in the reverse order of pad's dims.
void pad_rule(const tape::Vjp& v) {
  const auto& [padding, count, mode] = v.get<PadParams>();
  const int first = v.x().rank() - count;
  Tensor g = v.grad();
  for (size_t i = 0; i < static_cast<size_t>(count); ++i) {
    const int d = first + static_cast<int>(i), behind = g.rank() - 1 - d;
    const auto [before, after] = padding[i];
    const int64_t size = v.x().shape()[d];
    const auto place = [&, behind = behind](const Tensor& part, int64_t front, int64_t back) {
      std::vector<Padding> around(static_cast<size_t>(behind + 1));
      around[0] = {front, back};
      return pad(part, around);
    };
    const Tensor front = g.narrow(d, 0, before), back = g.narrow(d, before + size, after);
    g = g.narrow(d, before, size);
    if (mode == PadMode::reflect) {
      if (before > 0) g = g + place(flip(front, d), 1, size - 1 - before);
      if (after > 0) g = g + place(flip(back, d), size - 1 - after, 1);
    } else if (mode == PadMode::replicate) {
      if (before > 0) g = g + place(sum(front, d, true), 0, size - 1);
      if (after > 0) g = g + place(sum(back, d, true), size - 1, 0);
    }
  }
  v.to_x(g);
}

}  // namespace

Tensor pad(const Tensor& x, std::span<const Padding> padding, PadMode mode, Scalar value) {
  check_operand(Op::copy, x, "pad");
  const auto count = static_cast<int>(std::min<size_t>(padding.size(), Shape::kMaxRank + 1));
  if (count > x.rank()) {
    throw Error("pad", "more paddings than dimensions",
                fmt::format("{}, {} paddings", x.str(), padding.size()));
  }
  const int first = x.rank() - count;
  std::vector<int64_t> sizes(x.shape().dims().begin(), x.shape().dims().end());
  for (int i = 0; i < count; ++i) {
    const Padding p = padding[static_cast<size_t>(i)];
    const int64_t size = x.shape()[first + i], most = std::max(p.before, p.after);
    const std::string what =
        fmt::format("{}, dim {}, {} before, {} after", x.str(), first + i, p.before, p.after);
    if (p.before < 0 || p.after < 0) throw Error("pad", "negative padding", what);
    if (mode == PadMode::reflect && most > 0 && most >= size) {
      throw Error("pad", "reflecting more than there is", what, "need less than the size");
    }
    if (mode == PadMode::replicate && most > 0 && size == 0) {
      throw Error("pad", "nothing to replicate", what);
    }
    int64_t& sum = sizes[static_cast<size_t>(first + i)];
    if (__builtin_add_overflow(sum, p.before, &sum) || __builtin_add_overflow(sum, p.after, &sum)) {
      throw Error("pad", "too many elements", what);
    }
  }
  Tensor out = Tensor::empty(Shape(sizes), x.dtype(), x.device());
  if (out.elems() == 0) return out;
  // Copies x to the middle, then pads dim by dim, the last dim first.
  Tensor inside = out;
  for (int i = 0; i < count; ++i) {
    inside = inside.narrow(first + i, padding[static_cast<size_t>(i)].before, x.shape()[first + i]);
  }
  copy_into(inside, x.detach());
  for (int i = count - 1; i >= 0; --i) {
    // Dims before i still have x's size; those after it are padded.
    Tensor part = out;
    for (int j = 0; j < i; ++j) {
      part = part.narrow(first + j, padding[static_cast<size_t>(j)].before, x.shape()[first + j]);
    }
    pad_dim(part, first + i, padding[static_cast<size_t>(i)].before, x.shape()[first + i], mode,
            value);
  }
  if (tape::is_wanted(x)) {
    PadParams params{{}, count, mode};
    std::copy(padding.begin(), padding.end(), params.padding.begin());
    tape::record(out, "pad", pad_rule, {x}, params);
  }
  return out;
}

namespace {

/// A tensor's elements under a layout of its storage.
Tensor part_of(const Tensor& x, const Layout& layout) {
  return Tensor(x.storage(), x.dtype(), layout);
}

/// Copies one side of a diagonal of matrices and fills the other with 0.
class Triangles {
 public:
  Triangles(const Tensor& out, const Tensor& x, bool keep_lower)
      : out_(out), x_(x), keep_lower_(keep_lower) {}

  /// Elements with j - i <= diagonal are the lower side.
  void split(int64_t diagonal) const {
    const int64_t m = x_.size(-2), n = x_.size(-1);
    diagonal = std::clamp(diagonal, -m, n);
    const int64_t top = std::max<int64_t>(0, -diagonal), left = top + diagonal;
    const int64_t side = std::max<int64_t>(0, std::min(m - top, n - left));
    // The rows above and below the diagonal's square; the columns left and right of it.
    put(false, 0, 0, top, n);
    put(true, top + side, 0, m - top - side, n);
    put(true, top, 0, side, left);
    put(false, top, left + side, side, n - left - side);
    split_square(top, left, side);
  }

 private:
  /// A square with the diagonal, which belongs to the lower side. Covers it by smaller squares
  /// below and above the diagonal, whose sides are powers of two: one strided copy and one fill for
  /// each size.
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
    const auto boxes = [&](const Tensor& t) {
      const Layout box = t.layout().narrow(-2, row, rows).narrow(-1, column, columns);
      if (count == 1) return part_of(t, box);
      const int rank = t.rank();
      const Shape shape = box.shape().with_inserted(rank - 2, count);
      Layout::Strides strides{};
      for (int d = 0; d < rank - 2; ++d) strides[static_cast<size_t>(d)] = box.stride(d);
      const int64_t down = box.stride(rank - 2), across = box.stride(rank - 1);
      strides[static_cast<size_t>(rank - 2)] = apart * (down + across);
      strides[static_cast<size_t>(rank - 1)] = down;
      strides[static_cast<size_t>(rank)] = across;
      return part_of(t, Layout(shape, strides, box.offset()));
    };
    lower == keep_lower_ ? copy_into(boxes(out_), boxes(x_)) : fill_into(boxes(out_), 0);
  }

  const Tensor& out_;
  const Tensor& x_;
  bool keep_lower_;
};

/// tril or triu up to `diagonal`, for any number of batch dims.
Tensor triangle(const Tensor& x, bool keep_lower, int64_t diagonal) {
  Tensor out = Tensor::empty(x.shape(), x.dtype(), x.device());
  if (out.elems() == 0) return out;
  if (x.rank() < Shape::kMaxRank) {
    Triangles(out, x, keep_lower).split(diagonal);
    return out;
  }
  for (int64_t i = 0; i < x.shape()[0]; ++i) {  // the boxes need one more dim
    const Tensor to = out.narrow(0, i, 1).squeeze(0), from = x.narrow(0, i, 1).squeeze(0);
    Triangles(to, from, keep_lower).split(diagonal);
  }
  return out;
}

template <Tensor (*kFunction)(const Tensor&, int64_t)>
void triangle_rule(const tape::Vjp& v) {
  v.to_x(kFunction(v.grad(), v.get<Diagonal>().diagonal));
}

void check_matrices(const char* op, const Tensor& x) {
  check_operand(Op::copy, x, op);
  if (x.rank() < 2) throw Error(op, "rank below 2", x.str(), "need matrices");
}

}  // namespace

Tensor tril(const Tensor& x, int64_t diagonal) {
  check_matrices("tril", x);
  Tensor out = triangle(x.detach(), true, diagonal);
  if (tape::is_wanted(x)) tape::record(out, "tril", triangle_rule<tril>, {x}, Diagonal{diagonal});
  return out;
}

Tensor triu(const Tensor& x, int64_t diagonal) {
  check_matrices("triu", x);
  // The diagonal itself belongs to the upper side.
  Tensor out = triangle(x.detach(), false, std::max(diagonal, INT64_MIN + 1) - 1);
  if (tape::is_wanted(x)) tape::record(out, "triu", triangle_rule<triu>, {x}, Diagonal{diagonal});
  return out;
}

Tensor eye(int64_t rows, int64_t columns, DType dtype, Device device) {
  if (rows < 0 || columns < 0) {
    throw Error("eye", "negative size", fmt::format("[{},{}]", rows, columns), "need sizes >= 0");
  }
  if (is_block(dtype)) {
    throw Error(ErrorKind::type, "eye", "to a block dtype", name(dtype), "use quantize");
  }
  const Tensor out = Tensor::zeros({rows, columns}, dtype, device);
  const Layout diagonal(Shape{std::min(rows, columns)}, {columns + 1}, 0);
  fill_into(part_of(out, diagonal), 1);
  return out;
}

void const_set(Tensor& target, Scalar value) {
  check_operand(Op::fill, target, "const_set");
  const_set(target, value, Layout(target.layout()));
}

void const_set(Tensor& target, Scalar value, const Layout& where) {
  check_operand(Op::fill, target, "const_set");
  check_writable("const_set", target);
  const Tensor part = part_of(target, where);
  if (where.overlaps_itself()) {
    throw Error("const_set", "elements overlap", part.str());
  }
  fill_into(part, value);
}

}  // namespace wick
