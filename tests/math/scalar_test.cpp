#include <gtest/gtest.h>

#include <algorithm>
#include <cfloat>
#include <cmath>
#include <limits>
#include <string>

#include "tests/math/loops.h"
#include "tests/math/oracle.h"
#include "tests/math/samples.h"
#include "wick/math/arithmetic.h"

namespace wick::math_test {
namespace {

constexpr float kInf = std::numeric_limits<float>::infinity();
constexpr float kNaN = std::numeric_limits<float>::quiet_NaN();

/// Returns the number of positions where two results differ; any NaN equals any other.
template <class F>
std::size_t differing(const std::vector<F>& a, const std::vector<F>& b) {
  std::size_t n = 0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    if (a[i] != a[i] && b[i] != b[i]) continue;
    n += std::memcmp(&a[i], &b[i], sizeof(F)) != 0 ? 1 : 0;
  }
  return n;
}

class F32 : public testing::TestWithParam<int> {};

/// Tests 2 million patterns, a million numbers near 1 and every edge case: the error, and equal
/// bits from scalar calls and from the vectorized loops of every instruction set.
TEST_P(F32, WithinLimitAndSameBits) {
  const auto f = static_cast<Unary>(GetParam());
  std::vector<float> x = spread_f32(std::size_t{1} << 21, 12345u + static_cast<std::uint32_t>(f));
  const std::vector<float> edges = edges_f32(), middle = middle_f32(std::size_t{1} << 20, 3);
  x.insert(x.end(), edges.begin(), edges.end());
  x.insert(x.end(), middle.begin(), middle.end());
  std::vector<float> y(x.size()), other(x.size());
  const std::vector<NamedLoops> sets = available_loops();
  sets.back().loops->unary[kFloat32][f](x.data(), y.data(), x.size());
  for (const NamedLoops& set : sets) {
    set.loops->unary[kFloat32][f](x.data(), other.data(), x.size());
    EXPECT_EQ(differing(y, other), 0u) << set.name << " against " << sets.back().name;
  }
  double worst = 0;
  std::size_t at = 0;
  for (std::size_t i = 0; i < x.size(); ++i) {
    const double error = ulp_error(y[i], fast_value(f, static_cast<double>(x[i])));
    if (error > worst) worst = error, at = i;
  }
  EXPECT_LE(worst, limit_f32(f)) << "at " << x[at] << ": " << y[at];
  RecordProperty("worst_ulp", std::to_string(worst));
}

/// Compares the edge cases and a sample with MPFR, which also checks the fast reference.
TEST_P(F32, WithinLimitOfMpfr) {
  const auto f = static_cast<Unary>(GetParam());
  std::vector<float> x = edges_f32();
  const std::vector<float> more = spread_f32(20000, 777);
  x.insert(x.end(), more.begin(), more.end());
  std::vector<float> y(x.size());
  available_loops().back().loops->unary[kFloat32][f](x.data(), y.data(), x.size());
  for (std::size_t i = 0; i < x.size(); ++i) {
    const double want = true_value(f, static_cast<double>(x[i]));
    ASSERT_LE(ulp_error(y[i], want), limit_f32(f)) << "at " << x[i] << ": " << y[i];
    const double fast = fast_value(f, static_cast<double>(x[i]));
    if (std::isnan(want) || std::isinf(want)) {
      ASSERT_EQ(std::isnan(fast), std::isnan(want)) << x[i];
    } else if (std::fabs(want) < 0x1p128) {
      ASSERT_LE(std::fabs(fast - want), std::max(std::fabs(want) * fast_error(f), 0x1p-180))
          << x[i];
    }
  }
}

/// The loops of a narrow type, whose patterns are bytes or 16-bit words.
struct Narrow {
  const SmallFloat& format;
  Float type;
  std::size_t bytes;

