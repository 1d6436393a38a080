// Several devices of different architectures at once. Runs with WICK_EMU_DEVICES=gfx1100,gfx90a and
// WICK_EMU_MEMORY=1G,2G.

#include <cstring>
#include <string>

#include "emu/hip/texture_types.h"
#include "emu/tests/hip_support.h"

namespace {

TEST(HipDevices, AreWhatWasAskedFor) {
  int count = 0;
  HIP_OK(hipGetDeviceCount(&count));
  ASSERT_EQ(2, count);
  const char* const names[] = {"gfx1100", "gfx90a"};
  const size_t bytes[] = {size_t{1} << 30, size_t{2} << 30};
  const int waves[] = {32, 64};
  for (int device = 0; device < 2; ++device) {
    HIP_OK(hipSetDevice(device));
    int current = -1, wave = 0;
    HIP_OK(hipGetDevice(&current));
    EXPECT_EQ(device, current);
    HIP_OK(hipDeviceGetAttribute(&wave, hipDeviceAttributeWarpSize, device));
    EXPECT_EQ(waves[device], wave);
    hipDeviceProp_tR0600 properties;
    HIP_OK(hipGetDevicePropertiesR0600(&properties, device));
    EXPECT_EQ(0u, std::string(properties.gcnArchName).find(names[device]));
    size_t free = 0, total = 0;
    HIP_OK(hipMemGetInfo(&free, &total));
    EXPECT_EQ(bytes[device], total);
    EXPECT_LE(free, total);
  }
  EXPECT_EQ(hipErrorInvalidDevice, hipSetDevice(2));
  HIP_OK(hipSetDevice(0));
}

TEST(HipDevices, HaveArraysIfTheyHaveImages) {
  const hipChannelFormatDesc floats{32, 0, 0, 0, hipChannelFormatKindFloat};
  const hipError_t wanted[] = {hipSuccess, hipErrorNotSupported};
  for (int device = 0; device < 2; ++device) {
    HIP_OK(hipSetDevice(device));
    int images = -1;
    HIP_OK(hipDeviceGetAttribute(&images, hipDeviceAttributeImageSupport, device));
    EXPECT_EQ(wanted[device] == hipSuccess ? 1 : 0, images);
    hipArray_t array = nullptr;
    EXPECT_EQ(wanted[device], hipMallocArray(&array, &floats, 8, 8, 0));
    if (array != nullptr) HIP_OK(hipFreeArray(array));
    (void)hipGetLastError();
  }
  HIP_OK(hipSetDevice(0));
}

TEST(HipDevices, RunTheirOwnCodeAndRefuseTheOthers) {
  const char* const files[] = {"basic.gfx1100.hsaco", "basic.gfx90a.hsaco"};
  for (int device = 0; device < 2; ++device) {
    HIP_OK(hipSetDevice(device));
    hipModule_t module = nullptr;
    EXPECT_EQ(hipErrorNoBinaryForGpu,
              hipModuleLoadData(&module, kernel_file(files[1 - device]).data()));
    (void)hipGetLastError();
    const Kernels kernels(files[device]);
    const Buffer<int> data(64);
    HIP_OK(launch(kernels["set_to"], 2, 32, 0, nullptr, data.data, 40 + device));
    EXPECT_EQ(data.get(), std::vector<int>(64, 40 + device));
  }
  HIP_OK(hipSetDevice(0));
}

TEST(HipDevices, CopyToEachOther) {
  int can = 0;
  HIP_OK(hipDeviceCanAccessPeer(&can, 0, 1));
  EXPECT_EQ(1, can);
  HIP_OK(hipSetDevice(0));
  Buffer<int> first(100);
  first.set(std::vector<int>(100, 7));
  HIP_OK(hipSetDevice(1));
  const Buffer<int> second(100);
  HIP_OK(hipMemcpyPeer(second.data, 1, first.data, 0, 100 * sizeof(int)));
  EXPECT_EQ(second.get(), std::vector<int>(100, 7));
  first.set(std::vector<int>(100, 8));
  hipStream_t stream = nullptr;
  HIP_OK(hipStreamCreate(&stream));
  HIP_OK(hipMemcpyPeerAsync(second.data, 1, first.data, 0, 100 * sizeof(int), stream));
  HIP_OK(hipStreamSynchronize(stream));
  EXPECT_EQ(second.get(), std::vector<int>(100, 8));
  HIP_OK(hipStreamDestroy(stream));
  HIP_OK(hipSetDevice(0));
}

}  // namespace
