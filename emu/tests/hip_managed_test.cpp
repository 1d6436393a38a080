// Managed memory, and the advice given for its ranges.

#include "emu/tests/hip_support.h"

namespace {

constexpr size_t kHuge = ~size_t{0};
const auto kNoStream = reinterpret_cast<hipStream_t>(0x1234);

class HipManaged : public testing::Test {
 protected:
  ~HipManaged() override { (void)hipGetLastError(); }
};

TEST_F(HipManaged, IsTheHostsAndTheDevices) {
  const Kernels kernels;
  for (const unsigned flags : {unsigned{hipMemAttachGlobal}, unsigned{hipMemAttachHost}}) {
    int* data = nullptr;
    HIP_OK(hipMallocManaged(reinterpret_cast<void**>(&data), 64 * sizeof(int), flags));
    for (int i = 0; i < 64; ++i) data[i] = i;
    HIP_OK(hipMemAdvise(data, 64 * sizeof(int), hipMemAdviseSetPreferredLocation, 0));
    HIP_OK(hipMemPrefetchAsync(data, 64 * sizeof(int), 0, nullptr));
    HIP_OK(hipStreamAttachMemAsync(nullptr, data, 0, hipMemAttachSingle));
    HIP_OK(launch(kernels["add_one"], 1, 64, 0, nullptr, data, 64));
    HIP_OK(hipMemPrefetchAsync(data, 64 * sizeof(int), -1, nullptr));
    HIP_OK(hipDeviceSynchronize());
    for (int i = 0; i < 64; ++i) EXPECT_EQ(i + 1, data[i]);
    hipPointerAttribute_t attributes = {};
    HIP_OK(hipPointerGetAttributes(&attributes, data + 1));
    EXPECT_EQ(hipMemoryTypeManaged, attributes.type);
    EXPECT_EQ(1, attributes.isManaged);
    EXPECT_EQ(data + 1, attributes.hostPointer);
    EXPECT_EQ(data + 1, attributes.devicePointer);
    bool managed = false;
    HIP_OK(hipPointerGetAttribute(&managed, HIP_POINTER_ATTRIBUTE_IS_MANAGED, data));
    EXPECT_TRUE(managed);
    HIP_OK(hipFree(data));
  }
}

TEST_F(HipManaged, RefusesBadArguments) {
  void* p = nullptr;
  EXPECT_EQ(hipErrorInvalidValue, hipMallocManaged(nullptr, 64, hipMemAttachGlobal));
  EXPECT_EQ(hipErrorInvalidValue, hipMallocManaged(&p, 0, hipMemAttachGlobal));
  EXPECT_EQ(hipErrorInvalidValue, hipMallocManaged(&p, 64, 0));
  EXPECT_EQ(hipErrorInvalidValue, hipMallocManaged(&p, 64, hipMemAttachSingle));
  EXPECT_EQ(hipErrorInvalidValue, hipMallocManaged(&p, 64, hipMemAttachGlobal | hipMemAttachHost));
  EXPECT_EQ(hipErrorOutOfMemory, hipMallocManaged(&p, kHuge, hipMemAttachGlobal));
}

TEST_F(HipManaged, AdviceAndPrefetchRefuseBadArguments) {
  char* data = nullptr;
  HIP_OK(hipMallocManaged(reinterpret_cast<void**>(&data), 1000, hipMemAttachGlobal));
  for (const int advice : {1, 2, 3, 4, 5, 6, 100, 101}) {
    HIP_OK(hipMemAdvise(data + 10, 990, static_cast<hipMemoryAdvise>(advice), 0));
  }
  for (const int advice : {0, 7, 99, 102}) {
    EXPECT_EQ(hipErrorInvalidValue,
              hipMemAdvise(data, 1000, static_cast<hipMemoryAdvise>(advice), 0));
  }
  const Buffer<char> device(1000);
  const auto advise = [](const void* p, size_t bytes, int ordinal) {
    const hipError_t error = hipMemAdvise(p, bytes, hipMemAdviseSetReadMostly, ordinal);
    EXPECT_EQ(error, hipMemPrefetchAsync(p, bytes, ordinal, nullptr));
    return error;
  };
  EXPECT_EQ(hipSuccess, advise(data, 1000, -1));
  EXPECT_EQ(hipErrorInvalidValue, advise(data, 1001, 0));
  EXPECT_EQ(hipErrorInvalidValue, advise(data + 1, 1000, 0));
  EXPECT_EQ(hipErrorInvalidValue, advise(data, kHuge, 0));
  EXPECT_EQ(hipErrorInvalidValue, advise(data, 0, 0));
  EXPECT_EQ(hipErrorInvalidValue, advise(nullptr, 1000, 0));
  EXPECT_EQ(hipErrorInvalidValue, advise(device.data, 1000, 0));
  EXPECT_EQ(hipErrorInvalidDevice, advise(data, 1000, 99));
  EXPECT_EQ(hipErrorInvalidDevice, advise(data, 1000, -2));
  EXPECT_EQ(hipErrorContextIsDestroyed, hipMemPrefetchAsync(data, 1000, 0, kNoStream));
  HIP_OK(hipFree(data));
}

TEST_F(HipManaged, AttachmentRefusesBadArguments) {
  char* data = nullptr;
  HIP_OK(hipMallocManaged(reinterpret_cast<void**>(&data), 1000, hipMemAttachGlobal));
  HIP_OK(hipStreamAttachMemAsync(nullptr, data, 1000, hipMemAttachGlobal));
  HIP_OK(hipStreamAttachMemAsync(nullptr, data, 0, hipMemAttachHost));
  EXPECT_EQ(hipErrorInvalidValue, hipStreamAttachMemAsync(nullptr, data, 500, hipMemAttachHost));
  EXPECT_EQ(hipErrorInvalidValue, hipStreamAttachMemAsync(nullptr, data, 0, 0));
  EXPECT_EQ(hipErrorInvalidValue, hipStreamAttachMemAsync(nullptr, data, 0, 3));
  EXPECT_EQ(hipErrorInvalidValue, hipStreamAttachMemAsync(nullptr, nullptr, 0, hipMemAttachHost));
  EXPECT_EQ(hipErrorContextIsDestroyed, hipStreamAttachMemAsync(kNoStream, data, 0, hipMemAttachHost));
  HIP_OK(hipFree(data));
}

/// 1000 bytes of managed memory, with advice for parts of them.
class HipRange : public HipManaged {
 protected:
  HipRange() { EXPECT_EQ(hipSuccess, hipMallocManaged(reinterpret_cast<void**>(&data), 1000, 1)); }
  ~HipRange() override { EXPECT_EQ(hipSuccess, hipFree(data)); }