  std::vector<std::uint32_t> run(const NamedLoops& set, Unary f) const {
    std::vector<unsigned char> in(format.patterns() * bytes), out(in.size());
    for (std::uint32_t i = 0; i < format.patterns(); ++i) put(in, i, i);
    set.loops->unary[type][f](in.data(), out.data(), format.patterns());
    return patterns(out);
  }
  std::vector<std::uint32_t> run(const NamedLoops& set, Binary f,
                                 const std::vector<std::uint32_t>& a,
                                 const std::vector<std::uint32_t>& b) const {
    std::vector<unsigned char> x(a.size() * bytes), y(x.size()), out(x.size());
    for (std::size_t i = 0; i < a.size(); ++i) put(x, i, a[i]), put(y, i, b[i]);
    set.loops->binary[type][static_cast<int>(f)](x.data(), y.data(), out.data(), a.size());
    return patterns(out);
  }
  /// Returns whether `got` is the pattern nearest to `value`, or an adjacent one that is less than
  /// 1 ulp away.
  bool near(std::uint32_t got, double value) const {
    const std::uint32_t want = format.nearest(static_cast<long double>(value));
    if (format.is_nan(want) || format.is_nan(got)) return format.is_nan(want) && format.is_nan(got);
    if ((got ^ want) & format.sign_bit()) return false;
    return std::abs(static_cast<int>(got) - static_cast<int>(want)) <= 1;
  }

