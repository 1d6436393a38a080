// Device variables, function attributes, occupancy, and loading modules with options.

#include <filesystem>

#include "emu/tests/hip_support.h"

namespace {

/// The data that a compiler embeds in a program: a bundle, and the names of its kernels and
/// variables.
struct {
  uint32_t magic = 0x48495046, version = 1;
  const void* image = nullptr;
  const void* unused = nullptr;
} wrapper;
int counter, table[64];
void add_one() {}
void missing() {}

class HipProgram : public testing::Test {
 protected:
  HipProgram() : image(kernel_file(basic_kernels())) {
    wrapper.image = image.data();
    handle = __hipRegisterFatBinary(&wrapper);
    EXPECT_NE(nullptr, handle);
    char names[2][8] = {"counter", "table"};
    __hipRegisterVar(handle, &counter, names[0], names[0], 0, sizeof counter, 0, 0);
    __hipRegisterVar(handle, table, names[1], names[1], 0, sizeof table, 0, 0);
    const auto function = [&](void (*host)(), const char* name) {
      __hipRegisterFunction(handle, reinterpret_cast<const void*>(host), nullptr, name, 0, nullptr,
                            nullptr, nullptr, nullptr, nullptr);
    };
    function(add_one, "add_one");
    function(missing, "no_such_kernel");
  }
  ~HipProgram() override {
    __hipUnregisterFatBinary(handle);
    (void)hipGetLastError();
  }
  const std::vector<char> image;
  void** handle = nullptr;
};

const auto kAddOne = reinterpret_cast<const void*>(add_one);

TEST_F(HipProgram, VariablesHaveAddressAndSize) {
  void *first = nullptr, *second = nullptr;
  size_t bytes = 0;
  HIP_OK(hipGetSymbolAddress(&first, &counter));
  HIP_OK(hipGetSymbolAddress(&second, table));
  EXPECT_NE(first, second);
  HIP_OK(hipGetSymbolSize(&bytes, &counter));
  EXPECT_EQ(sizeof counter, bytes);
  HIP_OK(hipGetSymbolSize(&bytes, table));
  EXPECT_EQ(sizeof table, bytes);
  int initial = 0;
  HIP_OK(hipMemcpy(&initial, first, sizeof initial, hipMemcpyDeviceToHost));
  EXPECT_EQ(7, initial);
}

TEST_F(HipProgram, VariablesThatThereAreNot) {
  void* address = nullptr;
  size_t bytes = 0;
  int other = 0;
  EXPECT_EQ(hipErrorInvalidValue, hipGetSymbolAddress(nullptr, &counter));
  EXPECT_EQ(hipErrorInvalidSymbol, hipGetSymbolAddress(&address, nullptr));
  EXPECT_EQ(hipErrorInvalidSymbol, hipGetSymbolAddress(&address, &other));
  EXPECT_EQ(hipErrorInvalidValue, hipGetSymbolSize(nullptr, &counter));
  EXPECT_EQ(hipErrorInvalidSymbol, hipGetSymbolSize(&bytes, nullptr));
  EXPECT_EQ(hipErrorInvalidSymbol, hipGetSymbolSize(&bytes, &other));
  EXPECT_EQ(hipErrorInvalidSymbol, hipMemcpyToSymbol(&other, &bytes, 4, 0, hipMemcpyHostToDevice));
  EXPECT_EQ(hipErrorInvalidSymbol,
            hipMemcpyFromSymbol(&bytes, nullptr, 4, 0, hipMemcpyDeviceToHost));
}

TEST_F(HipProgram, VariablesAreCopiedByParts) {
  std::vector<int> in(64), out(64);
  for (int i = 0; i < 64; ++i) in[i] = i * i;
  HIP_OK(hipMemcpyToSymbol(table, in.data(), 256, 0, hipMemcpyHostToDevice));
  HIP_OK(hipMemcpyFromSymbol(out.data(), table, 100, 40, hipMemcpyDeviceToHost));
  EXPECT_TRUE(std::equal(out.begin(), out.begin() + 25, in.begin() + 10));
  hipStream_t stream = nullptr;
  HIP_OK(hipStreamCreate(&stream));
  HIP_OK(hipMemcpyToSymbolAsync(table, in.data() + 1, 8, 16, hipMemcpyHostToDevice, stream));
  HIP_OK(hipMemcpyFromSymbolAsync(out.data(), table, 256, 0, hipMemcpyDeviceToHost, stream));
  HIP_OK(hipStreamSynchronize(stream));
  EXPECT_EQ(9, out[3]);
  EXPECT_EQ(1, out[4]);
  EXPECT_EQ(4, out[5]);
  EXPECT_EQ(36, out[6]);
  // A copy from the variable to other device memory.
  Buffer<int> device(64);
  HIP_OK(hipMemcpyFromSymbol(device.data, table, 256, 0, hipMemcpyDeviceToDevice));
  EXPECT_EQ(out, device.get());
  HIP_OK(hipStreamDestroy(stream));
}

TEST_F(HipProgram, CopiesOfVariablesRefuseBadArguments) {
  int own[64] = {};
  const auto to = [&](size_t bytes, size_t offset, hipMemcpyKind kind, const void* from) {
    const hipError_t error = hipMemcpyToSymbol(table, from, bytes, offset, kind);
    EXPECT_EQ(error, hipMemcpyToSymbolAsync(table, from, bytes, offset, kind, nullptr));
    return error;
  };
  const auto from = [&](size_t bytes, size_t offset, hipMemcpyKind kind, void* to) {
    const hipError_t error = hipMemcpyFromSymbol(to, table, bytes, offset, kind);
    EXPECT_EQ(error, hipMemcpyFromSymbolAsync(to, table, bytes, offset, kind, nullptr));
    return error;
  };
  EXPECT_EQ(hipSuccess, to(256, 0, hipMemcpyHostToDevice, own));
  EXPECT_EQ(hipSuccess, to(4, 252, hipMemcpyDefault, own));
  EXPECT_EQ(hipErrorInvalidValue, to(257, 0, hipMemcpyHostToDevice, own));
  EXPECT_EQ(hipErrorInvalidValue, to(8, 252, hipMemcpyHostToDevice, own));
  EXPECT_EQ(hipErrorInvalidValue, to(8, ~size_t{0} - 3, hipMemcpyHostToDevice, own));
  EXPECT_EQ(hipErrorInvalidValue, to(8, 0, hipMemcpyHostToDevice, nullptr));
  EXPECT_EQ(hipErrorInvalidValue, to(8, 0, hipMemcpyDeviceToDevice, own));
  EXPECT_EQ(hipErrorInvalidMemcpyDirection, to(8, 0, hipMemcpyDeviceToHost, own));
  EXPECT_EQ(hipErrorInvalidMemcpyDirection, to(8, 0, hipMemcpyHostToHost, own));
  EXPECT_EQ(hipSuccess, from(256, 0, hipMemcpyDeviceToHost, own));
  EXPECT_EQ(hipErrorInvalidValue, from(257, 0, hipMemcpyDeviceToHost, own));
  EXPECT_EQ(hipErrorInvalidValue, from(1, 256, hipMemcpyDeviceToHost, own));
  EXPECT_EQ(hipErrorInvalidValue, from(8, 0, hipMemcpyDeviceToHost, nullptr));
  EXPECT_EQ(hipErrorInvalidMemcpyDirection, from(8, 0, hipMemcpyHostToDevice, own));
  EXPECT_EQ(hipErrorInvalidMemcpyDirection, from(8, 0, static_cast<hipMemcpyKind>(9), own));
  EXPECT_EQ(hipErrorContextIsDestroyed,
            hipMemcpyToSymbolAsync(table, own, 8, 0, hipMemcpyHostToDevice,
                                   reinterpret_cast<hipStream_t>(0x1234)));
}

/// The host's variable and the device's variable of that name hold a pointer to the same memory.
TEST_F(HipProgram, ManagedVariablesAreBothSides) {
  int initial[64];
  for (int i = 0; i < 64; ++i) initial[i] = 1000 + i;
  void* managed = nullptr;
  __hipRegisterManagedVar(handle, &managed, initial, "table", sizeof initial, 4);
  ASSERT_NE(nullptr, managed);
  EXPECT_TRUE(std::equal(initial, initial + 64, static_cast<int*>(managed)));
  void *there = nullptr, *pointer = nullptr;
  size_t bytes = 0;
  HIP_OK(hipGetSymbolAddress(&there, &managed));
  EXPECT_EQ(managed, there);
  HIP_OK(hipGetSymbolSize(&bytes, &managed));
  EXPECT_EQ(sizeof initial, bytes);
  HIP_OK(hipMemcpyFromSymbol(&pointer, table, sizeof pointer, 0, hipMemcpyDeviceToHost));
  EXPECT_EQ(managed, pointer);
}

TEST_F(HipProgram, WhatIsUnregisteredIsGone) {
  size_t bytes = 0;
  void** second = __hipRegisterFatBinary(&wrapper);
  int other = 0, initial[64] = {};
  void* managed = nullptr;
  char name[] = "table";
  __hipRegisterVar(second, &other, name, name, 0, 256, 0, 0);
  __hipRegisterManagedVar(second, &managed, initial, name, sizeof initial, 4);
  __hipRegisterTexture(second, nullptr, name, name, 0, 0, 0);
  __hipRegisterSurface(second, nullptr, name, name, 0, 0);
  HIP_OK(hipGetSymbolSize(&bytes, &other));
  __hipUnregisterFatBinary(second);
  EXPECT_EQ(hipErrorInvalidSymbol, hipGetSymbolSize(&bytes, &other));
  EXPECT_EQ(hipErrorInvalidSymbol, hipGetSymbolSize(&bytes, &managed));
  EXPECT_EQ(nullptr, __hipRegisterFatBinary(nullptr));
  EXPECT_EQ(nullptr, __hipRegisterFatBinary(initial));  // not a known format
  __hipUnregisterFatBinary(nullptr);
}

TEST_F(HipProgram, FunctionsAreFoundBySymbol) {
  hipFunction_t function = nullptr;
  HIP_OK(hipGetFuncBySymbol(&function, kAddOne));
  ASSERT_NE(nullptr, function);
  EXPECT_STREQ("add_one", hipKernelNameRef(function));
  const Buffer<int> data(64);
  HIP_OK(launch(function, 1, 64, 0, nullptr, data.data, 64));
  EXPECT_EQ(data.get(), std::vector<int>(64, 1));
  EXPECT_EQ(hipErrorInvalidValue, hipGetFuncBySymbol(nullptr, kAddOne));
  EXPECT_EQ(hipErrorInvalidDeviceFunction, hipGetFuncBySymbol(&function, nullptr));
  EXPECT_EQ(hipErrorInvalidDeviceFunction, hipGetFuncBySymbol(&function, &counter));
  EXPECT_EQ(hipErrorInvalidDeviceFunction,
            hipGetFuncBySymbol(&function, reinterpret_cast<const void*>(missing)));
  EXPECT_EQ(nullptr, hipKernelNameRef(nullptr));
}

TEST_F(HipProgram, AttributesOfFunctions) {
  hipFuncAttributes all = {};
  HIP_OK(hipFuncGetAttributes(&all, kAddOne));
  hipFunction_t function = nullptr;
  HIP_OK(hipGetFuncBySymbol(&function, kAddOne));
  const auto one = [&](hipFunction_attribute which) {
    int value = -1;
    EXPECT_EQ(hipSuccess, hipFuncGetAttribute(&value, which, function)) << which;
    return value;
  };
  EXPECT_EQ(1024, all.maxThreadsPerBlock);
  EXPECT_EQ(all.maxThreadsPerBlock, one(HIP_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK));
  EXPECT_GT(all.numRegs, 0);
  EXPECT_EQ(all.numRegs, one(HIP_FUNC_ATTRIBUTE_NUM_REGS));
  EXPECT_EQ(all.sharedSizeBytes, static_cast<size_t>(one(HIP_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES)));
  EXPECT_EQ(all.localSizeBytes, static_cast<size_t>(one(HIP_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES)));
  EXPECT_EQ(all.binaryVersion, one(HIP_FUNC_ATTRIBUTE_BINARY_VERSION));
  EXPECT_EQ(all.ptxVersion, one(HIP_FUNC_ATTRIBUTE_PTX_VERSION));
  EXPECT_EQ(65536, all.maxDynamicSharedSizeBytes);
  EXPECT_EQ(65536, one(HIP_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES));
  EXPECT_EQ(0, one(HIP_FUNC_ATTRIBUTE_CONST_SIZE_BYTES));
  EXPECT_EQ(0, one(HIP_FUNC_ATTRIBUTE_CACHE_MODE_CA));
  EXPECT_EQ(0, one(HIP_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT));
  int value = 0;
  EXPECT_EQ(hipErrorInvalidValue, hipFuncGetAttribute(&value, HIP_FUNC_ATTRIBUTE_MAX, function));
  EXPECT_EQ(hipErrorInvalidValue,
            hipFuncGetAttribute(nullptr, HIP_FUNC_ATTRIBUTE_NUM_REGS, function));
  EXPECT_EQ(hipErrorInvalidDeviceFunction,
            hipFuncGetAttribute(&value, HIP_FUNC_ATTRIBUTE_NUM_REGS, nullptr));
  EXPECT_EQ(hipErrorInvalidValue, hipFuncGetAttributes(nullptr, kAddOne));
  EXPECT_EQ(hipErrorInvalidDeviceFunction, hipFuncGetAttributes(&all, nullptr));
  EXPECT_EQ(hipErrorInvalidDeviceFunction, hipFuncGetAttributes(&all, &counter));
}

TEST_F(HipProgram, AttributesOfFunctionsAreSet) {
  const auto set = [](const void* function, int which, int value) {
    return hipFuncSetAttribute(function, static_cast<hipFuncAttribute>(which), value);
  };
  const int lds = hipFuncAttributeMaxDynamicSharedMemorySize;
  const int carveout = hipFuncAttributePreferredSharedMemoryCarveout;
  EXPECT_EQ(hipSuccess, set(kAddOne, lds, 65536));
  EXPECT_EQ(hipSuccess, set(kAddOne, lds, 0));
  EXPECT_EQ(hipErrorInvalidValue, set(kAddOne, lds, 65537));
  EXPECT_EQ(hipErrorInvalidValue, set(kAddOne, lds, -1));
  EXPECT_EQ(hipSuccess, set(kAddOne, carveout, 50));
  EXPECT_EQ(hipSuccess, set(kAddOne, carveout, -1));
  EXPECT_EQ(hipErrorInvalidValue, set(kAddOne, carveout, 101));
  EXPECT_EQ(hipErrorInvalidValue, set(kAddOne, carveout, -2));
  EXPECT_EQ(hipErrorInvalidValue, set(kAddOne, hipFuncAttributeMax, 0));
  EXPECT_EQ(hipErrorInvalidDeviceFunction, set(nullptr, lds, 0));
  EXPECT_EQ(hipSuccess, hipFuncSetCacheConfig(kAddOne, hipFuncCachePreferL1));
  EXPECT_EQ(hipErrorInvalidValue, hipFuncSetCacheConfig(kAddOne, static_cast<hipFuncCache_t>(4)));
  EXPECT_EQ(hipErrorInvalidDeviceFunction, hipFuncSetCacheConfig(nullptr, hipFuncCachePreferL1));
  EXPECT_EQ(hipSuccess, hipFuncSetSharedMemConfig(kAddOne, hipSharedMemBankSizeEightByte));
  EXPECT_EQ(hipErrorInvalidValue,
            hipFuncSetSharedMemConfig(kAddOne, static_cast<hipSharedMemConfig>(3)));
  EXPECT_EQ(hipErrorInvalidDeviceFunction,
            hipFuncSetSharedMemConfig(&counter, hipSharedMemBankSizeDefault));
}

/// Returns the resident workgroups per multiprocessor. All four functions must agree.
int resident(const void* symbol, hipFunction_t function, int items, size_t lds) {
  int groups[4] = {-1, -2, -3, -4};
  EXPECT_EQ(hipSuccess,
            hipOccupancyMaxActiveBlocksPerMultiprocessor(&groups[0], symbol, items, lds));
  EXPECT_EQ(hipSuccess, hipOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(
                            &groups[1], symbol, items, lds, hipOccupancyDefault));
  EXPECT_EQ(hipSuccess,
            hipModuleOccupancyMaxActiveBlocksPerMultiprocessor(&groups[2], function, items, lds));
  EXPECT_EQ(hipSuccess, hipModuleOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(
                            &groups[3], function, items, lds, hipOccupancyDisableCachingOverride));
  for (const int each : groups) EXPECT_EQ(groups[0], each);
  return groups[0];
}

TEST_F(HipProgram, OccupancyIsWhatAProcessorHolds) {
  hipFunction_t function = nullptr;
  HIP_OK(hipGetFuncBySymbol(&function, kAddOne));
  hipDeviceProp_tR0600 p = {};
  HIP_OK(hipGetDevicePropertiesR0600(&p, 0));
  for (int items = 32; items <= 1024; items *= 2) {
    const int groups = resident(kAddOne, function, items, 0);
    EXPECT_GT(groups, 0) << items;
    EXPECT_LE(groups * items, p.maxThreadsPerMultiProcessor) << items;
  }
  // The kernel uses few registers, so the multiprocessor has room for all its waves.
  EXPECT_EQ(p.maxThreadsPerMultiProcessor / 1024, resident(kAddOne, function, 1024, 0));
  const int by_lds = static_cast<int>(p.sharedMemPerMultiprocessor / 65536);
  EXPECT_EQ(by_lds, resident(kAddOne, function, 64, 65536));
  EXPECT_EQ(0, resident(kAddOne, function, 64, 65537));
  EXPECT_EQ(0, resident(kAddOne, function, 64, ~size_t{0}));
  EXPECT_EQ(0, resident(kAddOne, function, 1025, 0));
}

TEST_F(HipProgram, OccupancyRefusesBadArguments) {
  hipFunction_t function = nullptr;
  HIP_OK(hipGetFuncBySymbol(&function, kAddOne));
  int groups = 0;
  const auto bad = hipErrorInvalidValue;
  EXPECT_EQ(bad, hipOccupancyMaxActiveBlocksPerMultiprocessor(nullptr, kAddOne, 64, 0));
  EXPECT_EQ(bad, hipOccupancyMaxActiveBlocksPerMultiprocessor(&groups, kAddOne, 0, 0));
  EXPECT_EQ(bad, hipOccupancyMaxActiveBlocksPerMultiprocessor(&groups, kAddOne, -64, 0));
  EXPECT_EQ(hipErrorInvalidDeviceFunction,
            hipOccupancyMaxActiveBlocksPerMultiprocessor(&groups, nullptr, 64, 0));
  EXPECT_EQ(bad, hipOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(&groups, kAddOne, 64, 0, 2));
  EXPECT_EQ(bad, hipModuleOccupancyMaxActiveBlocksPerMultiprocessor(nullptr, function, 64, 0));
  EXPECT_EQ(hipErrorInvalidDeviceFunction,
            hipModuleOccupancyMaxActiveBlocksPerMultiprocessor(&groups, nullptr, 64, 0));
  EXPECT_EQ(bad, hipModuleOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(&groups, function, 64,
                                                                             0, 2));
}

TEST_F(HipProgram, BestBlocksFillTheDevice) {
  hipFunction_t function = nullptr;
  HIP_OK(hipGetFuncBySymbol(&function, kAddOne));
  hipDeviceProp_tR0600 p = {};
  HIP_OK(hipGetDevicePropertiesR0600(&p, 0));
  for (const int limit : {0, 1, 100, 256, 5000}) {
    int grid[3] = {}, block[3] = {};
    HIP_OK(hipOccupancyMaxPotentialBlockSize(&grid[0], &block[0], kAddOne, 0, limit));
    HIP_OK(hipModuleOccupancyMaxPotentialBlockSize(&grid[1], &block[1], function, 0, limit));
    HIP_OK(hipModuleOccupancyMaxPotentialBlockSizeWithFlags(&grid[2], &block[2], function, 0, limit,
                                                            hipOccupancyDefault));
    EXPECT_EQ(grid[0], grid[1]);
    EXPECT_EQ(grid[0], grid[2]);
    EXPECT_EQ(block[0], block[1]);
    EXPECT_EQ(block[0], block[2]);
    EXPECT_GE(block[0], 1);
    EXPECT_LE(block[0], limit == 0 ? 1024 : std::min(limit, 1024));
    EXPECT_EQ(resident(kAddOne, function, block[0], 0) * p.multiProcessorCount, grid[0]);
  }
}

TEST_F(HipProgram, BestBlocksRefuseBadArguments) {
  hipFunction_t function = nullptr;
  HIP_OK(hipGetFuncBySymbol(&function, kAddOne));
  int grid = 0, block = 0;
  const auto bad = hipErrorInvalidValue;
  EXPECT_EQ(bad, hipOccupancyMaxPotentialBlockSize(nullptr, &block, kAddOne, 0, 0));
  EXPECT_EQ(bad, hipOccupancyMaxPotentialBlockSize(&grid, nullptr, kAddOne, 0, 0));
  EXPECT_EQ(bad, hipOccupancyMaxPotentialBlockSize(&grid, &block, kAddOne, 0, -1));
  EXPECT_EQ(hipErrorInvalidDeviceFunction,
            hipOccupancyMaxPotentialBlockSize(&grid, &block, nullptr, 0, 0));
  EXPECT_EQ(hipErrorInvalidDeviceFunction,
            hipModuleOccupancyMaxPotentialBlockSize(&grid, &block, nullptr, 0, 0));
  EXPECT_EQ(bad,
            hipModuleOccupancyMaxPotentialBlockSizeWithFlags(&grid, &block, function, 0, 0, 2));
}

TEST(HipModule, LoadsWithOptionsAsWithout) {
  const std::vector<char> image = kernel_file(basic_kernels());
  hipModule_t module = nullptr;
  hipJitOption options[] = {static_cast<hipJitOption>(0)};
  void* values[] = {nullptr};
  HIP_OK(hipModuleLoadDataEx(&module, image.data(), 1, options, values));
  hipFunction_t function = nullptr;
  HIP_OK(hipModuleGetFunction(&function, module, "set_to"));
  const Buffer<int> data(64);
  HIP_OK(launch(function, 1, 64, 0, nullptr, data.data, 4));
  EXPECT_EQ(data.get(), std::vector<int>(64, 4));
  HIP_OK(hipModuleUnload(module));
  HIP_OK(hipModuleLoadDataEx(&module, image.data(), 0, nullptr, nullptr));
  HIP_OK(hipModuleUnload(module));
  EXPECT_EQ(hipErrorInvalidValue, hipModuleLoadDataEx(nullptr, image.data(), 0, nullptr, nullptr));
  EXPECT_EQ(hipErrorInvalidValue, hipModuleLoadDataEx(&module, nullptr, 0, nullptr, nullptr));
  const std::vector<char> none(4096, 'x');
  EXPECT_EQ(hipErrorInvalidImage, hipModuleLoadDataEx(&module, none.data(), 0, nullptr, nullptr));
  (void)hipGetLastError();
}

/// A kernel's static LDS and the launch's dynamic LDS add up, without overflow.
TEST(HipModule, OwnAndAskedLdsCountTogether) {
  const Kernels kernels("corpus/lds.O2.gfx1100.hsaco");
  const hipFunction_t function = kernels["lds_reduction"];
  int value = 0, groups = -1;
  HIP_OK(hipFuncGetAttribute(&value, HIP_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES, function));
  const auto own = static_cast<size_t>(value);
  ASSERT_GT(own, 0u);
  HIP_OK(hipFuncGetAttribute(&value, HIP_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, function));
  EXPECT_EQ(65536 - own, static_cast<size_t>(value));
  const auto resident = [&](size_t lds) {
    EXPECT_EQ(hipSuccess,
              hipModuleOccupancyMaxActiveBlocksPerMultiprocessor(&groups, function, 64, lds));
    return groups;
  };
  EXPECT_GT(resident(65536 - own), 0);
  EXPECT_EQ(0, resident(65537 - own));
  EXPECT_EQ(0, resident(~size_t{0}));
  EXPECT_EQ(0, resident(~size_t{0} - own + 1));
  int grid = 0, block = 0;
  EXPECT_EQ(hipErrorLaunchOutOfResources,
            hipModuleOccupancyMaxPotentialBlockSize(&grid, &block, function, ~size_t{0}, 0));
  void* arguments[8] = {&value, &value, &value, &value, &value, &value, &value, &value};
  for (const size_t lds : {65537 - own, ~size_t{0}, ~size_t{0} - own + 1, ~size_t{0} - own + 257}) {
    EXPECT_EQ(hipErrorInvalidValue, hipLaunchKernel(function, {1}, {64}, arguments, lds, nullptr))
        << lds;
  }
  (void)hipGetLastError();
}

TEST(HipModule, FilesThatAreNone) {
  hipModule_t module = nullptr;
  testing::internal::CaptureStderr();
  EXPECT_EQ(hipErrorFileNotFound, hipModuleLoad(&module, testing::TempDir().c_str()));
  const std::string said = testing::internal::GetCapturedStderr();
  EXPECT_NE(said.find("is a directory"), std::string::npos) << said;
  EXPECT_EQ(hipErrorFileNotFound, hipModuleLoad(&module, ""));
  const std::string empty = testing::TempDir() + "empty.hsaco";
  std::ofstream(empty).close();
  EXPECT_EQ(hipErrorInvalidImage, hipModuleLoad(&module, empty.c_str()));
  std::filesystem::remove(empty);
  EXPECT_EQ(nullptr, module);
  const std::string file = std::string(EMU_TEST_KERNELS) + "/" + basic_kernels();
  EXPECT_EQ(hipErrorInvalidValue, hipModuleLoad(nullptr, file.c_str()));
  (void)hipGetLastError();
}

TEST(HipModule, GlobalsHaveAddressAndSize) {
  const Kernels kernels;
  void* address = nullptr;
  size_t bytes = 0;
  HIP_OK(hipModuleGetGlobal(&address, &bytes, kernels.module, "table"));
  EXPECT_EQ(256u, bytes);
  HIP_OK(hipModuleGetGlobal(&address, nullptr, kernels.module, "counter"));
  HIP_OK(hipModuleGetGlobal(nullptr, &bytes, kernels.module, "counter"));
  EXPECT_EQ(4u, bytes);
  EXPECT_EQ(hipErrorInvalidValue, hipModuleGetGlobal(nullptr, nullptr, kernels.module, "counter"));
  EXPECT_EQ(hipErrorInvalidValue, hipModuleGetGlobal(&address, &bytes, kernels.module, nullptr));
  EXPECT_EQ(hipErrorNotFound, hipModuleGetGlobal(&address, &bytes, kernels.module, "none"));
  EXPECT_EQ(hipErrorInvalidHandle, hipModuleGetGlobal(&address, &bytes, nullptr, "counter"));
  (void)hipGetLastError();
}

}  // namespace
