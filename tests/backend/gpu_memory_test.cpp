// Memory statistics and limits for users of tensors, on the CPU and on the devices that
// WICK_TEST_DEVICES names.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

#include "tests/expect_error.h"
#include "tests/test_devices.h"
#include "wick/tensor/memory.h"
#include "wick/tensor/tensor.h"

namespace wick {
namespace {

using test::error_of;
using testing::HasSubstr;

constexpr size_t kMiB = size_t{1} << 20;

class MemoryOf : public testing::TestWithParam<std::string> {
 protected:
  void SetUp() override { trim_memory(device_); }
  void TearDown() override { set_memory_limit(device_, 0); }
  Tensor bytes(size_t count) const {
    return Tensor::empty({static_cast<int64_t>(count)}, DType::u8, device_);
  }
  MemoryStats now() const { return memory_stats(device_); }
  const Device device_ = Device::parse(GetParam());
};
/// Tests for GPUs only: on the CPU, Linux would grant the memory and kill the process later.
class MemoryOfGpu : public MemoryOf {};

TEST_P(MemoryOf, TensorsCount) {
  const MemoryStats before = now();
  EXPECT_EQ(before.cached_bytes, 0u);
  EXPECT_EQ(before.limit_bytes, before.total_bytes);
  EXPECT_GT(before.free_bytes, 0u);
  EXPECT_LE(before.free_bytes, before.total_bytes);
  {
    const Tensor x = bytes(8 * kMiB), view = x.narrow(0, 5, 7);
    EXPECT_EQ(now().in_use_bytes, before.in_use_bytes + 8 * kMiB);
  }
  EXPECT_EQ(now().in_use_bytes, before.in_use_bytes);
  EXPECT_EQ(now().cached_bytes, 8 * kMiB);
  trim_memory(device_);
  EXPECT_EQ(now().cached_bytes, 0u);
}

TEST_P(MemoryOf, ThePeakStaysUntilItIsReset) {
  reset_peak_memory(device_);
  const MemoryStats before = now();
  EXPECT_EQ(before.peak_bytes, before.in_use_bytes);
  { const Tensor a = bytes(4 * kMiB), b = bytes(4 * kMiB); }
  bytes(kMiB);
  EXPECT_EQ(now().peak_bytes, before.in_use_bytes + 8 * kMiB);
  reset_peak_memory(device_);
  EXPECT_EQ(now().peak_bytes, before.in_use_bytes);
}

TEST_P(MemoryOf, ALimitHolds) {
  const Tensor kept = bytes(2 * kMiB);
  bytes(6 * kMiB);  // freed, and cached from now on
  const size_t in_use = now().in_use_bytes;
  set_memory_limit(device_, in_use + 8 * kMiB);
  EXPECT_EQ(now().limit_bytes, in_use + 8 * kMiB);
  EXPECT_EQ(now().cached_bytes, 6 * kMiB);
  // Cached memory is released before a request fails.
  EXPECT_NO_THROW(bytes(8 * kMiB));
  EXPECT_EQ(error_of([&] { bytes(10 * kMiB); }),
            "alloc: out of memory: requested " + std::to_string(10 * kMiB) + " bytes on " +
                device_.str() + ", in use " + std::to_string(in_use) + ", cached 0, limit " +
                std::to_string(in_use + 8 * kMiB));
  EXPECT_EQ(now().in_use_bytes, in_use);
  // With a limit below what is in use, requests fail and existing memory stays.
  bytes(4 * kMiB);
  set_memory_limit(device_, kMiB);
  EXPECT_EQ(now().cached_bytes, 0u);
  EXPECT_THAT(error_of([&] { bytes(1); }), HasSubstr("out of memory: requested 1 bytes"));
  EXPECT_EQ(kept.elems(), static_cast<int64_t>(2 * kMiB));
  set_memory_limit(device_, 0);
  EXPECT_NO_THROW(bytes(10 * kMiB));
}

TEST_P(MemoryOfGpu, AllOfItAndThenSome) {
  const MemoryStats before = now();
  std::vector<Tensor> held;
  const size_t block = std::max(before.total_bytes / 16, 2 * kMiB);
  const std::string error = error_of([&] {
    for (;;) held.push_back(bytes(block));
  });
  EXPECT_THAT(error, HasSubstr("alloc: out of memory: requested " + std::to_string(block)));
  EXPECT_THAT(error, HasSubstr(", cached 0, limit " + std::to_string(before.total_bytes)));
  EXPECT_GE(held.size(), 8u);
  EXPECT_LE(held.size(), 16u);
  held.clear();
  EXPECT_EQ(now().in_use_bytes, before.in_use_bytes);
  trim_memory(device_);
  EXPECT_NO_THROW(bytes(4 * block));
  trim_memory(device_);
}

std::string case_name(const testing::TestParamInfo<std::string>& which) {
  std::string name = which.param;
  std::replace(name.begin(), name.end(), ':', '_');
  return name;
}
std::vector<std::string> cpu_and_device_names() {
  std::vector<std::string> all = test::device_names();
  all.insert(all.begin(), "cpu");
  return all;
}
INSTANTIATE_TEST_SUITE_P(, MemoryOf, testing::ValuesIn(cpu_and_device_names()), case_name);
INSTANTIATE_TEST_SUITE_P(, MemoryOfGpu, testing::ValuesIn(test::gpu_names()), case_name);
GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(MemoryOfGpu);

TEST(MemoryForUsers, OfADeviceThatIsNone) {
  const Device none = Device::parse("cuda:99");
  const auto says = HasSubstr("device: no such device here: cuda:99");
  EXPECT_THAT(error_of([&] { memory_stats(none); }), says);
  EXPECT_THAT(error_of([&] { set_memory_limit(none, 1); }), says);
  EXPECT_THAT(error_of([&] { trim_memory(none); }), says);
  EXPECT_THAT(error_of([&] { reset_peak_memory(none); }), says);
  EXPECT_THAT(error_of([&] { synchronize(none); }), says);
}

}  // namespace
}  // namespace wick
