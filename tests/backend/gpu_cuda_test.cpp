// The table of NVIDIA's driver against a stand-in that checks arguments: WICK_CUDA_LIBRARY names
// it.

#include <gtest/gtest.h>

#include <cstdlib>

#include "wick/backend/gpu/gpu.h"
#include "wick/base/error.h"

namespace wick::gpu {
namespace {

class GpuCuda : public testing::Test {
 protected:
  void SetUp() override {
    if (std::getenv("WICK_CUDA_LIBRARY") == nullptr) GTEST_SKIP() << "WICK_CUDA_LIBRARY isn't set";
    ASSERT_NE(Driver::of(DeviceKind::cuda), nullptr) << Driver::missing(DeviceKind::cuda);
    std::string chosen;
    if (!has_images("sm_90", chosen)) GTEST_SKIP() << "no kernels for sm_90: no nvcc at build time";
  }
};

TEST_F(GpuCuda, KnowsItsDevice) {
  const Driver& driver = *Driver::of(DeviceKind::cuda);
  EXPECT_EQ(driver.device_count(), 1);
  EXPECT_EQ(driver.version(), "13.0");
  const GpuInfo info = driver.info(0);
  EXPECT_EQ(info.architecture, "sm_90");
  EXPECT_EQ(info.processors, 132);
  EXPECT_EQ(info.wave, 32);
  EXPECT_THROW(Gpu(Device{DeviceKind::cuda, 1}), Error);
}

TEST_F(GpuCuda, MemoryComesAndGoes) {
  Gpu gpu(Device::parse("cuda:0"));
  gpu.enter();
  std::vector<int> in(1000, 7), out(1000);
  void* data = gpu.pool.take(4000);
  gpu.check(gpu.driver.api.copy_to_device(data, in.data(), 4000, gpu.stream()), "copying");
  gpu.check(gpu.driver.api.copy_to_host(out.data(), data, 4000, gpu.stream()), "copying");
  gpu.synchronize();
  EXPECT_EQ(in, out);
  gpu.check(gpu.driver.api.set_bytes(data, 0, 4000, gpu.stream()), "filling");
  EXPECT_THROW(
      gpu.check(gpu.driver.api.copy_to_host(out.data(), data, 100'000, gpu.stream()), "copying"),
      Error);
  gpu.pool.give(data);
  EXPECT_THROW(gpu.pool.take(size_t{1} << 30), Error);
}

TEST_F(GpuCuda, KernelsAreFoundAndLaunched) {
  Gpu gpu(Device::parse("cuda:0"));
  gpu.enter();
  void* data = gpu.pool.take(4096);
  gpu.launch("map", "silu_f32", Grid{}, data, data, uint64_t{1024});
  Grid early;
  early.early = true;
  early.shared_bytes = 100 << 10;  // more than a kernel gets unasked
  gpu.launch("matvec", "matvec_q4_0", early, data, data, data, data, uint32_t{1}, uint32_t{16},
             uint32_t{1});
  EXPECT_EQ(gpu.modules_loaded(), 2);
  EXPECT_THROW(gpu.function("map", "no_such_kernel"), Error);
  Grid wrong;
  wrong.items = 2048;
  EXPECT_THROW(gpu.launch("map", "silu_f32", wrong, data, data, uint64_t{1}), Error);
  wrong = Grid{};
  wrong.groups[1] = 70'000;
  EXPECT_THROW(gpu.launch("map", "silu_f32", wrong, data, data, uint64_t{1}), Error);
  wrong = Grid{};
  wrong.shared_bytes = 300 << 10;
  EXPECT_THROW(gpu.launch("map", "silu_f32", wrong, data, data, uint64_t{1}), Error);
  gpu.pool.give(data);
}

}  // namespace
}  // namespace wick::gpu
