// Gradients of softmax and norms: bit-equal to the specified order, and close to the exact value.

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <functional>

#include "tests/parity/grid.h"
#include "tests/parity/ordered.h"
#include "wick/math/scalar.h"
#include "wick/op/op.h"

namespace wick::parity {
namespace {

constexpr float kEps = 1e-5f;

DType wide(DType dtype) { return dtype == DType::f64 ? DType::f64 : DType::f32; }

struct Case {
  Place place;
  Shape shape;
};

/// Every layout with small shapes, then lengths around the thresholds of the row sum and of the
/// rows that GPUs hold in registers.
std::vector<Case> line_cases() {
  std::vector<Case> list;
  for (const Geometry& g : geometries()) {
    if (g.shape.rank() > 0) list.push_back({g.place, g.shape});
  }
  list.push_back({Place::scattered, {4, 3, 130}});
  for (int64_t n :
       {1,   2,    4,    5,    31,   32,   64,   124,  128,  132,  256,   300,   512,
        516, 1024, 1028, 2048, 2052, 4092, 4096, 4100, 8191, 8192, 12345, 16384, 16388}) {
    list.push_back({Place::contiguous, {3, n}});
  }
  for (int64_t n : {129, 4097, 12345}) list.push_back({Place::stepped, {2, n}});
  list.push_back({Place::contiguous, {1, 32768}});
  list.push_back({Place::contiguous, {2, 33000}});
  list.push_back({Place::sliced, {2, 70001}});
  list.push_back({Place::contiguous, {1500, 8}});
  list.push_back({Place::contiguous, {130, 260}});
  return list;
}

/// [b, c, ..] in every layout, with sizes near the limits of chunks and channels.
std::vector<Case> channel_cases() {
  return {
      {Place::contiguous, {3, 6, 70}},     {Place::transposed, {3, 6, 5, 7}},
      {Place::sliced, {2, 6, 33}},         {Place::stepped, {4, 6, 3, 11}},
      {Place::scattered, {2, 6, 40}},      {Place::broadcast, {3, 6, 20}},
      {Place::contiguous, {5, 6}},         {Place::transposed, {7, 12}},
      {Place::sliced, {0, 6, 4}},          {Place::sliced, {2, 6, 0}},
      {Place::contiguous, {2, 6, 64, 65}}, {Place::contiguous, {3, 1032}},
      {Place::contiguous, {2, 6, 24, 8}},  {Place::contiguous, {1, 12, 2800}},
      {Place::contiguous, {2, 708, 3}},    {Place::scattered, {2, 6, 3, 1, 2, 2, 1, 3}},
      {Place::transposed, {2, 6, 40, 30}}, {Place::sliced, {1, 3, 20011}},
  };
}

/// Special values of long rows test nothing new.
bool is_tested(Values values, const Case& c) {
  return values != Values::special || c.shape.elems() <= 20000;
}

/// Half a unit of the result's dtype for the final rounding, and some roundings of the steps, whose
/// operands have the magnitude `scale`.
long double tolerance(DType dtype, long double exact, long double scale) {
  return 0.51L * ulp(dtype, exact) + scale * (dtype == DType::f64 ? 0x1p-46L : 0x1p-17L);
}

struct Expected {
  std::vector<uint64_t> bits;
  std::vector<long double> exact, off;

