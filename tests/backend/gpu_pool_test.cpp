// Blocks of the memory pool, on any HIP device: see on_emulator.sh.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "wick/backend/gpu/memory/pool.h"
#include "wick/base/error.h"

namespace wick::gpu {
namespace {

class GpuPool : public testing::Test {
 protected:
  void SetUp() override {
    driver_ = Driver::of(DeviceKind::hip);
    if (driver_ == nullptr) GTEST_SKIP() << "no HIP device: " << Driver::missing(DeviceKind::hip);
    driver_->enter(0);
  }
  const Device device_ = Device::parse("hip:0");
  Driver* driver_ = nullptr;
};

TEST_F(GpuPool, FreedBlocksServeRequestsOfTheirSize) {
  Pool pool(*driver_, device_, size_t{64} << 20);
  void* first = pool.take(10'000);
  EXPECT_EQ(reinterpret_cast<uintptr_t>(first) % 256, 0u);
  void* second = pool.take(10'000);
  EXPECT_NE(first, second);
  EXPECT_EQ(pool.info().in_use_bytes, 2 * 10'240u);
  pool.give(first);
  EXPECT_EQ(pool.info().cached_bytes, 10'240u);
  EXPECT_EQ(pool.take(5'500), first);  // a cached block may be at most twice the requested size
  pool.give(first);
  EXPECT_NE(pool.take(4'000), first);
  EXPECT_EQ(pool.info().cached_bytes, 10'240u);
  pool.trim();
  EXPECT_EQ(pool.info().cached_bytes, 0u);
  pool.give(second);
  EXPECT_GE(pool.info().peak_bytes, 2 * 10'240u);
}

TEST_F(GpuPool, ExactBlocksAreNotReused) {
  Pool pool(*driver_, device_, size_t{64} << 20, true);
  void* block = pool.take(10'001);
  EXPECT_EQ(reinterpret_cast<uintptr_t>(block) % 256, 0u);
  EXPECT_EQ(pool.info().in_use_bytes, 10'004u);
  pool.give(block);
  EXPECT_EQ(pool.info().in_use_bytes, 0u);
  EXPECT_EQ(pool.info().cached_bytes, 0u);
}

TEST_F(GpuPool, TakesNothingButWhatIsAsked) {
  Pool pool(*driver_, device_, size_t{64} << 20);
  void* none = pool.take(0);
  EXPECT_NE(none, nullptr);
  pool.give(none);
  pool.give(none);  // ignored, not counted twice
  pool.give(nullptr);
  EXPECT_EQ(pool.info().in_use_bytes, 0u);
}

TEST_F(GpuPool, OutOfMemoryNamesWhatThereIs) {
  Pool pool(*driver_, device_, size_t{64} << 20);
  void* kept = pool.take(size_t{8} << 20);
  void* freed = pool.take(size_t{16} << 20);
  pool.give(freed);
  // Cached blocks are released before a request fails.
  void* large = pool.take(size_t{50} << 20);
  EXPECT_EQ(pool.info().cached_bytes, 0u);
  try {
    pool.take(size_t{10} << 20);
    FAIL() << "more than there is";
  } catch (const Error& error) {
    EXPECT_STREQ(
        error.what(),
        "alloc: out of memory: requested 10485760 bytes on hip:0, in use 60817408, cached 0, "
        "limit 67108864");
  }
  EXPECT_THROW(pool.take(~size_t{0}), Error);
  pool.give(large);
  pool.set_limit(size_t{10} << 20);
  EXPECT_EQ(pool.info().cached_bytes, 0u);
  EXPECT_THROW(pool.take(size_t{4} << 20), Error);
  EXPECT_NO_THROW(pool.give(pool.take(size_t{1} << 20)));
  pool.give(kept);
}

}  // namespace
}  // namespace wick::gpu
