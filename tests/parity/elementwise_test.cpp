// unary, unary_with and binary, compared with references in long double and in 64-bit integers for
// every dtype, layout and instruction set.

#include <fmt/format.h>

#include <cmath>
#include <limits>
#include <stdexcept>

#include "tests/parity/grid.h"
#include "wick/base/error.h"

namespace wick::parity {
namespace {

constexpr long double kInf = std::numeric_limits<long double>::infinity();
constexpr long double kNan = std::numeric_limits<long double>::quiet_NaN();

/// The accuracy that a row must reach, in ulps of the exact result.
struct Bound {
  long double f32, f64, narrow;
  long double of(DType dtype) const {
    return dtype == DType::f32 ? f32 : dtype == DType::f64 ? f64 : narrow;
  }
};
// The reference itself is rounded to 64 bits, so the limit is slightly more than one half.
constexpr Bound kRounded{0.5002L, 0.5002L, 1}, kFunction{2, 4, 1}, kComposite{4, 4, 1};

/// The exact functions. A row without one doesn't compile.
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
long double relu(long double x) { return x <= 0 ? 0 : x; }
long double sign(long double x) { return x > 0 ? 1 : x < 0 ? -1 : x; }
long double floor(long double x) { return std::floor(x); }
long double ceil(long double x) { return std::ceil(x); }
long double round(long double x) { return std::round(x); }
long double sin(long double x) { return std::sin(x); }
long double cos(long double x) { return std::cos(x); }
long double log1p(long double x) { return std::log1p(x); }
long double expm1(long double x) { return std::expm1(x); }
long double erf(long double x) { return std::erf(x); }
long double normcdf(long double x) { return std::erfc(-x / std::sqrt(2.0L)) / 2; }
long double gelu(long double x) {
  const long double t = std::sqrt(2 / std::acos(-1.0L)) * (x + 0.044715L * x * x * x);
  return x == -kInf ? -0.0L : x / (1 + std::exp(-2 * t));
}
long double gelu_erf(long double x) { return x == -kInf ? -0.0L : x * normcdf(x); }

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
long double rem(long double a, long double b) {
  const long double r = std::fmod(a, b);
  if (r == 0) return std::copysign(0.0L, b);
  return std::signbit(r) == std::signbit(b) ? r : r + b;
}
long double pow(long double a, long double b) { return std::pow(a, b); }
long double atan2(long double a, long double b) { return std::atan2(a, b); }

// Two roundings: see below.
long double affine(long double, long double, long double) { return kNan; }
long double clamp(long double x, long double low, long double high) {
  return minimum(maximum(x, low), high);
}
long double powf(long double x, long double exponent, long double) { return std::pow(x, exponent); }
long double elu(long double x, long double alpha, long double) {
  return x > 0 ? x : alpha * std::expm1(x);
}

Bound bound(Op op) {
  switch (op) {
    case Op::neg:
    case Op::abs:
    case Op::maximum:
    case Op::minimum:
    case Op::relu:
    case Op::sign:
    case Op::floor:
    case Op::ceil:
    case Op::round:
      return {0, 0, 0};
    case Op::rem:
    case Op::clamp:  // exact, except that a bound may not be representable in a narrow type
    case Op::sqr:
    case Op::sqrt:
    case Op::recip:
    case Op::add:
    case Op::sub:
    case Op::mul:
    case Op::div:
      return kRounded;
    case Op::silu_mul:
    case Op::normcdf:
    case Op::gelu_erf:
    case Op::elu:
      return kComposite;
    default:
      return kFunction;
  }
}

/// Integers: exact in 64-bit unsigned arithmetic; the caller truncates to the dtype's width.
uint64_t whole_unary(Op op, int64_t x) {
  const auto u = static_cast<uint64_t>(x);
  switch (op) {
    case Op::neg:
      return 0 - u;
    case Op::abs:
      return x < 0 ? 0 - u : u;
    case Op::sqr:
      return u * u;
    case Op::relu:
      return x > 0 ? u : 0;
    case Op::sign:
      return static_cast<uint64_t>((x > 0) - (x < 0));
    case Op::bitwise_not:
      return ~u;
    default:
      throw std::logic_error("no integer reference");
  }
}
uint64_t whole_binary(Op op, int bits, int64_t a, int64_t b) {
  const auto x = static_cast<uint64_t>(a), y = static_cast<uint64_t>(b);
  const uint64_t count = y & (~uint64_t{0} >> (64 - bits));
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
    case Op::rem: {
      const int64_t r = b == -1 ? 0 : a % b;
      return static_cast<uint64_t>(r != 0 && (r < 0) != (b < 0) ? r + b : r);
    }
    case Op::bitwise_and:
      return x & y;
    case Op::bitwise_or:
      return x | y;
    case Op::bitwise_xor:
      return x ^ y;
    case Op::shift_left:
      return count < 64 ? x << count : 0;
    case Op::shift_right:
      return static_cast<uint64_t>(a >> std::min<uint64_t>(count, 63));
    default:
      throw std::logic_error("no integer reference");
  }
}

}  // namespace ref

