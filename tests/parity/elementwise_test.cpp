// unary, binary and affine against references in long double and in 64-bit integers, over every
// dtype, layout and instruction set.

#include <fmt/format.h>

#include <cmath>
#include <limits>
#include <stdexcept>

#include "tests/parity/harness.h"
#include "wick/base/error.h"

namespace wick::parity {
namespace {

constexpr long double kInf = std::numeric_limits<long double>::infinity();
constexpr long double kNan = std::numeric_limits<long double>::quiet_NaN();

/// What a row must reach, in ulps of the exact result.
struct Bound {
  long double f32, f64, narrow;
  long double of(DType dtype) const {
    return dtype == DType::f32 ? f32 : dtype == DType::f64 ? f64 : narrow;
  }
};
// The reference itself is rounded to 64 bits, hence not exactly half.
constexpr Bound kRounded{0.5002L, 0.5002L, 1}, kFunction{2, 4, 1}, kComposite{4, 4, 1};

/// The true functions. A row without one doesn't compile.
namespace ref {

long double neg(long double x) { return -x; }
long double abs(long double x) { return std::fabs(x); }
long double sqr(long double x) { return x * x; }
long double sqrt(long double x) { return std::sqrt(x); }
long double rsqrt(long double x) { return 1 / std::sqrt(x); }
long double recip(long double x) { return 1 / x; }
long double exp(long double x) { return std::exp(x); }
long double log(long double x) { return std::log(x); }
long double tanh(long double x) { return std::tanh(x); }
long double sigmoid(long double x) { return 1 / (1 + std::exp(-x)); }
long double silu(long double x) { return x == -kInf ? -0.0L : x / (1 + std::exp(-x)); }

long double add(long double a, long double b) { return a + b; }
long double sub(long double a, long double b) { return a - b; }
long double mul(long double a, long double b) { return a * b; }
long double div(long double a, long double b) { return a / b; }
long double maximum(long double a, long double b) {
  if (std::isnan(a) || std::isnan(b)) return kNan;
  if (a == b) return std::signbit(a) ? b : a;
  return a > b ? a : b;
}
long double minimum(long double a, long double b) {
  if (std::isnan(a) || std::isnan(b)) return kNan;
  if (a == b) return std::signbit(a) ? a : b;
  return a < b ? a : b;
}
long double silu_mul(long double a, long double b) { return silu(a) * b; }

Bound bound(Op op) {
  switch (op) {
    case Op::neg:
    case Op::abs:
    case Op::maximum:
    case Op::minimum:
      return {0, 0, 0};
    case Op::sqr:
    case Op::sqrt:
    case Op::recip:
    case Op::add:
    case Op::sub:
    case Op::mul:
    case Op::div:
      return kRounded;
    case Op::silu_mul:
      return kComposite;
    default:
      return kFunction;
  }
}

/// Integers: exact in 64-bit unsigned arithmetic, cut to the dtype's width by the caller.
uint64_t whole_unary(Op op, int64_t x) {
  const auto u = static_cast<uint64_t>(x);
  switch (op) {
    case Op::neg:
      return 0 - u;
    case Op::abs:
      return x < 0 ? 0 - u : u;
    case Op::sqr:
      return u * u;
    default:
      throw std::logic_error("no integer reference");
  }
}
uint64_t whole_binary(Op op, int64_t a, int64_t b) {
  const auto x = static_cast<uint64_t>(a), y = static_cast<uint64_t>(b);
  switch (op) {
    case Op::add:
      return x + y;
    case Op::sub:
      return x - y;
    case Op::mul:
      return x * y;
    case Op::div:
      return b == -1 ? 0 - x : static_cast<uint64_t>(a / b);
    case Op::maximum:
      return a > b ? x : y;
    case Op::minimum:
      return a < b ? x : y;
    default:
      throw std::logic_error("no integer reference");
  }
}

}  // namespace ref

struct UnaryRow {
  Op op;
  long double (*exact)(long double);
};
constexpr UnaryRow kUnary[] = {
#define WICK_UNARY(name, ...) {Op::name, ref::name},
#include "wick/op/ops.def"
};
struct BinaryRow {
  Op op;
  long double (*exact)(long double, long double);
};
constexpr BinaryRow kBinary[] = {
#define WICK_BINARY(name, ...) {Op::name, ref::name},
#include "wick/op/ops.def"
};

uint64_t cut(DType dtype, uint64_t bits) {
  return bits & (~uint64_t{0} >> (64 - 8 * info(dtype).block_bytes));
}

bool is_large(const Geometry& g) { return g.name.starts_with("large"); }

/// Which operands take the geometry's placement: bit 0 the output, bit i input i - 1.
bool worthwhile(const Geometry& g, unsigned mask, unsigned all) {
  if (g.place == Place::contiguous) return mask == all;
  if (g.place == Place::broadcast || g.place == Place::scalar) return (mask & 1u) == 0;
  return !is_large(g) || mask == 1 || mask == 2;
}

void check_unary(const UnaryRow& row, DType dtype) {
  Random random(static_cast<uint64_t>(row.op) * 16 + static_cast<uint64_t>(dtype));
  for (const Geometry& g : geometries()) {
    for (Values values : kAllValues) {
      if (is_large(g) && values != Values::bits) continue;
      for (unsigned mask = 1; mask < 4; ++mask) {
        if (!worthwhile(g, mask, 3)) continue;
        TestTensor in(dtype, mask & 2 ? g.place : Place::contiguous, g.shape, 1);
        TestTensor out(dtype, mask & 1 ? g.place : Place::contiguous, g.shape, 0, true);
        in.fill(values, random);
        const std::string what = fmt::format("{}.{}.{}.{}.mask{}", name(row.op), name(dtype),
                                             g.name, name(values), mask);
        const TestTensor* inputs[] = {&in};
        if (!run_everywhere(what, out, inputs, [&](Backend& b, const View& o, auto views) {
              b.unary(row.op, o, views[0]);
            })) {
          return;
        }
        const std::vector<uint64_t> x = in.bits();
        if (is_float(dtype)) {
          std::vector<long double> exact(x.size());
          for (size_t i = 0; i < x.size(); ++i) exact[i] = row.exact(decode(dtype, x[i]));
          expect_close(what, out, exact, ref::bound(row.op).of(dtype));
        } else {
          std::vector<uint64_t> exact(x.size());
          for (size_t i = 0; i < x.size(); ++i) {
            exact[i] = cut(dtype, ref::whole_unary(row.op, decode_int(dtype, x[i])));
          }
          expect_bits(what, out, exact);
        }
        if (testing::Test::HasFailure()) return;
      }
    }
  }
}

/// silu(a)·b is two rounded steps: where silu(a) is denormal its error, absolute, is scaled by b.
std::vector<long double> silu_mul_tolerance(DType dtype, std::span<const long double> a,
                                            std::span<const long double> b,
                                            std::span<const long double> exact) {
  const DType compute = dtype == DType::f64 ? DType::f64 : DType::f32;
  std::vector<long double> tolerance(a.size());
  for (size_t i = 0; i < a.size(); ++i) {
    tolerance[i] = ref::bound(Op::silu_mul).of(dtype) * ulp(dtype, exact[i]);
    if (std::isfinite(b[i])) tolerance[i] += 2 * ulp(compute, ref::silu(a[i])) * std::fabs(b[i]);
  }
  return tolerance;
}

void check_binary(const BinaryRow& row, DType dtype) {
  Random random(static_cast<uint64_t>(row.op) * 16 + static_cast<uint64_t>(dtype));
  for (const Geometry& g : geometries()) {
    for (Values values : kAllValues) {
      if (is_large(g) && values != Values::bits) continue;
      for (unsigned mask = 1; mask < 8; ++mask) {
        if (!worthwhile(g, mask, 7)) continue;
        TestTensor a(dtype, mask & 2 ? g.place : Place::contiguous, g.shape, 1);
        TestTensor b(dtype, mask & 4 ? g.place : Place::contiguous, g.shape, 2);
        TestTensor out(dtype, mask & 1 ? g.place : Place::contiguous, g.shape, 0, true);
        a.fill(values, random);
        b.fill(values == Values::bits ? Values::special : values, random);
        if (row.op == Op::div && !is_float(dtype)) {
          const std::vector<uint64_t> divisors = b.bits();
          b.fill_bits([&](int64_t i) { return std::max<uint64_t>(divisors[size_t(i)], 1); });
        }
        const std::string what = fmt::format("{}.{}.{}.{}.mask{}", name(row.op), name(dtype),
                                             g.name, name(values), mask);
        const TestTensor* inputs[] = {&a, &b};
        if (!run_everywhere(what, out, inputs, [&](Backend& backend, const View& o, auto views) {
              backend.binary(row.op, o, views[0], views[1]);
            })) {
          return;
        }
        const std::vector<uint64_t> x = a.bits(), y = b.bits();
        if (is_float(dtype)) {
          std::vector<long double> u(x.size()), v(x.size()), exact(x.size());
          for (size_t i = 0; i < x.size(); ++i) {
            u[i] = decode(dtype, x[i]), v[i] = decode(dtype, y[i]);
            exact[i] = row.exact(u[i], v[i]);
          }
          if (row.op == Op::silu_mul) {
            std::vector<long double> tolerance = silu_mul_tolerance(dtype, u, v, exact);
            const std::vector<uint64_t> got = out.bits();
            for (size_t i = 0; i < x.size(); ++i) {
              // A silu that rounds to zero meets an infinite b; a result past the range's end.
              if (std::isinf(v[i]) && std::fabs(ref::silu(u[i])) < ulp(dtype, 0)) {
                tolerance[i] = kInf, exact[i] = decode(dtype, got[i]);
              }
              exact[i] = round_to(dtype, exact[i]);
            }
            expect_within(what, out, exact, tolerance);
          } else {
            expect_close(what, out, exact, ref::bound(row.op).of(dtype));
          }
        } else {
          std::vector<uint64_t> exact(x.size());
          for (size_t i = 0; i < x.size(); ++i) {
            exact[i] = cut(
                dtype, ref::whole_binary(row.op, decode_int(dtype, x[i]), decode_int(dtype, y[i])));
          }
          expect_bits(what, out, exact);
        }
        if (testing::Test::HasFailure()) return;
      }
    }
  }
}

void check_zero_divisor(DType dtype) {
  for (int64_t n : {1, 7, 100, 70000}) {
    TestTensor a(dtype, Place::contiguous, {n}), b(dtype, Place::contiguous, {n});
    TestTensor out(dtype, Place::contiguous, {n}, 0, true);
    a.fill_with([](int64_t i) { return i % 100; });
    b.fill_with([n](int64_t i) { return i == n - 1 ? 0 : 3; });
    for (const Target& target : targets()) {
      // GPUs say it later: tests/backend/gpu_faults_test.cpp.
      if (target.backend->device().kind != DeviceKind::cpu) continue;
      try {
        target.backend->binary(Op::div, out.view(), a.view(), b.view());
        ADD_FAILURE() << target.name << " divided by zero";
      } catch (const Error& error) {
        EXPECT_EQ(error.op(), "div");
      }
    }
  }
}

void check_affine(DType dtype) {
  Random random(static_cast<uint64_t>(dtype));
  const std::pair<Scalar, Scalar> steps[] = {
      {0.1, -3.7}, {2, 5}, {-1.0, 0.0}, {int64_t{1} << 33, -1}, {1e30, -1e300}};
  for (const Geometry& g : geometries()) {
    for (Values values : kAllValues) {
      if (is_large(g) && values != Values::normal) continue;
      for (const auto& [mul, add] : steps) {
        TestTensor in(dtype, g.place, g.shape, 1);
        TestTensor out(dtype, g.place, g.shape, 0, true);
        in.fill(values, random);
        const std::string what = fmt::format("affine.{}.{}.{}", name(dtype), g.name, name(values));
        const TestTensor* inputs[] = {&in};
        const Scalar m = mul, b = add;
        if (!run_everywhere(what, out, inputs, [&](Backend& backend, const View& o, auto views) {
              backend.affine(o, views[0], m, b);
            })) {
          return;
        }
        const std::vector<uint64_t> x = in.bits();
        std::vector<uint64_t> expected(x.size());
        auto whole = [&](const Scalar& s) -> uint64_t {
          if (s.is_integer) return static_cast<uint64_t>(s.i);
          // Truncated and saturated; no step here is NaN.
          const int64_t width = 8 * info(dtype).block_bytes;
          const bool is_signed = info(dtype).kind == DTypeKind::signed_integer;
          const long double top = std::ldexp(1.0L, static_cast<int>(width) - (is_signed ? 1 : 0));
          const long double value =
              std::min(std::max(std::trunc(static_cast<long double>(s.f)), is_signed ? -top : 0.0L),
                       top - 1);
          return static_cast<uint64_t>(static_cast<int64_t>(value));
        };
        for (size_t i = 0; i < x.size(); ++i) {
          if (!is_float(dtype)) {
            expected[i] = cut(dtype, x[i] * whole(m) + whole(b));
          } else if (dtype == DType::f64) {
            const double product = static_cast<double>(decode(dtype, x[i])) * m.f;
            expected[i] = encode(dtype, product + b.f);
          } else {
            const float product = static_cast<float>(decode(dtype, x[i])) * static_cast<float>(m.f);
            expected[i] = encode(dtype, product + static_cast<float>(b.f));
          }
        }
        expect_bits(what, out, expected);
        if (testing::Test::HasFailure()) return;
      }
    }
  }
}

const bool added = [] {
  for (int d = 0; d < kRealDTypeCount; ++d) {
    const auto dtype = static_cast<DType>(d);
    for (const UnaryRow& row : kUnary) {
      if (!info(row.op).dtypes.contains(dtype)) continue;
      add(fmt::format("{}.{}", name(row.op), name(dtype)), [=] { check_unary(row, dtype); });
    }
    for (const BinaryRow& row : kBinary) {
      if (!info(row.op).dtypes.contains(dtype)) continue;
      add(fmt::format("{}.{}", name(row.op), name(dtype)), [=] { check_binary(row, dtype); });
    }
    add(fmt::format("affine.{}", name(dtype)), [=] { check_affine(dtype); });
    if (is_integer(dtype)) {
      add(fmt::format("div_by_zero.{}", name(dtype)), [=] { check_zero_divisor(dtype); });
    }
  }
  return true;
}();

}  // namespace
}  // namespace wick::parity
