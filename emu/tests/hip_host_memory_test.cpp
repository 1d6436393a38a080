// Pinned, registered and pitched memory, and the attributes of pointers.

#include <cstring>

#include "emu/tests/hip_support.h"

namespace {

constexpr size_t kHuge = ~size_t{0};

class HipHostMemory : public testing::Test {
 protected:
  ~HipHostMemory() override { (void)hipGetLastError(); }

  template <class T>
  static T attribute(hipPointer_attribute which, void* pointer) {
    T value = {};
    EXPECT_EQ(hipSuccess, hipPointerGetAttribute(&value, which, pointer)) << which;
    return value;
  }
};

using HipPitched = HipHostMemory;
using HipPointers = HipHostMemory;

TEST_F(HipHostMemory, ByEachName) {
  const auto expect_pinned = [](hipError_t error, void* pointer, hipError_t (*give_back)(void*)) {
    ASSERT_EQ(hipSuccess, error);
    std::memset(pointer, 1, 100);
    hipPointerAttribute_t attributes = {};
    EXPECT_EQ(hipSuccess, hipPointerGetAttributes(&attributes, pointer));
    EXPECT_EQ(hipMemoryTypeHost, attributes.type);
    EXPECT_EQ(hipSuccess, give_back(pointer));
    EXPECT_EQ(hipErrorInvalidValue, give_back(pointer));
  };
  void* p = nullptr;
  hipError_t error = hipHostMalloc(&p, 100, hipHostMallocDefault);
  expect_pinned(error, p, hipHostFree);
  error = hipHostAlloc(&p, 100, hipHostMallocPortable);
  expect_pinned(error, p, hipFreeHost);
  error = hipMallocHost(&p, 100);
  expect_pinned(error, p, hipHostFree);
  error = hipMemAllocHost(&p, 100);
  expect_pinned(error, p, hipHostFree);
}

TEST_F(HipHostMemory, KeepsItsFlags) {
  for (const unsigned flags :
       {unsigned{hipHostMallocDefault}, unsigned{hipHostMallocPortable},
        unsigned{hipHostMallocMapped} | hipHostMallocWriteCombined, unsigned{hipHostMallocNumaUser},
        unsigned{hipHostMallocCoherent}, hipHostMallocNonCoherent}) {
    void* p = nullptr;
    HIP_OK(hipHostMalloc(&p, 64, flags));
    unsigned got = ~0u;
    HIP_OK(hipHostGetFlags(&got, p));
    EXPECT_EQ(flags, got);
    hipPointerAttribute_t attributes = {};
    HIP_OK(hipPointerGetAttributes(&attributes, p));
    EXPECT_EQ(flags, attributes.allocationFlags);
    HIP_OK(hipHostFree(p));
    EXPECT_EQ(hipErrorInvalidValue, hipHostGetFlags(&got, p));
  }
}

TEST_F(HipHostMemory, RefusesBadArguments) {
  void* p = nullptr;
  unsigned flags = 0;
  int own = 0;
  EXPECT_EQ(hipErrorInvalidValue, hipHostMalloc(nullptr, 64, 0));
  EXPECT_EQ(hipErrorInvalidValue, hipHostMalloc(&p, 64, 0x8));
  EXPECT_EQ(hipErrorInvalidValue,
            hipHostMalloc(&p, 64, unsigned{hipHostMallocCoherent} | hipHostMallocNonCoherent));
  EXPECT_EQ(hipErrorOutOfMemory, hipHostMalloc(&p, kHuge, 0));
  EXPECT_EQ(hipErrorInvalidValue, hipHostAlloc(nullptr, 64, 0));
  EXPECT_EQ(hipErrorInvalidValue, hipHostAlloc(&p, 64, 0x100));
  EXPECT_EQ(hipErrorInvalidValue, hipMallocHost(nullptr, 64));
  EXPECT_EQ(hipErrorInvalidValue, hipMemAllocHost(nullptr, 64));
  EXPECT_EQ(hipErrorInvalidValue, hipHostFree(&own));
  EXPECT_EQ(hipErrorInvalidValue, hipFreeHost(&own));
  HIP_OK(hipHostFree(nullptr));
  HIP_OK(hipFreeHost(nullptr));
  HIP_OK(hipHostMalloc(&p, 0, 0));
  EXPECT_EQ(nullptr, p);
  EXPECT_EQ(hipErrorInvalidValue, hipHostGetFlags(&flags, &own));
  EXPECT_EQ(hipErrorInvalidValue, hipHostGetFlags(&flags, nullptr));
  EXPECT_EQ(hipErrorInvalidValue, hipHostGetFlags(nullptr, &own));
}

TEST_F(HipHostMemory, HasAnAddressOnTheDevice) {
  char* pinned = nullptr;
  HIP_OK(hipHostMalloc(reinterpret_cast<void**>(&pinned), 1000, hipHostMallocMapped));
  std::strcpy(pinned + 100, "there");
  void* device = nullptr;
  HIP_OK(hipHostGetDevicePointer(&device, pinned + 100, 0));
  char back[6] = {};
  HIP_OK(hipMemcpy(back, device, 6, hipMemcpyDeviceToHost));
  EXPECT_STREQ("there", back);
  int own = 0;
  const Buffer<int> not_hosts(4);
  EXPECT_EQ(hipErrorInvalidValue, hipHostGetDevicePointer(&device, pinned, 1));
  EXPECT_EQ(hipErrorInvalidValue, hipHostGetDevicePointer(nullptr, pinned, 0));
  EXPECT_EQ(hipErrorInvalidValue, hipHostGetDevicePointer(&device, nullptr, 0));
  EXPECT_EQ(hipErrorInvalidValue, hipHostGetDevicePointer(&device, &own, 0));
  EXPECT_EQ(hipErrorInvalidValue, hipHostGetDevicePointer(&device, not_hosts.data, 0));
  HIP_OK(hipHostFree(pinned));
}

TEST_F(HipHostMemory, IsRegisteredOnce) {
  std::vector<char> own(4096);
  HIP_OK(hipHostRegister(own.data() + 1000, 1000, hipHostRegisterMapped));
  EXPECT_EQ(hipErrorHostMemoryAlreadyRegistered, hipHostRegister(own.data() + 1000, 1000, 0));
  EXPECT_EQ(hipErrorHostMemoryAlreadyRegistered, hipHostRegister(own.data() + 1999, 1, 0));
  EXPECT_EQ(hipErrorHostMemoryAlreadyRegistered, hipHostRegister(own.data(), 1001, 0));
  EXPECT_EQ(hipErrorHostMemoryAlreadyRegistered, hipHostRegister(own.data(), 4096, 0));
  HIP_OK(hipHostRegister(own.data(), 1000, 0));
  HIP_OK(hipHostRegister(own.data() + 2000, 1000, 0));
  unsigned flags = 0;
  HIP_OK(hipHostGetFlags(&flags, own.data() + 1500));
  EXPECT_EQ(unsigned{hipHostRegisterMapped}, flags);
  hipPointerAttribute_t attributes = {};
  HIP_OK(hipPointerGetAttributes(&attributes, own.data() + 1500));
  EXPECT_EQ(hipMemoryTypeHost, attributes.type);
  EXPECT_EQ(own.data() + 1500, attributes.hostPointer);
  EXPECT_EQ(hipErrorHostMemoryNotRegistered, hipHostUnregister(own.data() + 1001));
  EXPECT_EQ(hipErrorInvalidValue, hipHostFree(own.data()));
  for (const size_t at : {0, 1000, 2000}) HIP_OK(hipHostUnregister(own.data() + at));
  EXPECT_EQ(hipErrorHostMemoryNotRegistered, hipHostUnregister(own.data()));
}

TEST_F(HipHostMemory, RegistrationRefusesBadArguments) {
  std::vector<char> own(64);
  EXPECT_EQ(hipErrorInvalidValue, hipHostRegister(nullptr, 64, 0));
  EXPECT_EQ(hipErrorInvalidValue, hipHostRegister(own.data(), 0, 0));
  EXPECT_EQ(hipErrorInvalidValue, hipHostRegister(own.data(), 64, 0x100));
  EXPECT_EQ(hipErrorInvalidValue, hipHostRegister(own.data(), kHuge, 0));
  EXPECT_EQ(hipErrorInvalidValue, hipHostUnregister(nullptr));
  const Buffer<char> device(64);
  EXPECT_EQ(hipErrorHostMemoryAlreadyRegistered, hipHostRegister(device.data, 64, 0));
  EXPECT_EQ(hipErrorHostMemoryNotRegistered, hipHostUnregister(device.data));
}

TEST_F(HipHostMemory, DeviceMemoryWithFlags) {
  void* p = nullptr;
  for (const unsigned flags :
       {unsigned{hipDeviceMallocDefault}, unsigned{hipDeviceMallocFinegrained},
        unsigned{hipDeviceMallocUncached}}) {
    HIP_OK(hipExtMallocWithFlags(&p, 100, flags));
    HIP_OK(hipMemset(p, 1, 100));
    HIP_OK(hipFree(p));
  }
  HIP_OK(hipExtMallocWithFlags(&p, 8, hipMallocSignalMemory));
  HIP_OK(hipFree(p));
  EXPECT_EQ(hipErrorInvalidValue, hipExtMallocWithFlags(&p, 16, hipMallocSignalMemory));
  EXPECT_EQ(hipErrorInvalidValue, hipExtMallocWithFlags(&p, 16, 0x80));
  EXPECT_EQ(hipErrorInvalidValue, hipExtMallocWithFlags(nullptr, 16, 0));
}

TEST_F(HipPitched, RowsAreApartAndAllThere) {
  for (const size_t width : {1, 100, 256, 257, 5000}) {
    char* rows = nullptr;
    size_t pitch = 0;
    HIP_OK(hipMallocPitch(reinterpret_cast<void**>(&rows), &pitch, width, 9));
    EXPECT_GE(pitch, width);
    EXPECT_EQ(0u, pitch % 128);
    HIP_OK(hipMemset(rows, 0, 9 * pitch));
    HIP_OK(hipFree(rows));
    HIP_OK(hipMemAllocPitch(reinterpret_cast<void**>(&rows), &pitch, width, 9, 8));
    EXPECT_GE(pitch, width);
    HIP_OK(hipMemset(rows, 0, 9 * pitch));
    HIP_OK(hipFree(rows));
    hipPitchedPtr box = {};
    HIP_OK(hipMalloc3D(&box, {width, 9, 5}));
    EXPECT_GE(box.pitch, width);
    EXPECT_EQ(width, box.xsize);
    EXPECT_EQ(9u, box.ysize);
    HIP_OK(hipMemset(box.ptr, 0, box.pitch * 9 * 5));
    HIP_OK(hipFree(box.ptr));
  }
}

TEST_F(HipPitched, OfNothingIsNull) {
  void* rows = &rows;
  size_t pitch = 0;
  HIP_OK(hipMallocPitch(&rows, &pitch, 0, 10));
  EXPECT_EQ(nullptr, rows);
  HIP_OK(hipMallocPitch(&rows, &pitch, 10, 0));
  EXPECT_EQ(nullptr, rows);
  hipPitchedPtr box = {&box, 1, 1, 1};
  HIP_OK(hipMalloc3D(&box, {10, 10, 0}));
  EXPECT_EQ(nullptr, box.ptr);
}

TEST_F(HipPitched, RefusesBadArguments) {
  void* rows = nullptr;
  size_t pitch = 0;
  EXPECT_EQ(hipErrorInvalidValue, hipMallocPitch(nullptr, &pitch, 10, 10));
  EXPECT_EQ(hipErrorInvalidValue, hipMallocPitch(&rows, nullptr, 10, 10));
  EXPECT_EQ(hipErrorInvalidValue, hipMemAllocPitch(nullptr, &pitch, 10, 10, 4));
  EXPECT_EQ(hipErrorInvalidValue, hipMemAllocPitch(&rows, nullptr, 10, 10, 4));
  EXPECT_EQ(hipErrorInvalidValue, hipMemAllocPitch(&rows, &pitch, 0, 10, 4));
  EXPECT_EQ(hipErrorInvalidValue, hipMemAllocPitch(&rows, &pitch, 10, 0, 4));
  for (const unsigned element : {0, 1, 3, 32}) {
    EXPECT_EQ(hipErrorInvalidValue, hipMemAllocPitch(&rows, &pitch, 10, 10, element));
  }
  EXPECT_EQ(hipErrorInvalidValue, hipMalloc3D(nullptr, {1, 1, 1}));
}

/// Sizes whose product overflows must not give a small block.
TEST_F(HipPitched, OverflowIsOutOfMemory) {
  void* rows = nullptr;
  size_t pitch = 0;
  const size_t half = size_t{1} << 32;
  EXPECT_EQ(hipErrorOutOfMemory, hipMallocPitch(&rows, &pitch, kHuge, 1));
  EXPECT_EQ(hipErrorOutOfMemory, hipMallocPitch(&rows, &pitch, kHuge - 100, 2));
  EXPECT_EQ(hipErrorOutOfMemory, hipMallocPitch(&rows, &pitch, 1, kHuge));
  EXPECT_EQ(hipErrorOutOfMemory, hipMallocPitch(&rows, &pitch, half, half));
  EXPECT_EQ(hipErrorOutOfMemory, hipMallocPitch(&rows, &pitch, 256, size_t{1} << 56));
  EXPECT_EQ(hipErrorOutOfMemory, hipMemAllocPitch(&rows, &pitch, half, half, 4));
  EXPECT_EQ(nullptr, rows);
  hipPitchedPtr box = {};
  EXPECT_EQ(hipErrorOutOfMemory, hipMalloc3D(&box, {half, half, 1}));
  EXPECT_EQ(hipErrorOutOfMemory, hipMalloc3D(&box, {1 << 22, 1 << 21, 1 << 21}));
  EXPECT_EQ(hipErrorOutOfMemory, hipMalloc3D(&box, {kHuge, 1, 1}));
  EXPECT_EQ(hipErrorOutOfMemory, hipMalloc3D(&box, {1, 1, kHuge}));
  EXPECT_EQ(nullptr, box.ptr);
}

TEST_F(HipPointers, AddressRanges) {
  Buffer<char> data(1000);
  void* base = nullptr;
  size_t bytes = 0;
  HIP_OK(hipMemGetAddressRange(&base, &bytes, data.data + 999));
  EXPECT_EQ(data.data, base);
  EXPECT_EQ(1000u, bytes);
  HIP_OK(hipMemGetAddressRange(nullptr, &bytes, data.data));
  HIP_OK(hipMemGetAddressRange(&base, nullptr, data.data));
  EXPECT_EQ(hipErrorNotFound, hipMemGetAddressRange(&base, &bytes, data.data + 1000));
  EXPECT_EQ(hipErrorNotFound, hipMemGetAddressRange(&base, &bytes, nullptr));
  EXPECT_EQ(hipErrorNotFound, hipMemGetAddressRange(&base, &bytes, &base));
  HIP_OK(hipMemPtrGetInfo(data.data, &bytes));
  EXPECT_EQ(1000u, bytes);
  HIP_OK(hipMemPtrGetInfo(nullptr, &bytes));
  EXPECT_EQ(0u, bytes);
  EXPECT_EQ(hipErrorInvalidValue, hipMemPtrGetInfo(data.data, nullptr));
  EXPECT_EQ(hipErrorInvalidValue, hipMemPtrGetInfo(&bytes, &bytes));
}

TEST_F(HipPointers, EachAttribute) {
  Buffer<char> data(1000), other(1000);
  char* inside = data.data + 100;
  EXPECT_EQ(nullptr, attribute<void*>(HIP_POINTER_ATTRIBUTE_CONTEXT, inside));
  EXPECT_EQ(hipMemoryTypeDevice,
            attribute<hipMemoryType>(HIP_POINTER_ATTRIBUTE_MEMORY_TYPE, inside));
  EXPECT_EQ(inside, attribute<void*>(HIP_POINTER_ATTRIBUTE_DEVICE_POINTER, inside));
  EXPECT_EQ(nullptr, attribute<void*>(HIP_POINTER_ATTRIBUTE_HOST_POINTER, inside));
  EXPECT_FALSE(attribute<bool>(HIP_POINTER_ATTRIBUTE_IS_MANAGED, inside));
  EXPECT_EQ(0, attribute<int>(HIP_POINTER_ATTRIBUTE_DEVICE_ORDINAL, inside));
  EXPECT_EQ(data.data, attribute<void*>(HIP_POINTER_ATTRIBUTE_RANGE_START_ADDR, inside));
  EXPECT_EQ(1000u, attribute<unsigned>(HIP_POINTER_ATTRIBUTE_RANGE_SIZE, inside));
  EXPECT_TRUE(attribute<bool>(HIP_POINTER_ATTRIBUTE_MAPPED, inside));
  EXPECT_EQ(nullptr, attribute<void*>(HIP_POINTER_ATTRIBUTE_MEMPOOL_HANDLE, inside));
  const auto id = attribute<unsigned>(HIP_POINTER_ATTRIBUTE_BUFFER_ID, inside);
  EXPECT_EQ(id, attribute<unsigned>(HIP_POINTER_ATTRIBUTE_BUFFER_ID, data.data));
  EXPECT_NE(id, attribute<unsigned>(HIP_POINTER_ATTRIBUTE_BUFFER_ID, other.data));
}

TEST_F(HipPointers, AttributesRefuseBadArguments) {
  Buffer<char> data(1000);
  int own = 0, value = 0;
  EXPECT_EQ(hipErrorInvalidValue,
            hipPointerGetAttribute(nullptr, HIP_POINTER_ATTRIBUTE_DEVICE_ORDINAL, data.data));
  EXPECT_EQ(hipErrorInvalidValue,
            hipPointerGetAttribute(&value, HIP_POINTER_ATTRIBUTE_DEVICE_ORDINAL, nullptr));
  EXPECT_EQ(hipErrorInvalidValue,
            hipPointerGetAttribute(&value, HIP_POINTER_ATTRIBUTE_DEVICE_ORDINAL, &own));
  EXPECT_EQ(hipErrorNotSupported,
            hipPointerGetAttribute(&value, HIP_POINTER_ATTRIBUTE_P2P_TOKENS, data.data));
  EXPECT_EQ(hipErrorNotSupported,
            hipPointerGetAttribute(&value, static_cast<hipPointer_attribute>(99), data.data));
  hipPointerAttribute_t attributes = {};
  EXPECT_EQ(hipErrorInvalidValue, hipPointerGetAttributes(nullptr, data.data));
  EXPECT_EQ(hipErrorInvalidValue, hipPointerGetAttributes(&attributes, nullptr));
  HIP_OK(hipPointerGetAttributes(&attributes, &own));
  EXPECT_EQ(hipMemoryTypeUnregistered, attributes.type);
}

TEST_F(HipPointers, SeveralAttributesAtOnce) {
  Buffer<char> data(1000);
  hipPointer_attribute which[] = {HIP_POINTER_ATTRIBUTE_MEMORY_TYPE,
                                  HIP_POINTER_ATTRIBUTE_RANGE_SIZE,
                                  HIP_POINTER_ATTRIBUTE_DEVICE_ORDINAL};
  hipMemoryType type = hipMemoryTypeHost;
  unsigned bytes = 1;
  int ordinal = 1, own = 0;
  void* out[] = {&type, &bytes, &ordinal};
  HIP_OK(hipDrvPointerGetAttributes(3, which, out, data.data));
  EXPECT_EQ(hipMemoryTypeDevice, type);
  EXPECT_EQ(1000u, bytes);
  EXPECT_EQ(0, ordinal);
  // Attributes of unknown memory are zero, and asking for them isn't an error.
  HIP_OK(hipDrvPointerGetAttributes(3, which, out, &own));
  EXPECT_EQ(hipMemoryTypeUnregistered, type);
  EXPECT_EQ(0u, bytes);
  EXPECT_EQ(hipErrorInvalidValue, hipDrvPointerGetAttributes(0, which, out, data.data));
  EXPECT_EQ(hipErrorInvalidValue, hipDrvPointerGetAttributes(3, nullptr, out, data.data));
  EXPECT_EQ(hipErrorInvalidValue, hipDrvPointerGetAttributes(3, which, nullptr, data.data));
  EXPECT_EQ(hipErrorInvalidValue, hipDrvPointerGetAttributes(3, which, out, nullptr));
  out[1] = nullptr;
  EXPECT_EQ(hipErrorInvalidValue, hipDrvPointerGetAttributes(3, which, out, data.data));
}

}  // namespace
