// Functions that select, place and move elements.

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "tests/soak/soak.h"
#include "wick/base/error.h"
#include "wick/tensor/index_ops.h"
#include "wick/tensor/ops.h"
#include "wick/tensor/shape_ops.h"

namespace wick::soak {
namespace {

using Index = std::span<const int64_t>;

/// Returns whether an id is padding: the largest value of an unsigned id dtype.
bool pads(DType ids, Real id) {
  return (ids == DType::u8 && id == 255) || (ids == DType::u32 && id == 4294967295.0L);
}

int64_t position(const Shape& shape, const std::vector<int64_t>& index) {
  int64_t at = 0;
  for (int d = 0; d < shape.rank(); ++d) at = at * shape[d] + index[static_cast<size_t>(d)];
  return at;
}

/// Returns an array with the element from(index) at each index.
Array made(DType dtype, const Shape& shape, const std::function<Real(Index)>& from) {
  Array y(dtype, shape);
  int64_t i = 0;
  for_each_index(shape, [&](Index index) { y[i++] = from(index); });
  return y;
}

Values any_values(Case& c) { return c.one_in(3) ? Values::special : Values::ordinary; }

/// Returns the row-major position of `index` after its entry for `dim` is replaced by the id.
int64_t position_of_id(const Shape& shape, Index index, int dim, Real id) {
  std::vector<int64_t> replaced(index.begin(), index.end());
  replaced[static_cast<size_t>(dim)] = static_cast<int64_t>(id);
  return position(shape, replaced);
}

/// Sums that start with given elements, and the bound on each sum's rounding error.
struct Sums {
  explicit Sums(const Array& start) : y(start), terms(y.v.size(), 0) {
    for (const Real v : y.v) magnitude.push_back(std::fabs(v));
  }
  void add(int64_t at, Real value) {
    y[at] += value;
    magnitude[static_cast<size_t>(at)] += std::fabs(value), terms[static_cast<size_t>(at)] += 1;
  }
  /// Wraps integers. Returns the bound for floats.
  Bound finish() {
    Bound bound{is_float(y.dtype) ? 1.0L : 0, {}};
    for (int64_t i = 0; i < y.elems(); ++i) {
      if (!is_float(y.dtype)) y[i] = wrap(y.dtype, static_cast<Int>(y[i]));
      const auto at = static_cast<size_t>(i);
      bound.slack.push_back(is_float(y.dtype) ? step(y.dtype) * (terms[at] + 4) * magnitude[at]
                                              : 0);
    }
    return bound;
  }

