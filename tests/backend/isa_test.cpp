// The default instruction set, and the permission that AMX needs: asked for when its kernels are
// chosen, not when instruction sets are detected. The functions of amx.cpp are replaced.

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>

#include "wick/backend/cpu/amx.h"
#include "wick/backend/cpu/cpu_backend.h"
#include "wick/base/error.h"

namespace wick::cpu {
namespace {

int requests = 0;
bool grants = true;

}  // namespace

bool has_amx() { return true; }
bool has_amx_bf16() { return false; }
bool request_amx() {
  ++requests;
  return grants;
}

namespace {

TEST(Isas, TheLastIsTheDefault) {
  unsetenv("WICK_CPU_ISA");
  ASSERT_FALSE(available_isas().empty());
  EXPECT_EQ(selected_isa(), available_isas().back());
  EXPECT_NE(selected_isa(), Isa::amx);
}

TEST(Isas, AmxNeedsAPermission) {
  const auto here = available_isas();
  if (std::find(here.begin(), here.end(), Isa::amx) == here.end()) {
    GTEST_SKIP() << "needs a processor with AVX512-VNNI";
  }
  selected_isa();
  CpuBackend backend(selected_isa());
  EXPECT_EQ(requests, 0);
  EXPECT_EQ(CpuBackend(Isa::amx).isa(), Isa::amx);
  EXPECT_EQ(requests, 1);
  backend.set_isa(Isa::amx);
  EXPECT_EQ(requests, 2);
  grants = false;
  try {
    CpuBackend refused(Isa::amx);
    FAIL() << "no error";
  } catch (const Error& e) {
    EXPECT_STREQ(e.what(), "cpu: the system doesn't permit AMX: use another WICK_CPU_ISA");
  }
}

}  // namespace
}  // namespace wick::cpu
