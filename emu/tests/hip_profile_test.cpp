// Kernels with known counts. profile_check.py runs them with WICK_EMU_PROFILE.

#include "emu/tests/hip_support.h"

namespace {

TEST(HipProfile, KnownKernels) {
  const Kernels kernels("profile.gfx1100.hsaco");
  const Buffer<int> from(33 * 32), to(33 * 32);
  const auto run = [&](const char* name, unsigned lds, auto... arguments) {
    EXPECT_EQ(hipSuccess, launch(kernels[name], 1, 32, lds, nullptr, arguments...)) << name;
  };
  run("strided", 0, from.data, to.data);
  run("uniform", 0, from.data, to.data, 0);
  run("one_bank", 32 * 32 * 4, to.data);
  run("padded", 33 * 32 * 4, to.data);
  run("four_lanes", 0, to.data, 1000);
  run("matrix", 0, from.data, to.data);
  run("spills", 0, to.data, 1);
  EXPECT_EQ(hipSuccess, hipDeviceSynchronize());
}

}  // namespace
