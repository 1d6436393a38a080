#include <cstring>
#include <numeric>
#include <thread>

#include "emu/tests/hip_support.h"

namespace {

TEST(HipDevice, TellsWhatItIs) {
  int count = 0;
  HIP_OK(hipGetDeviceCount(&count));
  ASSERT_GE(count, 1);
  hipDeviceProp_tR0600 now;
  hipDeviceProp_tR0000 before;
  HIP_OK(hipGetDevicePropertiesR0600(&now, 0));
  HIP_OK(hipGetDeviceProperties(&before, 0));
  EXPECT_STREQ(now.gcnArchName, "gfx1100");
  EXPECT_STREQ(before.gcnArchName, "gfx1100");
  EXPECT_EQ(now.warpSize, 32);
  EXPECT_EQ(now.major, 11);
  int value = 0;
  HIP_OK(hipDeviceGetAttribute(&value, hipDeviceAttributeWarpSize, 0));
  EXPECT_EQ(value, 32);
  EXPECT_EQ(hipErrorInvalidDevice,
            hipDeviceGetAttribute(&value, hipDeviceAttributeWarpSize, count));
  EXPECT_EQ(hipErrorInvalidDevice, hipSetDevice(count));
  EXPECT_EQ(hipErrorInvalidDevice, hipSetDevice(-1));
  EXPECT_EQ(hipErrorInvalidValue, hipInit(1));
  EXPECT_EQ(hipErrorInvalidValue, hipGetLastError());
  EXPECT_STREQ("hipErrorNoBinaryForGpu", hipGetErrorName(hipErrorNoBinaryForGpu));
}

TEST(HipDevice, ErrorsAreOfTheThread) {
  EXPECT_EQ(hipErrorInvalidDevice, hipSetDevice(99));
  std::thread([] { EXPECT_EQ(hipSuccess, hipPeekAtLastError()); }).join();
  EXPECT_EQ(hipErrorInvalidDevice, hipPeekAtLastError());
  EXPECT_EQ(hipErrorInvalidDevice, hipGetLastError());
  EXPECT_EQ(hipSuccess, hipGetLastError());
}

TEST(HipMemory, ComesAndGoes) {
  size_t free = 0, total = 0, after = 0;
  HIP_OK(hipMemGetInfo(&free, &total));
  void* pointer = nullptr;
  HIP_OK(hipMalloc(&pointer, 1 << 20));
  EXPECT_EQ(reinterpret_cast<uintptr_t>(pointer) % 256, 0u);
  HIP_OK(hipMemGetInfo(&after, nullptr));
  EXPECT_EQ(after, free - (1 << 20));
  hipPointerAttribute_t attributes;
  HIP_OK(hipPointerGetAttributes(&attributes, static_cast<char*>(pointer) + 100));
  EXPECT_EQ(attributes.type, hipMemoryTypeDevice);
  EXPECT_EQ(attributes.device, 0);
  void* base = nullptr;
  size_t bytes = 0;
  HIP_OK(hipMemGetAddressRange(&base, &bytes, static_cast<char*>(pointer) + 100));
  EXPECT_EQ(base, pointer);
  EXPECT_EQ(bytes, size_t{1} << 20);
  EXPECT_EQ(hipErrorInvalidValue, hipFree(static_cast<char*>(pointer) + 256));
  HIP_OK(hipFree(pointer));
  EXPECT_EQ(hipErrorInvalidValue, hipFree(pointer));
  HIP_OK(hipFree(nullptr));
  HIP_OK(hipMemGetInfo(&after, nullptr));
  EXPECT_EQ(after, free);
  HIP_OK(hipMalloc(&pointer, 0));
  EXPECT_EQ(pointer, nullptr);
  EXPECT_EQ(hipErrorInvalidValue, hipMalloc(nullptr, 16));
  (void)hipGetLastError();
}

TEST(HipMemory, EndsSomewhere) {
  size_t free = 0, total = 0;
  HIP_OK(hipMemGetInfo(&free, &total));
  void *first = nullptr, *second = nullptr;
  EXPECT_EQ(hipErrorOutOfMemory, hipMalloc(&first, total + 1));
  EXPECT_EQ(hipErrorOutOfMemory, hipMalloc(&first, ~size_t{0}));
  EXPECT_EQ(hipErrorOutOfMemory, hipMalloc(&first, ~size_t{0} / 2 + 1));
  HIP_OK(hipMalloc(&first, free / 4 * 3));
  EXPECT_EQ(hipErrorOutOfMemory, hipMalloc(&second, free / 2));
  EXPECT_EQ(hipErrorOutOfMemory, hipGetLastError());
  HIP_OK(hipFree(first));
  HIP_OK(hipMalloc(&second, free / 2));
  HIP_OK(hipFree(second));
}

TEST(HipMemory, CopiesAndFills) {
  Buffer<char> a(1000), b(1000);
  std::vector<char> text(1000);
  std::iota(text.begin(), text.end(), 0);
  a.set(text);
  HIP_OK(hipMemcpy(b.data, a.data, 1000, hipMemcpyDeviceToDevice));
  EXPECT_EQ(b.get(), text);
  HIP_OK(hipMemset(b.data + 1, 7, 10));
  HIP_OK(hipMemsetD16(b.data + 20, 0x1234, 5));
  HIP_OK(hipMemsetD32(b.data + 40, 0x01020304, 2));
  const std::vector<char> filled = b.get();
  EXPECT_EQ(filled[0], 0);
  EXPECT_EQ(filled[10], 7);
  EXPECT_EQ(filled[11], 11);
  EXPECT_EQ(filled[29], 0x12);
  EXPECT_EQ(filled[47], 0x01);
  std::vector<char> block(60, 0);
  HIP_OK(hipMemcpy2D(block.data(), 12, a.data, 100, 10, 5, hipMemcpyDeviceToHost));
  EXPECT_EQ(block[12 * 4 + 9], text[409]);
  EXPECT_EQ(block[10], 0);
  EXPECT_EQ(hipErrorInvalidPitchValue,
            hipMemcpy2D(block.data(), 5, a.data, 100, 10, 5, hipMemcpyDeviceToHost));
  (void)hipGetLastError();
}

TEST(HipMemory, RefusesBadRanges) {
  Buffer<char> a(1000);
  std::vector<char> text(4096);
  EXPECT_EQ(hipErrorInvalidValue, hipMemcpy(a.data, text.data(), 1001, hipMemcpyHostToDevice));
  EXPECT_EQ(hipErrorInvalidValue, hipMemcpy(text.data(), a.data + 990, 11, hipMemcpyDeviceToHost));
  EXPECT_EQ(hipErrorInvalidValue, hipMemcpy(text.data(), text.data(), 8, hipMemcpyDeviceToHost));
  EXPECT_EQ(hipErrorInvalidValue, hipMemcpy(nullptr, text.data(), 8, hipMemcpyHostToDevice));
  EXPECT_EQ(hipErrorInvalidMemcpyDirection,
            hipMemcpy(a.data, text.data(), 8, static_cast<hipMemcpyKind>(9)));
  EXPECT_EQ(hipErrorInvalidValue, hipMemset(a.data, 0, 2000));
  EXPECT_EQ(hipErrorInvalidValue, hipMemsetD32(a.data + 1, 0, 1));
  EXPECT_EQ(hipErrorInvalidValue, hipMemsetD32(a.data, 0, ~size_t{0} / 4 + 2));
  (void)hipGetLastError();
}

TEST(HipMemory, PinnedAndRegistered) {
  const Kernels kernels;
  int* pinned = nullptr;
  HIP_OK(hipHostMalloc(reinterpret_cast<void**>(&pinned), 64 * sizeof(int), hipHostMallocMapped));
  std::memset(pinned, 0, 64 * sizeof(int));
  void* device = nullptr;
  HIP_OK(hipHostGetDevicePointer(&device, pinned, 0));
  HIP_OK(launch(kernels["add_one"], 2, 32, 0, nullptr, device, 64));
  HIP_OK(hipDeviceSynchronize());
  EXPECT_EQ(pinned[63], 1);
  unsigned flags = 0;
  HIP_OK(hipHostGetFlags(&flags, pinned));
  EXPECT_EQ(flags, unsigned{hipHostMallocMapped});
  HIP_OK(hipHostFree(pinned));
  std::vector<int> own(64);
  EXPECT_EQ(hipErrorHostMemoryNotRegistered, hipHostUnregister(own.data()));
  HIP_OK(hipHostRegister(own.data(), 64 * sizeof(int), hipHostRegisterDefault));
  EXPECT_EQ(hipErrorHostMemoryAlreadyRegistered, hipHostRegister(own.data() + 8, 8, 0));
  int* data = own.data();
  HIP_OK(launch(kernels["add_one"], 2, 32, 0, nullptr, data, 64));
  HIP_OK(hipDeviceSynchronize());
  EXPECT_EQ(own[63], 1);
  HIP_OK(hipHostUnregister(own.data()));
  EXPECT_EQ(hipErrorInvalidValue, hipHostMalloc(&device, 64, 0x100));
  (void)hipGetLastError();
}

TEST(HipMemory, PoolsFollowStreams) {
  hipStream_t stream = nullptr;
  HIP_OK(hipStreamCreate(&stream));
  const Kernels kernels;
  int* data = nullptr;
  HIP_OK(hipMallocAsync(reinterpret_cast<void**>(&data), 64 * sizeof(int), stream));
  HIP_OK(launch(kernels["set_to"], 2, 32, 0, stream, data, 12));
  std::vector<int> out(64);
  HIP_OK(hipMemcpyAsync(out.data(), data, 64 * sizeof(int), hipMemcpyDeviceToHost, stream));
  HIP_OK(hipFreeAsync(data, stream));
  HIP_OK(hipStreamSynchronize(stream));
  EXPECT_EQ(out, std::vector<int>(64, 12));
  hipMemPool_t pool = nullptr;
  HIP_OK(hipDeviceGetDefaultMemPool(&pool, 0));
  uint64_t used = 1;
  HIP_OK(hipMemPoolGetAttribute(pool, hipMemPoolAttrUsedMemCurrent, &used));
  EXPECT_EQ(used, 0u);
  HIP_OK(hipStreamDestroy(stream));
}

}  // namespace
