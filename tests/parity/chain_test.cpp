// Chains must find a single flipped bit in one element of one step's result on one target.

#include "tests/parity/chain.h"

#include <fmt/format.h>
#include <gmock/gmock.h>

namespace wick::parity {
namespace {

using testing::HasSubstr;

TEST(Chains, FindOneTurnedBit) {
  if (targets().size() < 2) GTEST_SKIP() << "one target alone: nothing to compare it with";
  int found = 0;
  for (uint64_t seed = 1; seed <= 60; ++seed) {
    Chain chain(seed);
    const size_t steps = chain.steps();
    if (steps == 0) continue;
    Plant plant{targets()[1 + seed % (targets().size() - 1)].name, seed % steps};
    const std::string said = chain.check(&plant);
    if (plant.element < 0) continue;  // all elements are NaN
    ++found;
    EXPECT_THAT(said, HasSubstr(chain.text(plant.step + 1))) << seed;
    EXPECT_THAT(said, HasSubstr(fmt::format(", element {} of ", plant.element))) << seed;
    EXPECT_THAT(said, HasSubstr("on " + plant.target + ",")) << seed;
    // The seed alone reproduces the report, and without the planted error there is no report.
    Chain again(seed);
    Plant same{plant.target, plant.step};
    EXPECT_EQ(again.check(&same), said) << seed;
    EXPECT_EQ(again.check(), "") << seed;
  }
  EXPECT_GE(found, 40);
}

}  // namespace
}  // namespace wick::parity
