// The instruction sets that are chosen on the processor that qemu-user emulates.

#include <gtest/gtest.h>

#include <cstdlib>
#include <string>

#include "wick/backend/cpu/isa.h"

namespace wick {
namespace {

TEST(Isas, AreThoseOfTheProcessor) {
  const char* expected = std::getenv("WICK_TEST_ISAS");
  if (expected == nullptr) GTEST_SKIP() << "WICK_TEST_ISAS isn't set";
  std::string found;
  for (const cpu::Isa isa : cpu::available_isas()) {
    found += (found.empty() ? "" : " ") + std::string(cpu::name(isa));
  }
  EXPECT_EQ(found, expected);
}

}  // namespace
}  // namespace wick