 private:
  void put(std::vector<unsigned char>& to, std::size_t i, std::uint32_t pattern) const {
    for (std::size_t k = 0; k < bytes; ++k) {
      to[i * bytes + k] = static_cast<unsigned char>(pattern >> 8 * k);
    }
  }
  std::vector<std::uint32_t> patterns(const std::vector<unsigned char>& from) const {
    std::vector<std::uint32_t> all(from.size() / bytes);
    for (std::size_t i = 0; i < from.size(); ++i) {
      all[i / bytes] |= std::uint32_t{from[i]} << 8 * (i % bytes);
    }
    return all;
  }
};

/// Tests all values of a narrow type, which are computed in f32 and rounded once: the error is
/// within 1 ulp of the type, and all instruction sets give equal bits.
void check_narrow(Unary f, const Narrow& narrow) {
  const std::vector<NamedLoops> sets = available_loops();
  const std::vector<std::uint32_t> y = narrow.run(sets.back(), f);
  for (const NamedLoops& set : sets) {
    const std::vector<std::uint32_t> other = narrow.run(set, f);
    for (std::uint32_t i = 0; i < y.size(); ++i) {
      if (narrow.format.is_nan(y[i]) && narrow.format.is_nan(other[i])) continue;
      ASSERT_EQ(y[i], other[i]) << set.name << " at pattern " << i;
    }
  }
  for (std::uint32_t i = 0; i < y.size(); ++i) {
    const double x = narrow.format.value(i);
    ASSERT_TRUE(narrow.near(y[i], true_value(f, x)))
        << "at " << x << ": " << narrow.format.value(y[i]);
  }
}
Narrow f16_loops() { return {small_f16(), kFloat16, 2}; }
Narrow bf16_loops() { return {small_bf16(), kFloatB16, 2}; }
Narrow f8_loops() { return {small_f8e4m3(), kFloat8, 1}; }
TEST_P(F32, AllOfF16) { check_narrow(static_cast<Unary>(GetParam()), f16_loops()); }
TEST_P(F32, AllOfBF16) { check_narrow(static_cast<Unary>(GetParam()), bf16_loops()); }
TEST_P(F32, AllOfF8) { check_narrow(static_cast<Unary>(GetParam()), f8_loops()); }
/// The functions that narrow.h defines for a type must give the rounded bits of the f32 functions.
void check_same_as_f32(Unary f, const Narrow& narrow) {
  std::vector<float> wide(narrow.format.patterns()), want(wide.size());
  for (std::uint32_t i = 0; i < wide.size(); ++i) {
    wide[i] = static_cast<float>(narrow.format.value(i));
  }
  for (const NamedLoops& set : available_loops()) {
    const std::vector<std::uint32_t> got = narrow.run(set, f);
    set.loops->unary[kFloat32][f](wide.data(), want.data(), wide.size());
    for (std::uint32_t i = 0; i < wide.size(); ++i) {
      if (std::isnan(want[i]) && narrow.format.is_nan(got[i])) continue;
      ASSERT_EQ(got[i], narrow.format.nearest(static_cast<long double>(want[i])))
          << set.name << " at " << wide[i];
    }
  }
}
TEST_P(F32, NarrowTypesHaveTheBitsOfF32) {
  for (const Narrow& narrow : {f16_loops(), bf16_loops(), f8_loops()}) {
    check_same_as_f32(static_cast<Unary>(GetParam()), narrow);
  }
}

INSTANTIATE_TEST_SUITE_P(Math, F32, testing::Range(0, static_cast<int>(kUnaries)),
                         [](const auto& test) { return kUnaryNames[test.param]; });

/// Every op of one float argument must be among the tested functions, by its name in ops.def.
TEST(Scalar, EveryOpOfOneArgumentIsHeldAgainstMpfr) {
  const std::pair<std::string, std::string> rows[] = {
#define WICK_UNARY(name, dtypes, ...) {#name, #dtypes},
#include "wick/op/ops.def"
  };
  EXPECT_GT(std::size(rows), 20u);
  for (const auto& [name, dtypes] : rows) {
    if (dtypes == "Integers" || dtypes == "Bits") continue;
    EXPECT_NE(std::find(std::begin(kUnaryNames), std::end(kUnaryNames), name),
              std::end(kUnaryNames))
        << name;
  }
}

class F64 : public testing::TestWithParam<int> {};

TEST_P(F64, WithinLimitAndSameBits) {
  const auto f = static_cast<Unary>(GetParam());
  std::vector<double> x = random_f64(60000, 7 + static_cast<unsigned>(f));
  const std::vector<double> edges = edges_f64();
  x.insert(x.end(), edges.begin(), edges.end());
  const std::vector<double> middle = middle_f64(30000, 11);
  x.insert(x.end(), middle.begin(), middle.end());
  if (f == k_sin || f == k_cos) {  // near multiples of pi/2
    for (int k = 1; k < 20000; ++k) x.push_back(static_cast<double>(k * 34359.0) * M_PI_2);
    for (int k = 1; k < 2000; ++k) x.push_back(k * M_PI_2);
    // The double nearest to a multiple of pi/2, both sides of the threshold of the reduction, and
    // every exponent.
    for (const double v : {0x1.6ac5b262ca1ffp+849, 0x1p30, std::nextafter(0x1p30, kInf), 1e22, DBL_MAX}) {
      x.push_back(v), x.push_back(-v);
    }
    for (int e = 29; e < 1024; ++e) {
      for (const double m : {1.0, M_PI_2, M_PI_4 + 0.5, 1.9999999999999998}) x.push_back(std::ldexp(m, e));
    }
  }
  std::vector<double> y(x.size()), other(x.size());
  const std::vector<NamedLoops> sets = available_loops();
  sets.back().loops->unary[kFloat64][f](x.data(), y.data(), x.size());
  for (const NamedLoops& set : sets) {
    set.loops->unary[kFloat64][f](x.data(), other.data(), x.size());
    EXPECT_EQ(differing(y, other), 0u) << set.name << " against " << sets.back().name;
  }
  double worst = 0;
  std::size_t at = 0;
  for (std::size_t i = 0; i < x.size(); ++i) {
    const double error = ulp_error_f64(f, x[i], y[i]);
    if (error > worst) worst = error, at = i;
  }
  EXPECT_LE(worst, limit_f64(f)) << "at " << x[at] << ": " << y[at];
  RecordProperty("worst_ulp", std::to_string(worst));
}

INSTANTIATE_TEST_SUITE_P(Math, F64, testing::Range(0, static_cast<int>(kUnaries)),
                         [](const auto& test) { return kUnaryNames[test.param]; });

/// All pairs of special numbers, then n random pairs.
template <class F>
void pairs(Binary f, std::size_t n, std::vector<F>* a, std::vector<F>* b) {
  const std::vector<F> special = specials<F>();
  for (const F x : special) {
    for (const F y : special) a->push_back(x), b->push_back(y);
  }
  std::mt19937_64 g(static_cast<unsigned>(f) + 17);
  for (std::size_t i = 0; i < n; ++i) {
    const auto [x, y] = random_pair<F>(f, g);
    a->push_back(x), b->push_back(y);
  }
}

class F32Pairs : public testing::TestWithParam<int> {};

TEST_P(F32Pairs, WithinLimitAndSameBits) {
  const auto f = static_cast<Binary>(GetParam());
  std::vector<float> a, b;
  pairs<float>(f, 60000, &a, &b);
  std::vector<float> y(a.size()), other(a.size());
  const std::vector<NamedLoops> sets = available_loops();
  sets.back().loops->binary[kFloat32][GetParam()](a.data(), b.data(), y.data(), a.size());
  for (const NamedLoops& set : sets) {
    set.loops->binary[kFloat32][GetParam()](a.data(), b.data(), other.data(), a.size());
    EXPECT_EQ(differing(y, other), 0u) << set.name << " against " << sets.back().name;
  }
  double worst = 0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    const double error =
        ulp_error(y[i], true_value(f, static_cast<double>(a[i]), static_cast<double>(b[i])));
    ASSERT_LE(error, limit_f32(f)) << "at " << a[i] << ", " << b[i] << ": " << y[i];
    worst = std::max(worst, error);
  }
  RecordProperty("worst_ulp", std::to_string(worst));
}

