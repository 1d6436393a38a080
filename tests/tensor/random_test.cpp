// Seeds and sequences of random tensors, and their errors.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "tests/expect_error.h"
#include "wick/tensor/ops.h"

namespace wick {
namespace {

using test::error_of;
using testing::HasSubstr;

TEST(Random, SequencesFollowTheSeed) {
  set_seed(42);
  EXPECT_EQ(get_seed(), 42u);
  const std::vector<float> a = uniform({5}).to_vector<float>(), b = uniform({5}).to_vector<float>();
  EXPECT_NE(a, b);
  set_seed(42);
  EXPECT_EQ(uniform({5}).to_vector<float>(), a);
  EXPECT_EQ(uniform({5}).to_vector<float>(), b);
  set_seed(43);
  EXPECT_NE(uniform({5}).to_vector<float>(), a);
  set_seed(42, Device());
  EXPECT_EQ(uniform({5}).to_vector<float>(), a);
  EXPECT_EQ(get_seed(), 42u);
  // Each counter gives four numbers, whichever ops used the previous counters.
  set_seed(42);
  const std::vector<float> all = uniform({16}).to_vector<float>();
  set_seed(42);
  normal({4});
  const std::vector<float> rest = uniform({12}).to_vector<float>();
  EXPECT_EQ(rest, std::vector<float>(all.begin() + 4, all.end()));
  set_seed(42);
  uniform({0});
  uniform({2}, 0, 1, DType::f64);
  EXPECT_EQ(uniform({12}).to_vector<float>(), rest);
}

TEST(Random, BoundsAndShapes) {
  const std::vector<float> x = uniform({1000}, -2, 3).to_vector<float>();
  EXPECT_GE(*std::min_element(x.begin(), x.end()), -2);
  EXPECT_LE(*std::max_element(x.begin(), x.end()), 3);
  EXPECT_EQ(uniform({2, 0, 3}).elems(), 0);
  EXPECT_EQ(normal({}, 5, 0, DType::f64).item<double>(), 5);
  EXPECT_EQ(uniform({3}, 4, 4).to_vector<float>(), std::vector<float>(3, 4.0f));
  EXPECT_EQ(uniform({2}, 0, 1, DType::bf16).str(), "bf16[2]@cpu");
}

TEST(Random, Refusals) {
  constexpr double kInf = std::numeric_limits<double>::infinity();
  EXPECT_EQ(
      error_of([] { uniform({2}, 1, 0); }),
      "uniform: bounds out of range: low 1, high 0, f32: need finite low <= high and a finite "
      "high - low");
  EXPECT_THAT(error_of([] { uniform({2}, 0, NAN); }), HasSubstr("bounds out of range"));
  EXPECT_THAT(error_of([&] { uniform({2}, -kInf, 0); }), HasSubstr("bounds out of range"));
  EXPECT_THAT(error_of([] { uniform({2}, -3e38, 3e38); }), HasSubstr("bounds out of range"));
  EXPECT_EQ(uniform({2}, -3e38, 3e38, DType::f64).elems(), 2);
  EXPECT_THAT(error_of([] { uniform({2}, 0, 1, DType::i32); }),
              HasSubstr("uniform: unsupported dtype: i32: takes bf16"));
  EXPECT_THAT(error_of([] { normal({2}, 0, -1); }), HasSubstr("normal: parameters out of range"));
  EXPECT_THAT(error_of([] { normal({2}, 1e39, 1); }), HasSubstr("normal: parameters out of range"));
  EXPECT_THAT(error_of([] { normal({2}, 0, 1, DType::q8_0); }), HasSubstr("unsupported dtype"));
}

}  // namespace
}  // namespace wick
