// Elementwise functions, comparisons, conversions and movement.

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <numbers>

#include "tests/soak/soak.h"
#include "wick/base/error.h"
#include "wick/tensor/ops.h"
#include "wick/tensor/random.h"

namespace wick::soak {
namespace {

constexpr Real kNan = std::numeric_limits<Real>::quiet_NaN();
constexpr Real kInfinity = std::numeric_limits<Real>::infinity();

/// The definition of each row for floats. A row without a definition doesn't compile.
namespace ref {
Real neg(Real x) { return -x; }
Real abs(Real x) { return std::fabs(x); }
Real sqr(Real x) { return x * x; }
Real sqrt(Real x) { return std::sqrt(x); }
Real rsqrt(Real x) { return 1 / std::sqrt(x); }
Real recip(Real x) { return 1 / x; }
Real exp(Real x) { return std::exp(x); }
Real log(Real x) { return std::log(x); }
Real tanh(Real x) { return std::tanh(x); }
Real sigmoid(Real x) { return x < 0 ? std::exp(x) / (1 + std::exp(x)) : 1 / (1 + std::exp(-x)); }
Real silu(Real x) { return x == -kInfinity ? -0.0L : x * sigmoid(x); }
Real relu(Real x) { return std::isnan(x) ? x : x > 0 ? x : 0; }
Real sign(Real x) { return std::isnan(x) || x == 0 ? x : x > 0 ? 1 : -1; }
Real floor(Real x) { return std::floor(x); }
Real ceil(Real x) { return std::ceil(x); }
Real round(Real x) { return std::round(x); }
Real sin(Real x) { return std::sin(x); }
Real cos(Real x) { return std::cos(x); }
Real log1p(Real x) { return std::log1p(x); }
Real expm1(Real x) { return std::expm1(x); }
Real erf(Real x) { return std::erf(x); }
Real normcdf(Real x) { return std::erfc(-x / std::numbers::sqrt2_v<Real>) / 2; }
Real gelu_erf(Real x) { return x == -kInfinity ? -0.0L : x * normcdf(x); }
Real gelu(Real x) {
  const Real u = std::sqrt(2 / std::numbers::pi_v<Real>) * (x + 0.044715L * x * x * x);
  return x == -kInfinity ? -0.0L : x * sigmoid(2 * u);
}
Real bitwise_not(Real x) { return x; }

Real add(Real a, Real b) { return a + b; }
Real sub(Real a, Real b) { return a - b; }
Real mul(Real a, Real b) { return a * b; }
Real div(Real a, Real b) { return a / b; }
bool below(Real a, Real b) { return a < b || (a == b && std::signbit(a) && !std::signbit(b)); }
Real maximum(Real a, Real b) { return std::isnan(a) || std::isnan(b) ? kNan : below(a, b) ? b : a; }
Real minimum(Real a, Real b) { return std::isnan(a) || std::isnan(b) ? kNan : below(b, a) ? b : a; }
Real rem(Real a, Real b) {
  const Real r = std::fmod(a, b);
  return r != 0 && std::signbit(r) != std::signbit(b) ? r + b : r;
}
Real pow(Real a, Real b) { return std::pow(a, b); }
Real atan2(Real a, Real b) { return std::atan2(a, b); }
Real silu_mul(Real a, Real b) { return silu(a) * b; }
Real bitwise_and(Real a, Real) { return a; }
Real bitwise_or(Real a, Real) { return a; }
Real bitwise_xor(Real a, Real) { return a; }
Real shift_left(Real a, Real) { return a; }
Real shift_right(Real a, Real) { return a; }

bool truth(Real x) { return x != 0 || std::isnan(x); }
bool eq(Real a, Real b) { return a == b; }
bool ne(Real a, Real b) { return !(a == b); }
bool lt(Real a, Real b) { return a < b; }
bool le(Real a, Real b) { return a <= b; }
bool gt(Real a, Real b) { return a > b; }
bool ge(Real a, Real b) { return a >= b; }
bool logical_and(Real a, Real b) { return truth(a) && truth(b); }
bool logical_or(Real a, Real b) { return truth(a) || truth(b); }
bool logical_xor(Real a, Real b) { return truth(a) != truth(b); }
bool isnan(Real x) { return std::isnan(x); }
bool isinf(Real x) { return std::isinf(x); }
bool logical_not(Real x) { return !truth(x); }
bool to_bool(Real x) { return truth(x); }
}  // namespace ref

/// The definitions for integers, before wrapping. `bits` is the width of the dtype.
namespace whole {
Int neg(Int x) { return -x; }
Int abs(Int x) { return x < 0 ? -x : x; }
Int sqr(Int x) { return x * x; }
Int relu(Int x) { return x > 0 ? x : 0; }
Int sign(Int x) { return x > 0 ? 1 : x < 0 ? -1 : 0; }
Int bitwise_not(Int x) { return -1 - x; }
Int add(Int a, Int b, int) { return a + b; }
Int sub(Int a, Int b, int) { return a - b; }
Int mul(Int a, Int b, int) { return a * b; }
Int div(Int a, Int b, int) { return a / b; }
Int maximum(Int a, Int b, int) { return std::max(a, b); }
Int minimum(Int a, Int b, int) { return std::min(a, b); }
Int rem(Int a, Int b, int) {
  const Int r = a % b;
  return r != 0 && (r < 0) != (b < 0) ? r + b : r;
}
Int bitwise_and(Int a, Int b, int) { return a & b; }
Int bitwise_or(Int a, Int b, int) { return a | b; }
Int bitwise_xor(Int a, Int b, int) { return a ^ b; }
Int shift_left(Int a, Int b, int bits) {
  if (b < 0 || b >= bits) return 0;
  for (Int i = 0; i < b; ++i) a = static_cast<Int>(static_cast<uint64_t>(a) * 2);
  return a;
}
Int shift_right(Int a, Int b, int bits) {
  return b < 0 || b >= bits ? (a < 0 ? -1 : 0) : a >> static_cast<int>(b);
}
}  // namespace whole

using WholeUnary = Int (*)(Int);
using WholeBinary = Int (*)(Int, Int, int);
struct UnaryRow {
  Op op;
  Tensor (*call)(const Tensor&);
  Real (*exact)(Real);
  WholeUnary on_whole;
};
struct BinaryRow {
  Op op;
  Tensor (*call)(const Tensor&, const Tensor&);
  Real (*exact)(Real, Real);
  WholeBinary on_whole;
};
struct CompareRow {
  Op op;
  Tensor (*call)(const Tensor&, const Tensor&);
  bool (*holds)(Real, Real);
};
struct TestRow {
  Op op;
  Tensor (*call)(const Tensor&);
  bool (*holds)(Real);
};
#define WICK_WHOLE_Real(f) f
#define WICK_WHOLE_Any(f) f
#define WICK_WHOLE_Bits(f) f
#define WICK_WHOLE_Integers(f) f
#define WICK_WHOLE_Floats(f) nullptr
constexpr UnaryRow kUnary[] = {
#define WICK_UNARY(name, set, ...) \
  {Op::name, &wick::name, &ref::name, WICK_WHOLE_##set(&whole::name)},
#include "wick/op/ops.def"
};
constexpr BinaryRow kBinary[] = {
#define WICK_BINARY(name, set, ...) \
  {Op::name, &wick::name, &ref::name, WICK_WHOLE_##set(&whole::name)},
#include "wick/op/ops.def"
};
constexpr CompareRow kCompare[] = {
#define WICK_COMPARE(name, ...) {Op::name, &wick::name, &ref::name},
#include "wick/op/ops.def"
};
constexpr TestRow kTest[] = {
#define WICK_TEST(name, ...) {Op::name, &wick::name, &ref::name},
#include "wick/op/ops.def"
};

template <class Rows>
const auto& row_of(const Rows& rows, Op op) {
  return *std::find_if(std::begin(rows), std::end(rows), [&](const auto& r) { return r.op == op; });
}

/// Returns the error that numerics.md permits for a function of each dtype, with a margin for
/// functions of two steps.
Real ulps_of(DType dtype) { return dtype == DType::f64 || dtype == DType::f32 ? 4.5L : 1.0L; }

Values any_values(Case& c) { return c.one_in(3) ? Values::special : Values::ordinary; }

Real as_bool(bool x) { return x ? 1 : 0; }

/// Returns a number of the form n/2 that the dtype represents.
Real half_number(Case& c, DType dtype) {
  const Real x = static_cast<Real>(c.between(-12, 12));
  if (is_float(dtype)) return x / 2;
  return info(dtype).kind == DTypeKind::signed_integer ? x : std::fabs(x);
}

Scalar scalar_of(DType dtype, Real x) {
  return is_float(dtype) ? Scalar(static_cast<double>(x)) : Scalar(static_cast<int64_t>(x));
}

}  // namespace

void unary_case(Case& c, Op op) {
  const UnaryRow& row = row_of(kUnary, op);
  const DType dtype = c.dtype(info(op).dtypes);
  const Operand x = c.operand(dtype, c.shape(0, 8), any_values(c));
  Array y(dtype, x.a.shape);
  for (int64_t i = 0; i < y.elems(); ++i) {
    if (is_float(dtype)) {
      y[i] = row.exact(x.a[i]);
    } else {
      const Int exact = row.on_whole(static_cast<Int>(x.a[i]));
      y[i] = wrap(dtype, dtype == DType::boolean ? static_cast<Int>(x.a[i] == 0) : exact);
    }
  }
  c.expect(row.call(x.x), y, {is_float(dtype) ? ulps_of(dtype) : 0, {}});
}

void binary_case(Case& c, Op op) {
  const BinaryRow& row = row_of(kBinary, op);
  const DType dtype = c.dtype(info(op).dtypes);
  const Shape shape = c.shape(0, 8);
  const bool divides = op == Op::div || op == Op::rem,
             shifts = op == Op::shift_left || op == Op::shift_right;
  const Operand a = c.operand(dtype, c.broadcasting(shape), any_values(c));
  const bool nonzero = divides && !is_float(dtype);
  const Operand b = c.operand(dtype, shape,
                              nonzero  ? Values::positive
                              : shifts ? Values::ordinary
                                       : any_values(c));
  Array y(dtype, shape);
  Bound bound{is_float(dtype) ? ulps_of(dtype) : 0, {}};
  int64_t i = 0;
  for_each_index(shape, [&](std::span<const int64_t> index) {
    const Real p = a.a[broadcast_at(a.a.shape, index)], q = b.a[i];
    if (is_float(dtype)) {
      y[i] = row.exact(p, q);
      // A remainder close to a multiple may fall on either side of it; silu(a) may be denormal.
      Real slack = op == Op::silu_mul ? std::fabs(q) * 0x1p-148L : 0;
      const Real least = dtype == DType::f64 ? 0x1p-1075L : 0x1p-150L;
      // The gate rounds to 0 and is multiplied by infinity.
      if (op == Op::silu_mul && std::isinf(q) && std::fabs(ref::silu(p)) < least) y[i] = kNan;
      if (op == Op::rem && std::isfinite(q)) slack = parity::ulp(dtype, q);
      if (dtype == DType::f64 && op == Op::silu_mul) slack = std::fabs(q) * 0x1p-1073L;
      bound.slack.push_back(std::isfinite(slack) ? slack : 0);
    } else {
      y[i] = wrap(dtype, row.on_whole(static_cast<Int>(p), static_cast<Int>(q),
                                      8 * static_cast<int>(info(dtype).block_bytes)));
    }
    ++i;
  });
  c.expect(row.call(a.x, b.x), y, bound);
}

void compare_case(Case& c, Op op) {
  const CompareRow& row = row_of(kCompare, op);
  const DType dtype = c.dtype(info(op).dtypes);
  const Shape shape = c.shape(0, 8);
  const Operand a = c.operand(dtype, shape, any_values(c));
  const Operand b = c.operand(dtype, c.broadcasting(shape), any_values(c));
  Array y(DType::boolean, shape);
  int64_t i = 0;
  for_each_index(shape, [&](std::span<const int64_t> index) {
    y[i] = as_bool(row.holds(a.a[i], b.a[broadcast_at(b.a.shape, index)]));
    ++i;
  });
  c.expect(row.call(a.x, b.x), y);
}

void test_case(Case& c, Op op) {
  const TestRow& row = row_of(kTest, op);
  const Operand x = c.operand(c.dtype(info(op).dtypes), c.shape(0, 8), any_values(c));
  Array y(DType::boolean, x.a.shape);
  for (int64_t i = 0; i < y.elems(); ++i) y[i] = as_bool(row.holds(x.a[i]));
  c.expect(row.call(x.x), y);
}

void unary_with_case(Case& c, Op op) {
  const DType dtype = c.dtype(info(op).dtypes);
  const Operand x = c.operand(dtype, c.shape(0, 8), any_values(c));
  const Real p = half_number(c, dtype), q = half_number(c, dtype);
  c.note(fmt::format("p {} q {}", static_cast<double>(p), static_cast<double>(q)));
  Array y(dtype, x.a.shape);
  Bound bound{is_float(dtype) ? ulps_of(dtype) : 0, std::vector<Real>(x.a.v.size())};
  const DType computes = dtype == DType::f64 ? DType::f64 : DType::f32;
  for (int64_t i = 0; i < y.elems(); ++i) {
    const Real v = x.a[i];
    switch (op) {
      case Op::affine:
        y[i] = is_float(dtype)
                   ? v * p + q
                   : wrap(dtype, static_cast<Int>(v) * static_cast<Int>(p) + static_cast<Int>(q));
        if (is_float(dtype) && std::isfinite(v * p)) {
          bound.slack[static_cast<size_t>(i)] = parity::ulp(computes, v * p);
        }
        break;
      case Op::clamp:
        y[i] = std::isnan(v) ? v : ref::minimum(ref::maximum(v, p), q);
        break;
      case Op::powf:
        y[i] = std::pow(v, p);
        break;
      default:  // elu
        y[i] = std::isnan(v) || v > 0 ? v : p * std::expm1(v);
    }
  }
  const Scalar sp = scalar_of(dtype, p), sq = scalar_of(dtype, q);
  c.expect(op == Op::affine  ? affine(x.x, sp, sq)
           : op == Op::clamp ? clamp(x.x, sp, sq)
           : op == Op::powf  ? powf(x.x, sp)
                             : elu(x.x, sp),
           y, op == Op::clamp ? Bound{0.001L, {}} : bound);
}

void where_case(Case& c) {
  const DType dtype = c.dtype(dtypes::kAny);
  const Shape shape = c.shape(0, 8);
  const bool fills = c.one_in(3);
  const Operand condition = c.operand(c.dtype(dtypes::kConditions), c.broadcasting(shape));
  const Operand a = c.operand(dtype, fills ? Shape{} : c.broadcasting(shape), any_values(c));
  const Operand b = c.operand(dtype, shape, any_values(c));
  const Real filling = half_number(c, dtype);
  Array y(dtype, shape);
  int64_t i = 0;
  for_each_index(shape, [&](std::span<const int64_t> index) {
    const bool yes = condition.a[broadcast_at(condition.a.shape, index)] != 0;
    const Real value = dtype == DType::boolean ? as_bool(filling != 0) : filling;
    y[i] = !yes ? b.a[i] : fills ? value : a.a[broadcast_at(a.a.shape, index)];
    ++i;
  });
  c.expect(fills ? masked_fill(b.x, condition.x, scalar_of(dtype, filling))
                 : where(condition.x, a.x, b.x),
           y);
}

void fill_case(Case& c) {
  const DType dtype = c.dtype(dtypes::kAny);
  const Real value = half_number(c, dtype);
  Array y(dtype, c.shape(0, 8));
  std::fill(y.v.begin(), y.v.end(), dtype == DType::boolean ? as_bool(value != 0) : value);
  c.expect(Tensor::full(y.shape, scalar_of(dtype, value), dtype, c.device), y);
}

void iota_case(Case& c) {
  const DType dtype = c.dtype(dtypes::kReal);
  const int64_t count = c.size(c.most_elems);
  const Real start = half_number(c, dtype), by = half_number(c, dtype);
  c.note(
      fmt::format("{} from {} by {}", count, static_cast<double>(start), static_cast<double>(by)));
  Array y(dtype, Shape{count});
  for (int64_t i = 0; i < count; ++i) {
    const Real v = start + static_cast<Real>(i) * by;
    y[i] = is_float(dtype) ? rounded(dtype, v) : wrap(dtype, static_cast<Int>(v));
  }
  c.expect(Tensor::arange(scalar_of(dtype, start), count, scalar_of(dtype, by), dtype, c.device), y,
           {is_float(dtype) ? 0.001L : 0, {}});
}

void cast_case(Case& c) {
  const DType from = c.dtype(dtypes::kAny), to = c.dtype(dtypes::kAny);
  const Operand x = c.operand(from, c.shape(0, 8), any_values(c));
  c.note(fmt::format("to {}", name(to)));
  Array y(to, x.a.shape);
  for (int64_t i = 0; i < y.elems(); ++i) {
    const Real v = x.a[i];
    if (to == DType::boolean) {
      y[i] = as_bool(ref::truth(v));
    } else if (is_float(to)) {
      y[i] = rounded(to, v);
    } else if (!is_float(from)) {
      y[i] = wrap(to, static_cast<Int>(v));
    } else {
      const int bits = 8 * static_cast<int>(info(to).block_bytes);
      const bool has_sign = info(to).kind == DTypeKind::signed_integer;
      const Real most = std::ldexp(1.0L, has_sign ? bits - 1 : bits) - 1;
      const Real least = has_sign ? -std::ldexp(1.0L, bits - 1) : 0;
      y[i] = std::isnan(v) ? 0 : std::clamp(std::trunc(v), least, most) + 0.0L;
    }
  }
  c.expect(cast(x.x, to), y);
}

void random_case(Case& c, Op op) {
  const DType dtype = c.float_dtype();
  const Shape shape = c.shape(0, 8);
  const Tensor x = op == Op::uniform ? uniform(shape, -1, 3, dtype, c.device)
                                     : normal(shape, 1, 2, dtype, c.device);
  if (!c.result(x)) return;
  // The parity tests check the sequence itself. This checks the range, and that the numbers differ.
  const Array a = read(x);
  Real sum = 0;
  for (const Real v : a.v) {
    const bool right = op == Op::uniform ? v >= -1 && v <= 3 : std::fabs(v - 1) <= 2 * 9;
    if (!right) c.fail(fmt::format("{} is out of range in {}", static_cast<double>(v), x.str()));
    sum += v;
  }
  const auto n = static_cast<Real>(a.elems());
  if (n > 500 && std::fabs(sum / n - 1) > 8 * 2 / std::sqrt(n))
    c.fail("the mean is far off in " + x.str());
}

}  // namespace wick::soak
