// Tensors that move between GPUs. WICK_TEST_PEERS gives the expected way: "direct" or "staged". If
// it isn't set, the way isn't checked.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <cstdlib>
#include <thread>
#include <vector>

#include "tests/expect_error.h"
#include "wick/backend/gpu/gpu_backend.h"
#include "wick/tensor/memory.h"
#include "wick/tensor/ops.h"
#include "wick/tensor/recording.h"

namespace wick::gpu {
namespace {

using test::error_of;
using testing::HasSubstr;

/// Two devices of one vendor.
class GpuPeers : public testing::Test {
 protected:
  void SetUp() override {
    for (const DeviceKind kind : {DeviceKind::cuda, DeviceKind::hip}) {
      const Driver* const driver = Driver::of(kind);
      if (driver == nullptr || driver->device_count() < 2) continue;
      a_ = {kind, 0};
      b_ = {kind, 1};
      return;
    }
    GTEST_SKIP() << "no two GPUs of one vendor";
  }
  Device a_, b_;
};

std::vector<float> sequence(size_t count, float first) {
  std::vector<float> values(count);
  for (size_t i = 0; i < count; ++i) values[i] = first + static_cast<float>(i % 65521);
  return values;
}
Tensor tensor(const std::vector<float>& values, Device device) {
  return Tensor::from(values, {static_cast<int64_t>(values.size())}, device);
}

TEST_F(GpuPeers, TheWayIsTheExpectedOne) {
  for (const auto& [to, from] : {std::pair(a_, b_), std::pair(b_, a_)}) {
    Gpu &here = backend_of(to).gpu(), &there = backend_of(from).gpu();
    const Peers::Way way = here.peers.way(there);
    std::printf("%s to %s: %s\n", from.str().c_str(), to.str().c_str(),
                way.direct ? "direct" : way.reason.c_str());
    EXPECT_EQ(way.direct, way.reason.empty());
    const char* const expected = std::getenv("WICK_TEST_PEERS");
    if (expected != nullptr) {
      EXPECT_EQ(way.direct ? "direct" : "staged", std::string(expected));
    }
    EXPECT_EQ(here.peers.way(there).direct, way.direct);
  }
}

TEST_F(GpuPeers, TensorsMoveThereAndBack) {
  // The last one takes several pieces and has an odd end.
  for (const size_t count : {1u, 33u, 100'000u, 5'000'001u}) {
    const std::vector<float> values = sequence(count, 0.5f);
    const Tensor x = tensor(values, a_), there = x.to(b_), back = there.to(a_);
    EXPECT_EQ(there.device(), b_);
    EXPECT_EQ(there.to_vector<float>(), values) << count;
    EXPECT_EQ(back.to_vector<float>(), values) << count;
  }
  const Tensor x = tensor(sequence(1000, 3), a_);
  EXPECT_EQ(x.narrow(0, 7, 5).to(b_).to_vector<float>(), (std::vector<float>{10, 11, 12, 13, 14}));
  EXPECT_EQ(Tensor::empty({0, 3}, DType::f32, a_).to(b_).str(), "f32[0,3]@" + b_.str());
}

TEST_F(GpuPeers, TheSourceMayGoAtOnceAndTheTargetIsWaitedFor) {
  // Each round reuses the memory of the previous round on both devices.
  std::vector<Tensor> kept;
  for (int i = 0; i < 40; ++i) {
    const Tensor there = tensor(sequence(200'000, static_cast<float>(i)), a_).to(b_);
    kept.push_back(there.to(a_).narrow(0, 1000, 2).clone());
  }
  for (int i = 0; i < 40; ++i) {
    const Tensor on_b = tensor(sequence(30'000, static_cast<float>(i)), a_).to(b_);
    kept.push_back(on_b);
  }
  const char* const libraries = std::getenv("WICK_CUDA_LIBRARY");
  const bool runs_kernels = libraries == nullptr || a_.kind == DeviceKind::hip;
  for (int i = 0; i < 80; ++i) {
    if (i < 40 && !runs_kernels) continue;  // clone runs a kernel
    const float first = kept[static_cast<size_t>(i)].to_vector<float>()[0];
    EXPECT_EQ(first, static_cast<float>(i < 40 ? 1000 + i : i - 40)) << i;
  }
}

TEST_F(GpuPeers, BothWaysAtTheSameTime) {
  const std::vector<float> values = sequence(3'000'000, 1);
  const auto work = [&](Device from, Device to) {
    for (int i = 0; i < 3; ++i) {
      EXPECT_EQ(tensor(values, from).to(to).to_vector<float>(), values);
    }
  };
  const std::jthread other(work, b_, a_);
  work(a_, b_);
}

TEST_F(GpuPeers, ARecordingCannotHoldACopy) {
  const Tensor on_a = tensor({1, 2}, a_), on_b = tensor({3, 4}, b_);
  on_a.to(b_);
  EXPECT_THAT(error_of([&] { record(a_, [&] { (void)on_b.to(a_); }); }),
              HasSubstr("to: a copy between devices can't be recorded"));
  EXPECT_THAT(error_of([&] { record(b_, [&] { (void)on_b.to(a_); }); }),
              HasSubstr("to: a copy between devices can't be recorded"));
  EXPECT_EQ(on_b.to(a_).to_vector<float>(), (std::vector<float>{3, 4}));
}

TEST_F(GpuPeers, AnOpTakesTensorsOfOneDevice) {
  const Tensor on_a = tensor({1, 2}, a_), on_b = tensor({3, 4}, b_);
  EXPECT_EQ(error_of([&] { add(on_a, on_b); }), "add: devices differ: lhs f32[2]@" + a_.str() +
                                                    ", rhs f32[2]@" + b_.str() +
                                                    ": move one of them");
  EXPECT_THAT(error_of([&] {
                matmul(on_a.reshape({1, 2}), on_b.reshape({2, 1}));
              }),
              HasSubstr("matmul: devices differ"));
}

TEST_F(GpuPeers, HowFast) {
  const bool hardware =
      std::getenv("WICK_CUDA_LIBRARY") == nullptr && std::getenv("WICK_HIP_LIBRARY") == nullptr;
  const int64_t bytes = hardware ? int64_t{1} << 30 : int64_t{1} << 20;
  const Tensor x = Tensor::empty({bytes}, DType::u8, a_);
  x.to(b_);
  synchronize(b_);
  const auto start = std::chrono::steady_clock::now();
  x.to(b_);
  synchronize(b_);
  const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - start;
  std::printf("%.1f GB/s\n", static_cast<double>(bytes) / seconds.count() / 1e9);
}

TEST(GpuVendors, TensorsMoveBetweenThem) {
  if (Driver::of(DeviceKind::cuda) == nullptr || Driver::of(DeviceKind::hip) == nullptr) {
    GTEST_SKIP() << "no GPUs of two vendors";
  }
  const Device cuda{DeviceKind::cuda, 0}, hip{DeviceKind::hip, 0};
  const std::vector<float> values = sequence(3'000'001, 2);
  EXPECT_EQ(tensor(values, cuda).to(hip).to_vector<float>(), values);
  EXPECT_EQ(tensor(values, hip).to(cuda).to_vector<float>(), values);
  EXPECT_FALSE(backend_of(cuda).gpu().peers.way(backend_of(hip).gpu()).direct);
}

}  // namespace
}  // namespace wick::gpu