TEST_P(F32Pairs, Narrow) {
  const auto f = static_cast<Binary>(GetParam());
  for (const Narrow& narrow : {f16_loops(), bf16_loops(), f8_loops()}) {
    std::vector<std::uint32_t> a, b;
    std::mt19937 g(5);
    for (int i = 0; i < 50000; ++i) {
      a.push_back(static_cast<std::uint32_t>(g() % narrow.format.patterns()));
      b.push_back(static_cast<std::uint32_t>(g() % narrow.format.patterns()));
    }
    const std::vector<NamedLoops> sets = available_loops();
    const std::vector<std::uint32_t> y = narrow.run(sets.back(), f, a, b);
    for (const NamedLoops& set : sets) {
      const std::vector<std::uint32_t> other = narrow.run(set, f, a, b);
      for (std::size_t i = 0; i < y.size(); ++i) {
        if (narrow.format.is_nan(y[i]) && narrow.format.is_nan(other[i])) continue;
        ASSERT_EQ(y[i], other[i]) << set.name << " at " << a[i] << ", " << b[i];
      }
    }
    for (std::size_t i = 0; i < y.size(); ++i) {
      const double u = narrow.format.value(a[i]), v = narrow.format.value(b[i]);
      ASSERT_TRUE(narrow.near(y[i], true_value(f, u, v)))
          << "at " << u << ", " << v << ": " << narrow.format.value(y[i]);
    }
  }
}

TEST_P(F32Pairs, Doubles) {
  const auto f = static_cast<Binary>(GetParam());
  std::vector<double> a, b;
  pairs<double>(f, 40000, &a, &b);
  std::vector<double> y(a.size()), other(a.size());
  const std::vector<NamedLoops> sets = available_loops();
  sets.back().loops->binary[kFloat64][GetParam()](a.data(), b.data(), y.data(), a.size());
  for (const NamedLoops& set : sets) {
    set.loops->binary[kFloat64][GetParam()](a.data(), b.data(), other.data(), a.size());
    EXPECT_EQ(differing(y, other), 0u) << set.name << " against " << sets.back().name;
  }
  double worst = 0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    const double error = ulp_error_f64(f, a[i], b[i], y[i]);
    ASSERT_LE(error, limit_f64(f)) << "at " << a[i] << ", " << b[i] << ": " << y[i];
    worst = std::max(worst, error);
  }
  RecordProperty("worst_ulp", std::to_string(worst));
}

