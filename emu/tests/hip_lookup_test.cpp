// hipGetProcAddress(): the functions that it finds, and the errors that it gives.

#include "emu/tests/hip_stream_support.h"

namespace {

void* found(const char* name, int version = 60443483, uint64_t flags = 0) {
  void* function = nullptr;
  auto result = HIP_GET_PROC_ADDRESS_VERSION_NOT_SUFFICIENT;
  EXPECT_EQ(hipSuccess, hipGetProcAddress(name, &function, version, flags, &result)) << name;
  EXPECT_EQ(HIP_GET_PROC_ADDRESS_SUCCESS, result);
  return function;
}

TEST(HipLookup, FindsFunctionsByName) {
  int count = 0;
  HIP_OK(reinterpret_cast<hipError_t (*)(int*)>(found("hipGetDeviceCount"))(&count));
  EXPECT_GE(count, 1);
  hipDeviceProp_tR0600 properties;
  using Get = hipError_t (*)(hipDeviceProp_tR0600*, int);
  HIP_OK(reinterpret_cast<Get>(found("hipGetDeviceProperties"))(&properties, 0));
  EXPECT_EQ(0, std::string(properties.gcnArchName).find("gfx"));
  EXPECT_EQ(found("hipGetDevicePropertiesR0600"), found("hipGetDeviceProperties", 600));
  EXPECT_NE(found("hipGetDeviceProperties"), found("hipGetDeviceProperties", 50700000));
  EXPECT_NE(found("hipMemcpy"), found("hipMemcpy", 60443483, 2));
  EXPECT_EQ(found("hipMalloc"), found("hipMalloc", 60443483, 2));
  EXPECT_NE(nullptr, found("hipExtModuleLaunchKernel"));
  EXPECT_NE(nullptr, found("hipHccModuleLaunchKernel"));
}

TEST(HipLookup, RefusesOtherNames) {
  void* function = &function;
  auto result = HIP_GET_PROC_ADDRESS_SUCCESS;
  HIP_REFUSES(hipErrorInvalidValue, hipGetProcAddress("no_such", &function, 600, 0, &result));
  EXPECT_EQ(nullptr, function);
  EXPECT_EQ(HIP_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND, result);
  HIP_REFUSES(hipErrorInvalidValue, hipGetProcAddress("", &function, 600, 0, nullptr));
  HIP_REFUSES(hipErrorInvalidValue, hipGetProcAddress("hipInit", nullptr, 600, 0, nullptr));
  HIP_REFUSES(hipErrorInvalidValue, hipGetProcAddress("hipInit", &function, 600, 3, nullptr));
}

}  // namespace