struct UnaryRow {
  Op op;
  long double (*exact)(long double);
};
// Rows for integers only have no float function.
#define WICK_EXACT_Real(f) f
#define WICK_EXACT_Floats(f) f
#define WICK_EXACT_Integers(f) nullptr
#define WICK_EXACT_Bits(f) nullptr
#define WICK_EXACT_Any(f) f
constexpr UnaryRow kUnary[] = {
#define WICK_UNARY(name, dtypes, ...) {Op::name, WICK_EXACT_##dtypes(ref::name)},
#include "wick/op/ops.def"
};
struct BinaryRow {
  Op op;
  long double (*exact)(long double, long double);
};
constexpr BinaryRow kBinary[] = {
#define WICK_BINARY(name, dtypes, ...) {Op::name, WICK_EXACT_##dtypes(ref::name)},
#include "wick/op/ops.def"
};
struct UnaryWithRow {
  Op op;
  long double (*exact)(long double, long double, long double);
};
constexpr UnaryWithRow kUnaryWith[] = {
#define WICK_UNARY_WITH(name, ...) {Op::name, ref::name},
#include "wick/op/ops.def"
};

uint64_t cut(DType dtype, uint64_t bits) {
  return bits & (~uint64_t{0} >> (64 - 8 * info(dtype).block_bytes));
}

bool is_large(const Geometry& g) { return g.name.starts_with("large"); }

/// `mask` says which operands use the geometry's placement: bit 0 for the output, bit i for input i
/// - 1.
bool worthwhile(const Geometry& g, unsigned mask, unsigned all) {
  if (g.place == Place::contiguous) return mask == all;
  if (g.place == Place::broadcast || g.place == Place::scalar) return (mask & 1u) == 0;
  return !is_large(g) || mask == 1 || mask == 2;
}

/// Beyond 2^30, sin and cos of f64 guarantee only equal bits on all targets.
void leave_far_turns(const TestTensor& out, std::span<const uint64_t> in,
                     std::vector<long double>& exact) {
  if (out.dtype() != DType::f64) return;
  const std::vector<uint64_t> got = out.bits();
  for (size_t i = 0; i < in.size(); ++i) {
    const long double x = std::fabs(decode(DType::f64, in[i]));
    if (x > 0x1p30L && x < kInf) exact[i] = decode(DType::f64, got[i]);
  }
}

void check_unary(const UnaryRow& row, DType dtype) {
  Random random(static_cast<uint64_t>(row.op) * 16 + static_cast<uint64_t>(dtype));
  for (const Geometry& g : geometries()) {
    if (!here(g)) continue;
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
          if (row.op == Op::sin || row.op == Op::cos) leave_far_turns(out, x, exact);
          expect_close(what, out, exact, ref::bound(row.op).of(dtype));
        } else {
          std::vector<uint64_t> exact(x.size());
          for (size_t i = 0; i < x.size(); ++i) {
            exact[i] = cut(dtype, ref::whole_unary(row.op, decode_int(dtype, x[i])));
          }
          expect_bits(what, out, exact);
        }
        if (failed()) return;
      }
    }
  }
}

