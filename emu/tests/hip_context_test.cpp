// Contexts of the driver API, settings of a device, and the effect of a reset.

#include <thread>

#include "emu/tests/hip_support.h"

namespace {

/// Returns the current context of this thread.
hipCtx_t current() {
  hipCtx_t context = nullptr;
  EXPECT_EQ(hipSuccess, hipCtxGetCurrent(&context));
  return context;
}

class HipContext : public testing::Test {
 protected:
  ~HipContext() override { (void)hipGetLastError(); }
};

TEST_F(HipContext, IsTheDevicesOwn) {
  hipCtx_t created = nullptr, retained = nullptr;
  HIP_OK(hipCtxCreate(&created, 0, 0));
  EXPECT_EQ(created, current());
  HIP_OK(hipDevicePrimaryCtxRetain(&retained, 0));
  EXPECT_NE(nullptr, retained);
  hipDevice_t device = -1;
  HIP_OK(hipCtxGetDevice(&device));
  EXPECT_EQ(0, device);
  HIP_OK(hipDevicePrimaryCtxRelease(0));
  HIP_OK(hipCtxDestroy(created));
}

TEST_F(HipContext, CreationRefusesBadArguments) {
  hipCtx_t context = nullptr;
  EXPECT_EQ(hipErrorInvalidValue, hipCtxCreate(nullptr, 0, 0));
  EXPECT_EQ(hipErrorInvalidValue, hipCtxCreate(&context, 0x100, 0));
  EXPECT_EQ(hipErrorInvalidDevice, hipCtxCreate(&context, 0, -1));
  EXPECT_EQ(hipErrorInvalidDevice, hipCtxCreate(&context, 0, 99));
  // None of the failed calls has pushed a context.
  EXPECT_EQ(hipErrorInvalidContext, hipCtxPopCurrent(&context));
}

TEST_F(HipContext, PopsWhatWasPushed) {
  hipCtx_t first = nullptr, popped = nullptr;
  HIP_OK(hipCtxCreate(&first, 0, 0));
  HIP_OK(hipCtxPushCurrent(first));
  HIP_OK(hipCtxPopCurrent(&popped));
  EXPECT_EQ(first, popped);
  HIP_OK(hipCtxPopCurrent(nullptr));
  EXPECT_EQ(hipErrorInvalidContext, hipCtxPopCurrent(&popped));
  EXPECT_EQ(hipErrorInvalidContext, hipGetLastError());
}

TEST_F(HipContext, DestroyingTheCurrentOnePopsIt) {
  hipCtx_t context = nullptr;
  HIP_OK(hipCtxCreate(&context, 0, 0));
  HIP_OK(hipCtxDestroy(context));
  EXPECT_EQ(hipErrorInvalidContext, hipCtxPopCurrent(&context));
}

TEST_F(HipContext, EachThreadHasItsOwnStack) {
  hipCtx_t context = nullptr;
  HIP_OK(hipCtxCreate(&context, 0, 0));
  std::thread([] {
    hipCtx_t popped = nullptr;
    EXPECT_EQ(hipErrorInvalidContext, hipCtxPopCurrent(&popped));
  }).join();
  HIP_OK(hipCtxPopCurrent(&context));
}

TEST_F(HipContext, RefusesWhatIsNone) {
  int not_one = 0;
  const auto bad = reinterpret_cast<hipCtx_t>(&not_one);
  EXPECT_EQ(hipErrorInvalidContext, hipCtxPushCurrent(bad));
  EXPECT_EQ(hipErrorInvalidContext, hipCtxPushCurrent(nullptr));
  EXPECT_EQ(hipErrorInvalidContext, hipCtxSetCurrent(bad));
  EXPECT_EQ(hipErrorInvalidContext, hipCtxDestroy(bad));
  EXPECT_EQ(hipErrorInvalidValue, hipCtxDestroy(nullptr));
  EXPECT_EQ(hipErrorInvalidValue, hipCtxGetCurrent(nullptr));
  EXPECT_EQ(hipErrorInvalidValue, hipCtxGetDevice(nullptr));
  EXPECT_EQ(hipErrorInvalidContext, hipCtxEnablePeerAccess(bad, 0));
  EXPECT_EQ(hipErrorInvalidContext, hipCtxDisablePeerAccess(bad));
  HIP_OK(hipCtxSetCurrent(current()));
  HIP_OK(hipCtxSetCurrent(nullptr));
}

/// As AMD's runtimes 6.4 and 7.2.
TEST_F(HipContext, SomeFunctionsAreNotSupported) {
  int version = 0;
  unsigned flags = 0;
  hipFuncCache_t cache = hipFuncCachePreferNone;
  EXPECT_EQ(hipErrorNotSupported, hipCtxSynchronize());
  EXPECT_EQ(hipErrorNotSupported, hipCtxGetApiVersion(current(), &version));
  EXPECT_EQ(hipErrorNotSupported, hipCtxGetFlags(&flags));
  EXPECT_EQ(hipErrorNotSupported, hipCtxGetCacheConfig(&cache));
  EXPECT_EQ(hipErrorNotSupported, hipCtxSetCacheConfig(hipFuncCachePreferL1));
  EXPECT_EQ(hipErrorNotSupported, hipCtxSetSharedMemConfig(hipSharedMemBankSizeEightByte));
  EXPECT_EQ(hipErrorNotSupported, hipGetLastError());
  hipSharedMemConfig banks = hipSharedMemBankSizeDefault;
  HIP_OK(hipCtxGetSharedMemConfig(&banks));
  EXPECT_EQ(hipSharedMemBankSizeFourByte, banks);
  EXPECT_EQ(hipErrorInvalidValue, hipCtxGetSharedMemConfig(nullptr));
}

TEST_F(HipContext, PrimaryOnesRefuseBadArguments) {
  hipCtx_t context = nullptr;
  unsigned flags = 0;
  int active = 0;
  EXPECT_EQ(hipErrorInvalidValue, hipDevicePrimaryCtxRetain(nullptr, 0));
  EXPECT_EQ(hipErrorInvalidDevice, hipDevicePrimaryCtxRetain(&context, 99));
  EXPECT_EQ(hipErrorInvalidDevice, hipDevicePrimaryCtxRelease(99));
  EXPECT_EQ(hipErrorInvalidDevice, hipDevicePrimaryCtxReset(-1));
  EXPECT_EQ(hipErrorInvalidDevice, hipDevicePrimaryCtxGetState(99, &flags, &active));
  EXPECT_EQ(hipErrorInvalidValue, hipDevicePrimaryCtxGetState(0, nullptr, &active));
  EXPECT_EQ(hipErrorInvalidValue, hipDevicePrimaryCtxGetState(0, &flags, nullptr));
  EXPECT_EQ(hipErrorInvalidDevice, hipDevicePrimaryCtxSetFlags(99, 0));
  // The primary context is always active, so its flags can't be changed.
  EXPECT_EQ(hipErrorContextAlreadyInUse, hipDevicePrimaryCtxSetFlags(0, hipDeviceScheduleSpin));
}

TEST_F(HipContext, FlagsAreTheDevices) {
  unsigned flags = 0, of_primary = 0;
  int active = 0;
  for (const unsigned set : {unsigned{hipDeviceScheduleSpin}, unsigned{hipDeviceScheduleYield},
                             unsigned{hipDeviceScheduleBlockingSync} | hipDeviceMapHost}) {
    HIP_OK(hipSetDeviceFlags(set));
    HIP_OK(hipGetDeviceFlags(&flags));
    EXPECT_EQ(set, flags);
    HIP_OK(hipDevicePrimaryCtxGetState(0, &of_primary, &active));
    EXPECT_EQ(set, of_primary);
    EXPECT_EQ(1, active);
  }
  EXPECT_EQ(hipErrorInvalidValue,
            hipSetDeviceFlags(hipDeviceScheduleSpin | hipDeviceScheduleYield));
  EXPECT_EQ(hipErrorInvalidValue, hipSetDeviceFlags(0x80));
  EXPECT_EQ(hipErrorInvalidValue, hipGetDeviceFlags(nullptr));
  HIP_OK(hipGetDeviceFlags(&flags));
  EXPECT_EQ(unsigned{hipDeviceScheduleBlockingSync} | hipDeviceMapHost, flags);
  HIP_OK(hipSetDeviceFlags(hipDeviceScheduleAuto));
}

TEST_F(HipContext, LimitsAreKept) {
  for (const hipLimit_t limit :
       {hipLimitStackSize, hipLimitPrintfFifoSize, hipLimitMallocHeapSize}) {
    size_t before = 0, now = 0;
    HIP_OK(hipDeviceGetLimit(&before, limit));
    EXPECT_GT(before, 0u);
    HIP_OK(hipDeviceSetLimit(limit, before * 2));
    HIP_OK(hipDeviceGetLimit(&now, limit));
    EXPECT_EQ(before * 2, now);
    HIP_OK(hipDeviceSetLimit(limit, before));
  }
  size_t value = 0;
  EXPECT_EQ(hipErrorUnsupportedLimit, hipDeviceGetLimit(&value, hipLimitRange));
  EXPECT_EQ(hipErrorUnsupportedLimit, hipDeviceSetLimit(static_cast<hipLimit_t>(77), 1));
  EXPECT_EQ(hipErrorInvalidValue, hipDeviceGetLimit(nullptr, hipLimitStackSize));
}

TEST_F(HipContext, ConfigurationOfDevices) {
  hipFuncCache_t cache = hipFuncCachePreferEqual;
  HIP_OK(hipDeviceSetCacheConfig(hipFuncCachePreferShared));
  HIP_OK(hipDeviceGetCacheConfig(&cache));
  EXPECT_EQ(hipFuncCachePreferNone, cache);
  EXPECT_EQ(hipErrorInvalidValue, hipDeviceGetCacheConfig(nullptr));
  EXPECT_EQ(hipErrorInvalidValue, hipDeviceSetCacheConfig(static_cast<hipFuncCache_t>(9)));
  hipSharedMemConfig banks = hipSharedMemBankSizeDefault;
  HIP_OK(hipDeviceSetSharedMemConfig(hipSharedMemBankSizeDefault));
  HIP_OK(hipDeviceGetSharedMemConfig(&banks));
  EXPECT_EQ(hipSharedMemBankSizeFourByte, banks);
  EXPECT_EQ(hipErrorInvalidValue, hipDeviceGetSharedMemConfig(nullptr));
  EXPECT_EQ(hipErrorInvalidValue, hipDeviceSetSharedMemConfig(static_cast<hipSharedMemConfig>(9)));
}

/// Checks what a reset of the device, by either function, destroys and what it keeps.
void expect_reset(hipError_t (*reset)()) {
  size_t before = 0, after = 0, limit = 0;
  HIP_OK(hipMemGetInfo(&before, nullptr));
  void *memory = nullptr, *managed = nullptr, *pinned = nullptr;
  HIP_OK(hipMalloc(&memory, 1 << 20));
  HIP_OK(hipMallocManaged(&managed, 4096, hipMemAttachGlobal));
  HIP_OK(hipHostMalloc(&pinned, 4096, 0));
  hipStream_t stream = nullptr;
  HIP_OK(hipStreamCreate(&stream));
  HIP_OK(hipSetDeviceFlags(hipDeviceScheduleYield));
  size_t stack = 0;
  HIP_OK(hipDeviceGetLimit(&stack, hipLimitStackSize));
  HIP_OK(hipDeviceSetLimit(hipLimitStackSize, stack * 4));
  HIP_OK(hipMemsetAsync(memory, 1, 1 << 20, stream));
  HIP_OK(reset());
  HIP_OK(hipMemGetInfo(&after, nullptr));
  EXPECT_EQ(before, after);
  EXPECT_EQ(hipErrorInvalidValue, hipFree(memory));
  EXPECT_EQ(hipErrorInvalidValue, hipFree(managed));
  HIP_OK(hipHostFree(pinned));  // pinned memory doesn't belong to the device
  EXPECT_EQ(hipErrorContextIsDestroyed, hipStreamSynchronize(stream));
  unsigned flags = 1;
  HIP_OK(hipGetDeviceFlags(&flags));
  EXPECT_EQ(0u, flags);
  HIP_OK(hipDeviceGetLimit(&limit, hipLimitStackSize));
  EXPECT_EQ(stack, limit);
  const Kernels kernels;
  const Buffer<int> data(64);
  HIP_OK(launch(kernels["set_to"], 1, 64, 0, nullptr, data.data, 6));
  EXPECT_EQ(data.get(), std::vector<int>(64, 6));
}

TEST_F(HipContext, ResetsOfDevicesFreeWhatIsOnThem) { expect_reset(hipDeviceReset); }

TEST_F(HipContext, ResetsOfPrimaryContextsFreeWhatIsInThem) {
  expect_reset([] { return hipDevicePrimaryCtxReset(0); });
}

TEST_F(HipContext, ModulesOutliveResets) {
  const Kernels kernels;
  HIP_OK(hipDeviceReset());
  const Buffer<int> data(1);
  HIP_OK(launch(kernels["read_counter"], 1, 1, 0, nullptr, data.data));
  EXPECT_EQ(data.get(), std::vector<int>{7});
}

}  // namespace
