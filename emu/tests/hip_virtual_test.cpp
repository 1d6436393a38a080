// The virtual memory API: reservations, physical memory, mappings, access rights and handles.

#include <unistd.h>

#include <cstring>

#include "emu/tests/hip_stream_support.h"

namespace {

hipMemAllocationProp properties() {
  hipMemAllocationProp prop{};
  prop.type = hipMemAllocationTypePinned;
  prop.location = {hipMemLocationTypeDevice, 0};
  return prop;
}

size_t granularity() {
  const hipMemAllocationProp prop = properties();
  size_t bytes = 0;
  EXPECT_EQ(hipSuccess,
            hipMemGetAllocationGranularity(&bytes, &prop, hipMemAllocationGranularityMinimum));
  return bytes;
}

hipMemAccessDesc access(hipMemAccessFlags flags) { return {{hipMemLocationTypeDevice, 0}, flags}; }

class HipVirtual : public testing::Test {
 protected:
  const size_t unit = granularity();

  char* reserve(size_t bytes) {
    void* at = nullptr;
    EXPECT_EQ(hipSuccess, hipMemAddressReserve(&at, bytes, 0, nullptr, 0));
    return static_cast<char*>(at);
  }
  hipMemGenericAllocationHandle_t create(size_t bytes, bool shareable = false) {
    hipMemAllocationProp prop = properties();
    if (shareable) prop.requestedHandleTypes = hipMemHandleTypePosixFileDescriptor;
    hipMemGenericAllocationHandle_t handle = nullptr;
    EXPECT_EQ(hipSuccess, hipMemCreate(&handle, bytes, &prop, 0));
    return handle;
  }
  void open(void* at, size_t bytes, hipMemAccessFlags flags = hipMemAccessFlagsProtReadWrite) {
    const hipMemAccessDesc desc = access(flags);
    EXPECT_EQ(hipSuccess, hipMemSetAccess(at, bytes, &desc, 1));
  }
  /// Maps new memory at the address with all rights. The mapping alone keeps it.
  void map_new(char* at, size_t bytes) {
    const hipMemGenericAllocationHandle_t handle = create(bytes);
    EXPECT_EQ(hipSuccess, hipMemMap(at, bytes, 0, handle, 0));
    EXPECT_EQ(hipSuccess, hipMemRelease(handle));
    open(at, bytes);
  }
  void drop(char* at, size_t bytes) {
    EXPECT_EQ(hipSuccess, hipMemUnmap(at, bytes));
    EXPECT_EQ(hipSuccess, hipMemAddressFree(at, bytes));
  }
  static size_t free_bytes() {
    size_t free = 0, total = 0;
    EXPECT_EQ(hipSuccess, hipMemGetInfo(&free, &total));
    return free;
  }
  ~HipVirtual() override { (void)hipGetLastError(); }
};

TEST_F(HipVirtual, DevicesSupportIt) {
  int supported = 0;
  HIP_OK(hipDeviceGetAttribute(&supported, hipDeviceAttributeVirtualMemoryManagementSupported, 0));
  EXPECT_EQ(1, supported);
  EXPECT_EQ(0u, unit & (unit - 1));
}

TEST_F(HipVirtual, KernelsAndCopiesUseMappings) {
  const Kernels kernels;
  char* at = reserve(4 * unit);
  map_new(at, unit);
  int* data = reinterpret_cast<int*>(at);
  HIP_OK(launch(kernels["set_to"], 4, 64, 0, nullptr, data, 5));
  HIP_OK(launch(kernels["add_one"], 4, 64, 0, nullptr, data, 256));
  std::vector<int> got(256);
  HIP_OK(hipMemcpy(got.data(), data, 1024, hipMemcpyDeviceToHost));
  EXPECT_EQ(got, std::vector<int>(256, 6));
  HIP_OK(hipMemsetD32(data, 9, 256));
  HIP_OK(hipMemcpy(got.data(), data, 1024, hipMemcpyDefault));
  EXPECT_EQ(got, std::vector<int>(256, 9));
  HIP_OK(hipMemUnmap(at, unit));
  HIP_OK(hipMemAddressFree(at, 4 * unit));
}

/// A pool grows as llama.cpp's does: it maps new memory behind the old, and blocks span both.
TEST_F(HipVirtual, BlocksSpanMappings) {
  const Kernels kernels;
  char* at = reserve(8 * unit);
  for (int i = 0; i < 3; ++i) map_new(at + static_cast<size_t>(i) * unit, unit);
  int* data = reinterpret_cast<int*>(at + unit - 128);
  std::vector<int> values(64);
  for (int i = 0; i < 64; ++i) values[static_cast<size_t>(i)] = i;
  HIP_OK(hipMemcpy(data, values.data(), 256, hipMemcpyHostToDevice));
  HIP_OK(launch(kernels["add_one"], 1, 64, 0, nullptr, data, 64));
  std::vector<int> got(64);
  HIP_OK(hipMemcpy(got.data(), data, 256, hipMemcpyDeviceToHost));
  for (int i = 0; i < 64; ++i) EXPECT_EQ(i + 1, got[static_cast<size_t>(i)]);
  EXPECT_EQ(hipErrorInvalidValue, hipMemset(at + 3 * unit - 4, 0, 8));  // behind the last mapping
  HIP_OK(hipMemUnmap(at, 3 * unit));  // whole mappings, all at once
  HIP_OK(hipMemAddressFree(at, 8 * unit));
}

TEST_F(HipVirtual, MappingsOfOneHandleAlias) {
  const Kernels kernels;
  char *one = reserve(unit), *other = reserve(unit);
  const hipMemGenericAllocationHandle_t handle = create(unit);
  for (char* at : {one, other}) {
    HIP_OK(hipMemMap(at, unit, 0, handle, 0));
    open(at, unit);
  }
  HIP_OK(launch(kernels["set_to"], 1, 64, 0, nullptr, reinterpret_cast<int*>(one), 3));
  HIP_OK(launch(kernels["add_one"], 1, 64, 0, nullptr, reinterpret_cast<int*>(other), 64));
  std::vector<int> got(64);
  HIP_OK(hipMemcpy(got.data(), one, 256, hipMemcpyDeviceToHost));
  EXPECT_EQ(got, std::vector<int>(64, 4));
  drop(one, unit);
  HIP_OK(hipMemcpy(got.data(), other, 256, hipMemcpyDeviceToHost));
  EXPECT_EQ(got, std::vector<int>(64, 4));
  drop(other, unit);
  HIP_OK(hipMemRelease(handle));
}

/// Returns what a kernel that fails prints.
std::string said_by_failure(hipFunction_t function, int* data) {
  testing::internal::CaptureStderr();
  EXPECT_EQ(hipSuccess, launch(function, 1, 32, 0, nullptr, data, 32));
  EXPECT_EQ(hipErrorIllegalAddress, hipDeviceSynchronize());
  return testing::internal::GetCapturedStderr();
}

TEST_F(HipVirtual, AccessNeedsTheRight) {
  const Kernels kernels;
  char* at = reserve(2 * unit);
  int* data = reinterpret_cast<int*>(at);
  std::string text = said_by_failure(kernels["add_one"], data);
  EXPECT_NE(text.npos, text.find("reserved bytes, where nothing is mapped")) << text;
  const hipMemGenericAllocationHandle_t handle = create(unit);
  HIP_OK(hipMemMap(at, unit, 0, handle, 0));
  text = said_by_failure(kernels["add_one"], data);
  EXPECT_NE(text.npos, text.find("hipMemSetAccess has given no access")) << text;
  testing::internal::CaptureStderr();
  EXPECT_EQ(hipErrorInvalidValue, hipMemcpy(data, &unit, 8, hipMemcpyHostToDevice));
  text = testing::internal::GetCapturedStderr();
  EXPECT_NE(text.npos, text.find("hipMemSetAccess has given no access")) << text;
  open(at, unit);
  HIP_OK(hipMemset(at, 0, unit));
  HIP_OK(hipDeviceSynchronize());
  open(at, unit, hipMemAccessFlagsProtRead);
  text = said_by_failure(kernels["set_to"], data);
  EXPECT_NE(text.npos, text.find("hipMemSetAccess has made read-only")) << text;
  int value = 1;
  HIP_OK(hipMemcpy(&value, data, 4, hipMemcpyDeviceToHost));
  EXPECT_EQ(0, value);
  HIP_OK(hipMemUnmap(at, unit));
  HIP_OK(hipMemAddressFree(at, 2 * unit));
  HIP_OK(hipMemRelease(handle));
}

TEST_F(HipVirtual, RightsCanBeAsked) {
  char* at = reserve(unit);
  unsigned long long flags = 9;
  const hipMemLocation location{hipMemLocationTypeDevice, 0};
  HIP_REFUSES(hipErrorInvalidValue, hipMemGetAccess(&flags, &location, at));
  const hipMemGenericAllocationHandle_t handle = create(unit);
  HIP_OK(hipMemMap(at, unit, 0, handle, 0));
  for (const hipMemAccessFlags wanted :
       {hipMemAccessFlagsProtNone, hipMemAccessFlagsProtRead, hipMemAccessFlagsProtReadWrite}) {
    open(at, unit, wanted);
    HIP_OK(hipMemGetAccess(&flags, &location, at + 100));
    EXPECT_EQ(wanted, flags);
  }
  hipMemAllocationProp prop{};
  HIP_OK(hipMemGetAllocationPropertiesFromHandle(&prop, handle));
  EXPECT_EQ(hipMemAllocationTypePinned, prop.type);
  EXPECT_EQ(0, prop.location.id);
  hipPointerAttribute_t attributes;
  HIP_OK(hipPointerGetAttributes(&attributes, at));
  EXPECT_EQ(hipMemoryTypeDevice, attributes.type);
  drop(at, unit);
  HIP_OK(hipMemRelease(handle));
}

TEST_F(HipVirtual, MemoryLivesWhileAnythingHoldsIt) {
  const size_t before = free_bytes();
  char* at = reserve(unit);
  hipMemGenericAllocationHandle_t handle = create(unit), again = nullptr;
  EXPECT_EQ(before - unit, free_bytes());
  HIP_OK(hipMemMap(at, unit, 0, handle, 0));
  HIP_OK(hipMemRelease(handle));
  HIP_REFUSES(hipErrorInvalidValue, hipMemRelease(handle));
  EXPECT_EQ(before - unit, free_bytes());
  HIP_OK(hipMemRetainAllocationHandle(&again, at + 8));
  EXPECT_EQ(handle, again);
  HIP_OK(hipMemUnmap(at, unit));
  EXPECT_EQ(before - unit, free_bytes());
  HIP_OK(hipMemRelease(again));
  EXPECT_EQ(before, free_bytes());
  HIP_REFUSES(hipErrorInvalidValue, hipMemRetainAllocationHandle(&again, at));
  HIP_OK(hipMemAddressFree(at, unit));
}

TEST_F(HipVirtual, FileDescriptorsHoldMemory) {
  const size_t before = free_bytes();
  hipMemGenericAllocationHandle_t handle = create(unit, true), imported = nullptr;
  int file = -1;
  HIP_OK(hipMemExportToShareableHandle(&file, handle, hipMemHandleTypePosixFileDescriptor, 0));
  HIP_OK(hipMemRelease(handle));
  const int copy = dup(file);
  close(file);
  // By value, as from HIP 7.1 on, and by address, as before.
  for (void* way : {reinterpret_cast<void*>(static_cast<intptr_t>(copy)),
                    static_cast<void*>(const_cast<int*>(&copy))}) {
    HIP_OK(hipMemImportFromShareableHandle(&imported, way, hipMemHandleTypePosixFileDescriptor));
    char* at = reserve(unit);
    HIP_OK(hipMemMap(at, unit, 0, imported, 0));
    open(at, unit);
    HIP_OK(hipMemset(at, 1, unit));
    drop(at, unit);
    HIP_OK(hipMemRelease(imported));
  }
  close(copy);
  HIP_OK(hipMemRelease(create(unit)));  // memory whose descriptors are closed is returned now
  EXPECT_EQ(before, free_bytes());
  const hipMemGenericAllocationHandle_t own = create(unit);
  HIP_REFUSES(hipErrorInvalidValue,
              hipMemExportToShareableHandle(&file, own, hipMemHandleTypePosixFileDescriptor, 0));
  HIP_REFUSES(hipErrorInvalidValue, hipMemImportFromShareableHandle(
                                        &imported, nullptr, hipMemHandleTypePosixFileDescriptor));
  HIP_REFUSES(hipErrorInvalidValue,
              hipMemImportFromShareableHandle(&imported, reinterpret_cast<void*>(0x7fff0001),
                                              hipMemHandleTypePosixFileDescriptor));
  HIP_OK(hipMemRelease(own));
}

TEST_F(HipVirtual, ReusedMemoryHoldsNothing) {
  if (std::getenv("WICK_EMU_CHECK") == nullptr) GTEST_SKIP() << "needs WICK_EMU_CHECK=all";
  const Kernels kernels;
  char* at = reserve(unit);
  map_new(at, unit);
  HIP_OK(hipMemset(at, 1, unit));
  HIP_OK(hipMemUnmap(at, unit));
  map_new(at, unit);
  testing::internal::CaptureStderr();
  HIP_OK(launch(kernels["add_one"], 1, 32, 0, nullptr, reinterpret_cast<int*>(at), 32));
  HIP_OK(hipDeviceSynchronize());
  const std::string text = testing::internal::GetCapturedStderr();
  EXPECT_NE(text.npos, text.find("which nothing has written")) << text;
  drop(at, unit);
}

TEST_F(HipVirtual, PartsOfMappingsStay) {
  char* at = reserve(4 * unit);
  map_new(at, 2 * unit);
  HIP_REFUSES(hipErrorInvalidValue, hipMemUnmap(at, unit));
  HIP_REFUSES(hipErrorInvalidValue, hipMemUnmap(at + unit, unit));
  HIP_REFUSES(hipErrorInvalidValue, hipMemUnmap(at, 3 * unit));
  HIP_REFUSES(hipErrorInvalidValue, hipMemUnmap(at, 2 * unit - 1));
  HIP_REFUSES(hipErrorInvalidValue, hipMemUnmap(at + 2 * unit, unit));
  const hipMemAccessDesc read = access(hipMemAccessFlagsProtRead);
  HIP_REFUSES(hipErrorInvalidValue, hipMemSetAccess(at, unit, &read, 1));
  HIP_REFUSES(hipErrorInvalidValue, hipMemSetAccess(at, 4 * unit, &read, 1));
  HIP_REFUSES(hipErrorInvalidValue, hipMemAddressFree(at, 4 * unit));
  const hipMemGenericAllocationHandle_t handle = create(unit);
  HIP_REFUSES(hipErrorInvalidValue, hipMemMap(at + unit, unit, 0, handle, 0));
  HIP_REFUSES(hipErrorInvalidValue, hipMemMap(at + 4 * unit, unit, 0, handle, 0));
  HIP_REFUSES(hipErrorInvalidValue, hipMemMap(at + 2 * unit, 2 * unit, 0, handle, 0));
  HIP_REFUSES(hipErrorInvalidValue, hipMemMap(at + 2 * unit + 4096, unit, 0, handle, 0));
  HIP_REFUSES(hipErrorInvalidValue, hipMemMap(at + 2 * unit, unit, unit, handle, 0));
  HIP_REFUSES(hipErrorInvalidValue, hipFree(at));
  HIP_REFUSES(hipErrorInvalidValue, hipFreeAsync(at, nullptr));
  HIP_OK(hipMemset(at, 0, 2 * unit));
  HIP_OK(hipMemUnmap(at, 2 * unit));
  HIP_REFUSES(hipErrorInvalidValue, hipMemUnmap(at, 2 * unit));
  HIP_REFUSES(hipErrorInvalidValue, hipMemAddressFree(at, 2 * unit));
  HIP_REFUSES(hipErrorInvalidValue, hipMemAddressFree(at + unit, 3 * unit));
  HIP_OK(hipMemAddressFree(at, 4 * unit));
  HIP_REFUSES(hipErrorInvalidValue, hipMemAddressFree(at, 4 * unit));
  HIP_OK(hipMemRelease(handle));
}

TEST_F(HipVirtual, BadSizesAndHandlesGiveErrors) {
  void* at = nullptr;
  hipMemGenericAllocationHandle_t handle = nullptr;
  hipMemAllocationProp prop = properties();
  for (const size_t bytes : {size_t{0}, size_t{1}, unit - 1, ~size_t{0}}) {
    HIP_REFUSES(hipErrorInvalidValue, hipMemAddressReserve(&at, bytes, 0, nullptr, 0));
    HIP_REFUSES(hipErrorInvalidValue, hipMemCreate(&handle, bytes, &prop, 0));
  }
  HIP_REFUSES(hipErrorOutOfMemory,
              hipMemAddressReserve(&at, ~size_t{0} & ~(unit - 1), 0, nullptr, 0));
  HIP_REFUSES(hipErrorOutOfMemory, hipMemCreate(&handle, ~size_t{0} & ~(unit - 1), &prop, 0));
  HIP_REFUSES(hipErrorOutOfMemory, hipMemAddressReserve(&at, unit, size_t{1} << 63, nullptr, 0));
  HIP_REFUSES(hipErrorInvalidValue, hipMemAddressReserve(&at, unit, 3, nullptr, 0));
  const auto bad = reinterpret_cast<hipMemGenericAllocationHandle_t>(0x1234);
  void* const nowhere = reinterpret_cast<void*>(unit);
  HIP_REFUSES(hipErrorInvalidValue, hipMemMap(nowhere, unit, 0, bad, 0));
  HIP_REFUSES(hipErrorInvalidValue, hipMemRelease(bad));
  HIP_REFUSES(hipErrorInvalidValue, hipMemGetAllocationPropertiesFromHandle(&prop, bad));
  HIP_REFUSES(hipErrorInvalidValue, hipMemUnmap(nowhere, ~size_t{0} & ~(unit - 1)));
  HIP_REFUSES(hipErrorInvalidValue, hipMemAddressFree(nowhere, unit));
  prop = properties();
  prop.location.id = 99;
  HIP_REFUSES(hipErrorInvalidValue, hipMemCreate(&handle, unit, &prop, 0));
  prop = properties();
  prop.requestedHandleTypes = hipMemHandleTypeWin32;
  HIP_REFUSES(hipErrorNotSupported, hipMemCreate(&handle, unit, &prop, 0));
  HIP_REFUSES(hipErrorInvalidValue, hipMemMapArrayAsync(nullptr, 0, nullptr));
}

TEST_F(HipVirtual, AddressesAreGivenAsAsked) {
  char* first = reserve(4 * unit);
  HIP_OK(hipMemAddressFree(first, 4 * unit));
  void* again = nullptr;
  HIP_OK(hipMemAddressReserve(&again, unit, 0, first + unit, 0));
  EXPECT_EQ(first + unit, again);
  void* other = nullptr;  // these addresses are taken, so others are given
  HIP_OK(hipMemAddressReserve(&other, 2 * unit, 0, first, 0));
  EXPECT_NE(first, other);
  void* aligned = nullptr;
  HIP_OK(hipMemAddressReserve(&aligned, unit, 16 * unit, nullptr, 0));
  EXPECT_EQ(0u, reinterpret_cast<uintptr_t>(aligned) % (16 * unit));
  HIP_OK(hipMemAddressFree(again, unit));
  HIP_OK(hipMemAddressFree(other, 2 * unit));
  HIP_OK(hipMemAddressFree(aligned, unit));
}

}  // namespace