/// silu(a)·b has two rounded steps: if silu(a) is denormal, its absolute error is scaled by b.
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
    if (!here(g)) continue;
    for (Values values : kAllValues) {
      if (is_large(g) && values != Values::bits) continue;
      for (unsigned mask = 1; mask < 8; ++mask) {
        if (!worthwhile(g, mask, 7)) continue;
        TestTensor a(dtype, mask & 2 ? g.place : Place::contiguous, g.shape, 1);
        TestTensor b(dtype, mask & 4 ? g.place : Place::contiguous, g.shape, 2);
        TestTensor out(dtype, mask & 1 ? g.place : Place::contiguous, g.shape, 0, true);
        a.fill(values, random);
        b.fill(values == Values::bits ? Values::special : values, random);
        if ((row.op == Op::div || row.op == Op::rem) && !is_float(dtype)) {
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
              // This is the case if silu rounds to zero and b is infinite, so that the result
              // exceeds the range.
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
            exact[i] =
                cut(dtype, ref::whole_binary(row.op, 8 * info(dtype).block_bytes,
                                             decode_int(dtype, x[i]), decode_int(dtype, y[i])));
          }
          expect_bits(what, out, exact);
        }
        if (failed()) return;
      }
    }
  }
}

void check_zero_divisor(Op op, DType dtype) {
  for (int64_t n : {1, 7, 100, 70000}) {
    TestTensor a(dtype, Place::contiguous, {n}), b(dtype, Place::contiguous, {n});
    TestTensor out(dtype, Place::contiguous, {n}, 0, true);
    a.fill_with([](int64_t i) { return i % 100; });
    b.fill_with([n](int64_t i) { return i == n - 1 ? 0 : 3; });
    for (const Target& target : targets()) {
      // GPUs report the error later: tests/backend/gpu_faults_test.cpp.
      if (target.backend->device().kind != DeviceKind::cpu) continue;
      const Blame blame(target, "a division by zero");
      try {
        target.backend->binary(op, out.view(), a.view(), b.view());
        ADD_FAILURE() << target.name << " divided by zero";
      } catch (const Error& error) {
        EXPECT_EQ(error.op(), name(op));
      }
    }
  }
}

/// Converts a number to an integer of a dtype: truncated and saturated, or wrapped.
uint64_t whole(DType dtype, const Scalar& s) {
  if (s.is_integer) return cut(dtype, static_cast<uint64_t>(s.i));
  const int width = 8 * info(dtype).block_bytes;
  const bool is_signed = info(dtype).kind == DTypeKind::signed_integer;
  const long double top = std::ldexp(1.0L, width - (is_signed ? 1 : 0));
  const long double value = std::min(
      std::max(std::trunc(static_cast<long double>(s.f)), is_signed ? -top : 0.0L), top - 1);
  return cut(dtype, static_cast<uint64_t>(static_cast<int64_t>(value)));
}

/// Returns the bits of a row for integers, or of affine, whose steps are rounded one by one.
uint64_t stepped_with(Op op, DType dtype, uint64_t x, const Scalar& p, const Scalar& q) {
  if (!is_float(dtype)) {
    if (op == Op::affine) return cut(dtype, x * whole(dtype, p) + whole(dtype, q));
    const int64_t low = decode_int(dtype, whole(dtype, p)),
                  high = decode_int(dtype, whole(dtype, q));
    const int64_t value = std::min(std::max(decode_int(dtype, x), low), high);
    return cut(dtype, static_cast<uint64_t>(value));
  }
  if (dtype == DType::f64) {
    const double product = static_cast<double>(decode(dtype, x)) * p.f;
    return encode(dtype, product + q.f);
  }
  const float product = static_cast<float>(decode(dtype, x)) * static_cast<float>(p.f);
  return encode(dtype, product + static_cast<float>(q.f));
}

