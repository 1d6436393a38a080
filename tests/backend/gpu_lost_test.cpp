// Lost devices, and processes that can't use their devices. The stand-in for NVIDIA's driver loses
// a device on request; each test uses a different device.

#include <dlfcn.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <thread>
#include <vector>

#include "tests/backend/gpu_launch.h"
#include "tests/expect_error.h"
#include "wick/backend/gpu/gpu_backend.h"
#include "wick/tensor/memory.h"
#include "wick/tensor/ops.h"
#include "wick/tensor/recording.h"

namespace wick::gpu {
namespace {

using test::error_of;
using testing::AllOf;
using testing::HasSubstr;

constexpr int kIllegalAddress = 700, kInvalidValue = 1;

class GpuLost : public testing::Test {
 protected:
  void SetUp() override {
    const char* const file = std::getenv("WICK_CUDA_LIBRARY");
    const Driver* const driver = file == nullptr ? nullptr : Driver::of(DeviceKind::cuda);
    if (driver == nullptr) GTEST_SKIP() << "WICK_CUDA_LIBRARY names no driver that loses devices";
    lose_ = reinterpret_cast<int (*)(int, int)>(
        dlsym(dlopen(file, RTLD_NOW | RTLD_NOLOAD), "stand_in_lose"));
    ASSERT_NE(lose_, nullptr);
    std::string chosen;
    if (!has_images("sm_90", chosen)) GTEST_SKIP() << "no kernels for sm_90: no nvcc at build time";
    ASSERT_GT(driver->device_count(), next_ + 1) << "WICK_STAND_IN_DEVICES";
    device_ = {DeviceKind::cuda, next_++};
  }
  void lose(int code) { lose_(device_.index, code); }
  Tensor tensor() const { return Tensor::from(std::vector<float>{1, 2, 3}, {3}, device_); }