  void advise(size_t from, size_t bytes, hipMemoryAdvise advice, int device = 0) {
    EXPECT_EQ(hipSuccess, hipMemAdvise(data + from, bytes, advice, device));
  }
  int get(hipMemRangeAttribute attribute, size_t from = 0, size_t bytes = 1000) {
    int value = 77;
    EXPECT_EQ(hipSuccess,
              hipMemRangeGetAttribute(&value, sizeof value, attribute, data + from, bytes));
    return value;
  }
  char* data = nullptr;
};

TEST_F(HipRange, NothingIsSaidAtFirst) {
  EXPECT_EQ(0, get(hipMemRangeAttributeReadMostly));
  EXPECT_EQ(hipInvalidDeviceId, get(hipMemRangeAttributePreferredLocation));
  EXPECT_EQ(hipInvalidDeviceId, get(hipMemRangeAttributeLastPrefetchLocation));
  EXPECT_EQ(hipInvalidDeviceId, get(hipMemRangeAttributeAccessedBy));
  EXPECT_EQ(hipMemRangeCoherencyModeFineGrain,
            static_cast<unsigned>(get(hipMemRangeAttributeCoherencyMode)));
}

TEST_F(HipRange, ReadMostlyIsOfAllOfIt) {
  advise(100, 200, hipMemAdviseSetReadMostly);
  EXPECT_EQ(1, get(hipMemRangeAttributeReadMostly, 100, 200));
  EXPECT_EQ(1, get(hipMemRangeAttributeReadMostly, 150, 1));
  EXPECT_EQ(0, get(hipMemRangeAttributeReadMostly, 99, 200));
  EXPECT_EQ(0, get(hipMemRangeAttributeReadMostly, 100, 201));
  advise(300, 700, hipMemAdviseSetReadMostly);
  EXPECT_EQ(1, get(hipMemRangeAttributeReadMostly, 100, 900));
  advise(200, 1, hipMemAdviseUnsetReadMostly);
  EXPECT_EQ(0, get(hipMemRangeAttributeReadMostly, 100, 900));
  EXPECT_EQ(1, get(hipMemRangeAttributeReadMostly, 201, 799));
}

TEST_F(HipRange, PlacesAreTheOneThatAllHas) {
  advise(0, 1000, hipMemAdviseSetPreferredLocation, 0);
  EXPECT_EQ(0, get(hipMemRangeAttributePreferredLocation));
  advise(500, 500, hipMemAdviseSetPreferredLocation, hipCpuDeviceId);
  EXPECT_EQ(0, get(hipMemRangeAttributePreferredLocation, 0, 500));
  EXPECT_EQ(hipCpuDeviceId, get(hipMemRangeAttributePreferredLocation, 500, 500));
  EXPECT_EQ(hipInvalidDeviceId, get(hipMemRangeAttributePreferredLocation));
  advise(0, 1000, hipMemAdviseUnsetPreferredLocation);
  EXPECT_EQ(hipInvalidDeviceId, get(hipMemRangeAttributePreferredLocation, 0, 500));
  HIP_OK(hipMemPrefetchAsync(data, 1000, 0, nullptr));
  EXPECT_EQ(0, get(hipMemRangeAttributeLastPrefetchLocation));
  HIP_OK(hipMemPrefetchAsync(data, 400, hipCpuDeviceId, nullptr));
  EXPECT_EQ(hipCpuDeviceId, get(hipMemRangeAttributeLastPrefetchLocation, 0, 400));
  EXPECT_EQ(hipInvalidDeviceId, get(hipMemRangeAttributeLastPrefetchLocation));
}

TEST_F(HipRange, AccessedByIsAList) {
  advise(0, 1000, hipMemAdviseSetAccessedBy, 0);
  advise(0, 600, hipMemAdviseSetAccessedBy, hipCpuDeviceId);
  int list[4] = {7, 7, 7, 7};
  HIP_OK(hipMemRangeGetAttribute(list, 12, hipMemRangeAttributeAccessedBy, data, 600));
  EXPECT_EQ(0, list[0]);
  EXPECT_EQ(hipCpuDeviceId, list[1]);
  EXPECT_EQ(hipInvalidDeviceId, list[2]);
  EXPECT_EQ(7, list[3]);
  HIP_OK(hipMemRangeGetAttribute(list, 16, hipMemRangeAttributeAccessedBy, data, 601));
  EXPECT_EQ(0, list[0]);
  EXPECT_EQ(hipInvalidDeviceId, list[1]);
  advise(0, 1000, hipMemAdviseUnsetAccessedBy, 0);
  EXPECT_EQ(hipCpuDeviceId, get(hipMemRangeAttributeAccessedBy, 0, 600));
}

TEST_F(HipRange, CoherencyIsOneOfThree) {
  const auto mode = [&](size_t from, size_t bytes) {
    return static_cast<unsigned>(get(hipMemRangeAttributeCoherencyMode, from, bytes));
  };
  advise(0, 500, hipMemAdviseSetCoarseGrain);
  EXPECT_EQ(hipMemRangeCoherencyModeCoarseGrain, mode(0, 500));
  EXPECT_EQ(hipMemRangeCoherencyModeFineGrain, mode(500, 500));
  EXPECT_EQ(hipMemRangeCoherencyModeIndeterminate, mode(0, 1000));
  advise(0, 500, hipMemAdviseUnsetCoarseGrain);
  EXPECT_EQ(hipMemRangeCoherencyModeFineGrain, mode(0, 1000));
}

/// A later allocation at the same address has no advice.
TEST_F(HipRange, IsForgottenWithItsMemory) {
  for (int round = 0; round < 3; ++round) {
    char* other = nullptr;
    HIP_OK(hipMallocManaged(reinterpret_cast<void**>(&other), 1000, hipMemAttachGlobal));
    int value = 77;
    HIP_OK(hipMemRangeGetAttribute(&value, 4, hipMemRangeAttributeReadMostly, other, 1000));
    EXPECT_EQ(0, value);
    HIP_OK(hipMemAdvise(other, 1000, hipMemAdviseSetReadMostly, 0));
    HIP_OK(hipFree(other));
  }
}

TEST_F(HipRange, SeveralAtOnce) {
  advise(0, 1000, hipMemAdviseSetReadMostly);
  HIP_OK(hipMemPrefetchAsync(data, 1000, 0, nullptr));
  int mostly = 7, last = 7, by[2] = {7, 7};
  void* out[] = {&mostly, &last, by};
  size_t bytes[] = {4, 4, 8};
  hipMemRangeAttribute which[] = {hipMemRangeAttributeReadMostly,
                                  hipMemRangeAttributeLastPrefetchLocation,
                                  hipMemRangeAttributeAccessedBy};
  HIP_OK(hipMemRangeGetAttributes(out, bytes, which, 3, data, 1000));
  EXPECT_EQ(1, mostly);
  EXPECT_EQ(0, last);
  EXPECT_EQ(hipInvalidDeviceId, by[0]);
  EXPECT_EQ(hipInvalidDeviceId, by[1]);
  const auto bad = hipErrorInvalidValue;
  EXPECT_EQ(bad, hipMemRangeGetAttributes(nullptr, bytes, which, 3, data, 1000));
  EXPECT_EQ(bad, hipMemRangeGetAttributes(out, nullptr, which, 3, data, 1000));
  EXPECT_EQ(bad, hipMemRangeGetAttributes(out, bytes, nullptr, 3, data, 1000));
  EXPECT_EQ(bad, hipMemRangeGetAttributes(out, bytes, which, 0, data, 1000));
  EXPECT_EQ(bad, hipMemRangeGetAttributes(out, bytes, which, 3, nullptr, 1000));
  out[1] = nullptr;
  EXPECT_EQ(bad, hipMemRangeGetAttributes(out, bytes, which, 3, data, 1000));
}

TEST_F(HipRange, RefusesBadArguments) {
  int value = 7;
  const auto refuses = [&](void* out, size_t bytes, int attribute, const void* p, size_t count) {
    EXPECT_EQ(hipErrorInvalidValue,
              hipMemRangeGetAttribute(out, bytes, static_cast<hipMemRangeAttribute>(attribute), p,
                                      count));
  };
  const Buffer<char> device(1000);
  refuses(nullptr, 4, 1, data, 1000);
  refuses(&value, 0, 1, data, 1000);
  refuses(&value, 3, 1, data, 1000);
  refuses(&value, 8, 1, data, 1000);
  refuses(&value, 6, 3, data, 1000);
  refuses(&value, 4, 0, data, 1000);
  refuses(&value, 4, 5, data, 1000);
  refuses(&value, 4, 1, nullptr, 1000);
  refuses(&value, 4, 1, data, 0);
  refuses(&value, 4, 1, data, 1001);
  refuses(&value, 4, 1, data + 1, kHuge);
  refuses(&value, 4, 1, device.data, 1000);
  refuses(&value, 4, 1, &value, 4);
  EXPECT_EQ(7, value);
}

}  // namespace