std::vector<std::pair<Scalar, Scalar>> numbers_of(Op op) {
  switch (op) {
    case Op::affine:
      return {{0.1, -3.7}, {2, 5}, {-1.0, 0.0}, {int64_t{1} << 33, -1}, {1e30, -1e300}};
    case Op::clamp:
      return {{-1.5, 2.25}, {0, 6}, {3, -3}, {-1e300, 0.1}, {-0.0, 1e300}};
    case Op::powf:
      return {{2, 0}, {0.5, 0}, {-1.0, 0}, {3, 0}, {-2.7, 0}, {0, 0}};
    case Op::elu:
      return {{1, 0}, {0.5, 0}, {-1.6732, 0}, {0.0, 0}};
    default:
      throw std::logic_error("no numbers to test with");
  }
}

void check_with(const UnaryWithRow& row, DType dtype) {
  Random random(static_cast<uint64_t>(dtype));
  for (const Geometry& g : geometries()) {
    if (!here(g)) continue;
    for (Values values : kAllValues) {
      // Every 16-bit pattern occurs once.
      if (is_large(g) && values == Values::special) continue;
      if (is_large(g) && values == Values::bits && g.place != Place::contiguous) continue;
      for (const auto& [p, q] : numbers_of(row.op)) {
        TestTensor in(dtype, g.place, g.shape, 1);
        TestTensor out(dtype, g.place, g.shape, 0, true);
        in.fill(values, random);
        const std::string what =
            fmt::format("{}.{}.{}.{}", name(row.op), name(dtype), g.name, name(values));
        const TestTensor* inputs[] = {&in};
        const Scalar u = p, v = q;
        if (!run_everywhere(what, out, inputs, [&](Backend& backend, const View& o, auto views) {
              backend.unary_with(row.op, o, views[0], u, v);
            })) {
          return;
        }
        const std::vector<uint64_t> x = in.bits();
        if (!is_float(dtype) || row.op == Op::affine) {
          std::vector<uint64_t> expected(x.size());
          for (size_t i = 0; i < x.size(); ++i) {
            expected[i] = stepped_with(row.op, dtype, x[i], u, v);
          }
          expect_bits(what, out, expected);
        } else {
          // The numbers are converted to the compute type.
          const auto in_type = [&](double s) -> long double {
            return dtype == DType::f64 ? s : static_cast<double>(static_cast<float>(s));
          };
          std::vector<long double> exact(x.size());
          for (size_t i = 0; i < x.size(); ++i) {
            exact[i] = row.exact(decode(dtype, x[i]), in_type(u.f), in_type(v.f));
          }
          expect_close(what, out, exact, ref::bound(row.op).of(dtype));
        }
        if (failed()) return;
      }
    }
  }
}

const bool added = [] {
  for (const UnaryRow& row : kUnary) {
    add_rows(row.op, [=](DType dtype) { check_unary(row, dtype); });
  }
  for (const BinaryRow& row : kBinary) {
    add_rows(row.op, [=](DType dtype) { check_binary(row, dtype); });
  }
  for (const UnaryWithRow& row : kUnaryWith) {
    add_rows(row.op, [=](DType dtype) { check_with(row, dtype); });
  }
  for (int d = 0; d < kRealDTypeCount; ++d) {
    const auto dtype = static_cast<DType>(d);
    if (!is_integer(dtype)) continue;
    for (Op op : {Op::div, Op::rem}) {
      add(fmt::format("{}_by_zero.{}", name(op), name(dtype)),
          [=] { check_zero_divisor(op, dtype); });
    }
  }
  return true;
}();

}  // namespace
}  // namespace wick::parity