  static inline int next_ = 2;  // other tests use the first two
  Device device_;
  int (*lose_)(int, int) = nullptr;
};

TEST_F(GpuLost, AllLaterCallsSaySo) {
  const Device other{DeviceKind::cuda, device_.index + 1};
  std::vector<Tensor> kept{tensor(), tensor()};
  auto recording = record(device_, [&] { kept.push_back(add(kept[0], kept[1])); });
  const Tensor elsewhere = Tensor::from(std::vector<float>{4}, {1}, other);
  lose(kIllegalAddress);
  EXPECT_NO_THROW(add(kept[0], kept[1]));  // the error appears at the next synchronization
  const std::string first = error_of([&] { synchronize(device_); });
  EXPECT_EQ(first, device_.str() +
                       ": the device was lost: waiting for the device failed: an error (CUDA_ERROR)"
                       ": it does nothing more for this process: start it again");
  EXPECT_EQ(error_of([&] { synchronize(device_); }), first);
  EXPECT_EQ(error_of([&] { tensor(); }), first);
  EXPECT_EQ(error_of([&] { add(kept[0], kept[1]); }), first);
  EXPECT_EQ(error_of([&] { kept[0].to_vector<float>(); }), first);
  EXPECT_EQ(error_of([&] { kept[0].to(other); }), first);
  EXPECT_EQ(error_of([&] { (void)elsewhere.to(device_); }), first);
  EXPECT_EQ(error_of([&] { recording->replay(); }), first);
  EXPECT_EQ(error_of([&] { record(device_, [] {}); }), first);
  EXPECT_EQ(error_of([&] { memory_stats(device_); }), first);
  EXPECT_EQ(error_of([&] { trim_memory(device_); }), first);
  std::thread([&] { EXPECT_EQ(error_of([&] { tensor(); }), first); }).join();
  const size_t in_use = backend(device_).memory_info().in_use_bytes;
  kept.clear();
  recording.reset();
  EXPECT_LT(backend(device_).memory_info().in_use_bytes, in_use);
  EXPECT_EQ(elsewhere.to_vector<float>(), std::vector<float>{4}) << "the others go on";
}

TEST_F(GpuLost, ItMayShowInACopy) {
  const Tensor x = tensor();
  lose(kIllegalAddress);
  EXPECT_THAT(error_of([&] { x.to_vector<float>(); }),
              HasSubstr(device_.str() + ": the device was lost: copying to or from the host "));
  EXPECT_THAT(error_of([&] { synchronize(device_); }), HasSubstr(": the device was lost: "));
}

TEST_F(GpuLost, WhileARecordingIsMade) {
  const Tensor x = tensor(), y = tensor();
  lose(kIllegalAddress);
  EXPECT_THAT(error_of([&] {
                record(device_, [&] {
                  add(x, y);
                  std::thread([&] { error_of([&] { synchronize(device_); }); }).join();
                  add(x, y);
                });
              }),
              HasSubstr("the device was lost: waiting for the device failed: "));
}

TEST_F(GpuLost, OtherErrorsPass) {
  const Tensor x = tensor();
  Gpu& gpu = backend_of(device_).gpu();
  EXPECT_THAT(error_of([&] { gpu.check(kInvalidValue, "trying"); }),
              HasSubstr(device_.str() + ": trying failed: stand-in: an error"));
  EXPECT_EQ(x.to_vector<float>(), (std::vector<float>{1, 2, 3}));
}

/// Runs `work` in a forked child. Returns the text of the Error that it throws, or "no error", or
/// an empty string if the child hangs or crashes.
template <class F>
std::string in_child(const F& work) {
  int ends[2];
  if (pipe(ends) != 0) return "";
  const pid_t child = fork();
  if (child == 0) {
    alarm(10);
    std::string text = "no error";
    try {
      work();
    } catch (const Error& e) {
      text = e.what();
    }
    const bool written = write(ends[1], text.data(), text.size()) > 0;
    _exit(written ? 0 : 1);
  }
  close(ends[1]);
  std::string text(4096, '\0');
  const ssize_t count = read(ends[0], text.data(), text.size());
  close(ends[0]);
  int status = 0;
  waitpid(child, &status, 0);
  text.resize(count > 0 && status == 0 ? static_cast<size_t>(count) : 0);
  return text;
}

TEST(GpuFork, AChildIsToldThatItCannot) {
  const bool cuda = Driver::of(DeviceKind::cuda) != nullptr;
  const Driver* const driver = Driver::of(cuda ? DeviceKind::cuda : DeviceKind::hip);
  if (driver == nullptr) GTEST_SKIP() << "no GPU";
  // This device isn't lost by another test.
  const Device device{cuda ? DeviceKind::cuda : DeviceKind::hip,
                      std::min(driver->device_count() - 1, 6)};
  std::vector<Tensor> kept{Tensor::from(std::vector<float>{1, 2}, {2}, device)};
  // Another thread holds the device's locks at arbitrary times.
  std::atomic<bool> stop = false;
  std::thread busy([&] {
    while (!stop) Tensor::empty({10}, DType::f32, device);
  });
  const auto says = AllOf(HasSubstr(device.str() + ": a child of fork can't use the device"));
  for (int i = 0; i < 20; ++i) {
    EXPECT_THAT(in_child([&] { kept[0].to_vector<float>(); }), says);
    EXPECT_THAT(in_child([&] { Tensor::empty({10}, DType::f32, device); }), says);
    EXPECT_THAT(in_child([&] { synchronize(device); }), says);
    EXPECT_EQ(in_child([&] { kept.clear(); }), "no error");
  }
  stop = true;
  busy.join();
  EXPECT_EQ(kept[0].to_vector<float>(), (std::vector<float>{1, 2}));
}

/// Uses the device that WICK_TEST_LOSE names. This process loses the device.
TEST(GpuWild, AKernelThatWritesAnywhereLosesTheDevice) {
  const char* const name = std::getenv("WICK_TEST_LOSE");
  if (name == nullptr) GTEST_SKIP() << "WICK_TEST_LOSE names no device";
  const Device device = Device::parse(name);
  std::vector<Tensor> kept{Tensor::from(std::vector<float>{1, 2}, {2}, device)};
  Gpu& gpu = backend_of(device).gpu();
  launch_unary(gpu, Op::silu, reinterpret_cast<void*>(uintptr_t{1} << 12), 1024);
  const std::string first = error_of([&] { synchronize(device); });
  std::printf("%s\n", first.c_str());
  EXPECT_THAT(first, HasSubstr(device.str() + ": the device was lost: waiting for the device "));
  EXPECT_EQ(error_of([&] { kept[0].to_vector<float>(); }), first);
  EXPECT_EQ(error_of([&] { add(kept[0], kept[0]); }), first);
  kept.clear();
}

}  // namespace
}  // namespace wick::gpu
