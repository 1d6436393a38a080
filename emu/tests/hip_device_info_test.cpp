// Properties of devices and versions of the runtime.

#include <cstring>

#include "emu/hip/rtc.h"
#include "emu/tests/hip_support.h"

namespace {

class HipDeviceInfo : public testing::Test {
 protected:
  HipDeviceInfo() { EXPECT_EQ(hipSuccess, hipGetDevicePropertiesR0600(&properties, 0)); }
  ~HipDeviceInfo() override { (void)hipGetLastError(); }

  int attribute(hipDeviceAttribute_t which) const {
    int value = -1;
    EXPECT_EQ(hipSuccess, hipDeviceGetAttribute(&value, which, 0)) << which;
    return value;
  }
  hipDeviceProp_tR0600 properties = {};
};

TEST_F(HipDeviceInfo, Versions) {
  int driver = 0, runtime = 0, major = 0, minor = -1;
  HIP_OK(hipDriverGetVersion(&driver));
  HIP_OK(hipRuntimeGetVersion(&runtime));
  EXPECT_GE(driver, 50000000);  // major * 10^7 + minor * 10^5 + patch
  EXPECT_EQ(driver, runtime);
  EXPECT_EQ(hipErrorInvalidValue, hipDriverGetVersion(nullptr));
  EXPECT_EQ(hipErrorInvalidValue, hipRuntimeGetVersion(nullptr));
  EXPECT_EQ(HIPRTC_SUCCESS, hiprtcVersion(&major, &minor));
  EXPECT_GT(major, 0);
  EXPECT_GE(minor, 0);
  EXPECT_EQ(HIPRTC_ERROR_INVALID_INPUT, hiprtcVersion(nullptr, &minor));
  EXPECT_EQ(HIPRTC_ERROR_INVALID_INPUT, hiprtcVersion(&major, nullptr));
  EXPECT_STREQ("HIPRTC_ERROR_INVALID_INPUT", hiprtcGetErrorString(HIPRTC_ERROR_INVALID_INPUT));
}

TEST_F(HipDeviceInfo, NamesAreCutToTheRoom) {
  char name[256] = {}, cut[5] = {};
  HIP_OK(hipDeviceGetName(name, sizeof name, 0));
  EXPECT_STREQ(properties.name, name);
  std::memset(cut, 'x', sizeof cut);
  HIP_OK(hipDeviceGetName(cut, 4, 0));
  EXPECT_EQ(std::string(name, 3), cut);
  EXPECT_EQ('x', cut[4]);
  EXPECT_EQ(hipErrorInvalidValue, hipDeviceGetName(nullptr, 10, 0));
  EXPECT_EQ(hipErrorInvalidValue, hipDeviceGetName(name, 0, 0));
  EXPECT_EQ(hipErrorInvalidValue, hipDeviceGetName(name, -1, 0));
  EXPECT_EQ(hipErrorInvalidDevice, hipDeviceGetName(name, 10, 99));
}

TEST_F(HipDeviceInfo, MemoryAndCapability) {
  size_t total = 0, of_info = 0, free = 0;
  HIP_OK(hipDeviceTotalMem(&total, 0));
  HIP_OK(hipMemGetInfo(&free, &of_info));
  EXPECT_EQ(total, of_info);
  EXPECT_EQ(total, properties.totalGlobalMem);
  EXPECT_LE(free, total);
  EXPECT_EQ(hipErrorInvalidValue, hipMemGetInfo(nullptr, nullptr));
  EXPECT_EQ(hipErrorInvalidValue, hipDeviceTotalMem(nullptr, 0));
  EXPECT_EQ(hipErrorInvalidDevice, hipDeviceTotalMem(&total, -1));
  int major = 0, minor = 0;
  HIP_OK(hipDeviceComputeCapability(&major, &minor, 0));
  EXPECT_EQ(properties.major, major);
  EXPECT_EQ(properties.minor, minor);
  EXPECT_EQ(hipErrorInvalidValue, hipDeviceComputeCapability(nullptr, &minor, 0));
  EXPECT_EQ(hipErrorInvalidValue, hipDeviceComputeCapability(&major, nullptr, 0));
  EXPECT_EQ(hipErrorInvalidDevice, hipDeviceComputeCapability(&major, &minor, 99));
}

TEST_F(HipDeviceInfo, Uuids) {
  hipUUID uuid = {}, none = {};
  HIP_OK(hipDeviceGetUuid(&uuid, 0));
  EXPECT_EQ(0, std::memcmp(&uuid, &properties.uuid, sizeof uuid));
  EXPECT_NE(0, std::memcmp(&uuid, &none, sizeof uuid));
  EXPECT_EQ(hipErrorInvalidValue, hipDeviceGetUuid(nullptr, 0));
  EXPECT_EQ(hipErrorInvalidDevice, hipDeviceGetUuid(&uuid, 99));
}

TEST_F(HipDeviceInfo, PciAddressesGoThereAndBack) {
  char id[32] = {};
  HIP_OK(hipDeviceGetPCIBusId(id, sizeof id, 0));
  unsigned domain = 99, bus = 99, slot = 99, function = 99;
  ASSERT_EQ(4, std::sscanf(id, "%x:%x:%x.%x", &domain, &bus, &slot, &function)) << id;
  EXPECT_EQ(properties.pciDomainID, static_cast<int>(domain));
  EXPECT_EQ(properties.pciBusID, static_cast<int>(bus));
  EXPECT_EQ(properties.pciDeviceID, static_cast<int>(slot));
  EXPECT_EQ(properties.pciBusID, attribute(hipDeviceAttributePciBusId));
  int found = -1;
  HIP_OK(hipDeviceGetByPCIBusId(&found, id));
  EXPECT_EQ(0, found);
  id[std::strlen(id) - 2] = 0;  // the id without its function number
  HIP_OK(hipDeviceGetByPCIBusId(&found, id));
  EXPECT_EQ(0, found);
}

TEST_F(HipDeviceInfo, PciAddressesThatNoDeviceHas) {
  int found = -1;
  for (const char* other : {"0000:00:00.0", "0000:63:00.0", "0001:01:00.0", "0000:01:01.0",
                            "0000:01:00.1", "0000:ffffffff:00.0", "0000:80000000:00.0"}) {
    EXPECT_EQ(hipErrorInvalidDevice, hipDeviceGetByPCIBusId(&found, other)) << other;
  }
  for (const char* none : {"", "card", "0000:01", "0000:01:00.0 and more"}) {
    EXPECT_EQ(hipErrorInvalidValue, hipDeviceGetByPCIBusId(&found, none)) << none;
  }
  EXPECT_EQ(-1, found);
  EXPECT_EQ(hipErrorInvalidValue, hipDeviceGetByPCIBusId(nullptr, "0000:01:00.0"));
  EXPECT_EQ(hipErrorInvalidValue, hipDeviceGetByPCIBusId(&found, nullptr));
  char id[32] = {};
  EXPECT_EQ(hipErrorInvalidValue, hipDeviceGetPCIBusId(nullptr, 32, 0));
  EXPECT_EQ(hipErrorInvalidValue, hipDeviceGetPCIBusId(id, 0, 0));
  EXPECT_EQ(hipErrorInvalidDevice, hipDeviceGetPCIBusId(id, 32, 99));
}

TEST_F(HipDeviceInfo, Ordinals) {
  hipDevice_t device = -1;
  HIP_OK(hipDeviceGet(&device, 0));
  EXPECT_EQ(0, device);
  EXPECT_EQ(hipErrorInvalidDevice, hipDeviceGet(&device, 99));
  EXPECT_EQ(hipErrorInvalidDevice, hipDeviceGet(&device, -1));
  EXPECT_EQ(hipErrorInvalidValue, hipDeviceGet(nullptr, 0));
  EXPECT_EQ(hipErrorInvalidValue, hipGetDevice(nullptr));
  EXPECT_EQ(hipErrorInvalidValue, hipGetDeviceCount(nullptr));
  HIP_OK(hipInit(0));
  HIP_OK(hipProfilerStart());  // has no effect
  HIP_OK(hipProfilerStop());
}

TEST_F(HipDeviceInfo, ChoiceRefusesBadArguments) {
  int chosen = -1;
  HIP_OK(hipChooseDeviceR0600(&chosen, &properties));
  EXPECT_EQ(0, chosen);
  EXPECT_EQ(hipErrorInvalidValue, hipChooseDeviceR0600(nullptr, &properties));
  EXPECT_EQ(hipErrorInvalidValue, hipChooseDeviceR0600(&chosen, nullptr));
  EXPECT_EQ(hipErrorInvalidValue, hipChooseDevice(&chosen, nullptr));
}

TEST_F(HipDeviceInfo, PropertiesRefuseBadArguments) {
  hipDeviceProp_tR0000 before = {};
  EXPECT_EQ(hipErrorInvalidValue, hipGetDevicePropertiesR0600(nullptr, 0));
  EXPECT_EQ(hipErrorInvalidDevice, hipGetDevicePropertiesR0600(&properties, 99));
  EXPECT_EQ(hipErrorInvalidValue, hipGetDeviceProperties(nullptr, 0));
  EXPECT_EQ(hipErrorInvalidDevice, hipGetDeviceProperties(&before, -1));
}

TEST_F(HipDeviceInfo, AttributesAreTheProperties) {
  const hipDeviceProp_tR0600& p = properties;
  EXPECT_EQ(p.major, attribute(hipDeviceAttributeComputeCapabilityMajor));
  EXPECT_EQ(p.minor, attribute(hipDeviceAttributeComputeCapabilityMinor));
  EXPECT_EQ(p.multiProcessorCount, attribute(hipDeviceAttributeMultiprocessorCount));
  EXPECT_EQ(p.maxThreadsPerBlock, attribute(hipDeviceAttributeMaxThreadsPerBlock));
  EXPECT_EQ(p.maxThreadsDim[0], attribute(hipDeviceAttributeMaxBlockDimX));
  EXPECT_EQ(p.maxThreadsDim[2], attribute(hipDeviceAttributeMaxBlockDimZ));
  EXPECT_EQ(p.maxGridSize[0], attribute(hipDeviceAttributeMaxGridDimX));
  EXPECT_EQ(p.maxGridSize[1], attribute(hipDeviceAttributeMaxGridDimY));
  EXPECT_EQ(p.clockRate, attribute(hipDeviceAttributeClockRate));
  EXPECT_EQ(p.memoryBusWidth, attribute(hipDeviceAttributeMemoryBusWidth));
  EXPECT_EQ(p.l2CacheSize, attribute(hipDeviceAttributeL2CacheSize));
  EXPECT_EQ(static_cast<int>(p.sharedMemPerBlock),
            attribute(hipDeviceAttributeMaxSharedMemoryPerBlock));
  EXPECT_EQ(p.maxThreadsPerMultiProcessor,
            attribute(hipDeviceAttributeMaxThreadsPerMultiProcessor));
  EXPECT_EQ(1, attribute(hipDeviceAttributeManagedMemory));
  EXPECT_EQ(1, attribute(hipDeviceAttributeUnifiedAddressing));
  const std::string architecture = p.gcnArchName;
  const bool images = architecture.starts_with("gfx10") || architecture.starts_with("gfx11");
  EXPECT_EQ(images ? 1 : 0, attribute(hipDeviceAttributeImageSupport));
}

TEST_F(HipDeviceInfo, AttributesThatThereAreNot) {
  int value = 42;
  for (const int none : {92, 9999, 10018, 20000, -1}) {
    EXPECT_EQ(hipErrorInvalidValue,
              hipDeviceGetAttribute(&value, static_cast<hipDeviceAttribute_t>(none), 0))
        << none;
  }
  EXPECT_EQ(42, value);
  EXPECT_EQ(hipErrorInvalidValue, hipDeviceGetAttribute(nullptr, hipDeviceAttributeWarpSize, 0));
}

TEST_F(HipDeviceInfo, PriorityRange) {
  int least = 0, greatest = 0;
  HIP_OK(hipDeviceGetStreamPriorityRange(&least, &greatest));
  EXPECT_GT(least, greatest);  // lower numbers have higher priority
  HIP_OK(hipDeviceGetStreamPriorityRange(nullptr, &greatest));
  HIP_OK(hipDeviceGetStreamPriorityRange(&least, nullptr));
}

TEST_F(HipDeviceInfo, ErrorsHaveNamesAndTexts) {
  const char *name = nullptr, *text = nullptr;
  for (const hipError_t code : {hipSuccess, hipErrorInvalidValue, hipErrorOutOfMemory,
                                hipErrorPeerAccessNotEnabled, hipErrorIllegalAddress}) {
    HIP_OK(hipDrvGetErrorName(code, &name));
    EXPECT_STREQ(hipGetErrorName(code), name);
    HIP_OK(hipDrvGetErrorString(code, &text));
    EXPECT_STREQ(hipGetErrorString(code), text);
    EXPECT_STRNE(name, text);
  }
  const auto none = static_cast<hipError_t>(12345);
  EXPECT_EQ(hipErrorInvalidValue, hipDrvGetErrorName(none, &name));
  EXPECT_EQ(hipErrorInvalidValue, hipDrvGetErrorString(none, &text));
  EXPECT_EQ(hipErrorInvalidValue, hipDrvGetErrorName(hipSuccess, nullptr));
  EXPECT_EQ(hipErrorInvalidValue, hipDrvGetErrorString(hipSuccess, nullptr));
  EXPECT_STREQ("hipErrorUnknown", hipGetErrorName(none));
  EXPECT_EQ(hipErrorInvalidValue, hipExtGetLastError());
  EXPECT_EQ(hipSuccess, hipExtGetLastError());
}

}  // namespace
