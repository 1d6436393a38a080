// Kernels whose arguments hardware writes to SGPRs, as gfx90a and gfx942 do. Run on gfx90a.

#include "emu/tests/hip_stream_support.h"

namespace {

TEST(HipPreload, ArgumentsAreInRegisters) {
  const Kernels kernels("preload.gfx90a.hsaco");
  std::vector<float> a(1000), b(1000);
  for (size_t i = 0; i < a.size(); ++i) a[i] = float(i), b[i] = float(3 * i);
  Buffer<float> x(1000), y(1000), sum(1000);
  x.set(a), y.set(b);
  HIP_OK(launch(kernels["add"], 16, 64, 0, nullptr, sum.data, x.data, y.data, 999));
  const std::vector<float> found = sum.get();
  EXPECT_EQ(0, found[999]);
  for (size_t i = 0; i < 999; ++i) ASSERT_EQ(4 * float(i), found[i]) << i;
}

TEST(HipPreload, DescriptorsWithoutRoomAreRefused) {
  std::vector<char> image = kernel_file("preload.gfx90a.hsaco");
  int changed = 0;  // the descriptors of kernels with seven dwords of arguments
  for (size_t at = 0; at + 64 <= image.size(); at += 64) {
    uint16_t preload;
    std::memcpy(&preload, &image[at + 58], 2);
    if (preload != 7) continue;
    preload = 7 | 500 << 7;  // from dword 500 on
    std::memcpy(&image[at + 58], &preload, 2);
    ++changed;
  }
  ASSERT_GT(changed, 0);
  hipModule_t module = nullptr;
  HIP_REFUSES(hipErrorInvalidKernelFile, hipModuleLoadData(&module, image.data()));
}

}  // namespace
