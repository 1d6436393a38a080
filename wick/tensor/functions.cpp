// Functions composed of ops. Narrow floats compute in a wider dtype and are rounded once.
#include "wick/tensor/functions.h"

#include <fmt/format.h>

#include <cmath>
#include <numbers>

#include "wick/base/error.h"
#include "wick/tensor/checks.h"
#include "wick/tensor/gradients.h"
#include "wick/tensor/random.h"

namespace wick {
namespace {

using tape::plus;
using tape::times;

void check_float(const char* op, const Tensor& x) {
  if (!x.defined()) throw Error(op, "undefined tensor");
  if (!is_float(x.dtype())) {
    throw Error(ErrorKind::type, op, "unsupported dtype", x.str(), "takes floats");
  }
}

/// Computes f(x) in f32 (f64 for f64) and rounds to x's dtype.
template <class F>
Tensor in_wide(const char* op, const Tensor& x, const F& f) {
  check_float(op, x);
  return f(x.to(tape::wide(x.dtype()))).to(x.dtype());
}
/// Computes f(x) in f64 for f32 and f64, in f32 for narrow floats, and rounds to x's dtype.
template <class F>
Tensor in_double(const char* op, const Tensor& x, const F& f) {
  check_float(op, x);
  const bool narrow = x.dtype() != DType::f32 && x.dtype() != DType::f64;
  return f(x.to(narrow ? DType::f32 : DType::f64)).to(x.dtype());
}

void check_rank(const char* op, const Tensor& x, int rank) {
  if (!x.defined()) throw Error(op, "undefined tensor");
  if (x.rank() != rank) throw Error(op, "wrong rank", x.str(), fmt::format("need {}", rank));
}

Tensor number(double value, const Tensor& like) {
  return Tensor::full({}, value, like.dtype(), like.device());
}

}  // namespace

Tensor log2(const Tensor& x) {
  return in_double("log2", x, [](const Tensor& t) { return times(log(t), std::numbers::log2e); });
}
Tensor log10(const Tensor& x) {
  return in_double("log10", x, [](const Tensor& t) { return times(log(t), std::numbers::log10e); });
}
Tensor exp2(const Tensor& x) {
  return in_double("exp2", x, [](const Tensor& t) { return exp(times(t, std::numbers::ln2)); });
}
Tensor tan(const Tensor& x) {
  return in_double("tan", x, [](const Tensor& t) { return sin(t) / cos(t); });
}
/// Computes (u + u / (u + 1)) / 2 with u = e^|x| − 1, which is accurate for small x.
Tensor sinh(const Tensor& x) {
  return in_double("sinh", x, [](const Tensor& t) {
    const Tensor u = expm1(abs(t));
    // u / (u + 1) tends to 1 for large u, but is NaN for u = infinity.
    const Tensor rest = where(isinf(u), number(1, u), u / plus(u, 1));
    return times(u + rest, 0.5) * sign(t);
  });
}
Tensor cosh(const Tensor& x) {
  return in_double("cosh", x, [](const Tensor& t) {
    const Tensor e = exp(abs(t));
    return times(e, 0.5) + times(recip(e), 0.5);
  });
}

Tensor trunc(const Tensor& x) {
  check_float("trunc", x);
  return where(x < 0.0, ceil(x), floor(x));
}
Tensor isfinite(const Tensor& x) {
  check_float("isfinite", x);
  return logical_not(logical_or(isnan(x), isinf(x)));
}

Tensor round_to(const Tensor& x, int64_t decimals) {
  constexpr int64_t kMost = 300;
  if (decimals < -kMost || decimals > kMost) {
    throw Error("round_to", "decimals out of range", fmt::format("{}", decimals),
                "need -300 to 300");
  }
  return in_double("round_to", x, [=](const Tensor& t) {
    const Tensor power = number(std::pow(10.0, std::abs(static_cast<double>(decimals))), t);
    const Tensor scaled = decimals < 0 ? t / power : t * power;
    const Tensor rounded = decimals < 0 ? round(scaled) * power : round(scaled) / power;
    // Numbers of 2^52 and above have no fraction, so they are returned unchanged.
    return where(abs(scaled.detach()) < 0x1p52, rounded, t.detach());
  });
}

Tensor leaky_relu(const Tensor& x, double negative_slope) {
  check_float("leaky_relu", x);
  return where(x > 0.0, x, times(x, negative_slope));
}
Tensor softplus(const Tensor& x, double beta, double threshold) {
  return in_wide("softplus", x, [=](const Tensor& t) {
    const Tensor scaled = times(t, beta);
    const Tensor is_linear = scaled > threshold;
    // exp would overflow in the branch that isn't selected, and its gradient would be NaN.
    const Tensor safe = where(is_linear, number(0, t), scaled);
    return where(is_linear, t, times(log1p(exp(safe)), 1 / beta));
  });
}
Tensor mish(const Tensor& x) {
  return in_wide("mish", x, [](const Tensor& t) { return t * tanh(softplus(t)); });
}
Tensor selu(const Tensor& x) {
  constexpr double kAlpha = 1.6732632423543772848170429916717;
  constexpr double kScale = 1.0507009873554804934193349852946;
  return in_wide("selu", x, [](const Tensor& t) { return times(elu(t, kAlpha), kScale); });
}
Tensor hardsigmoid(const Tensor& x) {
  return in_wide("hardsigmoid", x,
                 [](const Tensor& t) { return clamp(affine(t, 1.0 / 6, 0.5), 0, 1); });
}
Tensor hardswish(const Tensor& x) {
  return in_wide("hardswish", x, [](const Tensor& t) { return t * hardsigmoid(t); });
}

Tensor std_dev(const Tensor& x, std::span<const int> dims, bool keepdim, int64_t correction) {
  return in_wide("std", x,
                 [&](const Tensor& t) { return sqrt(var(t, dims, keepdim, correction)); });
}

Tensor norm(const Tensor& x, double p, std::span<const int> dims, bool keepdim) {
  if (!(p >= 0)) throw Error("norm", "a negative p", fmt::format("{}", p), "need 0 or more");
  return in_wide("norm", x, [&](const Tensor& t) {
    if (p == 2) return sqrt(sum(sqr(t), dims, keepdim));
    if (p == 1) return sum(abs(t), dims, keepdim);
    if (p == 0) return sum(ne(t, number(0, t)).to(t.dtype()), dims, keepdim);
    if (std::isinf(p)) return max(abs(t), dims, keepdim);
    return powf(sum(powf(abs(t), p), dims, keepdim), 1 / p);
  });
}

Sorted median(const Tensor& x, int dim, bool keepdim) {
  check_operand(Op::sort, x, "median");
  const int d = resolve_dim("median", dim, x.rank());
  const int64_t size = x.size(d);
  if (size == 0) throw Error("median", "no elements", x.str());
  const Sorted order = sort(x, d);
  const int64_t middle = (size - 1) / 2;
  Sorted found = {order.values.narrow(d, middle, 1), order.indices.narrow(d, middle, 1)};
  if (is_float(x.dtype())) {  // NaN comes last
    const Tensor last = order.values.narrow(d, size - 1, 1);
    const Tensor is_nan = isnan(last.detach());
    found.values = where(is_nan, last, found.values);
    found.indices = where(is_nan, order.indices.narrow(d, size - 1, 1), found.indices);
  }
  if (keepdim) return found;
  return {found.values.squeeze(d), found.indices.squeeze(d)};
}
Tensor median(const Tensor& x) {
  check_operand(Op::sort, x, "median");
  return median(x.reshape({x.elems()}), 0).values;
}

Tensor mm(const Tensor& a, const Tensor& b) {
  check_rank("mm", a, 2);
  check_rank("mm", b, 2);
  return matmul(a, b);
}
Tensor bmm(const Tensor& a, const Tensor& b) {
  check_rank("bmm", a, 3);
  check_rank("bmm", b, 3);
  if (a.size(0) != b.size(0)) {
    throw Error("bmm", "batches differ", fmt::format("lhs {}, rhs {}", a.str(), b.str()));
  }
  return matmul(a, b);
}
Tensor mv(const Tensor& a, const Tensor& b) {
  check_rank("mv", a, 2);
  check_rank("mv", b, 1);
  return matmul(a, b.unsqueeze(1)).squeeze(1);
}
Tensor dot(const Tensor& a, const Tensor& b) {
  check_rank("dot", a, 1);
  check_rank("dot", b, 1);
  return matmul(a.unsqueeze(0), b.unsqueeze(1)).reshape({});
}
Tensor outer(const Tensor& a, const Tensor& b) {
  check_rank("outer", a, 1);
  check_rank("outer", b, 1);
  return mul(a.unsqueeze(1), b.unsqueeze(0));
}

std::vector<Tensor> unbind(const Tensor& x, int dim) {
  const int d = resolve_dim("unbind", dim, x.rank());
  std::vector<Tensor> parts;
  for (int64_t i = 0; i < x.size(d); ++i) parts.push_back(x.narrow(d, i, 1).squeeze(d));
  return parts;
}
Tensor repeat_interleave(const Tensor& x, int64_t count, int dim) {
  const int d = resolve_dim("repeat_interleave", dim, x.rank());
  if (count < 0) throw Error("repeat_interleave", "a negative count", fmt::format("{}", count));
  if (x.rank() == Shape::kMaxRank) {  // no dim can be added
    const Tensor ids = Tensor::arange(int64_t{0}, x.size(d), int64_t{1}, DType::i64, x.device());
    return index_select(x, repeat_interleave(ids, count, 0), d);
  }
  const Tensor split = x.unsqueeze(d + 1);
  return split.broadcast_to(split.shape().with(d + 1, count)).flatten(d, d + 1);
}
Tensor repeat_interleave(const Tensor& x, const Tensor& counts, int dim) {
  const char* const op = "repeat_interleave";
  if (!x.defined()) throw Error(op, "undefined tensor");
  counts.require_values(op);
  const int d = resolve_dim(op, dim, x.rank());
  if (!is_integer(counts.dtype())) {
    throw Error(ErrorKind::type, op, "counts of another dtype", counts.str(), "need integers");
  }
  if (counts.elems() != 1 && counts.shape() != Shape{x.size(d)}) {
    throw Error(op, "counts of another shape", fmt::format("{}, counts {}", x.str(), counts.str()),
                fmt::format("need [{}] or one number", x.size(d)));
  }
  const std::vector<int64_t> times = counts.to(DType::i64).to_vector<int64_t>();
  // The ids of all results must fit into the host's memory.
  const auto most =
      static_cast<int64_t>(backend(Device::cpu()).memory_info().total_bytes / sizeof(int64_t));
  int64_t total = 0;
  for (const int64_t count : times) {
    if (count < 0) throw Error(op, "a negative count", fmt::format("{}", count));
    if (__builtin_add_overflow(total, count, &total) || total > most) {
      throw Error(ErrorKind::memory, op, "out of memory", x.str(), "the counts are too large");
    }
  }
  if (times.size() == 1) return repeat_interleave(x, times[0], d);
  std::vector<int64_t> ids;
  for (size_t i = 0; i < times.size(); ++i) {
    ids.insert(ids.end(), static_cast<size_t>(times[i]), static_cast<int64_t>(i));
  }
  const Shape all{static_cast<int64_t>(ids.size())};
  return index_select(x, Tensor::from(ids, all, x.device()), d);
}
std::vector<Tensor> meshgrid(std::span<const Tensor> vectors, bool xy) {
  std::vector<int64_t> sizes;
  for (const Tensor& v : vectors) {
    if (!v.defined() || v.rank() > 1) {
      throw Error("meshgrid", "not a vector", v.str(), "need a rank of 0 or 1");
    }
    sizes.push_back(v.elems());
  }
  const bool exchange = xy && vectors.size() > 1;
  std::vector<Tensor> grids;
  for (size_t i = 0; i < vectors.size(); ++i) {
    std::vector<int64_t> alone(vectors.size(), 1);
    alone[i] = sizes[i];
    const Tensor grid = vectors[i].reshape(Shape(alone)).broadcast_to(Shape(sizes));
    grids.push_back(exchange ? grid.transpose(0, 1) : grid);
  }
  return grids;
}

bool equal(const Tensor& a, const Tensor& b) {
  check_device("equal", a, b);
  if (a.shape() != b.shape() || a.dtype() != b.dtype()) return false;
  a.require_values("equal");
  b.require_values("equal");
  return all(eq(a, b)).item<bool>();
}

bool allclose(const Tensor& a, const Tensor& b, double rtol, double atol, bool equal_nan) {
  check_same(Op::sub, a, b, "allclose");
  a.require_values("allclose");
  b.require_values("allclose");
  const bool as_they_are = is_float(a.dtype()) && a.dtype() != DType::f64;
  const DType dtype = as_they_are ? DType::f32 : DType::f64;
  const Tensor x = a.to(dtype), y = b.to(dtype);
  Tensor close = logical_or(eq(x, y), le(abs(x - y), affine(abs(y), rtol, atol)));
  // An infinity must only be close to itself, although its distance to a number is within rtol ·
  // inf.
  close = logical_or(eq(x, y), logical_and(close, isfinite(y)));
  if (equal_nan) close = logical_or(close, logical_and(isnan(x), isnan(y)));
  return all(close).item<bool>();
}

Tensor nonzero(const Tensor& x) {
  x.require_values("nonzero");
  const std::vector<uint8_t> set = x.to(DType::boolean).to_vector<uint8_t>();
  std::vector<int64_t> places;
  for (size_t i = 0; i < set.size(); ++i) {
    if (set[i] == 0) continue;
    auto left = static_cast<int64_t>(i);
    const size_t row = places.size();
    places.resize(row + static_cast<size_t>(x.rank()));
    for (int d = x.rank() - 1; d >= 0; --d) {
      places[row + static_cast<size_t>(d)] = left % x.size(d);
      left /= x.size(d);
    }
  }
  int64_t count = 0;
  for (const uint8_t s : set) count += s;
  return Tensor::from(places, {count, x.rank()}, x.device());
}

Tensor masked_select(const Tensor& x, const Tensor& mask) {
  check_device("masked_select", x, mask);
  mask.require_values("masked_select");
  const Shape shape = broadcast_shapes("masked_select", x.shape(), mask.shape());
  const std::vector<uint8_t> set = mask.broadcast_to(shape).to(DType::boolean).to_vector<uint8_t>();
  std::vector<int64_t> places;
  for (size_t i = 0; i < set.size(); ++i) {
    if (set[i] != 0) places.push_back(static_cast<int64_t>(i));
  }
  const Shape count{static_cast<int64_t>(places.size())};
  return index_select(x.broadcast_to(shape).reshape({shape.elems()}),
                      Tensor::from(places, count, x.device()), 0);
}

namespace {

/// Marks the elements of a sorted tensor that differ from their predecessor: bool [n]. The first
/// element is marked.
Tensor begins_run(const Tensor& ordered) {
  const int64_t n = ordered.elems();
  const Tensor first = Tensor::ones({std::min<int64_t>(n, 1)}, DType::boolean, ordered.device());
  if (n < 2) return first;
  const Tensor parts[] = {first, ne(ordered.narrow(0, 1, n - 1), ordered.narrow(0, 0, n - 1))};
  return cat(parts, 0);
}

}  // namespace

Tensor unique(const Tensor& x) {
  check_operand(Op::sort, x, "unique");
  x.require_values("unique");
  const Tensor ordered = sort(x.reshape({x.elems()}), 0).values;
  return ordered.elems() < 2 ? ordered : masked_select(ordered, begins_run(ordered));
}

Unique unique_all(const Tensor& x) {
  check_operand(Op::sort, x, "unique_all");
  x.require_values("unique_all");
  const Sorted order = sort(x.reshape({x.elems()}), 0);
  const Tensor begins = begins_run(order.values);
  const Tensor values = masked_select(order.values, begins);
  const Tensor run = affine(cumsum(begins, 0), 1, -1);  // the index of each sorted element's value
  const Tensor none = Tensor::zeros({x.elems()}, DType::i64, x.device());
  const Tensor inverse = scatter(none, order.indices, run, 0).reshape(x.shape());
  const Tensor ones = Tensor::ones({x.elems()}, DType::i64, x.device());
  const Tensor counts =
      index_add(Tensor::zeros({values.elems()}, DType::i64, x.device()), run, ones, 0);
  return {values, inverse, counts};
}

Tensor linspace(double start, double end, int64_t count, DType dtype, Device device) {
  if (count < 0) throw Error("linspace", "a negative count", fmt::format("{}", count));
  if (!is_float(dtype)) {
    throw Error(ErrorKind::type, "linspace", "unsupported dtype", name(dtype), "takes floats");
  }
  const double step = count > 1 ? (end - start) / static_cast<double>(count - 1) : 0;
  Tensor x = Tensor::arange(start, count, step, DType::f64, device);
  // Sets the last element to `end` exactly, whatever the steps round to.
  if (count > 1) const_set(x, end, x.layout().narrow(0, count - 1, 1));
  return x.to(dtype);
}

Tensor randint(int64_t low, int64_t high, const Shape& shape, DType dtype, Device device) {
  if (low >= high || high - low > (INT64_C(1) << 32)) {
    throw Error("randint", "bounds out of range", fmt::format("low {}, high {}", low, high),
                "need low < high, at most 2^32 apart");
  }
  const auto range = static_cast<double>(high - low);
  // Clamps, because the f64 product of range and a number below 1 may round up to range.
  const Tensor places =
      clamp(floor(times(uniform(shape, 0, 1, DType::f64, device), range)), 0.0, range - 1);
  return affine(places.to(DType::i64), 1, low).to(dtype);
}

Tensor randperm(int64_t n, Device device) {
  if (n < 0) throw Error("randperm", "a negative count", fmt::format("{}", n));
  return argsort(uniform({n}, 0, 1, DType::f64, device), 0).to(DType::i64);
}

}  // namespace wick
