#pragma once

// Helpers that the tests of the HIP interface share.

#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "emu/hip/functions.h"

#define HIP_OK(call) ASSERT_EQ(hipSuccess, (call)) << hipGetErrorString(hipPeekAtLastError())

inline std::vector<char> kernel_file(const std::string& name) {
  std::ifstream file(std::string(EMU_TEST_KERNELS) + "/" + name, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

/// Returns the first device's architecture, which WICK_EMU_DEVICES selects.
inline std::string first_device() {
  const char* devices = std::getenv("WICK_EMU_DEVICES");
  const std::string all = devices == nullptr ? "gfx1100" : devices;
  return all.substr(0, all.find(','));
}

/// Returns the file of the test kernels for the first device.
inline std::string basic_kernels() { return "basic." + first_device() + ".hsaco"; }

/// The module of the test kernels.
class Kernels {
 public:
  explicit Kernels(const std::string& file = basic_kernels()) {
    const std::vector<char> image = kernel_file(file);
    EXPECT_FALSE(image.empty());
    EXPECT_EQ(hipSuccess, hipModuleLoadData(&module, image.data()));
  }
  ~Kernels() { EXPECT_EQ(hipSuccess, hipModuleUnload(module)); }

  hipFunction_t operator[](const char* name) const {
    hipFunction_t function = nullptr;
    EXPECT_EQ(hipSuccess, hipModuleGetFunction(&function, module, name)) << name;
    return function;
  }
  hipModule_t module = nullptr;
};

/// Device memory that is freed at the end of its scope.
template <class T>
class Buffer {
 public:
  explicit Buffer(size_t count) : count(count) {
    EXPECT_EQ(hipSuccess, hipMalloc(reinterpret_cast<void**>(&data), count * sizeof(T)));
    EXPECT_EQ(hipSuccess, hipMemset(data, 0, count * sizeof(T)));
    EXPECT_EQ(hipSuccess, hipDeviceSynchronize());
  }
  ~Buffer() { EXPECT_EQ(hipSuccess, hipFree(data)); }
  std::vector<T> get() const {
    std::vector<T> values(count);
    EXPECT_EQ(hipSuccess, hipMemcpy(values.data(), data, count * sizeof(T), hipMemcpyDeviceToHost));
    return values;
  }
  void set(const std::vector<T>& values) {
    EXPECT_EQ(hipSuccess,
              hipMemcpy(data, values.data(), values.size() * sizeof(T), hipMemcpyHostToDevice));
  }
  T* data = nullptr;
  const size_t count;
};

template <class... Arguments>
hipError_t launch(hipFunction_t function, unsigned groups, unsigned block, unsigned lds,
                  hipStream_t stream, Arguments... arguments) {
  void* list[] = {&arguments..., nullptr};
  return hipModuleLaunchKernel(function, groups, 1, 1, block, 1, 1, lds, stream, list, nullptr);
}
