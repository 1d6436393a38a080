// The waits of gfx12: each counter with a wait that suffices, and with one that doesn't. Runs on
// gfx1200 with WICK_EMU_CHECK=waits.

#include "emu/tests/hip_array_support.h"

namespace {

struct Case {
  const char* kernel;
  bool suffices;
};

/// Launches a kernel. The check must report it if the wait doesn't suffice.
template <class... Arguments>
void check(const Kernels& kernels, const Case& c, Arguments... arguments) {
  testing::internal::CaptureStderr();
  EXPECT_EQ(hipSuccess, launch(kernels[c.kernel], 1, 32, 256, nullptr, arguments...));
  EXPECT_EQ(hipSuccess, hipDeviceSynchronize());
  const std::string said = testing::internal::GetCapturedStderr();
  const bool found = said.find("before a wait for the load that fills it") != said.npos;
  EXPECT_EQ(found, !c.suffices) << c.kernel << ": " << said;
  EXPECT_EQ(said.empty(), c.suffices) << c.kernel << ": " << said;
}

TEST(HipWaits, OfEveryCounter) {
  const Kernels kernels("waits.gfx1200.hsaco");
  const Buffer<int> data(64);
  for (const Case& c : {Case{"load_leaves_1_uses_first", true},
                        Case{"load_leaves_1_uses_second", false},
                        Case{"load_leaves_0_uses_second", true},
                        Case{"load_of_both_leaves_1_uses_first", true},
                        Case{"load_of_both_leaves_1_uses_second", false},
                        Case{"load_waits_for_lds", false},
                        Case{"load_waits_for_scalars", false},
                        Case{"load_waits_for_stores", false},
                        Case{"load_waits_for_stores_and_lds", false},
                        Case{"load_waits_for_samples", false},
                        Case{"load_waits_for_bvh", false},
                        Case{"load_waits_for_exports", false},
                        Case{"lds_leaves_1_uses_first", true},
                        Case{"lds_leaves_1_uses_second", false},
                        Case{"lds_leaves_0_uses_second", true},
                        Case{"lds_of_both_leaves_1_uses_first", true},
                        Case{"lds_of_both_leaves_1_uses_second", false},
                        Case{"lds_of_stores_leaves_1_uses_first", true},
                        Case{"lds_of_stores_leaves_1_uses_second", false},
                        Case{"lds_waits_for_loads", false},
                        Case{"lds_waits_for_scalars", false},
                        Case{"lds_and_scalar_leaves_1", false},
                        Case{"scalar_leaves_0_uses_second", true},
                        Case{"scalar_leaves_1_uses_first", false},
                        Case{"scalar_waits_for_lds", false},
                        Case{"scalar_waits_for_loads", false}}) {
    check(kernels, c, data.data);
  }
}

TEST(HipWaits, OfSamples) {
  const Kernels kernels("waits.gfx1200.hsaco");
  const Buffer<int> data(64);
  const Array array(desc_of(32, 1, hipChannelFormatKindFloat), kWidth, kHeight);
  fill(array);
  const Texture texture(array.resource(),
                        texture_desc(hipAddressModeClamp, hipFilterModePoint, false));
  for (const Case& c :
       {Case{"sample_leaves_1_uses_first", true}, Case{"sample_leaves_1_uses_second", false},
        Case{"sample_leaves_0_uses_second", true}, Case{"sample_waits_for_loads", false},
        Case{"image_load_waits_for_loads", true}, Case{"image_load_waits_for_samples", false}}) {
    check(kernels, c, texture.handle, data.data);
  }
}

}  // namespace
