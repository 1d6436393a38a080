#include "wick/nn/rope.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <numbers>

#include "tests/expect_error.h"

namespace wick::nn {
namespace {

using test::error_of;
using testing::HasSubstr;

/// Returns the frequencies and magnitude for the options, computed with std:: functions in long
/// double.
std::vector<long double> frequencies(const RopeOptions& o) {
  std::vector<long double> all;
  const auto dims = static_cast<long double>(o.dims);
  for (int64_t i = 0; i < o.dims / 2; ++i) {
    const auto pair = static_cast<long double>(i);
    long double f = std::pow(static_cast<long double>(o.base), -2.0L * pair / dims);
    if (!o.frequency_divisors.empty()) f /= o.frequency_divisors[static_cast<size_t>(i)];
    if (o.scaling == RopeScaling::linear) f /= o.factor;
    if (o.scaling == RopeScaling::yarn) {
      auto turning = [&](long double turns) {
        return dims * std::log(o.original_context / (turns * 2 * std::numbers::pi_v<long double>)) /
               (2 * std::log(static_cast<long double>(o.base)));
      };
      const long double low = std::max(0.0L, std::floor(turning(o.beta_fast)));
      const long double high = std::min(dims - 1, std::ceil(turning(o.beta_slow)));
      const long double ramp = std::clamp((pair - low) / std::max(0.001L, high - low), 0.0L, 1.0L);
      f = f / o.factor * ramp + f * (1 - ramp);
    }
    all.push_back(f);
  }
  return all;
}

void expect_table(const RopeOptions& o, int64_t positions) {
  RopeTable table(o, Device::cpu());
  table.reserve(positions);
  const auto cos = table.cos(0, positions).to_vector<float>();
  const auto sin = table.sin(0, positions).to_vector<float>();
  const auto f = frequencies(o);
  long double magnitude = o.attention_factor;
  if (o.scaling == RopeScaling::yarn)
    magnitude *= 1 + 0.1L * std::log(static_cast<long double>(o.factor));
  for (size_t at = 0; at < cos.size(); ++at) {
    const auto position = static_cast<long double>(at / f.size());
    const long double angle = position * f[at % f.size()];
    // The angle is computed in f64. Its rounding and that of the frequency are followed by one
    // rounding to f32.
    const auto bound = static_cast<double>(
        magnitude * (2e-15L * (1 + angle) + std::numeric_limits<float>::epsilon() / 2));
    ASSERT_NEAR(static_cast<double>(cos[at]), static_cast<double>(magnitude * std::cos(angle)),
                bound)
        << at;
    ASSERT_NEAR(static_cast<double>(sin[at]), static_cast<double>(magnitude * std::sin(angle)),
                bound)
        << at;
  }
}

TEST(RopeTable, EveryKindFollowsItsFormula) {
  expect_table({.dims = 64}, 5000);
  expect_table({.dims = 2, .base = 500000.0}, 300);
  expect_table({.dims = 128, .base = 1000000.0, .attention_factor = 1.5}, 1000);
  expect_table({.dims = 32, .scaling = RopeScaling::linear, .factor = 4.0}, 1000);
  expect_table({.dims = 64, .scaling = RopeScaling::yarn, .factor = 8.0, .original_context = 2048},
               2000);
  expect_table({.dims = 64,
                .base = 150000.0,
                .scaling = RopeScaling::yarn,
                .factor = 32.0,
                .original_context = 4096,
                .beta_fast = 16,
                .beta_slow = 2},
               2000);
  expect_table({.dims = 8, .frequency_divisors = {1.0f, 2.5f, 8.0f, 8.0f}}, 2000);
}

TEST(RopeTable, PositionsGrowAndKeepTheirValues) {
  RopeTable table({.dims = 16}, Device::cpu());
  table.reserve(3);
  const auto early = table.cos(0, 3).to_vector<float>();
  const Tensor held = table.sin(1, 2);
  const auto held_before = held.to_vector<float>();
  table.reserve(100000);
  EXPECT_EQ(table.cos(0, 3).to_vector<float>(), early);
  EXPECT_EQ(held.to_vector<float>(), held_before);
  EXPECT_EQ(table.sin(1, 2).to_vector<float>(), held_before);
  EXPECT_EQ(table.cos(99999, 1).shape(), (Shape{1, 8}));
}

TEST(RopeTable, LongDivisorsBeginBeyondTheOriginalContext) {
  const std::vector<float> short_ones = {1.0f, 2.0f, 3.0f}, long_ones = {2.0f, 5.0f, 7.0f};
  RopeTable both({.dims = 6,
                  .original_context = 20,
                  .frequency_divisors = short_ones,
                  .long_divisors = long_ones},
                 Device::cpu());
  RopeTable first({.dims = 6, .frequency_divisors = short_ones}, Device::cpu());
  RopeTable second({.dims = 6, .frequency_divisors = long_ones}, Device::cpu());
  for (RopeTable* table : {&both, &first, &second}) table->reserve(300);
  EXPECT_EQ(both.cos(0, 20).to_vector<float>(), first.cos(0, 20).to_vector<float>());
  EXPECT_EQ(both.sin(0, 20).to_vector<float>(), first.sin(0, 20).to_vector<float>());
  EXPECT_EQ(both.cos(20, 280).to_vector<float>(), second.cos(20, 280).to_vector<float>());
  EXPECT_EQ(both.sin(20, 280).to_vector<float>(), second.sin(20, 280).to_vector<float>());
}

TEST(RopeTable, OptionsOutOfRange) {
  const double inf = INFINITY, nan = NAN;
  std::vector<RopeOptions> wrong = {
      {.dims = 0},
      {.dims = -2},
      {.dims = 3},
      {.dims = 4, .base = 1.0},
      {.dims = 4, .base = inf},
      {.dims = 4, .base = nan},
      {.dims = 4, .factor = 0.0},
      {.dims = 4, .factor = nan},
      {.dims = 4, .attention_factor = -1.0},
      {.dims = 4, .frequency_divisors = {1.0f}},
      {.dims = 4, .frequency_divisors = {1.0f, 0.0f}},
      {.dims = 4, .frequency_divisors = {1.0f, static_cast<float>(nan)}},
      {.dims = 4, .original_context = 8, .long_divisors = {1.0f}},
      {.dims = 4, .original_context = 8, .long_divisors = {1.0f, -1.0f}},
      {.dims = 4, .long_divisors = {1.0f, 2.0f}},
      {.dims = 4, .scaling = RopeScaling::yarn},
      {.dims = 4, .scaling = RopeScaling::yarn, .original_context = 8, .beta_fast = 0.0},
      {.dims = 4, .scaling = RopeScaling::yarn, .original_context = 8, .beta_slow = nan},
  };
  for (const RopeOptions& o : wrong) {
    EXPECT_THAT(error_of([&] { RopeTable(o, Device::cpu()); }),
                HasSubstr("rope: options out of range: dims " + std::to_string(o.dims)));
  }
}

}  // namespace
}  // namespace wick::nn
