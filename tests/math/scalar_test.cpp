#include "wick/math/scalar.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "tests/math/loops.h"
#include "tests/math/oracle.h"
#include "tests/math/samples.h"

namespace wick::math_test {
namespace {

constexpr float kInf = std::numeric_limits<float>::infinity();
constexpr float kNaN = std::numeric_limits<float>::quiet_NaN();

/// The number of places where two results differ, NaN being equal to NaN.
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

/// 4 million patterns and every edge: the error, and the same bits from scalar calls and from loops
/// vectorised for every instruction set.
TEST_P(F32, WithinLimitAndSameBits) {
  const auto f = static_cast<Unary>(GetParam());
  std::vector<float> x = spread_f32(std::size_t{1} << 22, 12345u + static_cast<std::uint32_t>(f));
  const std::vector<float> edges = edges_f32();
  x.insert(x.end(), edges.begin(), edges.end());
  std::vector<float> y(x.size()), other(x.size());
  const std::vector<NamedLoops> sets = available_loops();
  sets.back().loops->f32[f](x.data(), y.data(), x.size());
  for (const NamedLoops& set : sets) {
    set.loops->f32[f](x.data(), other.data(), x.size());
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

/// The edges and a sample against MPFR itself, which also holds the fast reference to its promise.
TEST_P(F32, WithinLimitOfMpfr) {
  const auto f = static_cast<Unary>(GetParam());
  std::vector<float> x = edges_f32();
  const std::vector<float> more = spread_f32(20000, 777);
  x.insert(x.end(), more.begin(), more.end());
  std::vector<float> y(x.size());
  available_loops().back().loops->f32[f](x.data(), y.data(), x.size());
  for (std::size_t i = 0; i < x.size(); ++i) {
    const double want = true_value(f, static_cast<double>(x[i]));
    ASSERT_LE(ulp_error(y[i], want), limit_f32(f)) << "at " << x[i] << ": " << y[i];
    const double fast = fast_value(f, static_cast<double>(x[i]));
    if (std::isnan(want) || std::isinf(want)) {
      ASSERT_EQ(std::isnan(fast), std::isnan(want)) << x[i];
    } else if (std::fabs(want) < 0x1p128) {
      ASSERT_LE(std::fabs(fast - want), std::max(std::fabs(want) * 0x1p-48, 0x1p-180)) << x[i];
    }
  }
}

/// All 65,536 values of a 16-bit type: computed in f32 and rounded once, within 1 ulp of the type
/// and the same on every instruction set.
void check_half(Unary f, const SmallFloat& format, bool is_f16) {
  std::vector<std::uint16_t> x(65536), y(65536), other(65536);
  for (std::uint32_t i = 0; i < 65536; ++i) x[i] = static_cast<std::uint16_t>(i);
  const std::vector<NamedLoops> sets = available_loops();
  const auto loop = [&](const NamedLoops& s) {
    return is_f16 ? s.loops->f16[f] : s.loops->bf16[f];
  };
  loop(sets.back())(x.data(), y.data(), x.size());
  for (const NamedLoops& set : sets) {
    loop(set)(x.data(), other.data(), x.size());
    for (std::uint32_t i = 0; i < 65536; ++i) {
      if (format.is_nan(y[i]) && format.is_nan(other[i])) continue;
      ASSERT_EQ(y[i], other[i]) << set.name << " at pattern " << i;
    }
  }
  for (std::uint32_t i = 0; i < 65536; ++i) {
    const std::uint32_t want =
        format.nearest(static_cast<long double>(true_value(f, format.value(i))));
    if (format.is_nan(want)) {
      ASSERT_TRUE(format.is_nan(y[i])) << "at " << format.value(i);
      continue;
    }
    ASSERT_FALSE(format.is_nan(y[i])) << "at " << format.value(i);
    // The nearest value may be missed by one place only, which is less than 1 ulp of error.
    ASSERT_EQ(y[i] & 0x8000u, want & 0x8000u) << "at " << format.value(i);
    ASSERT_LE(std::abs(static_cast<int>(y[i]) - static_cast<int>(want)), 1)
        << "at " << format.value(i);
  }
}
/// All values of a narrow type: the functions that narrow.h has for it give, rounded, the bits that
/// those of f32 give.
template <class T, class Bits>
void check_narrow(void (*narrow)(const void*, void*, std::size_t),
                  void (*whole)(const float*, float*, std::size_t)) {
  constexpr std::uint32_t kAll = 1u << 8 * sizeof(Bits);
  std::vector<T> x(kAll), got(kAll);
  std::vector<float> wide(kAll), want(kAll);
  for (std::uint32_t i = 0; i < kAll; ++i) {
    x[i] = T{static_cast<Bits>(i)};
    wide[i] = math::to_f32(x[i]);
  }
  narrow(x.data(), got.data(), kAll);
  whole(wide.data(), want.data(), kAll);
  for (std::uint32_t i = 0; i < kAll; ++i) {
    if (std::isnan(want[i]) && std::isnan(math::to_f32(got[i]))) continue;
    ASSERT_EQ(got[i].bits, math::from_f32<T>(want[i]).bits) << "at " << wide[i];
  }
}
TEST_P(F32, NarrowTypesHaveTheBitsOfF32) {
  const auto f = static_cast<Unary>(GetParam());
  for (const NamedLoops& set : available_loops()) {
    const Loops& loops = *set.loops;
    check_narrow<math::f16, std::uint16_t>(loops.f16[f], loops.f32[f]);
    check_narrow<math::bf16, std::uint16_t>(loops.bf16[f], loops.f32[f]);
    check_narrow<math::f8e4m3, std::uint8_t>(loops.f8e4m3[f], loops.f32[f]);
  }
}
TEST_P(F32, AllOfF16) { check_half(static_cast<Unary>(GetParam()), small_f16(), true); }
TEST_P(F32, AllOfBF16) { check_half(static_cast<Unary>(GetParam()), small_bf16(), false); }

INSTANTIATE_TEST_SUITE_P(Math, F32, testing::Range(0, static_cast<int>(kUnaryF32)),
                         [](const auto& test) { return kUnaryNames[test.param]; });

class F64 : public testing::TestWithParam<int> {};

TEST_P(F64, WithinLimitAndSameBits) {
  const auto f = static_cast<Unary>(GetParam());
  std::vector<double> x = random_f64(60000, 7 + static_cast<unsigned>(f));
  const std::vector<double> edges = edges_f64();
  x.insert(x.end(), edges.begin(), edges.end());
  if (f == k_sin || f == k_cos) {  // near the multiples of pi/2, and nothing outside the domain
    for (int k = 1; k < 20000; ++k) x.push_back(static_cast<double>(k * 34359.0) * M_PI_2);
    for (int k = 1; k < 2000; ++k) x.push_back(k * M_PI_2);
    std::erase_if(x, [](double v) { return std::isfinite(v) && std::fabs(v) > 0x1p30; });
  }
  std::vector<double> y(x.size()), other(x.size());
  const std::vector<NamedLoops> sets = available_loops();
  sets.back().loops->f64[f](x.data(), y.data(), x.size());
  for (const NamedLoops& set : sets) {
    set.loops->f64[f](x.data(), other.data(), x.size());
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

INSTANTIATE_TEST_SUITE_P(Math, F64, testing::Range(0, static_cast<int>(kUnaryF64)),
                         [](const auto& test) { return kUnaryNames[test.param]; });

/// Limits and special values written down by hand, so that the oracle is checked too.
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
  EXPECT_EQ(math::sigmoid(-100.0f), 3.783506e-44f);  // where 1/(1 + exp(100)) would give 0

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
}

/// The order of all numbers with −0 below +0 and NaN above everything, by sorting keys.
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

template <class F, class Loop>
void check_extremum(Loop Loops::*member, bool largest) {
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
    (set.loops->*member)(a.data(), b.data(), out.data(), a.size());
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
TEST(Scalar, MaximumF32) { check_extremum<float>(&Loops::maximum_f32, true); }
TEST(Scalar, MinimumF32) { check_extremum<float>(&Loops::minimum_f32, false); }
TEST(Scalar, MaximumF64) { check_extremum<double>(&Loops::maximum_f64, true); }
TEST(Scalar, MinimumF64) { check_extremum<double>(&Loops::minimum_f64, false); }

/// The checks can fail: an error of the size they are to find is found.
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