INSTANTIATE_TEST_SUITE_P(Math, F32Pairs, testing::Range(0, kBinaries),
                         [](const auto& test) { return kBinaryNames[test.param]; });

/// The form for arguments near 0 must give the bits of the general form.
TEST(Scalar, SineAndCosineOfNear) {
  std::vector<float> x = spread_f32(std::size_t{1} << 20, 5);
  const std::vector<float> edges = edges_f32();
  x.insert(x.end(), edges.begin(), edges.end());
  std::erase_if(x, [](float v) { return std::fabs(v) > 0x1p40f; });
  std::vector<float> whole(x.size()), near(x.size());
  for (const NamedLoops& set : available_loops()) {
    set.loops->unary[kFloat32][k_sin](x.data(), whole.data(), x.size());
    set.loops->sin_of_near(x.data(), near.data(), x.size());
    EXPECT_EQ(differing(whole, near), 0u) << set.name;
    set.loops->unary[kFloat32][k_cos](x.data(), whole.data(), x.size());
    set.loops->cos_of_near(x.data(), near.data(), x.size());
    EXPECT_EQ(differing(whole, near), 0u) << set.name;
  }
  std::vector<double> wide = middle_f64(100000, 3), y(wide.size()), z(wide.size());
  std::erase_if(wide, [](double v) { return std::fabs(v) > 0x1p30; });
  for (const NamedLoops& set : available_loops()) {
    set.loops->unary[kFloat64][k_sin](wide.data(), y.data(), wide.size());
    set.loops->sin_of_near_f64(wide.data(), z.data(), wide.size());
    EXPECT_EQ(differing(y, z), 0u) << set.name;
    set.loops->unary[kFloat64][k_cos](wide.data(), y.data(), wide.size());
    set.loops->cos_of_near_f64(wide.data(), z.data(), wide.size());
    EXPECT_EQ(differing(y, z), 0u) << set.name;
  }
}

