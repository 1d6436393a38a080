#pragma once

// Devices and tensors for the graph tests.

#include <gtest/gtest.h>

#include <cstring>
#include <string>
#include <vector>

#include "tests/test_devices.h"
#include "wick/graph/compile.h"
#include "wick/tensor/ops.h"
#include "wick/tensor/random.h"

namespace wick::test {

/// Returns the CPU, or the devices that WICK_TEST_DEVICES names.
inline std::vector<Device> graph_devices() {
  std::vector<Device> all;
  for (const std::string& name : device_names()) all.push_back(Device::parse(name));
  if (all.empty()) all.push_back(Device::cpu());
  return all;
}

/// Returns numbers from a normal distribution.
inline Tensor numbers(const Shape& shape, uint64_t seed, Device device, DType dtype = DType::f32) {
  set_seed(seed, Device::cpu());
  return normal(shape, 0, 1, DType::f32).to(dtype).to(device);
}

/// Returns the bytes of a tensor's elements in row-major order.
inline std::vector<uint8_t> bytes_of_elements(const Tensor& x) {
  const Tensor host = x.to(Device::cpu()).contiguous();
  std::vector<uint8_t> bytes(static_cast<size_t>(bytes_of(x.dtype(), x.elems())));
  if (bytes.empty()) return bytes;
  const auto at = static_cast<size_t>(bytes_of(x.dtype(), host.layout().offset()));
  std::memcpy(bytes.data(), static_cast<const char*>(host.storage()->data()) + at, bytes.size());
  return bytes;
}

/// Expects equal shapes, dtypes and bits.
inline void expect_same(const std::vector<Tensor>& a, const std::vector<Tensor>& b,
                        const std::string& what) {
  ASSERT_EQ(a.size(), b.size()) << what;
  for (size_t i = 0; i < a.size(); ++i) {
    EXPECT_EQ(a[i].str(), b[i].str()) << what;
    EXPECT_EQ(bytes_of_elements(a[i]), bytes_of_elements(b[i])) << what << ", result " << i;
  }
}

class OnDevices : public testing::TestWithParam<Device> {
 protected:
  Tensor x(const Shape& shape, uint64_t seed = 1, DType dtype = DType::f32) const {
    return numbers(shape, seed, GetParam(), dtype);
  }
};

inline std::string device_test_name(const testing::TestParamInfo<Device>& info) {
  std::string name = info.param.str();
  std::erase(name, ':');
  return name;
}

}  // namespace wick::test