  Array y;
  std::vector<Real> magnitude, terms;
};

}  // namespace

void index_select_case(Case& c) {
  const DType dtype = c.dtype(dtypes::kAny);
  const Operand x = c.operand(dtype, c.shape(1, 6, false), any_values(c));
  const int dim = static_cast<int>(c.below(x.a.shape.rank()));
  const Shape id_shape = c.one_in(4) ? Shape{c.between(1, 3), c.between(0, 4)} : Shape{c.size(40)};
  const Operand ids = c.ids(c.id_dtype(), id_shape, x.a.shape[dim], true);
  c.note(fmt::format("dim {}", dim));
  std::vector<int64_t> sizes(x.a.shape.dims().begin(), x.a.shape.dims().end());
  sizes.erase(sizes.begin() + dim);
  sizes.insert(sizes.begin() + dim, id_shape.dims().begin(), id_shape.dims().end());
  const int more = id_shape.rank();
  const Array y = made(dtype, Shape(sizes), [&](Index index) {
    int64_t which = 0;
    for (int d = 0; d < more; ++d)
      which = which * id_shape[d] + index[static_cast<size_t>(dim + d)];
    const Real id = ids.a[which];
    if (pads(ids.a.dtype, id)) return 0.0L;
    std::vector<int64_t> from(index.begin(), index.begin() + dim);
    from.push_back(static_cast<int64_t>(id));
    from.insert(from.end(), index.begin() + dim + more, index.end());
    return x.a[position(x.a.shape, from)];
  });
  c.expect(index_select(x.x, ids.x, dim), y);
}

namespace {

/// Returns a shape for ids with x's rank: any size along dim, and sizes up to x's elsewhere.
Shape id_shape(Case& c, const Shape& x, int dim) {
  std::vector<int64_t> sizes;
  for (int d = 0; d < x.rank(); ++d) {
    sizes.push_back(d == dim ? c.size(30) : c.one_in(3) ? c.between(0, x[d]) : x[d]);
  }
  return Shape(sizes);
}

}  // namespace

void gather_case(Case& c) {
  const DType dtype = c.dtype(dtypes::kAny);
  const Operand x = c.operand(dtype, c.shape(1, 6, false), any_values(c));
  const int dim = static_cast<int>(c.below(x.a.shape.rank()));
  const Operand ids = c.ids(c.id_dtype(), id_shape(c, x.a.shape, dim), x.a.shape[dim], true);
  c.note(fmt::format("dim {}", dim));
  int64_t i = 0;
  const Array y = made(dtype, ids.a.shape, [&](Index index) {
    const Real id = ids.a[i++];
    if (pads(ids.a.dtype, id)) return 0.0L;
    return x.a[position_of_id(x.a.shape, index, dim, id)];
  });
  c.expect(gather(x.x, ids.x, dim), y);
}

void scatter_case(Case& c, Op op) {
  const bool adds = op == Op::scatter_add;
  const DType dtype = c.dtype(adds ? dtypes::kReal : dtypes::kAny);
  const Operand x = c.operand(dtype, c.shape(1, 6, false), adds ? Values::ordinary : any_values(c));
  const int dim = static_cast<int>(c.below(x.a.shape.rank()));
  const Operand ids = c.ids(c.id_dtype(), id_shape(c, x.a.shape, dim), x.a.shape[dim], true);
  const Operand source = c.operand(dtype, ids.a.shape, adds ? Values::ordinary : any_values(c));
  c.note(fmt::format("dim {}", dim));
  Sums sums(x.a);
  int64_t i = 0;
  for_each_index(ids.a.shape, [&](Index index) {
    const Real id = ids.a[i], value = source.a[i];
    ++i;
    if (pads(ids.a.dtype, id)) return;
    const int64_t at = position_of_id(x.a.shape, index, dim, id);
    if (adds) {
      sums.add(at, value);
    } else {
      sums.y[at] = value;
    }
  });
  const Bound bound = adds ? sums.finish() : Bound{};
  c.expect(adds ? scatter_add(x.x, ids.x, source.x, dim) : scatter(x.x, ids.x, source.x, dim),
           sums.y, bound);
}

void index_add_case(Case& c) {
  const DType dtype = c.dtype(dtypes::kReal);
  const Operand x = c.operand(dtype, c.shape(1, 6, false));
  const int dim = static_cast<int>(c.below(x.a.shape.rank()));
  const int64_t n = c.below(20);
  const Operand ids = c.ids(c.id_dtype(), {n}, x.a.shape[dim], true);
  const Operand source = c.operand(dtype, x.a.shape.with(dim, n));
  c.note(fmt::format("dim {}", dim));
  Sums sums(x.a);
  int64_t i = 0;
  for_each_index(source.a.shape, [&](Index index) {
    const Real id = ids.a[index[static_cast<size_t>(dim)]], value = source.a[i++];
    if (!pads(ids.a.dtype, id)) sums.add(position_of_id(x.a.shape, index, dim, id), value);
  });
  const Bound bound = sums.finish();
  c.expect(index_add(x.x, ids.x, source.x, dim), sums.y, bound);
}

void one_hot_case(Case& c) {
  const DType dtype = c.dtype(dtypes::kAny);
  const int64_t depth = c.size(60);
  const Operand ids = c.ids(c.id_dtype(), c.shape(0, 4), depth, true);
  std::vector<int64_t> sizes(ids.a.shape.dims().begin(), ids.a.shape.dims().end());
  sizes.push_back(depth);
  c.note(fmt::format("depth {}", depth));
  int64_t i = 0;
  const Array y = made(dtype, Shape(sizes), [&](Index index) {
    return ids.a[i++ / depth] == static_cast<Real>(index.back()) ? 1.0L : 0.0L;
  });
  c.expect(one_hot(ids.x, depth, dtype), y);
}

namespace {

/// Returns a view of a tensor with its expected elements.
Operand viewed(Case& c, const Operand& o) {
  const int rank = o.a.shape.rank();
  const int d = static_cast<int>(c.below(rank)), e = static_cast<int>(c.below(rank));
  const int64_t n = o.a.shape[d];
  const auto mapped = [&](const Tensor& x, const Shape& shape,
                          const std::function<void(std::vector<int64_t>&)>& back) {
    return Operand{x, made(o.a.dtype, shape, [&](Index index) {
                     std::vector<int64_t> from(index.begin(), index.end());
                     back(from);
                     return o.a[position(o.a.shape, from)];
                   })};
  };
  const auto ud = static_cast<size_t>(d), ue = static_cast<size_t>(e);
  switch (c.below(4)) {
    case 0:
      c.note(fmt::format("transpose {} {}", d, e));
      return mapped(o.x.transpose(d, e), o.a.shape.with(d, o.a.shape[e]).with(e, n),
                    [=](auto& i) { std::swap(i[ud], i[ue]); });
    case 1:
      c.note(fmt::format("flip {}", d));
      return mapped(flip(o.x, d), o.a.shape, [=](auto& i) { i[ud] = n - 1 - i[ud]; });
    case 2: {
      const int64_t start = c.below(n + 1), length = c.below(n - start + 1);
      c.note(fmt::format("narrow {} {} {}", d, start, length));
      return mapped(o.x.narrow(d, start, length), o.a.shape.with(d, length),
                    [=](auto& i) { i[ud] += start; });
    }
    default: {
      const int64_t by = c.between(1, 3);
      c.note(fmt::format("every {} of {}", by, d));
      return mapped(o.x.slice(d, 0, n, by), o.a.shape.with(d, (n + by - 1) / by),
                    [=](auto& i) { i[ud] *= by; });
    }
  }
}

/// Returns an operand of any dtype and layout, as a view.
Operand shaped(Case& c) {
  return viewed(c, c.operand(c.dtype(dtypes::kAny), c.shape(1, 6, false), Values::special));
}

}  // namespace

void copy_case(Case& c) {
  const Operand x = c.operand(c.dtype(dtypes::kAny), c.shape(1, 8, false), Values::special);
  const Operand y = viewed(c, x);
  c.expect(y.x.clone(), y.a);
}

void padded_case(Case& c) {
  const Operand x = shaped(c);
  const PadMode mode = c.pick({PadMode::constant, PadMode::reflect, PadMode::replicate});
  const int d = x.a.shape.rank() - 1;
  const int64_t n = x.a.shape[d];
  if (mode != PadMode::constant && n == 0) return;
  const int64_t most = mode == PadMode::reflect ? n - 1 : 9;
  const Padding p{c.between(0, most), c.between(0, most)};
  c.note(fmt::format("pad {} {} mode {}", p.before, p.after, static_cast<int>(mode)));
  const Array y = made(x.a.dtype, x.a.shape.with(d, n + p.before + p.after), [&](Index index) {
    std::vector<int64_t> from(index.begin(), index.end());
    int64_t& i = from.back();
    i -= p.before;
    if (i < 0 || i >= n) {
      if (mode == PadMode::constant) return 1.0L;
      i = mode == PadMode::replicate ? std::clamp<int64_t>(i, 0, n - 1)
          : i < 0                    ? -i
                                     : 2 * (n - 1) - i;
    }
    return x.a[position(x.a.shape, from)];
  });
  c.expect(pad(x.x, {p}, mode, 1), y);
}

void written_case(Case& c) {
  const Operand x = shaped(c);
  // Copies into a strided view of another tensor, as when a cache grows.
  const int d = static_cast<int>(c.below(x.a.shape.rank()));
  const int64_t n = x.a.shape[d], start = c.below(5), size = n + start + c.below(5);
  const DType to = c.one_in(2) ? x.a.dtype : c.dtype(dtypes::kFloats);
  if (to != x.a.dtype && !is_float(x.a.dtype) && x.a.dtype != DType::boolean) return;
  c.note(fmt::format("slice_set dim {} at {} of {} as {}", d, start, size, name(to)));
  Tensor target = Tensor::zeros(x.a.shape.with(d, size), to, c.device);
  slice_set(target, x.x, d, start);
  const Array y = made(to, x.a.shape.with(d, size), [&](Index index) {
    std::vector<int64_t> from(index.begin(), index.end());
    int64_t& i = from[static_cast<size_t>(d)];
    i -= start;
    return i < 0 || i >= n ? 0.0L : rounded(to, x.a[position(x.a.shape, from)]);
  });
  c.expect(target, y);
}

void triangle_case(Case& c, Op op) {
  const Operand x = shaped(c);
  if (x.a.shape.rank() < 2) return;
  const int64_t diagonal = c.between(-5, 5);
  const bool lower = op == Op::tril;
  c.note(fmt::format("{} {}", lower ? "tril" : "triu", diagonal));
  const Array y = made(x.a.dtype, x.a.shape, [&](Index index) {
    const int64_t above = index[index.size() - 1] - index[index.size() - 2];
    const bool kept = lower ? above <= diagonal : above >= diagonal;
    return kept ? x.a[position(x.a.shape, {index.begin(), index.end()})] : 0.0L;
  });
  c.expect(lower ? tril(x.x, diagonal) : triu(x.x, diagonal), y);
}

void joined_case(Case& c) {
  const Operand x = shaped(c);
  const int d = static_cast<int>(c.below(x.a.shape.rank()));
  const int64_t first = x.a.shape[d], second = c.below(6);
  const Operand other = c.operand(x.a.dtype, x.a.shape.with(d, second), Values::special);
  c.note(fmt::format("cat {}", d));
  const Array y = made(x.a.dtype, x.a.shape.with(d, first + second), [&](Index index) {
    std::vector<int64_t> from(index.begin(), index.end());
    int64_t& i = from[static_cast<size_t>(d)];
    if (i < first) return x.a[position(x.a.shape, from)];
    i -= first;
    return other.a[position(other.a.shape, from)];
  });
  c.expect(cat(std::vector<Tensor>{x.x, other.x}, d), y);
}

void repeated_case(Case& c) {
  const Operand x = shaped(c);
  std::vector<int64_t> counts, sizes;
  for (int d = 0; d < x.a.shape.rank(); ++d) {
    counts.push_back(c.below(4));
    sizes.push_back(x.a.shape[d] * counts.back());
  }
  c.note("repeat");
  c.expect(repeat(x.x, counts), made(x.a.dtype, Shape(sizes), [&](Index index) {
             std::vector<int64_t> from(index.begin(), index.end());
             for (size_t d = 0; d < from.size(); ++d) from[d] %= x.a.shape[static_cast<int>(d)];
             return x.a[position(x.a.shape, from)];
           }));
}

void rolled_case(Case& c) {
  const Operand x = shaped(c);
  const int d = static_cast<int>(c.below(x.a.shape.rank()));
  const int64_t by = c.between(-9, 9), n = std::max<int64_t>(x.a.shape[d], 1);
  c.note(fmt::format("roll {} by {}", d, by));
  c.expect(roll(x.x, by, d), made(x.a.dtype, x.a.shape, [&](Index index) {
             std::vector<int64_t> from(index.begin(), index.end());
             int64_t& i = from[static_cast<size_t>(d)];
             i = ((i - by) % n + n) % n;
             return x.a[position(x.a.shape, from)];
           }));
}

void wrong_call_case(Case& c) {
  const DType dtype = c.float_dtype(), other = dtype == DType::f32 ? DType::f16 : DType::f32;
  const Operand x = c.operand(dtype, {3, 5}), y = c.operand(dtype, {3, 4}),
                z = c.operand(other, {3, 5});
  const Operand whole = c.operand(DType::i32, {3, 5});
  Array far(DType::i64, {2, 5});
  std::fill(far.v.begin(), far.v.end(), c.one_in(2) ? 3.0L : -1.0L);
  far[c.below(far.elems())] = 0;
  const Operand ids = c.operand(far);
  const Tensor row = ids.x.narrow(0, 0, 1).flatten();
  switch (c.below(12)) {
    case 0:
      return c.expect_error("add", [&] { add(x.x, y.x); });
    case 1:
      return c.expect_error("mul", [&] { mul(x.x, z.x); });
    case 2:
      return c.expect_error("exp", [&] { exp(whole.x); });
    case 3:
      return c.expect_error("sum", [&] { sum(x.x, 2); });
    case 4:
      return c.expect_error("matmul", [&] { matmul(x.x, y.x); });
    case 5:
      return c.expect_error("softmax", [&] { softmax(x.x, -3); });
    case 6:
      return c.expect_error("cat", [&] { cat(std::vector<Tensor>{x.x, y.x}, 0); });
    case 7:
      return c.expect_error("gather", [&] { gather(x.x, ids.x, 0); });
    case 8:
      return c.expect_error("scatter_add",
                            [&] { scatter_add(x.x, ids.x, x.x.narrow(0, 0, 2), 0); });
    case 9:
      return c.expect_error("index_select", [&] { index_select(x.x, row, 0); });
    case 10:
      return c.expect_error("where", [&] { where(x.x, x.x, x.x); });
    default:
      return c.expect_error("rms_norm", [&] { rms_norm(x.x, y.x, 1e-5f); });
  }
}

}  // namespace wick::soak
