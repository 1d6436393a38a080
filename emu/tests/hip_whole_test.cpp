// Elements of 128 bits that the host writes while a kernel loads them are loaded as a whole.

#include <atomic>
#include <numeric>
#include <thread>

#include "emu/tests/hip_support.h"

namespace {

typedef unsigned Element __attribute__((vector_size(16)));

TEST(HipWhole, LoadsOf128Bits) {
  const Kernels kernels("whole.gfx1100.hsaco");
  constexpr unsigned kLanes = 32;
  const Buffer<int> torn(kLanes);
  void* memory = nullptr;
  HIP_OK(hipHostMalloc(&memory, kLanes * sizeof(Element), 0));
  auto* elements = static_cast<volatile Element*>(memory);
  for (unsigned i = 0; i < kLanes; ++i) elements[i] = Element{};
  std::atomic<bool> done{false};
  std::atomic<unsigned> written{0};
  std::thread writer([&] {
    for (unsigned value = 1; !done; ++value) {
      for (unsigned i = 0; i < kLanes; ++i) elements[i] = Element{value, value, value, value};
      written = value;
    }
  });
  while (written == 0) std::this_thread::yield();
  EXPECT_EQ(hipSuccess,
            launch(kernels["count_torn"], 1, kLanes, 0, nullptr, memory, torn.data, 300000));
  EXPECT_EQ(hipSuccess, hipDeviceSynchronize());
  done = true;
  writer.join();
  EXPECT_GT(written, 1000u);
  const std::vector<int> counts = torn.get();
  EXPECT_EQ(std::accumulate(counts.begin(), counts.end(), 0), 0);
  HIP_OK(hipHostFree(memory));
}

}  // namespace