/// Limits and special values written by hand, which also check the reference.
TEST(Scalar, SpecialValues) {
  EXPECT_EQ(math::exp(0.0f), 1.0f);
  EXPECT_EQ(math::exp(-0.0f), 1.0f);
  EXPECT_EQ(math::exp(89.0f), kInf);
  EXPECT_EQ(math::exp(kInf), kInf);
  EXPECT_EQ(math::exp(-kInf), 0.0f);
  EXPECT_EQ(math::exp(-100.0f), 3.783506e-44f);
  EXPECT_EQ(math::exp(-104.0f), 0.0f);
  EXPECT_TRUE(std::isnan(math::exp(kNaN)));
  EXPECT_EQ(math::exp(-745.0), 4.94065645841246544e-324);
  EXPECT_EQ(math::exp(710.0), static_cast<double>(kInf));

  EXPECT_EQ(math::log(1.0f), 0.0f);
  EXPECT_FALSE(std::signbit(math::log(1.0f)));
  EXPECT_EQ(math::log(0.0f), -kInf);
  EXPECT_EQ(math::log(-0.0f), -kInf);
  EXPECT_EQ(math::log(kInf), kInf);
  EXPECT_EQ(math::log(0x1p-149f), -103.278929903431851f);
  EXPECT_TRUE(std::isnan(math::log(-1.0f)));
  EXPECT_TRUE(std::isnan(math::log(-kInf)));
  EXPECT_TRUE(std::isnan(math::log(kNaN)));

  EXPECT_EQ(math::tanh(kInf), 1.0f);
  EXPECT_EQ(math::tanh(-kInf), -1.0f);
  EXPECT_TRUE(std::signbit(math::tanh(-0.0f)));
  EXPECT_EQ(math::tanh(0x1p-149f), 0x1p-149f);

  EXPECT_EQ(math::sigmoid(0.0f), 0.5f);
  EXPECT_EQ(math::sigmoid(kInf), 1.0f);
  EXPECT_EQ(math::sigmoid(-kInf), 0.0f);
  EXPECT_EQ(math::sigmoid(-100.0f), 3.783506e-44f);  // here 1/(1 + exp(100)) would give 0

  EXPECT_EQ(math::silu(kInf), kInf);
  EXPECT_EQ(math::silu(-kInf), 0.0f);
  EXPECT_TRUE(std::signbit(math::silu(-kInf)));
  EXPECT_TRUE(std::signbit(math::silu(-0.0f)));
  EXPECT_EQ(math::silu(-100.0f), -3.720076e-42f);  // not −100 times the denormal above

  EXPECT_EQ(math::rsqrt(0.0f), kInf);
  EXPECT_EQ(math::rsqrt(-0.0f), -kInf);
  EXPECT_EQ(math::rsqrt(4.0f), 0.5f);
  EXPECT_EQ(math::rsqrt(kInf), 0.0f);
  EXPECT_TRUE(std::isnan(math::rsqrt(-1.0f)));

  EXPECT_FALSE(std::signbit(math::relu(-0.0f)));
  EXPECT_TRUE(std::isnan(math::relu(kNaN)));
  EXPECT_EQ(math::round(0.5f), 1.0f);
  EXPECT_EQ(math::round(-2.5f), -3.0f);
  EXPECT_EQ(math::round(0.49999997f), 0.0f);
  EXPECT_EQ(math::rint(2.5f), 2.0f);
  EXPECT_EQ(math::rint(-0.5f), 0.0f);
  EXPECT_TRUE(std::signbit(math::rint(-0.5f)));

  EXPECT_EQ(math::sin(0x1p-1074), 0x1p-1074);
  EXPECT_TRUE(std::signbit(math::sin(-0.0)));
  EXPECT_EQ(math::cos(0.0), 1.0);
  EXPECT_TRUE(std::isnan(math::sin(static_cast<double>(kInf))));
  EXPECT_TRUE(std::isnan(math::sin(kInf)));
  EXPECT_TRUE(std::isnan(math::cos(-kInf)));
  EXPECT_TRUE(std::signbit(math::sin(-0.0f)));
  EXPECT_EQ(math::cos(0x1p-149f), 1.0f);

  EXPECT_EQ(math::expm1(-kInf), -1.0f);
  EXPECT_EQ(math::expm1(kInf), kInf);
  EXPECT_TRUE(std::signbit(math::expm1(-0.0f)));
  EXPECT_EQ(math::expm1(0x1p-149f), 0x1p-149f);
  EXPECT_EQ(math::log1p(-1.0f), -kInf);
  EXPECT_EQ(math::log1p(kInf), kInf);
  EXPECT_TRUE(std::isnan(math::log1p(-1.5f)));
  EXPECT_TRUE(std::signbit(math::log1p(-0.0f)));
  EXPECT_EQ(math::erf(kInf), 1.0f);
  EXPECT_EQ(math::erf(-kInf), -1.0f);
  EXPECT_TRUE(std::signbit(math::erf(-0.0f)));
  EXPECT_EQ(math::normcdf(0.0f), 0.5f);
  EXPECT_EQ(math::normcdf(kInf), 1.0f);
  EXPECT_EQ(math::normcdf(-kInf), 0.0f);
  EXPECT_FALSE(std::signbit(math::normcdf(-kInf)));
  for (float (*gelu)(float) :
       {+[](float x) { return math::gelu(x); }, +[](float x) { return math::gelu_erf(x); }}) {
    EXPECT_EQ(gelu(kInf), kInf);
    EXPECT_EQ(gelu(-kInf), 0.0f);
    EXPECT_TRUE(std::signbit(gelu(-kInf)));
    EXPECT_TRUE(std::signbit(gelu(-0.0f)));
    EXPECT_TRUE(std::isnan(gelu(kNaN)));
  }
  EXPECT_EQ(math::elu(-kInf, 0.5f), -0.5f);
  EXPECT_EQ(math::elu(3.0f, 0.5f), 3.0f);

  EXPECT_EQ(math::sign(-3.0f), -1.0f);
  EXPECT_EQ(math::sign(0x1p-149f), 1.0f);
  EXPECT_TRUE(std::signbit(math::sign(-0.0f)));
  EXPECT_EQ(math::sign(-0.0f), 0.0f);
  EXPECT_TRUE(std::isnan(math::sign(kNaN)));
  EXPECT_EQ(math::ceil(-0.5f), 0.0f);
  EXPECT_TRUE(std::signbit(math::ceil(-0.5f)));
  for (const float x : {kNaN, -kNaN}) {
    EXPECT_TRUE(math::isnan(x) && math::isnan(static_cast<double>(x)));
    EXPECT_FALSE(math::isinf(x) || math::isinf(static_cast<double>(x)));
  }
  for (const float x : {kInf, -kInf}) {
    EXPECT_TRUE(math::isinf(x) && math::isinf(static_cast<double>(x)));
    EXPECT_FALSE(math::isnan(x) || math::isnan(static_cast<double>(x)));
  }
  EXPECT_FALSE(math::isnan(3.4e38f) || math::isinf(3.4e38f) || math::isinf(1.7e308));
  EXPECT_EQ(math::clamp(5.0f, -1.0f, 2.0f), 2.0f);
  EXPECT_EQ(math::clamp(-5.0, -1.0, 2.0), -1.0);
  EXPECT_TRUE(std::isnan(math::clamp(kNaN, -1.0f, 2.0f)));

  EXPECT_EQ(math::rem(5.5f, -2.0f), -0.5f);
  EXPECT_EQ(math::rem(-5.5f, 2.0f), 0.5f);
  EXPECT_EQ(math::rem(1e38f, 1e-45f), 0.0f);
  EXPECT_EQ(math::rem(5.0f, kInf), 5.0f);
  EXPECT_EQ(math::rem(-5.0f, kInf), kInf);
  EXPECT_TRUE(std::isnan(math::rem(kInf, 5.0f)));
  EXPECT_TRUE(std::isnan(math::rem(5.0f, 0.0f)));
  EXPECT_TRUE(std::signbit(math::rem(4.0f, -2.0f)));
  EXPECT_EQ(math::rem(1.7e308, 3.0), std::fmod(1.7e308, 3.0));

  EXPECT_EQ(math::pow(kNaN, 0.0f), 1.0f);
  EXPECT_EQ(math::pow(1.0f, kNaN), 1.0f);
  EXPECT_EQ(math::pow(-1.0f, kInf), 1.0f);
  EXPECT_EQ(math::pow(-0.0f, -3.0f), -kInf);
  EXPECT_EQ(math::pow(-0.0f, -2.0f), kInf);
  EXPECT_EQ(math::pow(-kInf, 3.0f), -kInf);
  EXPECT_EQ(math::pow(-kInf, 0.5f), kInf);
  EXPECT_EQ(math::pow(-2.0f, 3.0f), -8.0f);
  EXPECT_TRUE(std::isnan(math::pow(-2.0f, 0.5f)));
  EXPECT_EQ(math::pow(0.5f, kInf), 0.0f);
  EXPECT_EQ(math::pow(0.5, -static_cast<double>(kInf)), static_cast<double>(kInf));
  EXPECT_EQ(math::atan2(0.0f, -0.0f), 3.14159274f);
  EXPECT_EQ(math::atan2(-0.0f, -1.0f), -3.14159274f);
  EXPECT_EQ(math::atan2(kInf, -kInf), 2.3561945f);
  EXPECT_TRUE(std::signbit(math::atan2(-0.0f, 1.0f)));
}