  template <class A>
  void add(DType dtype, A y, long double t, long double scale) {
    bits.push_back(encode(dtype, y));
    if (dtype == DType::f8e4m3) {  // saturates
      const long double most = format_of(dtype).max;
      t = std::clamp(t, -most, most);
    }
    exact.push_back(t);
    off.push_back(tolerance(dtype, t, scale));
  }
};

void expect(std::string_view what, const TestTensor& out, const Expected& expected, bool near) {
  expect_bits(what, out, expected.bits);
  if (near) expect_within(what, out, expected.exact, expected.off);
}

template <class A>
Expected softmax_grad_of(const TestTensor& y, const TestTensor& grad, int dim, bool log) {
  using E = ExactOf<A>;
  const std::vector<A> ys = elements<A>(y), gs = elements<A>(grad);
  const Around around(y.shape(), dim);
  Expected result;
  std::vector<A> values(ys.size());
  std::vector<std::array<E, 2>> exact(ys.size());
  for (int64_t o = 0; o < around.outer; ++o) {
    for (int64_t j = 0; j < around.inner; ++j) {
      const auto at = [&](int64_t i) {
        return static_cast<size_t>((o * around.n + i) * around.inner + j);
      };
      std::vector<A> terms;
      E true_sum = 0, size = 0;
      for (int64_t i = 0; i < around.n; ++i) {
        const A g = gs[at(i)], v = ys[at(i)];
        terms.push_back(log ? g : g * v);
        const E term = log ? static_cast<E>(g) : static_cast<E>(g) * static_cast<E>(v);
        true_sum += term;
        size += std::fabs(term);
      }
      const A sum = ordered_sum<A>(terms);
      for (int64_t i = 0; i < around.n; ++i) {
        const A g = gs[at(i)], v = ys[at(i)];
        values[at(i)] = log ? g - math::exp(v) * sum : v * (g - sum);
        const auto gl = static_cast<E>(g), vl = static_cast<E>(v);
        const E by = log ? std::exp(vl) : std::fabs(vl);
        exact[at(i)] = {log ? gl - by * true_sum : vl * (gl - true_sum),
                        (log ? 1 : by) * std::fabs(gl) + by * size * (1 + std::fabs(vl))};
      }
    }
  }
  for (size_t i = 0; i < values.size(); ++i) {
    result.add(y.dtype(), values[i], exact[i][0], exact[i][1]);
  }
  return result;
}

void check_softmax_grad(DType dtype, bool log) {
  Random random(61);
  for (const Case& c : line_cases()) {
    if (!here(c.place, c.shape)) continue;
    for (int dim : {c.shape.rank() - 1, 0, c.shape.rank() / 2}) {
      for (Values values : {Values::normal, Values::special}) {
        if (!is_tested(values, c)) continue;
        if (dim != c.shape.rank() - 1 && c.shape.elems() > 200000) continue;
        TestTensor y(dtype, c.place, c.shape, 1), grad(dtype, c.place, c.shape, 2),
            out(dtype, c.place, c.shape, 3, true);
        if (values == Values::special) {
          y.fill(values, random);
        } else {
          y.fill_with([&](int64_t) {
            const auto u = static_cast<long double>(random.uniform());
            return log ? -4 * u - std::log(static_cast<long double>(c.shape[dim])) : u;
          });
        }
        grad.fill(values, random);
        const std::string what =
            fmt::format("{}softmax_grad.{}.{}{} along {} {}", log ? "log_" : "", name(dtype),
                        name(c.place), c.shape.str(), dim, name(values));
        const TestTensor* const inputs[] = {&y, &grad};
        if (!run_everywhere(what, out, inputs, [&](Backend& b, const View& o, auto in) {
              b.softmax_grad(o, in[0], in[1], dim, log);
            })) {
          return;
        }
        with_compute_type(dtype, [&](auto zero) {
          expect(what, out, softmax_grad_of<decltype(zero)>(y, grad, dim, log),
                 values == Values::normal);
        });
        if (failed()) return;
      }
    }
  }
}

/// The expected gradient and statistics of norm_grad.
struct ExpectedNorm {
  Expected x;
  std::vector<uint64_t> means, scales;
};

/// The index of the weight of an element; elements are counted in row-major order.
using WeightOf = std::function<size_t(size_t)>;

template <class A>
ExpectedNorm norm_grad_of(const TestTensor& x, const TestTensor& grad, const TestTensor* weight,
                          bool centred, size_t n, int64_t copies, const WeightOf& weight_of) {
  using E = ExactOf<A>;
  const std::vector<A> xs = elements<A>(x), gs = elements<A>(grad);
  const std::vector<A> ws = weight == nullptr ? std::vector<A>() : elements<A>(*weight);
  const DType compute = wide(x.dtype());
  ExpectedNorm result;
  for (size_t first = 0; n != 0 && first < xs.size(); first += n) {
    const std::span row(xs.data() + first, n);
    std::vector<A> p;
    for (size_t i = 0; i < n; ++i) {
      const A g = gs[first + i];
      p.push_back(ws.empty() ? g : g * ws[weight_of(first + i)]);
    }
    const A count = static_cast<A>(n);
    const A m = centred ? ordered_sum<A>(row) / count : A{0};
    std::vector<A> squares, products;
    for (A v : row) squares.push_back((v - m) * (v - m));
    const A r = A{1} / std::sqrt(ordered_sum<A>(squares) / count + static_cast<A>(kEps));
    for (size_t i = 0; i < n; ++i) products.push_back(p[i] * (centred ? (row[i] - m) * r : row[i]));
    const A m1 = ordered_sum<A>(p) / count, m2 = ordered_sum<A>(products) / count;

    E mean = 0, variance = 0, of_p = 0, of_ph = 0, size = 0;
    const auto exact = [](A a) { return static_cast<E>(a); };
    for (A v : row) mean += centred ? exact(v) / n : 0;
    for (A v : row) variance += (exact(v) - mean) * (exact(v) - mean) / n;
    const E scale = 1 / std::sqrt(variance + static_cast<E>(kEps));
    for (size_t i = 0; i < n; ++i) {
      const E h = (exact(row[i]) - mean) * scale;
      of_p += centred ? exact(p[i]) / n : 0;
      of_ph += exact(p[i]) * h / n;
      size += std::fabs(exact(p[i])) * (1 + std::fabs(h)) / n;
    }
    for (size_t i = 0; i < n; ++i) {
      const A y = centred ? r * ((p[i] - m1) - ((row[i] - m) * r) * m2)
                          : r * (p[i] - (row[i] * (r * r)) * m2);
      const E h = (exact(row[i]) - mean) * scale;
      const E t = scale * ((exact(p[i]) - of_p) - h * of_ph);
      result.x.add(
          x.dtype(), y, t,
          scale * (1 + scale * std::fabs(mean)) * (std::fabs(exact(p[i])) + size * (1 + h * h)));
    }
    for (int64_t k = 0; k < copies; ++k) {
      result.means.push_back(encode(compute, m));
      result.scales.push_back(encode(compute, r));
    }
  }
  return result;
}

/// weighted: whether there is a weight, of `weight_dtype`.
void check_norm_grad(const std::vector<Case>& cases, DType dtype, DType weight_dtype, bool weighted,
                     bool grouped, bool centred) {
  Random random(62);
  for (const Case& c : cases) {
    if (!here(c.place, c.shape)) continue;
    if (!weighted && c.shape.elems() > 20000) continue;
    const int64_t channels = c.shape[grouped ? 1 : c.shape.rank() - 1];
    std::vector<int64_t> all_groups = {0};
    if (grouped) all_groups = {1, 3, channels};
    for (const int64_t groups : all_groups) {
      if (groups != 0 && channels % groups != 0) continue;
      for (Values values : {Values::normal, Values::special}) {
        if (!is_tested(values, c)) continue;
        TestTensor x(dtype, c.place, c.shape, 1), grad(dtype, c.place, c.shape, 2),
            out(dtype, c.place, c.shape, 3, true), weight(weight_dtype, c.place, {channels}, 4);
        x.fill(values, random);
        grad.fill(values, random);
        weight.fill(Values::normal, random);
        std::vector<int64_t> sizes = {2};
        for (int d = 0; d < c.shape.rank(); ++d) {
          if (grouped ? d < 2 : d + 1 < c.shape.rank()) sizes.push_back(c.shape[d]);
        }
        TestTensor statistics(wide(dtype), Place::contiguous, Shape(sizes), 5, true);
        const std::string what = fmt::format(
            "norm_grad.{}.{}{} groups {}{}{} {}", name(dtype), name(c.place), c.shape.str(), groups,
            centred ? "" : " not centred",
            weighted ? fmt::format(" weight {}", name(weight_dtype)) : "", name(values));
        const NormKind kind{groups, centred, kEps};
        const TestTensor* const inputs[] = {&x, &grad, &weight};
        const auto weight_of = [&](auto in) { return weighted ? in[2] : ConstView{}; };
        // Each call gets memory for the result that it doesn't test.
        const auto with_memory = [](Backend& b, int64_t bytes, const auto& call) {
          const auto size = static_cast<size_t>(std::max<int64_t>(bytes, 8));
          void* const memory = b.alloc(size);
          call(memory);
          b.free(memory, size);
        };
        if (!run_everywhere(what, out, inputs, [&](Backend& b, const View& o, auto in) {
              const Layout layout = statistics.layout();
              with_memory(b, bytes_of(statistics.dtype(), layout.elems()), [&](void* memory) {
                b.norm_grad(o, {memory, statistics.dtype(), layout}, in[0], in[1], weight_of(in),
                            kind);
              });
            })) {
          return;
        }
        if (c.shape.elems() == 0) continue;
        if (!run_everywhere(what + " statistics", statistics, inputs,
                            [&](Backend& b, const View& o, auto in) {
                              with_memory(b, bytes_of(dtype, c.shape.elems()), [&](void* memory) {
                                b.norm_grad({memory, dtype, Layout::contiguous(c.shape)}, o, in[0],
                                            in[1], weight_of(in), kind);
                              });
                            })) {
          return;
        }
        const int64_t copies = grouped ? channels / groups : 1;
        const auto pixels =
            static_cast<size_t>(grouped ? c.shape.elems() / (c.shape[0] * channels) : 1);
        const size_t n =
            grouped ? pixels * static_cast<size_t>(copies) : static_cast<size_t>(channels);
        with_compute_type(dtype, [&](auto zero) {
          const ExpectedNorm expected = norm_grad_of<decltype(zero)>(
              x, grad, weighted ? &weight : nullptr, centred, n, copies,
              [&](size_t i) { return i / pixels % static_cast<size_t>(channels); });
          const bool near = values == Values::normal && n > 8 && c.place != Place::scalar &&
                            c.place != Place::broadcast;
          expect(what, out, expected.x, near);
          std::vector<uint64_t> numbers = expected.means;
          numbers.insert(numbers.end(), expected.scales.begin(), expected.scales.end());
          expect_bits(what + " statistics", statistics, numbers);
        });
        if (failed()) return;
      }
    }
  }
}

/// Bit masks of the dims that norm_sums reduces, and of those along which mean and scale vary.
struct Sums {
  uint32_t reduced, by;
};

/// Which dims are reduced, and along which mean and scale vary: the gradients of weights of rows,
/// of channels, and others.
std::vector<Sums> sums_of(const Shape& shape) {
  const uint32_t all = (1u << shape.rank()) - 1;
  if (shape.rank() == 0) return {{0, 0}};
  const uint32_t last = 1u << (shape.rank() - 1);
  std::vector<Sums> list = {{all, all}, {last, all & ~last}, {1, all}};
  if (shape.rank() > 1) {
    list.push_back({all & ~last, all & ~last});
    list.push_back({all & ~2u, 2});
    list.push_back({all & ~2u, 3});
  }
  return list;
}

template <class A>
Expected norm_sums_of(const TestTensor& x, const TestTensor& grad, const TestTensor* mean,
                      const TestTensor* scale, uint32_t reduced) {
  const std::vector<A> xs = elements<A>(x), gs = elements<A>(grad);
  const Shape& shape = x.shape();
  const auto spread = [&](const TestTensor& t, const std::vector<int64_t>& index) {
    int64_t at = 0;
    for (int d = 0; d < shape.rank(); ++d) {
      at = at * t.shape()[d] + (t.shape()[d] == 1 ? 0 : index[static_cast<size_t>(d)]);
    }
    return static_cast<size_t>(at);
  };
  const std::vector<A> ms = mean == nullptr ? std::vector<A>() : elements<A>(*mean),
                       rs = elements<A>(*scale);
  int64_t results = 1;
  for (int d = 0; d < shape.rank(); ++d) results *= (reduced >> d & 1) != 0 ? 1 : shape[d];
  std::vector<std::vector<A>> terms(static_cast<size_t>(results)), sums(terms.size());
  std::vector<int64_t> index(static_cast<size_t>(shape.rank()), 0);
  for (size_t i = 0; i < xs.size(); ++i) {
    size_t key = 0;
    for (int d = 0; d < shape.rank(); ++d) {
      if ((reduced >> d & 1) == 0) {
        key = key * static_cast<size_t>(shape[d]) +
              static_cast<size_t>(index[static_cast<size_t>(d)]);
      }
    }
    const A r = rs[spread(*scale, index)];
    terms[key].push_back(mean == nullptr ? (gs[i] * xs[i]) * r
                                         : gs[i] * ((xs[i] - ms[spread(*mean, index)]) * r));
    sums[key].push_back(gs[i]);
    for (int d = shape.rank() - 1; d >= 0; --d) {
      if (++index[static_cast<size_t>(d)] < shape[d]) break;
      index[static_cast<size_t>(d)] = 0;
    }
  }
  Expected result;
  const DType dtype = wide(x.dtype());
  for (const auto* both : {&terms, &sums}) {
    for (const std::vector<A>& of_result : *both) {
      long double sum = 0, size = 0;
      for (A a : of_result) {
        sum += static_cast<long double>(a);
        size += std::fabs(static_cast<long double>(a));
      }
      result.add(dtype, ordered_sum<A>(of_result), sum, size);
    }
  }
  return result;
}

std::vector<Case> sums_cases() {
  std::vector<Case> list;
  for (const Geometry& g : geometries()) list.push_back({g.place, g.shape});
  for (const Shape& shape :
       {Shape{3, 6, 70}, Shape{2, 6, 64, 65}, Shape{130, 40}, Shape{600, 72}, Shape{4100, 12},
        Shape{9000, 5}, Shape{2, 3, 9000}, Shape{16, 4, 300, 4}, Shape{5, 260}, Shape{1, 40000}}) {
    list.push_back({Place::contiguous, shape});
  }
  list.push_back({Place::transposed, {300, 40}});
  list.push_back({Place::stepped, {4, 6, 31, 11}});
  list.push_back({Place::scattered, {5, 6, 40}});
  list.push_back({Place::sliced, {4200, 24}});
  return list;
}

void check_norm_sums(DType dtype, bool has_mean) {
  Random random(63);
  for (const Case& c : sums_cases()) {
    if (!here(c.place, c.shape)) continue;
    for (const Sums& s : sums_of(c.shape)) {
      for (Values values : {Values::normal, Values::special}) {
        if (!is_tested(values, c)) continue;
        std::vector<int64_t> sizes = {2}, by;
        for (int d = 0; d < c.shape.rank(); ++d) {
          if ((s.reduced >> d & 1) == 0) sizes.push_back(c.shape[d]);
          by.push_back((s.by >> d & 1) != 0 ? c.shape[d] : 1);
        }
        TestTensor x(dtype, c.place, c.shape, 1), grad(dtype, c.place, c.shape, 2),
            scale(wide(dtype), c.place, Shape(by), 3), mean(wide(dtype), c.place, Shape(by), 4),
            out(wide(dtype), Place::contiguous, Shape(sizes), 5, true);
        x.fill(values, random);
        grad.fill(values, random);
        scale.fill(Values::normal, random);
        mean.fill(Values::normal, random);
        const std::string what = fmt::format("norm_sums.{}.{}{} over {:b} by {:b}{} {}",
                                             name(dtype), name(c.place), c.shape.str(), s.reduced,
                                             s.by, has_mean ? "" : " without mean", name(values));
        const TestTensor* const inputs[] = {&x, &grad, &scale, &mean};
        if (!run_everywhere(what, out, inputs, [&](Backend& b, const View& o, auto in) {
              const auto spread = [&](ConstView v) {
                v.layout = v.layout.broadcast_to(c.shape);
                return v;
              };
              b.norm_sums(o, in[0], in[1], has_mean ? spread(in[3]) : ConstView{}, spread(in[2]),
                          s.reduced);
            })) {
          return;
        }
        with_compute_type(dtype, [&](auto zero) {
          expect(
              what, out,
              norm_sums_of<decltype(zero)>(x, grad, has_mean ? &mean : nullptr, &scale, s.reduced),
              values == Values::normal);
        });
        if (failed()) return;
      }
    }
  }
}

const bool added = [] {
  add_rows(Op::softmax_grad, [](DType dtype) { check_softmax_grad(dtype, false); });
  add_rows(Op::log_softmax_grad, [](DType dtype) { check_softmax_grad(dtype, true); });
  add_rows(Op::norm_grad, [](DType dtype) {
    const std::vector<Case> lines = line_cases(), channels = channel_cases();
    for (const bool centred : {true, false}) {
      check_norm_grad(lines, dtype, dtype, true, false, centred);
      check_norm_grad(lines, dtype, dtype, false, false, centred);
      if (dtype != DType::f32) check_norm_grad(lines, dtype, DType::f32, true, false, centred);
    }
    check_norm_grad(channels, dtype, dtype, true, true, true);
    check_norm_grad(channels, dtype, dtype, false, true, true);
    if (dtype != DType::f32) check_norm_grad(channels, dtype, DType::f32, true, true, true);
  });
  add_rows(Op::norm_sums, [](DType dtype) {
    check_norm_sums(dtype, true);
    check_norm_sums(dtype, false);
  });
  return true;
}();

}  // namespace
}  // namespace wick::parity
