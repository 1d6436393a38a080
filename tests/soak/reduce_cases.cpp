// Reductions, norms, rotary embeddings, scans and sorting.

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "tests/soak/soak.h"
#include "wick/tensor/index_ops.h"
#include "wick/tensor/ops.h"

namespace wick::soak {
namespace {

constexpr Real kNan = std::numeric_limits<Real>::quiet_NaN();

/// The total order of max, min, argmax and sort: -0 is below +0.
bool below(Real a, Real b) { return a < b || (a == b && std::signbit(a) && !std::signbit(b)); }

struct Dims {
  std::vector<int> dims;  ///< empty: all dims
  bool keepdim;
  Shape kept, result;
  int64_t count = 1;  ///< number of elements that are reduced to one
};

/// Returns random dims of a shape.
Dims random_dims(Case& c, const Shape& shape) {
  Dims d;
  d.keepdim = c.one_in(2);
  std::vector<bool> reduced(static_cast<size_t>(shape.rank()), false);
  for (int i = 0; i < shape.rank(); ++i) {
    if (c.one_in(2)) d.dims.push_back(i), reduced[static_cast<size_t>(i)] = true;
  }
  if (d.dims.empty()) reduced.assign(reduced.size(), true);
  std::vector<int64_t> kept, result;
  for (int i = 0; i < shape.rank(); ++i) {
    const bool gone = reduced[static_cast<size_t>(i)];
    kept.push_back(gone ? 1 : shape[i]);
    if (gone) d.count *= shape[i];
    if (!gone || d.keepdim) result.push_back(kept.back());
  }
  for (int& i : d.dims) {
    if (c.one_in(4)) i -= shape.rank();
  }
  d.kept = Shape(kept), d.result = Shape(result);
  c.note(fmt::format("over {} dims of them{}", d.dims.size(), d.keepdim ? ", kept" : ""));
  return d;
}

/// Returns the elements of each result, in row-major order.
std::vector<std::vector<Real>> groups_of(const Array& x, const Dims& d) {
  std::vector<std::vector<Real>> groups(static_cast<size_t>(d.kept.elems()));
  int64_t i = 0;
  for_each_index(x.shape, [&](std::span<const int64_t> index) {
    groups[static_cast<size_t>(broadcast_at(d.kept, index))].push_back(x[i++]);
  });
  return groups;
}

Real magnitude(const std::vector<Real>& x) {
  return std::accumulate(x.begin(), x.end(), 0.0L, [](Real s, Real v) { return s + std::fabs(v); });
}

/// Returns one result of a row, and its tolerance.
std::pair<Real, Real> reduced(Op op, DType dtype, const std::vector<Real>& x, int64_t correction) {
  const auto n = static_cast<Real>(x.size());
  const Real sum = std::accumulate(x.begin(), x.end(), 0.0L), unit = step(dtype) * (n + 8);
  switch (op) {
    case Op::sum:
      return {sum, unit * magnitude(x)};
    case Op::mean:
      return {sum / n, unit * magnitude(x) / n};
    case Op::prod: {
      const Real p = std::accumulate(x.begin(), x.end(), 1.0L, std::multiplies<>());
      return {p, unit * std::fabs(p)};
    }
    case Op::var: {
      const Real mean = sum / n;
      Real squares = 0, largest = 0;
      for (const Real v : x)
        squares += (v - mean) * (v - mean), largest = std::max(largest, std::fabs(v));
      const Real left = std::max<Real>(n - static_cast<Real>(correction), 0);
      return {squares / left, unit * 8 * (squares + n * largest * largest * unit) / left};
    }
    default: {  // logsumexp
      const Real top = *std::max_element(x.begin(), x.end());
      Real powers = 0;
      for (const Real v : x) powers += std::exp(v - top);
      return {top + std::log(powers), unit * 4 + step(dtype) * 4 * std::fabs(top)};
    }
  }
}

Tensor call_reduce(Op op, const Tensor& x, const Dims& d, int64_t correction) {
  switch (op) {
#define WICK_REDUCE(name, ...) \
  case Op::name:               \
    return name(x, d.dims, d.keepdim);
#define WICK_ARG WICK_REDUCE
#include "wick/op/ops.def"
    case Op::var:
      return var(x, d.dims, d.keepdim, correction);
    case Op::logsumexp:
      return logsumexp(x, d.dims, d.keepdim);
    case Op::any:
      return any(x, d.dims, d.keepdim);
    default:
      return all(x, d.dims, d.keepdim);
  }
}

/// Returns the position of the largest (smallest) element. NaN wins; of equal elements, the first
/// one wins.
size_t best(const std::vector<Real>& x, bool largest) {
  size_t at = 0;
  for (size_t i = 1; i < x.size(); ++i) {
    if (std::isnan(x[at])) break;
    const bool better = largest ? below(x[at], x[i]) : below(x[i], x[at]);
    if (std::isnan(x[i]) || better) at = i;
  }
  return at;
}

Real whole_result(Op op, DType dtype, const std::vector<Real>& x) {
  const DType wide = dtype == DType::boolean ? DType::i64 : dtype;
  Int result = op == Op::prod ? 1 : 0;
  for (const Real v : x) {
    const auto i = static_cast<Int>(v);
    result = static_cast<Int>(wrap(wide, op == Op::prod ? result * i : result + i));
  }
  return static_cast<Real>(result);
}

}  // namespace

void reduce_case(Case& c, Op op) {
  const DType dtype = c.dtype(info(op).dtypes);
  const bool chooses = op == Op::max || op == Op::min, tests = op == Op::any || op == Op::all;
  const bool sums = op == Op::sum || op == Op::prod;
  const bool may_be_empty = !chooses && op != Op::var && op != Op::logsumexp && op != Op::mean;
  const Values values = chooses || tests ? c.pick({Values::ordinary, Values::special})
                        : op == Op::prod ? Values::positive
                                         : Values::ordinary;
  const Operand x = c.operand(dtype, c.shape(0, 8, may_be_empty), values);
  const Dims d = random_dims(c, x.a.shape);
  if (op == Op::prod && is_float(dtype) && d.count > 60) return;  // exceeds the range of any format
  const int64_t correction = d.count > 1 ? c.below(2) : 0;
  const DType to = tests ? DType::boolean : sums && dtype == DType::boolean ? DType::i64 : dtype;
  Array y(to, d.result);
  Bound bound{is_float(to) && !chooses ? 1.0L : 0, {}};
  int64_t i = 0;
  for (const std::vector<Real>& group : groups_of(x.a, d)) {
    if (tests) {
      const auto set =
          std::count_if(group.begin(), group.end(), [](Real v) { return v != 0 || std::isnan(v); });
      y[i++] = op == Op::any ? set > 0 : set == static_cast<int64_t>(group.size());
    } else if (chooses) {
      y[i++] = group[best(group, op == Op::max)];
    } else if (!is_float(dtype)) {
      y[i++] = whole_result(op, dtype, group);
    } else {
      const auto [value, slack] = reduced(op, dtype, group, correction);
      y[i++] = value;
      bound.slack.push_back(slack);
    }
  }
  c.expect(call_reduce(op, x.x, d, correction), y, bound);
}

void arg_case(Case& c, Op op) {
  const Operand x = c.operand(c.dtype(dtypes::kAny), c.shape(0, 8, false),
                              c.pick({Values::ordinary, Values::special}));
  const Dims d = random_dims(c, x.a.shape);
  Array y(DType::u32, d.result);
  int64_t i = 0;
  for (const std::vector<Real>& group : groups_of(x.a, d)) {
    y[i++] = static_cast<Real>(best(group, op == Op::argmax));
  }
  c.expect(call_reduce(op, x.x, d, 0), y);
}

namespace {

/// Calls visit(positions) with the row-major positions of each one-dimensional slice of a shape
/// along a dim.
void for_each_line(const Shape& shape, int dim,
                   const std::function<void(std::span<const int64_t>)>& visit) {
  int64_t inner = 1;
  for (int d = dim + 1; d < shape.rank(); ++d) inner *= shape[d];
  const int64_t n = shape[dim], outer = shape.elems() == 0 ? 0 : shape.elems() / n / inner;
  std::vector<int64_t> at(static_cast<size_t>(n));
  for (int64_t o = 0; o < outer; ++o) {
    for (int64_t in = 0; in < inner; ++in) {
      for (int64_t i = 0; i < n; ++i) at[static_cast<size_t>(i)] = (o * n + i) * inner + in;
      visit(at);
    }
  }
}

}  // namespace

void softmax_case(Case& c, Op op) {
  const DType dtype = c.float_dtype();
  const Operand x = c.operand(dtype, c.shape(1, 8));
  const int dim = static_cast<int>(c.below(x.a.shape.rank()));
  c.note(fmt::format("dim {}", dim));
  Array y(dtype, x.a.shape);
  Bound bound{1.0L, std::vector<Real>(y.v.size())};
  for_each_line(y.shape, dim, [&](std::span<const int64_t> at) {
    Real top = -std::numeric_limits<Real>::infinity(), sum = 0;
    for (const int64_t i : at) top = std::max(top, x.a[i]);
    for (const int64_t i : at) sum += std::exp(x.a[i] - top);
    const Real unit = step(dtype) * (static_cast<Real>(at.size()) + 16);
    for (const int64_t i : at) {
      const Real lower = x.a[i] - top;
      y[i] = op == Op::softmax ? std::exp(lower) / sum : lower - std::log(sum);
      bound.slack[static_cast<size_t>(i)] = op == Op::softmax
                                                ? unit * y[i] * (4 + std::fabs(lower)) + 0x1p-148L
                                                : unit * 4 + step(dtype) * 4 * std::fabs(y[i]);
    }
  });
  c.expect(op == Op::softmax ? softmax(x.x, dim) : log_softmax(x.x, dim), y, bound);
}

void row_norm_case(Case& c, Op op) {
  const DType dtype = c.float_dtype();
  const Operand x = c.operand(dtype, c.shape(1, 8));
  const int64_t n = x.a.shape[x.a.shape.rank() - 1];
  const bool centred = op == Op::layer_norm;
  const bool weighted = !centred || c.one_in(2), biased = centred && c.one_in(2);
  const DType of = c.one_in(2) ? DType::f32 : dtype;
  const Operand weight = c.operand(of, {n}), bias = c.operand(of, {n});
  const float eps = c.pick({1e-5f, 1e-2f, 1.0f});
  c.note(fmt::format("eps {}{}{}", eps, weighted ? ", weight" : "", biased ? ", bias" : ""));
  Array y(dtype, x.a.shape);
  Bound bound{1.0L, std::vector<Real>(y.v.size())};
  for_each_line(y.shape, x.a.shape.rank() - 1, [&](std::span<const int64_t> at) {
    const auto count = static_cast<Real>(n);
    Real mean = 0, squares = 0, largest = 0;
    for (const int64_t i : at)
      mean += centred ? x.a[i] / count : 0, largest = std::max(largest, std::fabs(x.a[i]));
    for (const int64_t i : at) squares += (x.a[i] - mean) * (x.a[i] - mean) / count;
    const Real scale = 1 / std::sqrt(squares + static_cast<Real>(eps)),
               unit = step(dtype) * (count + 16);
    for (size_t j = 0; j < at.size(); ++j) {
      const auto column = static_cast<int64_t>(j);
      const Real w = weighted ? weight.a[column] : 1, b = biased ? bias.a[column] : 0;
      const Real product = (x.a[at[j]] - mean) * scale * w;
      y[at[j]] = product + b;
      // The error of the mean is relative to the largest element, and so is that of the variance.
      bound.slack[static_cast<size_t>(at[j])] =
          unit * 4 *
          (std::fabs(product) * (1 + largest * largest * scale * scale) +
           largest * scale * std::fabs(w) + std::fabs(b));
    }
  });
  const Tensor w = weighted ? weight.x : Tensor(), b = biased ? bias.x : Tensor();
  c.expect(centred ? layer_norm(x.x, w, b, eps) : rms_norm(x.x, w, eps), y, bound);
}

void channel_norm_case(Case& c, Op op) {
  const DType dtype = c.float_dtype();
  const bool grouped = op == Op::group_norm;
  const int64_t per_group = grouped ? c.between(1, 4) : 1, groups = c.between(1, 6);
  const int64_t channels = per_group * groups, batch = c.between(1, 3);
  std::vector<int64_t> sizes = {batch, channels};
  int64_t left = std::max<int64_t>(1, c.most_elems / batch / channels);
  for (int64_t i = c.below(3); i > 0; --i) sizes.push_back(c.size(left)), left /= sizes.back();
  const Operand x = c.operand(dtype, Shape(sizes));
  const bool weighted = c.one_in(2), biased = c.one_in(2);
  const DType of = c.one_in(2) ? DType::f32 : dtype;
  const Operand weight = c.operand(of, {channels}), bias = c.operand(of, {channels});
  const Operand mean = c.operand(of, {channels}),
                variance = c.operand(of, {channels}, Values::positive);
  const float eps = c.pick({1e-5f, 1e-2f, 1.0f});
  c.note(fmt::format("groups {} eps {}{}{}", groups, eps, weighted ? ", weight" : "",
                     biased ? ", bias" : ""));
  const int64_t under = x.a.elems() / batch / channels, count = per_group * under;
  Array y(dtype, x.a.shape);
  Bound bound{1.0L, std::vector<Real>(y.v.size())};
  const Real unit = step(dtype) * (static_cast<Real>(grouped ? count : 1) + 16);
  for (int64_t g = 0; g < batch * groups; ++g) {
    Real own_mean = 0, squares = 0, largest = 0;
    for (int64_t i = 0; i < count; ++i) {
      own_mean += x.a[g * count + i] / static_cast<Real>(count);
      largest = std::max(largest, std::fabs(x.a[g * count + i]));
    }
    for (int64_t i = 0; i < count; ++i) {
      squares += (x.a[g * count + i] - own_mean) * (x.a[g * count + i] - own_mean) /
                 static_cast<Real>(count);
    }
    for (int64_t i = 0; i < count; ++i) {
      const int64_t at = g * count + i, channel = at / under % channels;
      const Real m = grouped ? own_mean : mean.a[channel],
                 v = grouped ? squares : variance.a[channel];
      const Real w = weighted ? weight.a[channel] : 1, b = biased ? bias.a[channel] : 0;
      const Real scale = 1 / std::sqrt(v + static_cast<Real>(eps)),
                 product = (x.a[at] - m) * scale * w;
      y[at] = product + b;
      bound.slack[static_cast<size_t>(at)] =
          unit * 4 *
          (std::fabs(product) * (grouped ? 1 + largest * largest * scale * scale : 1) +
           (grouped ? largest : std::fabs(x.a[at]) + std::fabs(m)) * scale * std::fabs(w) +
           std::fabs(b));
    }
  }
  const Tensor w = weighted ? weight.x : Tensor(), b = biased ? bias.x : Tensor();
  c.expect(
      grouped ? group_norm(x.x, groups, w, b, eps) : batch_norm(x.x, mean.x, variance.x, w, b, eps),
      y, bound);
}

void rope_case(Case& c, Op op) {
  const DType dtype = c.float_dtype();
  const int64_t pairs = c.size(40), t = c.size(20), heads = c.between(1, 4),
                rest = c.one_in(3) ? c.between(1, 9) : 0;
  const int64_t d = 2 * pairs + rest;
  const bool batched = c.one_in(2);
  const int64_t batch = c.between(1, 2);
  const Operand x =
      batched ? c.operand(dtype, {batch, heads, t, d}) : c.operand(dtype, {heads, t, d});
  const bool own_tables = batched && c.one_in(2);
  const Shape table = own_tables ? Shape{batch, t, pairs} : Shape{t, pairs};
  const Operand cos = c.operand(DType::f32, table), sin = c.operand(DType::f32, table);
  Array y = x.a;
  Bound bound{1.0L, std::vector<Real>(y.v.size())};
  for (int64_t row = 0; row < y.elems() / d; ++row) {
    const int64_t b = own_tables ? row / t / heads : 0, position = row % t;
    for (int64_t i = 0; i < pairs; ++i) {
      const int64_t first = row * d + (op == Op::rope ? i : 2 * i),
                    second = row * d + (op == Op::rope ? i + pairs : 2 * i + 1);
      const Real u = x.a[first], v = x.a[second];
      const Real co = cos.a[(b * t + position) * pairs + i],
                 si = sin.a[(b * t + position) * pairs + i];
      y[first] = u * co - v * si, y[second] = v * co + u * si;
      for (const int64_t at : {first, second}) {
        bound.slack[static_cast<size_t>(at)] =
            step(dtype) * 4 * (std::fabs(u) + std::fabs(v)) * (std::fabs(co) + std::fabs(si));
      }
    }
  }
  c.expect(op == Op::rope ? rope(x.x, cos.x, sin.x) : rope_interleaved(x.x, cos.x, sin.x), y,
           bound);
}

void scan_case(Case& c, Op op) {
  const bool sums = op == Op::cumsum;
  const DType dtype = c.dtype(dtypes::kAny);
  const Operand x = c.operand(dtype, c.shape(1, 8));
  const int dim = static_cast<int>(c.below(x.a.shape.rank()));
  c.note(fmt::format("dim {}", dim));
  Array y(dtype == DType::boolean ? DType::i64 : dtype, x.a.shape);
  Bound bound{is_float(dtype) ? 1.0L : 0, std::vector<Real>(y.v.size())};
  for_each_line(y.shape, dim, [&](std::span<const int64_t> at) {
    Real total = sums ? 0 : 1, magnitude = 0;
    for (size_t j = 0; j < at.size(); ++j) {
      const Real next = x.a[at[j]];
      if (is_float(dtype)) {
        total = sums ? total + next : total * next;
      } else {
        const Int before = static_cast<Int>(total), whole = static_cast<Int>(next);
        total = wrap(y.dtype, sums ? before + whole : before * whole);
      }
      magnitude = sums ? magnitude + std::fabs(next) : std::fabs(total);
      y[at[j]] = total;
      if (is_float(dtype))
        bound.slack[static_cast<size_t>(at[j])] =
            (sums ? step(dtype) : 0x1p-53L) * static_cast<Real>(j + 8) * magnitude;
    }
  });
  c.expect(sums ? cumsum(x.x, dim) : cumprod(x.x, dim), y, bound);
}

void sort_case(Case& c, Op op) {
  const DType dtype = c.dtype(dtypes::kAny);
  const Operand x = c.operand(dtype, c.shape(1, 8), c.pick({Values::ordinary, Values::special}));
  const int dim = static_cast<int>(c.below(x.a.shape.rank()));
  const bool down = c.one_in(2);
  const int64_t n = x.a.shape[dim], k = op == Op::topk ? c.below(n + 1) : n;
  c.note(fmt::format("dim {}{} k {}", dim, down ? " descending" : "", k));
  Array values(dtype, x.a.shape.with(dim, k)), places(DType::u32, x.a.shape.with(dim, k));
  std::vector<std::vector<int64_t>> to;
  for_each_line(values.shape, dim,
                [&](std::span<const int64_t> at) { to.emplace_back(at.begin(), at.end()); });
  size_t line = 0;
  for_each_line(x.a.shape, dim, [&](std::span<const int64_t> at) {
    std::vector<size_t> order(at.size());
    std::iota(order.begin(), order.end(), size_t{0});
    std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) {
      const Real p = x.a[at[a]], q = x.a[at[b]];
      if (std::isnan(p) || std::isnan(q)) return !std::isnan(p) && std::isnan(q);
      return down ? below(q, p) : below(p, q);
    });
    for (int64_t j = 0; j < k; ++j) {
      const size_t from = order[static_cast<size_t>(j)];
      values[to[line][static_cast<size_t>(j)]] = x.a[at[from]];
      places[to[line][static_cast<size_t>(j)]] = static_cast<Real>(from);
    }
    ++line;
  });
  if (op == Op::argsort) return c.expect(argsort(x.x, dim, down), places);
  const Sorted got = op == Op::sort ? sort(x.x, dim, down) : topk(x.x, k, dim, down);
  c.expect(got.values, values);
  c.expect(got.indices, places);
}

}  // namespace wick::soak
