// The CPU's caching allocator, through the backend.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstring>
#include <random>
#include <thread>
#include <vector>

#include "tests/expect_error.h"
#include "wick/backend/backend.h"
#include "wick/tensor/storage.h"
#include "wick/tensor/tensor.h"

namespace wick {
namespace {

using test::error_of;
using testing::HasSubstr;

Backend& cpu() { return backend(Device::cpu()); }

TEST(Memory, BlocksAreAlignedWritableAndTheirOwn) {
  std::vector<std::pair<void*, size_t>> blocks;
  for (size_t bytes : {0, 1, 63, 64, 65, 4095, 4097, 100000, 1 << 21, (1 << 21) + 1, 5 << 20}) {
    void* data = cpu().alloc(bytes);
    EXPECT_EQ(reinterpret_cast<uintptr_t>(data) % 64, 0u) << bytes;
    std::memset(data, static_cast<int>(blocks.size()), bytes);
    blocks.emplace_back(data, bytes);
  }
  for (size_t i = 0; i < blocks.size(); ++i) {
    const auto* bytes = static_cast<const unsigned char*>(blocks[i].first);
    for (size_t b = 0; b < blocks[i].second; ++b) ASSERT_EQ(bytes[b], i);
  }
  for (auto [data, bytes] : blocks) cpu().free(data, bytes);
}

TEST(Memory, FreedBlocksServeRequestsOfNearlyTheirSize) {
  cpu().trim();
  const size_t in_use = cpu().memory_info().in_use_bytes;
  void* first = cpu().alloc(1000000);
  const MemoryInfo held = cpu().memory_info();
  EXPECT_GE(held.in_use_bytes - in_use, 1000000u);
  EXPECT_LE(held.in_use_bytes - in_use, 1250000u);
  EXPECT_EQ(held.cached_bytes, 0u);
  cpu().free(first, 1000000);
  EXPECT_EQ(cpu().memory_info().in_use_bytes, in_use);
  EXPECT_EQ(cpu().memory_info().cached_bytes, held.in_use_bytes - in_use);
  void* again = cpu().alloc(990000);
  EXPECT_EQ(again, first);
  EXPECT_EQ(cpu().memory_info().cached_bytes, 0u);
  cpu().free(again, 990000);
  cpu().trim();
  EXPECT_EQ(cpu().memory_info().cached_bytes, 0u);
  EXPECT_EQ(cpu().memory_info().in_use_bytes, in_use);
}

TEST(Memory, SizesAreRoundedUpByAQuarterAtMost) {
  cpu().trim();
  std::mt19937_64 random(1);
  for (int i = 0; i < 2000; ++i) {
    const size_t bytes = 64 + (random() % (size_t{1} << (random() % 24)));
    const size_t before = cpu().memory_info().in_use_bytes;
    void* data = cpu().alloc(bytes);
    const size_t taken = cpu().memory_info().in_use_bytes - before;
    EXPECT_GE(taken, bytes);
    EXPECT_LE(taken, bytes + bytes / 4) << bytes;
    cpu().free(data, bytes);
    EXPECT_EQ(cpu().memory_info().in_use_bytes, before);
  }
  cpu().trim();
}

TEST(Memory, PeakIsTheLargestUse) {
  const MemoryInfo before = cpu().memory_info();
  const size_t bytes = before.peak_bytes + (size_t{8} << 20);
  {
    const auto storage = Storage::allocate(Device::cpu(), bytes);
    EXPECT_GE(cpu().memory_info().peak_bytes, before.in_use_bytes + bytes);
  }
  EXPECT_EQ(cpu().memory_info().in_use_bytes, before.in_use_bytes);
  EXPECT_GE(cpu().memory_info().peak_bytes, before.in_use_bytes + bytes);
}

TEST(Memory, RunningOutIsAnErrorAndTheProcessGoesOn) {
  const MemoryInfo before = cpu().memory_info();
  EXPECT_GT(before.total_bytes, size_t{1} << 26);
  for (size_t bytes : {before.total_bytes + 1, size_t{1} << 50, size_t{1} << 62, SIZE_MAX / 2,
                       SIZE_MAX - 64, SIZE_MAX}) {
    EXPECT_THAT(error_of([&] { Storage::allocate(Device::cpu(), bytes); }),
                HasSubstr("alloc: out of memory: requested " + std::to_string(bytes) + " bytes"));
  }
  EXPECT_THAT(error_of([] {
                Tensor::empty({int64_t{1} << 30, int64_t{1} << 20}, DType::f32);
              }),
              HasSubstr("out of memory"));
  EXPECT_THAT(error_of([] { Tensor::empty({int64_t{1} << 62}, DType::f64); }),
              HasSubstr("empty: too many bytes: f64[4611686018427387904]"));
  const MemoryInfo after = cpu().memory_info();
  EXPECT_EQ(after.in_use_bytes, before.in_use_bytes);
  EXPECT_EQ(after.peak_bytes, before.peak_bytes);
  EXPECT_EQ(Tensor::empty({4}, DType::f32).elems(), 4);
}

TEST(Memory, ManyThreads) {
  const size_t in_use = cpu().memory_info().in_use_bytes;
  {
    std::vector<std::jthread> threads;
    for (unsigned t = 0; t < 4; ++t) {
      threads.emplace_back([t] {
        std::mt19937 random(t);
        std::vector<std::pair<unsigned char*, size_t>> held;
        for (int i = 0; i < 3000; ++i) {
          if (held.size() < 8 && random() % 2 == 0) {
            const size_t bytes = 1 + random() % 5000;
            auto* data = static_cast<unsigned char*>(cpu().alloc(bytes));
            data[0] = data[bytes - 1] = static_cast<unsigned char>(t);
            held.emplace_back(data, bytes);
          } else if (!held.empty()) {
            auto [data, bytes] = held.back();
            held.pop_back();
            ASSERT_EQ(data[0], t);
            ASSERT_EQ(data[bytes - 1], t);
            cpu().free(data, bytes);
          }
          if (i % 1000 == 0) cpu().trim();
        }
        for (auto [data, bytes] : held) cpu().free(data, bytes);
      });
    }
  }
  EXPECT_EQ(cpu().memory_info().in_use_bytes, in_use);
}

TEST(Memory, ForkWhileOthersAllocate) {
  cpu();  // before the fork: a thread inside the first call would leave it incomplete in the child
  std::jthread busy([](std::stop_token stop) {
    while (!stop.stop_requested()) cpu().free(cpu().alloc(100), 100);
  });
  for (int i = 0; i < 20; ++i) {
    const pid_t child = fork();
    if (child == 0) {
      alarm(10);  // ends the child if it hangs
      cpu().free(cpu().alloc(100), 100);
      _exit(42);
    }
    int status = 0;
    ASSERT_EQ(waitpid(child, &status, 0), child);
    ASSERT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 42) << status;
  }
}

}  // namespace
}  // namespace wick