/// Ranks numbers in the total order with −0 below +0 and NaN above everything, by sorting keys.
template <class F>
int rank(F x) {
  const F sorted[] = {-std::numeric_limits<F>::infinity(),
                      std::numeric_limits<F>::lowest(),
                      F(-1.5),
                      -std::numeric_limits<F>::denorm_min(),
                      F(-0.0),
                      F(0.0),
                      std::numeric_limits<F>::denorm_min(),
                      F(1.5),
                      std::numeric_limits<F>::max(),
                      std::numeric_limits<F>::infinity()};
  for (int i = 0; i < 10; ++i) {
    if (x == sorted[i] && std::signbit(x) == std::signbit(sorted[i])) return i;
  }
  return 10;
}

template <class F>
void check_extremum(Float type, bool largest) {
  const auto f = static_cast<int>(largest ? Binary::k_maximum : Binary::k_minimum);
  std::vector<F> values = {-std::numeric_limits<F>::infinity(),
                           std::numeric_limits<F>::lowest(),
                           F(-1.5),
                           -std::numeric_limits<F>::denorm_min(),
                           F(-0.0),
                           F(0.0),
                           std::numeric_limits<F>::denorm_min(),
                           F(1.5),
                           std::numeric_limits<F>::max(),
                           std::numeric_limits<F>::infinity(),
                           std::numeric_limits<F>::quiet_NaN(),
                           -std::numeric_limits<F>::quiet_NaN()};
  std::vector<F> a, b;
  for (const F x : values) {
    for (const F y : values) a.push_back(x), b.push_back(y);
  }
  for (const NamedLoops& set : available_loops()) {
    std::vector<F> out(a.size());
    set.loops->binary[type][f](a.data(), b.data(), out.data(), a.size());
    for (std::size_t i = 0; i < a.size(); ++i) {
      if (std::isnan(a[i]) || std::isnan(b[i])) {
        EXPECT_TRUE(std::isnan(out[i])) << set.name << ' ' << a[i] << ' ' << b[i];
        continue;
      }
      const int want =
          largest ? std::max(rank(a[i]), rank(b[i])) : std::min(rank(a[i]), rank(b[i]));
      EXPECT_EQ(rank(out[i]), want) << set.name << ' ' << a[i] << ' ' << b[i];
    }
  }
}
TEST(Scalar, MaximumF32) { check_extremum<float>(kFloat32, true); }
TEST(Scalar, MinimumF32) { check_extremum<float>(kFloat32, false); }
TEST(Scalar, MaximumF64) { check_extremum<double>(kFloat64, true); }
TEST(Scalar, MinimumF64) { check_extremum<double>(kFloat64, false); }

/// The checks can fail: they detect an error of the size that they must find.
TEST(Oracle, SeesErrors) {
  EXPECT_EQ(ulp_error(1.0f, 1.0), 0.0);
  EXPECT_EQ(ulp_error(1.0f + 0x1p-22f, 1.0), 2.0);
  EXPECT_EQ(ulp_error(0x1p-149f, 0x1.8p-149), 0.5);
  EXPECT_EQ(ulp_error(0.0f, -0.0), std::numeric_limits<double>::infinity());
  EXPECT_EQ(ulp_error(kNaN, 1.0), std::numeric_limits<double>::infinity());
  EXPECT_EQ(ulp_error(kInf, 1.0), (0x1p128 - 1) / 0x1p104);
  EXPECT_EQ(ulp_error(std::numeric_limits<float>::max(), 0x1p128),
            std::numeric_limits<double>::infinity());
  EXPECT_NEAR(ulp_error_f64(k_exp, 1.0, 2.718281828459045 + 0x1p-50), 2.0, 0.51);
  EXPECT_EQ(true_value(k_silu, 1.0), fast_value(k_silu, 1.0));
}

}  // namespace
}  // namespace wick::math_test
