#include <chrono>
#include <cstring>
#include <numeric>

#include "emu/tests/hip_support.h"

namespace {

TEST(HipLaunch, AddsVectors) {
  const Kernels kernels;
  constexpr int kCount = 1000;
  Buffer<float> a(kCount), b(kCount), c(kCount);
  std::vector<float> x(kCount), y(kCount);
  for (int i = 0; i < kCount; ++i) {
    x[i] = static_cast<float>(i) * 0.25f;
    y[i] = static_cast<float>(i % 7);
  }
  a.set(x);
  b.set(y);
  HIP_OK(launch(kernels["add"], 4, 256, 0, nullptr, c.data, a.data, b.data, kCount));
  const std::vector<float> sum = c.get();
  for (int i = 0; i < kCount; ++i) ASSERT_EQ(sum[i], x[i] + y[i]) << i;
}

TEST(HipLaunch, TakesArgumentsFromABuffer) {
  const Kernels kernels;
  Buffer<int> data(64);
  struct {
    int* data;
    int value;
  } arguments{data.data, 42};
  size_t bytes = 12;
  void* extra[] = {HIP_LAUNCH_PARAM_BUFFER_POINTER, &arguments, HIP_LAUNCH_PARAM_BUFFER_SIZE,
                   &bytes, HIP_LAUNCH_PARAM_END};
  HIP_OK(hipModuleLaunchKernel(kernels["set_to"], 2, 1, 1, 32, 1, 1, 0, nullptr, nullptr, extra));
  EXPECT_EQ(data.get(), std::vector<int>(64, 42));
  for (const size_t wrong : {size_t{0}, size_t{4}, size_t{9}}) {
    bytes = wrong;
    EXPECT_EQ(hipErrorInvalidValue, hipModuleLaunchKernel(kernels["set_to"], 2, 1, 1, 32, 1, 1, 0,
                                                          nullptr, nullptr, extra));
  }
  bytes = 8;  // the last argument may be missing
  HIP_OK(hipModuleLaunchKernel(kernels["set_to"], 2, 1, 1, 32, 1, 1, 0, nullptr, nullptr, extra));
  EXPECT_EQ(data.get(), std::vector<int>(64, 0));
}

TEST(HipLaunch, TakesArgumentsFromALargerBuffer) {
  const Kernels kernels;
  Buffer<int> data(64);
  struct {
    int* data;
    int value;
    char more[4096];
  } arguments{data.data, 43, {}};
  std::memset(arguments.more, 0xff, sizeof arguments.more);
  size_t bytes = sizeof arguments;
  void* extra[] = {HIP_LAUNCH_PARAM_BUFFER_POINTER, &arguments, HIP_LAUNCH_PARAM_BUFFER_SIZE,
                   &bytes, HIP_LAUNCH_PARAM_END};
  HIP_OK(hipModuleLaunchKernel(kernels["set_to"], 2, 1, 1, 32, 1, 1, 0, nullptr, nullptr, extra));
  EXPECT_EQ(data.get(), std::vector<int>(64, 43));
}

TEST(HipLaunch, DynamicLds) {
  const Kernels kernels;
  Buffer<int> data(128);
  std::vector<int> values(128);
  std::iota(values.begin(), values.end(), 0);
  data.set(values);
  HIP_OK(launch(kernels["reverse"], 1, 128, 512, nullptr, data.data));
  std::reverse(values.begin(), values.end());
  EXPECT_EQ(data.get(), values);
}

TEST(HipLaunch, RegistersByNumber) {
  const Kernels kernels;
  std::vector<int> values(96);
  for (int i = 0; i < 32; ++i) values[static_cast<size_t>(i)] = i * 7;
  Buffer<int> data(values.size());
  data.set(values);
  for (const int which : {0, 13, 31}) {
    HIP_OK(launch(kernels["picks_register"], 1, 64, 0, nullptr, data.data, which));
    const std::vector<int> out = data.get();
    for (int i = 0; i < 64; ++i) {
      ASSERT_EQ(out[static_cast<size_t>(i) + 32], which * 7 + i + 1000) << i;
    }
  }
}

TEST(HipLaunch, GridsThatBlocksDontDivide) {
  const Kernels kernels("nonuniform.gfx1100.hsaco");
  Buffer<int> out(6);
  void* list[] = {const_cast<int**>(&out.data)};
  HIP_OK(hipExtModuleLaunchKernel(kernels["sizes"], 130, 1, 1, 64, 1, 1, 0, nullptr, list, nullptr,
                                  nullptr, nullptr, 0));
  EXPECT_EQ(out.get(), (std::vector<int>{64, 130, 64, 130, 2, 130}));
}

TEST(HipLaunch, GroupsThatWaitForLaterOnes) {
  const Kernels kernels;
  constexpr int kGroups = 300;
  Buffer<int> flags(kGroups);
  HIP_OK(launch(kernels["chain"], kGroups, 32, 0, nullptr, flags.data, kGroups));
  EXPECT_EQ(flags.get(), std::vector<int>(kGroups, 1));
}

TEST(HipLaunch, VariablesOfAModule) {
  const Kernels kernels;
  void* pointer = nullptr;
  size_t bytes = 0;
  HIP_OK(hipModuleGetGlobal(&pointer, &bytes, kernels.module, "counter"));
  EXPECT_EQ(bytes, 4u);
  int value = 0;
  HIP_OK(hipMemcpyDtoH(&value, pointer, 4));
  EXPECT_EQ(value, 7);
  value = 11;
  HIP_OK(hipMemcpyHtoD(pointer, &value, 4));
  Buffer<int> out(1);
  HIP_OK(launch(kernels["read_counter"], 1, 1, 0, nullptr, out.data));
  EXPECT_EQ(out.get()[0], 11);
  EXPECT_EQ(hipErrorNotFound, hipModuleGetGlobal(&pointer, &bytes, kernels.module, "nothing"));
}

TEST(HipLaunch, CooperativeGridsMustFit) {
  const Kernels kernels;
  int groups = 0;
  HIP_OK(hipModuleOccupancyMaxActiveBlocksPerMultiprocessor(&groups, kernels["chain"], 32, 0));
  ASSERT_GT(groups, 0);
  int processors = 0;
  HIP_OK(hipDeviceGetAttribute(&processors, hipDeviceAttributeMultiprocessorCount, 0));
  Buffer<int> flags(64);
  int count = 64;
  void* list[] = {const_cast<int**>(&flags.data), &count};
  HIP_OK(hipModuleLaunchCooperativeKernel(kernels["chain"], 64, 1, 1, 32, 1, 1, 0, nullptr, list));
  EXPECT_EQ(flags.get(), std::vector<int>(64, 1));
  const auto many = static_cast<unsigned>(groups * processors + 1);
  EXPECT_EQ(
      hipErrorCooperativeLaunchTooLarge,
      hipModuleLaunchCooperativeKernel(kernels["chain"], many, 1, 1, 32, 1, 1, 0, nullptr, list));
}

TEST(HipLaunch, RefusesWhatHardwareCannot) {
  const Kernels kernels;
  Buffer<int> data(1024);
  const hipFunction_t f = kernels["set_to"];
  EXPECT_EQ(hipErrorInvalidConfiguration, launch(f, 0, 64, 0, nullptr, data.data, 1));
  EXPECT_EQ(hipErrorInvalidConfiguration, launch(f, 1, 0, 0, nullptr, data.data, 1));
  EXPECT_EQ(hipErrorInvalidConfiguration, launch(f, 1, 2048, 0, nullptr, data.data, 1));
  EXPECT_EQ(hipErrorInvalidValue, launch(f, 1, 64, 65537, nullptr, data.data, 1));
  EXPECT_EQ(hipErrorLaunchFailure, launch(kernels["small_only"], 1, 128, 0, nullptr, data.data));
  void* missing[] = {nullptr, nullptr};
  EXPECT_EQ(hipErrorInvalidValue,
            hipModuleLaunchKernel(f, 1, 1, 1, 64, 1, 1, 0, nullptr, missing, nullptr));
  EXPECT_EQ(hipErrorInvalidValue,
            hipModuleLaunchKernel(f, 1, 1, 1, 64, 1, 1, 0, nullptr, nullptr, nullptr));
  int nothing = 0;
  const auto bogus = reinterpret_cast<hipFunction_t>(&nothing);
  EXPECT_EQ(hipErrorInvalidDeviceFunction, launch(bogus, 1, 64, 0, nullptr, data.data, 1));
  HIP_OK(launch(f, 1, 64, 0, nullptr, data.data, 5));  // the device still works
  EXPECT_EQ(data.get()[63], 5);
  EXPECT_EQ(hipErrorInvalidDeviceFunction, hipGetLastError());
  EXPECT_EQ(hipSuccess, hipGetLastError());
}

TEST(HipLaunch, BadAddressesAreErrors) {
  const Kernels kernels;
  Buffer<int> data(64);
  // The address is beyond the device's memory and faults with or without checks.
  HIP_OK(launch(kernels["out_of_bounds"], 1, 1, 0, nullptr, data.data, long{1} << 40));
  EXPECT_EQ(hipErrorIllegalAddress, hipDeviceSynchronize());
  EXPECT_EQ(hipSuccess, hipDeviceSynchronize());
  HIP_OK(launch(kernels["set_to"], 1, 64, 0, nullptr, data.data, 3));
  EXPECT_EQ(data.get()[0], 3);
}

/// Runs with WICK_EMU_TIMEOUT=1.
TEST(HipTimeout, EndsKernelsThatNeverEnd) {
  const Kernels kernels;
  Buffer<int> data(64);
  const auto start = std::chrono::steady_clock::now();
  HIP_OK(launch(kernels["never_ends"], 3, 64, 0, nullptr, data.data));
  EXPECT_EQ(hipErrorLaunchTimeOut, hipDeviceSynchronize());
  EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(20));
  HIP_OK(launch(kernels["set_to"], 1, 64, 0, nullptr, data.data, 3));
  EXPECT_EQ(data.get()[0], 3);
}

}  // namespace
