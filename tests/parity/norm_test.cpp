// softmax, log_softmax, rms_norm and rope: bit-equal to the specified order, and close to the exact
// value.

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "tests/parity/grid.h"
#include "tests/parity/ordered.h"
#include "wick/backend/cpu/thread_pool.h"
#include "wick/math/scalar.h"

namespace wick::parity {
namespace {

constexpr DType kFloatDTypes[] = {DType::bf16, DType::f16, DType::f32, DType::f64, DType::f8e4m3};

struct Case {
  Place place;
  Shape shape;
};

/// Every layout with small shapes, then row lengths around every threshold of the row sum.
std::vector<Case> cases() {
  std::vector<Case> list;
  for (const Geometry& g : geometries()) {
    if (g.shape.rank() > 0) list.push_back({g.place, g.shape});
  }
  list.push_back({Place::scattered, {4, 3, 130}});
  for (int64_t n = 1; n <= 300; n += n < 70 ? 1 : 23) list.push_back({Place::contiguous, {2, n}});
  for (int64_t n : {576, 4095, 4096, 4097, 4224, 8191, 8193, 12345}) {
    list.push_back({Place::contiguous, {2, n}});
    list.push_back({Place::stepped, {2, n}});
  }
  list.push_back({Place::contiguous, {2, 33000}});
  list.push_back({Place::sliced, {2, 70001}});
  list.push_back({Place::contiguous, {1500, 8}});
  return list;
}

std::string describe(std::string_view op, DType dtype, const Case& c, Values values) {
  return fmt::format("{}.{}.{}{} {}", op, name(dtype), name(c.place), c.shape.str(), name(values));
}

/// Allows half a unit of the result's dtype for the final rounding, and some roundings of the
/// compute type.
std::vector<long double> tolerances(DType dtype, std::span<const long double> exact) {
  std::vector<long double> result;
  const long double step = dtype == DType::f64 ? 0x1p-48L : 0x1p-19L;
  for (long double x : exact) {
    result.push_back(0.51L * ulp(dtype, x) + (1 + std::fabs(x)) * step);
  }
  return result;
}

/// Adds so many rows that thread blocks share the weights, which covers all block sizes of a
/// device.
std::vector<Case> rms_norm_cases() {
  std::vector<Case> list = cases();
  for (const Shape& shape : {Shape{1300, 200}, Shape{700, 520}, Shape{520, 4096}}) {
    list.push_back({Place::contiguous, shape});
  }
  return list;
}

void check_rms_norm(DType dtype, DType weight_dtype) {
  Random random(31);
  for (const Case& c : rms_norm_cases()) {
    if (!here(c.place, c.shape)) continue;
    for (Values values : {Values::normal, Values::special}) {
      if (values == Values::special && c.shape.elems() > 20000) continue;
      const int last = c.shape.rank() - 1;
      const Around rows(c.shape, last);
      TestTensor x(dtype, c.place, c.shape, 1);
      TestTensor w(weight_dtype, c.place, Shape{c.shape[last]}, 2);
      TestTensor y(dtype, c.place, c.shape, 3, true);
      x.fill(values, random);
      w.fill(Values::normal, random);
      const std::string what = describe("rms_norm", dtype, c, values);
      const float eps = 1e-5f;
      const TestTensor* const inputs[] = {&x, &w};
      if (!run_everywhere(what, y, inputs, [&](Backend& b, const View& o, auto in) {
            b.rms_norm(o, in[0], in[1], eps);
          })) {
        return;
      }
      std::vector<uint64_t> bits;
      std::vector<long double> exact;
      with_compute_type(dtype, [&](auto zero) {
        using A = decltype(zero);
        using E = ExactOf<A>;
        const std::vector<A> xs = elements<A>(x), ws = elements<A>(w);
        for (int64_t row = 0; row < rows.outer; ++row) {
          const std::span r(xs.data() + row * rows.n, static_cast<size_t>(rows.n));
          std::vector<A> squares;
          E true_sum = 0;
          for (A v : r) {
            squares.push_back(v * v);
            true_sum += static_cast<E>(v) * v;
          }
          const A mean = ordered_sum<A>(squares) / static_cast<A>(rows.n);
          const A scale = A{1} / std::sqrt(mean + static_cast<A>(eps));
          const E true_scale = 1 / std::sqrt(true_sum / static_cast<E>(rows.n) + eps);
          for (size_t i = 0; i < r.size(); ++i) {
            bits.push_back(encode(dtype, (r[i] * scale) * ws[i]));
            exact.push_back(r[i] * true_scale * ws[i]);
          }
        }
      });
      expect_bits(what, y, bits);
      if (values == Values::normal) expect_within(what, y, exact, tolerances(dtype, exact));
      if (failed()) return;
    }
  }
}

/// Returns the permitted error of the mean for a row of nearly equal elements, where it dominates.
/// Returns 0 for rows with some spread, whose tolerance covers it.
template <class A>
ExactOf<A> mean_error(const std::vector<A>& row, ExactOf<A> variance) {
  using E = ExactOf<A>;
  const auto n = static_cast<E>(row.size());
  E size = 0, squares = 0;
  for (A v : row) {
    size += std::fabs(static_cast<E>(v)) / n;
    squares += static_cast<E>(v) * v / n;
  }
  if (variance > squares / 1000) return 0;
  // The roundings of an element: 32 additions, a tree of 7, chunks of 4096, and two more.
  const E unit = std::numeric_limits<A>::epsilon() / 2;
  return (41 + n / 4096) * unit * size;
}

/// Returns the error of (x − mean) / sqrt(variance + eps) for an x that differs from the mean by
/// `off`, if the mean has an error of `error`, which also affects the variance.
template <class E>
E scaled_error(E error, E off, E variance, E eps) {
  const E relative = (2 * error * std::sqrt(variance) + error * error) / (variance + eps);
  const E of_scale = (std::fabs(off) + error) * std::min(relative, E{1});
  return (error + of_scale) / std::sqrt(variance + eps);
}

/// Adds rows around the longest ones that GPUs hold in registers or compute in one thread block.
std::vector<Case> layer_norm_cases() {
  std::vector<Case> list = cases();
  for (int64_t n : {16384, 16388, 32768, 32772}) list.push_back({Place::contiguous, {1, n}});
  list.push_back({Place::stepped, {2, 32769}});
  list.push_back({Place::contiguous, {301, 132}});
  return list;
}

/// with: 0 nothing, 1 a weight, 2 a weight and a bias.
void check_layer_norm(DType dtype, DType weight_dtype, int with) {
  Random random(33);
  for (const Case& c : layer_norm_cases()) {
    if (!here(c.place, c.shape)) continue;
    for (Values values : {Values::normal, Values::special}) {
      if (values == Values::special && c.shape.elems() > 20000) continue;
      const int last = c.shape.rank() - 1;
      const Around rows(c.shape, last);
      TestTensor x(dtype, c.place, c.shape, 1), y(dtype, c.place, c.shape, 3, true);
      TestTensor w(weight_dtype, c.place, Shape{c.shape[last]}, 2);
      TestTensor bias(weight_dtype, c.place, Shape{c.shape[last]}, 4);
      x.fill(values, random);
      w.fill(Values::normal, random);
      bias.fill(Values::normal, random);
      const std::string what = describe("layer_norm", dtype, c, values) + fmt::format(" {}", with);
      const float eps = 1e-5f;
      std::vector<const TestTensor*> inputs = {&x};
      if (with > 0) inputs.push_back(&w);
      if (with > 1) inputs.push_back(&bias);
      if (!run_everywhere(what, y, inputs, [&](Backend& b, const View& o, auto in) {
            b.layer_norm(o, in[0], with > 0 ? in[1] : ConstView{}, with > 1 ? in[2] : ConstView{},
                         eps);
          })) {
        return;
      }
      std::vector<uint64_t> bits;
      std::vector<long double> exact, cancelled;
      with_compute_type(dtype, [&](auto zero) {
        using A = decltype(zero);
        using E = ExactOf<A>;
        const std::vector<A> xs = elements<A>(x), ws = elements<A>(w), bs = elements<A>(bias);
        const auto n = static_cast<size_t>(rows.n);
        for (size_t first = 0; n != 0 && first < xs.size(); first += n) {
          const std::vector<A> row(xs.begin() + static_cast<int64_t>(first),
                                   xs.begin() + static_cast<int64_t>(first + n));
          const A mean = ordered_sum<A>(row) / static_cast<A>(n);
          E true_mean = 0, true_squares = 0;
          for (A v : row) true_mean += static_cast<E>(v) / static_cast<E>(n);
          std::vector<A> squares;
          for (A v : row) {
            squares.push_back((v - mean) * (v - mean));
            const E off = static_cast<E>(v) - true_mean;
            true_squares += off * off;
          }
          const A scale =
              A{1} / std::sqrt(ordered_sum<A>(squares) / static_cast<A>(n) + static_cast<A>(eps));
          const E variance = true_squares / static_cast<E>(n);
          const E true_scale = 1 / std::sqrt(variance + eps);
          const E error = mean_error(row, variance);
          for (size_t i = 0; i < n; ++i) {
            A v = (row[i] - mean) * scale;
            const E off = static_cast<E>(row[i]) - true_mean;
            E t = off * true_scale, slack = scaled_error<E>(error, off, variance, eps);
            if (with > 0) v = v * ws[i], t *= ws[i], slack *= std::fabs(ws[i]);
            if (with > 1) v = v + bs[i], t += bs[i];
            bits.push_back(encode(dtype, v));
            exact.push_back(t);
            cancelled.push_back(slack);
          }
        }
      });
      expect_bits(what, y, bits);
      if (values == Values::normal) {
        std::vector<long double> allowed = tolerances(dtype, exact);
        // The difference of nearly equal elements is rounded at its own magnitude.
        for (size_t i = 0; i < allowed.size(); ++i) {
          allowed[i] += cancelled[i] + 0.51L * (cancelled[i] > 0 ? ulp(dtype, cancelled[i]) : 0);
        }
        expect_within(what, y, exact, allowed);
      }
      if (failed()) return;
    }
  }
}

void check_softmax(DType dtype, bool log) {
  Random random(32);
  std::vector<std::pair<Case, int>> list;
  for (const Case& c : cases()) {
    for (int dim = 0; dim < c.shape.rank(); ++dim) {
      if (c.shape.elems() > 20000 && dim + 1 < c.shape.rank() && dim > 0) continue;
      list.push_back({c, dim});
    }
  }
  for (int64_t n : {1001, 2047, 16383}) list.push_back({{Place::contiguous, {3, n}}, 1});
  for (int64_t n : {16385, 49152, 131072, 131073}) list.push_back({{Place::contiguous, {1, n}}, 1});
  const std::vector<Shape> shared = {
      {3, 16386}, {5, 40000}, {2, 131070}};  // several thread blocks share a row
  for (const Shape& shape : shared) list.push_back({{Place::contiguous, shape}, 1});
  list.push_back({{Place::sliced, {3, 40001}}, 1});
  list.push_back({{Place::sliced, {16500, 3}}, 0});
  list.push_back({{Place::contiguous, {600, 72}}, 0});
  list.push_back({{Place::contiguous, {5000, 16}}, 0});
  list.push_back({{Place::contiguous, {2, 200, 40}}, 1});
  for (int64_t n : {2, 5, 8, 9, 21, 32}) {  // one thread handles all of them
    list.push_back({{Place::contiguous, {3, n, 140}}, 1});
    list.push_back({{Place::contiguous, {n, 1030}}, 0});
  }
  for (const auto& [c, dim] : list) {
    if (!here(c.place, c.shape)) continue;
    for (Values values : {Values::normal, Values::special}) {
      const bool is_shared = std::find(shared.begin(), shared.end(), c.shape) != shared.end();
      if (values == Values::special && c.shape.elems() > 20000 && !is_shared) continue;
      const Around a(c.shape, dim);
      TestTensor x(dtype, c.place, c.shape, 1);
      TestTensor y(dtype, c.place, c.shape, 3, true);
      x.fill(values, random);
      const std::string what =
          describe(log ? "log_softmax" : "softmax", dtype, c, values) + fmt::format(" dim {}", dim);
      const TestTensor* const inputs[] = {&x};
      if (!run_everywhere(what, y, inputs, [&, d = dim](Backend& b, const View& o, auto in) {
            b.softmax(o, in[0], d, log);
          })) {
        return;
      }
      std::vector<uint64_t> bits(static_cast<size_t>(c.shape.elems()));
      std::vector<long double> exact(bits.size());
      with_compute_type(dtype, [&](auto zero) {
        using A = decltype(zero);
        using E = ExactOf<A>;
        const std::vector<A> xs = elements<A>(x);
        for (int64_t row = 0; row < a.outer * a.inner; ++row) {
          const auto at = [&](int64_t i) {
            return static_cast<size_t>((row / a.inner * a.n + i) * a.inner + row % a.inner);
          };
          A m = -std::numeric_limits<A>::infinity();
          for (int64_t i = 0; i < a.n; ++i) m = math::maximum(m, xs[at(i)]);
          std::vector<A> e;
          E true_sum = 0;
          for (int64_t i = 0; i < a.n; ++i) {
            e.push_back(math::exp(xs[at(i)] - m));
            true_sum += std::exp(static_cast<E>(xs[at(i)]) - m);
          }
          const A sum = ordered_sum<A>(e), r = A{1} / sum, log_sum = math::log(sum);
          for (int64_t i = 0; i < a.n; ++i) {
            const A d = xs[at(i)] - m;
            bits[at(i)] = encode(dtype, log ? d - log_sum : e[static_cast<size_t>(i)] * r);
            const E true_d = static_cast<E>(xs[at(i)]) - m;
            exact[at(i)] = log ? true_d - std::log(true_sum) : std::exp(true_d) / true_sum;
          }
        }
      });
      expect_bits(what, y, bits);
      if (values == Values::normal) expect_within(what, y, exact, tolerances(dtype, exact));
      if (failed()) return;
    }
  }
}

void check_rope(DType dtype, bool interleaved) {
  Random random(33);
  const Case list[] = {{Place::contiguous, {3, 5, 64}},
                       {Place::transposed, {2, 3, 7, 24}},
                       {Place::sliced, {2, 7, 37}},
                       {Place::stepped, {4, 9, 80}},
                       {Place::scattered, {2, 3, 4, 66}},
                       {Place::broadcast, {3, 4, 32}},
                       {Place::contiguous, {5, 1}},
                       {Place::contiguous, {0, 4, 8}},
                       {Place::contiguous, {9, 31, 128}},
                       {Place::transposed, {300, 130}},
                       {Place::scattered, {1, 2, 1, 2, 3, 2, 5, 20}}};
  for (const Case& c : list) {
    if (!here(c.place, c.shape)) continue;
    const int rank = c.shape.rank();
    const int64_t d = c.shape[rank - 1], t = c.shape[rank - 2];
    const auto check = [&](int64_t half, bool own_tables) {
      // The table is shared by all rows with the same t, or each row has its own.
      std::vector<int64_t> sizes(c.shape.dims().begin(), c.shape.dims().end());
      sizes.back() = half;
      const Shape table = own_tables ? Shape(sizes) : Shape{t, half};
      for (Values values : {Values::normal, Values::special}) {
        TestTensor x(dtype, c.place, c.shape, 1);
        TestTensor cos(DType::f32, c.place, table, 2), sin(DType::f32, c.place, table, 4);
        TestTensor y(dtype, c.place, c.shape, 3, true);
        x.fill(values, random);
        cos.fill(Values::normal, random);
        sin.fill(Values::normal, random);
        const std::string what = describe("rope", dtype, c, values) + fmt::format(" half {}", half);
        const TestTensor* const inputs[] = {&x, &cos, &sin};
        if (!run_everywhere(what, y, inputs, [&](Backend& b, const View& o, auto in) {
              b.rope(o, in[0], in[1], in[2], interleaved);
            })) {
          return;
        }
        const int64_t table_rows = own_tables ? x.elems() / std::max<int64_t>(d, 1) : t;
        std::vector<uint64_t> bits = x.bits();
        with_compute_type(dtype, [&](auto zero) {
          using A = decltype(zero);
          const std::vector<A> xs = elements<A>(x), cs = elements<A>(cos), ss = elements<A>(sin);
          for (int64_t row = 0; row < (d == 0 ? 0 : x.elems() / d); ++row) {
            for (int64_t i = 0; i < half; ++i) {
              const auto i0 = static_cast<size_t>(row * d + (interleaved ? 2 * i : i));
              const auto i1 = static_cast<size_t>(row * d + (interleaved ? 2 * i + 1 : i + half));
              const auto p = static_cast<size_t>(row % table_rows * half + i);
              const A a = xs[i0] * cs[p], b = xs[i1] * ss[p];
              const A e = xs[i0] * ss[p], f = xs[i1] * cs[p];
              bits[i0] = encode(dtype, a - b);
              bits[i1] = encode(dtype, e + f);
            }
          }
        });
        expect_bits(what, y, bits);
        if (failed()) return;
      }
    };
    for (int64_t half : {d / 2, d / 4, int64_t{0}}) check(half, false);
    check(d / 2, true);
    if (failed()) return;
  }
}

const bool added = [] {
  for (DType dtype : kFloatDTypes) {
    const auto test = [&](std::string_view op, auto body) { add_row(op, name(dtype), body); };
    test("rms_norm", [=] {
      check_rms_norm(dtype, dtype);
      if (dtype != DType::f32) check_rms_norm(dtype, DType::f32);
    });
    test("layer_norm", [=] {
      for (int with : {0, 1, 2}) check_layer_norm(dtype, dtype, with);
      if (dtype != DType::f32) check_layer_norm(dtype, DType::f32, 2);
    });
    test("softmax", [=] { check_softmax(dtype, false); });
    test("log_softmax", [=] { check_softmax(dtype, true); });
    test("rope", [=] { check_rope(dtype, false); });
    test("rope_interleaved", [=] { check_rope(dtype, true); });
  }
  return true;
}();

}  // namespace
}  // namespace wick::parity
