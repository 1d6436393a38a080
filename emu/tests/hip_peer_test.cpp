// Interaction of two devices. Runs with WICK_EMU_DEVICES=gfx1100,gfx90a.

#include <cstring>

#include "emu/tests/hip_support.h"

namespace {

/// Selects the first device again at the end of the test.
struct FirstAfter {
  ~FirstAfter() {
    EXPECT_EQ(hipSuccess, hipSetDevice(0));
    (void)hipGetLastError();
  }
};

TEST(HipDevices, ReachTheirPeers) {
  const FirstAfter first;
  for (int device = 0; device < 2; ++device) {
    int can = -1;
    HIP_OK(hipDeviceCanAccessPeer(&can, device, 1 - device));
    EXPECT_EQ(1, can);
    HIP_OK(hipDeviceCanAccessPeer(&can, device, device));
    EXPECT_EQ(0, can);
    EXPECT_EQ(hipErrorInvalidDevice, hipDeviceCanAccessPeer(&can, device, 2));
    EXPECT_EQ(hipErrorInvalidDevice, hipDeviceCanAccessPeer(&can, -1, device));
    EXPECT_EQ(hipErrorInvalidValue, hipDeviceCanAccessPeer(nullptr, device, 1 - device));
  }
}

TEST(HipDevices, PeerAccessIsEnabledOnceAndDisabledOnce) {
  const FirstAfter first;
  for (int device = 0; device < 2; ++device) {
    HIP_OK(hipSetDevice(device));
    const int peer = 1 - device;
    EXPECT_EQ(hipErrorPeerAccessNotEnabled, hipDeviceDisablePeerAccess(peer));
    HIP_OK(hipDeviceEnablePeerAccess(peer, 0));
    EXPECT_EQ(hipErrorPeerAccessAlreadyEnabled, hipDeviceEnablePeerAccess(peer, 0));
    EXPECT_EQ(hipErrorPeerAccessAlreadyEnabled, hipGetLastError());
    HIP_OK(hipDeviceDisablePeerAccess(peer));
    EXPECT_EQ(hipErrorPeerAccessNotEnabled, hipDeviceDisablePeerAccess(peer));
    EXPECT_EQ(hipErrorInvalidValue, hipDeviceEnablePeerAccess(peer, 1));
    EXPECT_EQ(hipErrorInvalidDevice, hipDeviceEnablePeerAccess(device, 0));
    EXPECT_EQ(hipErrorInvalidDevice, hipDeviceEnablePeerAccess(2, 0));
    EXPECT_EQ(hipErrorInvalidDevice, hipDeviceDisablePeerAccess(-1));
  }
}

TEST(HipDevices, PeerAccessOfContextsIsThatOfTheirDevices) {
  const FirstAfter first;
  HIP_OK(hipSetDevice(0));
  hipCtx_t other = nullptr;
  HIP_OK(hipDevicePrimaryCtxRetain(&other, 1));
  HIP_OK(hipCtxEnablePeerAccess(other, 0));
  EXPECT_EQ(hipErrorPeerAccessAlreadyEnabled, hipDeviceEnablePeerAccess(1, 0));
  HIP_OK(hipCtxDisablePeerAccess(other));
  EXPECT_EQ(hipErrorPeerAccessNotEnabled, hipDeviceDisablePeerAccess(1));
  EXPECT_EQ(hipErrorPeerAccessNotEnabled, hipCtxDisablePeerAccess(other));
}

TEST(HipDevices, AttributesBetweenThem) {
  int value = -1;
  HIP_OK(hipDeviceGetP2PAttribute(&value, hipDevP2PAttrAccessSupported, 0, 1));
  EXPECT_EQ(1, value);
  HIP_OK(hipDeviceGetP2PAttribute(&value, hipDevP2PAttrHipArrayAccessSupported, 0, 1));
  EXPECT_EQ(0, value);
  EXPECT_EQ(hipErrorInvalidValue,
            hipDeviceGetP2PAttribute(nullptr, hipDevP2PAttrAccessSupported, 0, 1));
  EXPECT_EQ(hipErrorInvalidValue,
            hipDeviceGetP2PAttribute(&value, static_cast<hipDeviceP2PAttr>(4), 0, 1));
  EXPECT_EQ(hipErrorInvalidDevice,
            hipDeviceGetP2PAttribute(&value, hipDevP2PAttrAccessSupported, 0, 2));
  EXPECT_EQ(hipErrorInvalidDevice,
            hipDeviceGetP2PAttribute(&value, hipDevP2PAttrAccessSupported, 1, 1));
  (void)hipGetLastError();
}

TEST(HipDevices, ContextsAreAStackOfThem) {
  const FirstAfter first;
  HIP_OK(hipSetDevice(0));
  hipCtx_t zero = nullptr, one = nullptr, popped = nullptr;
  hipDevice_t device = -1;
  HIP_OK(hipCtxGetCurrent(&zero));
  HIP_OK(hipCtxCreate(&one, 0, 1));
  EXPECT_NE(zero, one);
  HIP_OK(hipCtxGetDevice(&device));
  EXPECT_EQ(1, device);
  HIP_OK(hipCtxPushCurrent(zero));
  HIP_OK(hipCtxGetDevice(&device));
  EXPECT_EQ(0, device);
  HIP_OK(hipCtxPopCurrent(&popped));
  EXPECT_EQ(zero, popped);
  HIP_OK(hipGetDevice(&device));
  EXPECT_EQ(1, device);
  HIP_OK(hipCtxSetCurrent(zero));  // replaces the context on top
  HIP_OK(hipCtxPopCurrent(&popped));
  EXPECT_EQ(zero, popped);
  HIP_OK(hipGetDevice(&device));
  EXPECT_EQ(0, device);
  EXPECT_EQ(hipErrorInvalidContext, hipCtxPopCurrent(&popped));
  HIP_OK(hipCtxPushCurrent(one));
  HIP_OK(hipCtxDestroy(one));
  HIP_OK(hipGetDevice(&device));
  EXPECT_EQ(0, device);
}

TEST(HipDevices, CopiesBetweenPeersRefuseBadArguments) {
  const FirstAfter first;
  HIP_OK(hipSetDevice(0));
  const Buffer<int> a(64);
  HIP_OK(hipSetDevice(1));
  const Buffer<int> b(64);
  HIP_OK(hipMemcpyPeer(b.data, 1, a.data, 0, 0));
  EXPECT_EQ(hipErrorInvalidDevice, hipMemcpyPeer(b.data, 2, a.data, 0, 4));
  EXPECT_EQ(hipErrorInvalidDevice, hipMemcpyPeer(b.data, 1, a.data, -1, 4));
  EXPECT_EQ(hipErrorInvalidValue, hipMemcpyPeer(nullptr, 1, a.data, 0, 4));
  EXPECT_EQ(hipErrorInvalidValue, hipMemcpyPeer(b.data, 1, nullptr, 0, 4));
  EXPECT_EQ(hipErrorInvalidValue, hipMemcpyPeer(b.data, 1, a.data, 0, 257));
  EXPECT_EQ(hipErrorInvalidDevice, hipMemcpyPeerAsync(b.data, 2, a.data, 0, 4, nullptr));
  EXPECT_EQ(hipErrorInvalidValue, hipMemcpyPeerAsync(b.data, 1, a.data, 0, 257, nullptr));
  EXPECT_EQ(hipErrorContextIsDestroyed,
            hipMemcpyPeerAsync(b.data, 1, a.data, 0, 4, reinterpret_cast<hipStream_t>(0x1234)));
  int own[64] = {};
  EXPECT_EQ(hipErrorInvalidValue, hipMemcpyPeer(own, 1, a.data, 0, 256));
}

/// A copy between two devices follows the earlier work of both and precedes their later work.
TEST(HipDevices, CopiesBetweenPeersAreInOrderWithBoth) {
  const FirstAfter first;
  const Kernels zero("basic.gfx1100.hsaco");
  HIP_OK(hipSetDevice(1));
  const Kernels one("basic.gfx90a.hsaco");
  const Buffer<int> b(64);
  HIP_OK(hipSetDevice(0));
  const Buffer<int> a(64);
  for (int round = 1; round <= 5; ++round) {
    HIP_OK(hipSetDevice(0));
    HIP_OK(launch(zero["slow_set"], 1, 64, 0, nullptr, a.data, round, 300000));
    HIP_OK(hipSetDevice(1));
    HIP_OK(hipMemcpyPeer(b.data, 1, a.data, 0, 64 * sizeof(int)));
    HIP_OK(hipSetDevice(0));
    HIP_OK(hipMemset(a.data, 0, 64 * sizeof(int)));
    HIP_OK(hipSetDevice(1));
    HIP_OK(launch(one["add_one"], 1, 64, 0, nullptr, b.data, 64));
    EXPECT_EQ(b.get(), std::vector<int>(64, round + 1));
    // hipMemcpy must order a copy between devices in the same way as hipMemcpyPeer.
    HIP_OK(launch(one["slow_set"], 1, 64, 0, nullptr, b.data, round * 10, 300000));
    HIP_OK(hipSetDevice(0));
    HIP_OK(hipMemcpy(a.data, b.data, 64 * sizeof(int), hipMemcpyDeviceToDevice));
    HIP_OK(hipSetDevice(1));
    HIP_OK(hipMemset(b.data, 0, 64 * sizeof(int)));
    HIP_OK(hipSetDevice(0));
    EXPECT_EQ(a.get(), std::vector<int>(64, round * 10));
  }
}

TEST(HipDevices, FillsOfAPeersMemoryAreInItsOrder) {
  const FirstAfter first;
  HIP_OK(hipSetDevice(1));
  const Kernels one("basic.gfx90a.hsaco");
  const Buffer<int> b(64);
  for (int round = 1; round <= 5; ++round) {
    HIP_OK(hipSetDevice(1));
    HIP_OK(launch(one["slow_set"], 1, 64, 0, nullptr, b.data, 99, 300000));
    HIP_OK(hipSetDevice(0));
    HIP_OK(hipMemsetD32(b.data, round, 64));
    HIP_OK(hipSetDevice(1));
    HIP_OK(launch(one["add_one"], 1, 64, 0, nullptr, b.data, 64));
    EXPECT_EQ(b.get(), std::vector<int>(64, round + 1));
  }
}

TEST(HipDevices, ResetsLeaveTheOther) {
  const FirstAfter first;
  HIP_OK(hipSetDevice(0));
  Buffer<int> kept(64);
  kept.set(std::vector<int>(64, 9));
  HIP_OK(hipSetDevice(1));
  HIP_OK(hipDeviceEnablePeerAccess(0, 0));
  void* lost = nullptr;
  HIP_OK(hipMalloc(&lost, 4096));
  HIP_OK(hipDeviceReset());
  EXPECT_EQ(hipErrorInvalidValue, hipFree(lost));
  EXPECT_EQ(hipErrorPeerAccessNotEnabled, hipDeviceDisablePeerAccess(0));
  EXPECT_EQ(kept.get(), std::vector<int>(64, 9));
}

TEST(HipDevices, PciAddressesAndUuidsTellThemApart) {
  char ids[2][32] = {};
  hipUUID uuids[2] = {};
  for (int device = 0; device < 2; ++device) {
    HIP_OK(hipDeviceGetPCIBusId(ids[device], sizeof ids[device], device));
    int found = -1;
    HIP_OK(hipDeviceGetByPCIBusId(&found, ids[device]));
    EXPECT_EQ(device, found);
    HIP_OK(hipDeviceGetUuid(&uuids[device], device));
  }
  EXPECT_STRNE(ids[0], ids[1]);
  EXPECT_NE(0, std::memcmp(&uuids[0], &uuids[1], sizeof uuids[0]));
}

TEST(HipDevices, AreChosenByWhatTheyHave) {
  int chosen = -1;
  hipDeviceProp_tR0600 wanted = {};
  HIP_OK(hipChooseDeviceR0600(&chosen, &wanted));
  EXPECT_EQ(0, chosen);
  wanted.totalGlobalMem = size_t{3} << 29;  // only the second device has more, with 2 GiB
  HIP_OK(hipChooseDeviceR0600(&chosen, &wanted));
  EXPECT_EQ(1, chosen);
  wanted.major = 11;  // no device has both properties, so the first one is chosen
  HIP_OK(hipChooseDeviceR0600(&chosen, &wanted));
  EXPECT_EQ(0, chosen);
  hipDeviceProp_tR0000 before = {};
  before.totalGlobalMem = size_t{3} << 29;
  HIP_OK(hipChooseDevice(&chosen, &before));
  EXPECT_EQ(1, chosen);
}

TEST(HipDevices, PointersKnowWhoseTheyAre) {
  const FirstAfter first;
  for (int device = 0; device < 2; ++device) {
    HIP_OK(hipSetDevice(device));
    const Buffer<int> data(16);
    HIP_OK(hipSetDevice(1 - device));
    hipPointerAttribute_t attributes = {};
    HIP_OK(hipPointerGetAttributes(&attributes, data.data));
    EXPECT_EQ(device, attributes.device);
    int ordinal = -1;
    HIP_OK(hipPointerGetAttribute(&ordinal, HIP_POINTER_ATTRIBUTE_DEVICE_ORDINAL, data.data));
    EXPECT_EQ(device, ordinal);
  }
}

TEST(HipDevices, CopiesInSpaceBetweenPeers) {
  const FirstAfter first;
  HIP_OK(hipSetDevice(0));
  Buffer<char> a(64);
  a.set(std::vector<char>(64, 5));
  HIP_OK(hipSetDevice(1));
  const Buffer<char> b(64);
  hipMemcpy3DPeerParms p{};
  p.srcPtr = {a.data, 16, 16, 4};
  p.dstPtr = {b.data, 16, 16, 4};
  p.dstDevice = 1;
  p.extent = {8, 4, 1};
  HIP_OK(hipMemcpy3DPeer(&p));
  EXPECT_EQ(5, b.get()[55]);
  EXPECT_EQ(0, b.get()[56]);
  p.extent.width = 16;
  HIP_OK(hipMemcpy3DPeerAsync(&p, nullptr));
  HIP_OK(hipStreamSynchronize(nullptr));
  EXPECT_EQ(b.get(), std::vector<char>(64, 5));
  p.dstDevice = 2;
  EXPECT_EQ(hipErrorInvalidDevice, hipMemcpy3DPeer(&p));
  p.dstDevice = 1;
  p.extent.height = 5;
  EXPECT_EQ(hipErrorInvalidValue, hipMemcpy3DPeer(&p));
  uint32_t type = 0, hops = 0;
  HIP_OK(hipExtGetLinkTypeAndHopCount(0, 1, &type, &hops));
  EXPECT_EQ(1u, hops);
}

/// Memory of one device, mapped for both.
TEST(HipDevices, MappingsOfPeers) {
  const FirstAfter first;
  hipMemAllocationProp prop{};
  prop.type = hipMemAllocationTypePinned;
  prop.location = {hipMemLocationTypeDevice, 1};
  size_t unit = 0;
  HIP_OK(hipMemGetAllocationGranularity(&unit, &prop, hipMemAllocationGranularityRecommended));
  void* at = nullptr;
  hipMemGenericAllocationHandle_t handle = nullptr;
  HIP_OK(hipMemAddressReserve(&at, unit, 0, nullptr, 0));
  HIP_OK(hipMemCreate(&handle, unit, &prop, 0));
  HIP_OK(hipMemMap(at, unit, 0, handle, 0));
  const hipMemAccessDesc both[] = {{{hipMemLocationTypeDevice, 0}, hipMemAccessFlagsProtReadWrite},
                                   {{hipMemLocationTypeDevice, 1}, hipMemAccessFlagsProtRead}};
  HIP_OK(hipMemSetAccess(at, unit, both, 2));
  unsigned long long flags = 0;
  HIP_OK(hipMemGetAccess(&flags, &both[0].location, at));
  EXPECT_EQ(hipMemAccessFlagsProtReadWrite, flags);
  HIP_OK(hipMemGetAccess(&flags, &both[1].location, at));
  EXPECT_EQ(hipMemAccessFlagsProtRead, flags);
  const Kernels zero("basic.gfx1100.hsaco");
  HIP_OK(launch(zero["set_to"], 1, 64, 0, nullptr, static_cast<int*>(at), 7));
  int value = 0;
  HIP_OK(hipMemcpy(&value, at, 4, hipMemcpyDeviceToHost));
  EXPECT_EQ(7, value);
  hipPointerAttribute_t attributes{};
  HIP_OK(hipPointerGetAttributes(&attributes, at));
  EXPECT_EQ(1, attributes.device);
  HIP_OK(hipMemUnmap(at, unit));
  HIP_OK(hipMemRelease(handle));
  HIP_OK(hipMemAddressFree(at, unit));
}

}  // namespace
