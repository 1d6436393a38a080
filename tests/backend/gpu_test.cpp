// Finding drivers and kernels, and launching kernels. Uses the software AMD GPU if it has been
// built; WICK_HIP_LIBRARY names it.

#include "wick/backend/gpu/driver/gpu.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>
#include <vector>

#include "tests/backend/gpu_launch.h"
#include "wick/base/error.h"
#include "wick/tensor/ops.h"

namespace wick::gpu {
namespace {

bool has_gpu() { return Driver::of(DeviceKind::hip) != nullptr; }

#define SKIP_WITHOUT_GPU() \
  if (!has_gpu()) GTEST_SKIP() << "no HIP device: " << Driver::missing(DeviceKind::hip)

TEST(GpuImages, SourcesAreInTheBinary) {
  const Files& sources = kernel_sources();
  ASSERT_TRUE(sources.contains("wick/backend/gpu/kernels/device/device.h"));
  EXPECT_TRUE(sources.contains("wick/math/scalar.h"));
  EXPECT_NE(sources.at("wick/backend/gpu/kernels/map/map.h").find("WICK_UNARY"), std::string::npos);
}

TEST(GpuImages, TheClosestIsTaken) {
  std::string chosen;
  for (const std::string& name : image_architectures()) {
    if (name == "ptx") continue;
    const std::string device = name == "sm_90a" ? "sm_90" : name;
    const std::optional<Files> images = find_images(device, chosen);
    ASSERT_TRUE(images) << name;
    EXPECT_EQ(chosen, name);
    EXPECT_GT(images->at("map_f32").size(), 1000u);
  }
  EXPECT_FALSE(find_images("gfx000", chosen));
  EXPECT_FALSE(find_images("", chosen));
}

TEST(GpuDriver, AMissingOneSaysWhy) {
  EXPECT_EQ(Driver::of(DeviceKind::cpu), nullptr);
  if (Driver::of(DeviceKind::cuda) == nullptr) {
    EXPECT_NE(Driver::missing(DeviceKind::cuda), "");
    try {
      const Gpu gpu(Device::parse("cuda:0"));
      FAIL() << "a device without a driver";
    } catch (const Error& error) {
      EXPECT_NE(std::string(error.what()).find("no such device here: cuda:0: "), std::string::npos)
          << error.what();
    }
  }
}

TEST(GpuDriver, KnowsItsDevices) {
  SKIP_WITHOUT_GPU();
  const Driver& driver = *Driver::of(DeviceKind::hip);
  ASSERT_GE(driver.device_count(), 1);
  const GpuInfo info = driver.info(0);
  EXPECT_TRUE(info.architecture.starts_with("gfx")) << info.architecture;
  EXPECT_EQ(info.architecture.find(':'), std::string::npos);
  EXPECT_TRUE(info.wave == 32 || info.wave == 64);
  EXPECT_GE(info.shared_bytes, 32 << 10);
  EXPECT_GT(info.bytes, size_t{1} << 20);
  EXPECT_GT(info.multiprocessors, 0);
  EXPECT_FALSE(info.name.empty());
  EXPECT_NE(driver.version(), "");
  EXPECT_NE(driver.text(1), "");
}

TEST(Gpu, RefusesAnIndexThatIsNone) {
  SKIP_WITHOUT_GPU();
  EXPECT_THROW(Gpu(Device{DeviceKind::hip, 99}), Error);
}

TEST(Gpu, TensorsComeAndGo) {
  SKIP_WITHOUT_GPU();
  const Device device = Device::parse("hip:0");
  // The copy takes several slots of the staging memory and has an odd end.
  std::vector<float> values(5'000'001);
  for (size_t i = 0; i < values.size(); ++i) values[i] = static_cast<float>(i % 8191);
  const Tensor x = Tensor::from(values, {static_cast<int64_t>(values.size())});
  const Tensor there = x.to(device);
  EXPECT_EQ(there.str(), "f32[5000001]@hip:0");
  EXPECT_EQ(there.to_vector<float>(), values);
  EXPECT_EQ(there.narrow(0, 1, 3).to(Device::cpu()).to_vector<float>(),
            (std::vector<float>{1, 2, 3}));
  EXPECT_THROW(add(x, there), Error);
  EXPECT_THROW(backend(Device::parse("hip:99")), Error);
}

TEST(Gpu, LoadsAModuleOnce) {
  SKIP_WITHOUT_GPU();
  Gpu gpu(Device::parse("hip:0"));
  EXPECT_EQ(gpu.modules_loaded(), 0);
  void* const silu = gpu.function("map_f32", "silu_f32");
  EXPECT_EQ(gpu.function("map_f32", "silu_f32"), silu);
  EXPECT_NE(gpu.function("map_f32", "exp_f32"), silu);
  EXPECT_EQ(gpu.modules_loaded(), 1);
  EXPECT_THROW(gpu.function("map_f32", "no_such_kernel"), Error);
  EXPECT_THROW(gpu.function("no_such_file", "silu_f32"), Error);
  EXPECT_EQ(gpu.modules_loaded(), 1);
}

TEST(Gpu, AKernelIsLookedUpOnce) {
  SKIP_WITHOUT_GPU();
  Gpu gpu(Device::parse("hip:0")), other(Device::parse("hip:0"));
  gpu.enter();
  void* const data = gpu.pool.take(4096);
  gpu.check(gpu.driver.api.set_bytes(data, 0, 4096, gpu.stream()), "filling");
  launch_unary(gpu, Op::silu, data, 1024);
  EXPECT_EQ(gpu.modules_loaded(), 1);
  launch_unary(gpu, Op::exp, data, 1024);
  launch_unary(gpu, Op::silu, data, 1024);
  EXPECT_EQ(gpu.modules_loaded(), 1);
  // Each Gpu looks up its own functions.
  EXPECT_EQ(other.modules_loaded(), 0);
  void* const others = other.pool.take(4096);
  other.check(other.driver.api.set_bytes(others, 0, 4096, other.stream()), "filling");
  launch_unary(other, Op::silu, others, 1024);
  EXPECT_EQ(other.modules_loaded(), 1);
  std::vector<float> values(1024, 7);
  gpu.check(gpu.driver.api.copy_to_host(values.data(), data, 4096, gpu.stream()), "copying");
  gpu.synchronize();
  EXPECT_FLOAT_EQ(values.front(), 1 / (1 + std::exp(-1.0f)));
  EXPECT_EQ(values, std::vector<float>(1024, values.front()));
  other.synchronize();
  gpu.pool.give(data);
  other.pool.give(others);
}

TEST(Gpu, KernelsAreNamedByTheirKeys) {
  static const KernelFamily<UnaryArgs, Op, DType, OneOf<1, 4>> family("map_{1}", "{}_{}_by_{}");
  const auto name_of = [](const KernelFamilyBase& of, unsigned index) {
    const KernelName name = of.name(index);
    return name.file + " " + name.kernel;
  };
  EXPECT_EQ(family.count, static_cast<unsigned>(kOpCount * kDTypeCount * 2));
  EXPECT_EQ(family.argument_bytes, sizeof(UnaryArgs));
  const auto index = static_cast<unsigned>(
      (static_cast<int>(Op::silu) * kDTypeCount + static_cast<int>(DType::f16)) * 2 + 1);
  EXPECT_EQ(name_of(family, index), "map_f16 silu_f16_by_4");
  EXPECT_THROW(family(Op::silu, DType::f16, 2), Error);
}

TEST(Gpu, ErrorsNameTheKernelAndItsGrid) {
  SKIP_WITHOUT_GPU();
  Gpu gpu(Device::parse("hip:0"));
  gpu.enter();
  try {
    kUnaryF32(Op::silu).launch(gpu, Grid{{1, 1, 1}, 4096}, {});
    FAIL() << "a group of 4096";
  } catch (const Error& error) {
    const std::string what = error.what();
    EXPECT_NE(what.find("launching silu_f32 (1x1x1 blocks of 4096) failed"), std::string::npos)
        << what;
    EXPECT_NE(what.find("hip:0"), std::string::npos) << what;
  }
}

}  // namespace
}  // namespace wick::gpu
