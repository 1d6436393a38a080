#include "wick/math/random.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "tests/math/oracle.h"

namespace wick::math_test {
namespace {

using math::Philox4;

void expect_block(const Philox4& got, const Philox4& want) {
  for (int i = 0; i < 4; ++i) EXPECT_EQ(got.v[i], want.v[i]) << "word " << i;
}

/// The known answers for philox4x32-10 published by Random123.
TEST(Philox, KnownAnswers) {
  expect_block(math::philox(Philox4{{0, 0, 0, 0}}, 0),
               Philox4{{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}});
  expect_block(math::philox(Philox4{{~0u, ~0u, ~0u, ~0u}}, ~0ul),
               Philox4{{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}});
  expect_block(
      math::philox(Philox4{{0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344}}, 0x299f31d0a4093822),
      Philox4{{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}});
}

TEST(Philox, StreamAndIndexFillTheCounter) {
  expect_block(math::philox(0x299f31d0a4093822, 0x0370734413198a2e, 0x85a308d3243f6a88),
               Philox4{{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}});
}

TEST(Uniform, EndsOfTheRange) {
  EXPECT_EQ(math::uniform_f32(0), 0.0f);
  EXPECT_EQ(math::uniform_f32(0xff), 0.0f);
  EXPECT_EQ(math::uniform_f32(0x100), 0x1p-24f);
  EXPECT_EQ(math::uniform_f32(~0u), 1.0f - 0x1p-24f);
  EXPECT_EQ(math::uniform_f64(0, 0x7ff), 0.0);
  EXPECT_EQ(math::uniform_f64(0, 0x800), 0x1p-53);
  EXPECT_EQ(math::uniform_f64(0x80000000u, 0), 0.5);
  EXPECT_EQ(math::uniform_f64(~0u, ~0u), 1.0 - 0x1p-53);
  for (const std::uint64_t w : {0x123456789abcdef0ul, 0xfedcba9876543210ul, 0x80000000000007fful}) {
    EXPECT_EQ(math::uniform_f64(static_cast<std::uint32_t>(w >> 32), static_cast<std::uint32_t>(w)),
              std::ldexp(static_cast<double>(w >> 11), -53));
  }
}

TEST(Uniform, SameBitsOnEveryInstructionSetAndFlat) {
  constexpr std::size_t kGroups = 1 << 16;
  std::vector<float> x(4 * kGroups), x2(x.size());
  std::vector<double> y(2 * kGroups), y2(y.size());
  const auto sets = available_loops();
  sets.front().loops->uniform_f32(42, x.data(), kGroups);
  sets.front().loops->uniform_f64(42, y.data(), kGroups);
  for (const NamedLoops& set : sets) {
    set.loops->uniform_f32(42, x2.data(), kGroups);
    set.loops->uniform_f64(42, y2.data(), kGroups);
    EXPECT_EQ(x, x2) << set.name;
    EXPECT_EQ(y, y2) << set.name;
  }
  int buckets[16] = {};
  for (const float v : x) {
    ASSERT_GE(v, 0.0f);
    ASSERT_LT(v, 1.0f);
    ++buckets[static_cast<int>(v * 16)];
  }
  double chi2 = 0;
  const double mean = static_cast<double>(x.size()) / 16;
  for (const int n : buckets) chi2 += (n - mean) * (n - mean) / mean;
  EXPECT_LT(chi2, 44.3);  // 15 degrees of freedom, p = 1e-4
}

}  // namespace
}  // namespace wick::math_test
