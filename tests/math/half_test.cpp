#include "wick/math/half.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "tests/math/loops.h"
#include "tests/math/oracle.h"
#include "tests/math/samples.h"

namespace wick::math_test {
namespace {

std::uint32_t pattern(const unsigned char* bytes, std::size_t i, int size) {
  return size == 1 ? bytes[i] : bytes[2 * i] | static_cast<std::uint32_t>(bytes[2 * i + 1]) << 8;
}

class Half : public testing::TestWithParam<Real> {
 protected:
  const SmallFloat& format() const { return *small_float(GetParam()); }
  int size() const { return kRealBytes[GetParam()]; }

  /// Checks that every number in x (f32 or f64) becomes the nearest pattern on every instruction
  /// set.
  template <class F>
  void check_from(const std::vector<F>& x, Real from) const {
    std::vector<unsigned char> out(x.size() * 2);
    for (const NamedLoops& set : available_loops()) {
      set.loops->cast[GetParam()][from](x.data(), out.data(), x.size());
      for (std::size_t i = 0; i < x.size(); ++i) {
        const std::uint32_t got = pattern(out.data(), i, size());
        const std::uint32_t want = format().nearest(static_cast<long double>(x[i]));
        if (format().is_nan(want)) {
          ASSERT_TRUE(format().is_nan(got)) << set.name << ' ' << x[i];
        } else {
          ASSERT_EQ(got, want) << set.name << ' ' << x[i];
        }
      }
    }
  }
};

TEST_P(Half, EveryPatternToFloat) {
  std::vector<unsigned char> in;
  for (std::uint32_t p = 0; p < format().patterns(); ++p) {
    in.push_back(static_cast<unsigned char>(p));
    if (size() == 2) in.push_back(static_cast<unsigned char>(p >> 8));
  }
  std::vector<float> out(format().patterns());
  for (const NamedLoops& set : available_loops()) {
    set.loops->cast[kF32][GetParam()](in.data(), out.data(), out.size());
    for (std::uint32_t p = 0; p < format().patterns(); ++p) {
      const double want = format().value(p);
      if (std::isnan(want)) {
        ASSERT_TRUE(std::isnan(out[p])) << set.name << ' ' << p;
        continue;
      }
      ASSERT_EQ(static_cast<double>(out[p]), want) << set.name << ' ' << p;
      ASSERT_EQ(std::signbit(out[p]), std::signbit(want)) << set.name << ' ' << p;
    }
  }
}

/// Tests each value, each midpoint between two values, and the floats around both.
TEST_P(Half, ValuesAndMidpointsFromFloat) {
  std::vector<float> x = edges_f32();
  for (std::uint32_t p = 0; p + 1 < format().sign_bit(); ++p) {
    const double a = format().value(p), b = format().value(p + 1);
    if (!std::isfinite(a)) break;
    const double middle = std::isfinite(b) ? (a + b) / 2 : a + (a - format().value(p - 1)) / 2;
    for (const double v : {a, middle}) {
      if (v >= 0x1p128) continue;
      const auto f = static_cast<float>(v);
      ASSERT_EQ(static_cast<double>(f), v);
      for (const float w : {f, std::nextafter(f, INFINITY), std::nextafter(f, -INFINITY)}) {
        x.push_back(w), x.push_back(-w);
      }
    }
  }
  check_from(x, kF32);
}

TEST_P(Half, SpreadFromFloat) { check_from(spread_f32(std::size_t{1} << 20, 99), kF32); }

/// Tests doubles that are nearer to the midpoints than any float: a conversion through float would
/// round twice.
TEST_P(Half, MidpointsFromDouble) {
  std::vector<double> x = edges_f64();
  std::size_t rounded_twice = 0;
  for (std::uint32_t p = 0; p + 1 < format().sign_bit(); ++p) {
    const double a = format().value(p), b = format().value(p + 1);
    if (!std::isfinite(a)) break;
    const double middle = std::isfinite(b) ? (a + b) / 2 : a + (a - format().value(p - 1)) / 2;
    for (const double v : {a, middle}) {
      for (const double w : {v, std::nextafter(v, INFINITY), std::nextafter(v, -INFINITY)}) {
        x.push_back(w), x.push_back(-w);
        if (format().nearest(w) != format().nearest(static_cast<float>(w))) ++rounded_twice;
      }
    }
  }
  EXPECT_GT(rounded_twice, 0u);  // the samples distinguish one rounding from two
  check_from(x, kF64);
  check_from(random_f64(200000, 5), kF64);
}

INSTANTIATE_TEST_SUITE_P(Math, Half, testing::Values(kF16, kBF16, kF8E4M3),
                         [](const auto& test) { return kRealNames[test.param]; });

TEST(HalfFormats, KnownPatterns) {
  EXPECT_EQ(math::from_f32<math::f16>(1.0f).bits, 0x3c00);
  EXPECT_EQ(math::from_f32<math::f16>(65504.0f).bits, 0x7bff);
  EXPECT_EQ(math::from_f32<math::f16>(65519.996f).bits, 0x7bff);
  EXPECT_EQ(math::from_f32<math::f16>(65520.0f).bits, 0x7c00);
  EXPECT_EQ(math::from_f32<math::f16>(0x1p-24f).bits, 0x0001);
  EXPECT_EQ(math::from_f32<math::f16>(0x1p-25f).bits, 0x0000);
  EXPECT_EQ(math::from_f32<math::bf16>(1.0f).bits, 0x3f80);
  EXPECT_EQ(math::from_f32<math::bf16>(std::numeric_limits<float>::max()).bits, 0x7f80);
  EXPECT_EQ(math::from_f32<math::bf16>(-std::numeric_limits<float>::infinity()).bits, 0xff80);
  EXPECT_EQ(math::from_f32<math::f8e4m3>(1.0f).bits, 0x38);
  EXPECT_EQ(math::from_f32<math::f8e4m3>(448.0f).bits, 0x7e);
  EXPECT_EQ(math::from_f32<math::f8e4m3>(1e9f).bits, 0x7e);
  EXPECT_EQ(math::from_f32<math::f8e4m3>(-std::numeric_limits<float>::infinity()).bits, 0xfe);
  EXPECT_EQ(math::from_f32<math::f8e4m3>(std::nanf("")).bits & 0x7f, 0x7f);
  EXPECT_EQ(math::to_f32(math::f8e4m3{0x01}), 0x1p-9f);
  EXPECT_TRUE(std::isnan(math::to_f32(math::f8e4m3{0xff})));
}

}  // namespace
}  // namespace wick::math_test
