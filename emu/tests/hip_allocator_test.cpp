// Allocates and frees blocks of all sizes in random order until memory runs out. HipAllocator runs
// with WICK_EMU_MEMORY=16M, so that this happens soon.

#include <algorithm>
#include <chrono>
#include <map>
#include <random>

#include "emu/tests/hip_support.h"

namespace {

constexpr size_t kGrain = 256;
size_t up(size_t bytes) { return (bytes + kGrain - 1) / kGrain * kGrain; }

size_t free_bytes() {
  size_t free = 0;
  EXPECT_EQ(hipSuccess, hipMemGetInfo(&free, nullptr));
  return free;
}

/// Blocks indexed by address. Each is filled with its own byte, and the tests check that they don't
/// overlap.
class Blocks {
 public:
  ~Blocks() {
    std::mt19937 random(3);
    while (!blocks_.empty()) drop(random);
  }

  /// Returns false if there is no room.
  bool add(size_t bytes) {
    char* at = nullptr;
    if (hipMalloc(reinterpret_cast<void**>(&at), bytes) != hipSuccess) {
      EXPECT_EQ(hipErrorOutOfMemory, hipGetLastError());
      EXPECT_EQ(nullptr, at);
      return false;
    }
    EXPECT_EQ(0u, reinterpret_cast<uintptr_t>(at) % kGrain);
    const auto after = blocks_.lower_bound(at);
    if (after != blocks_.end()) EXPECT_LE(at + bytes, after->first);
    if (after != blocks_.begin()) {
      const auto before = std::prev(after);
      EXPECT_LE(before->first + before->second.bytes, at);
    }
    const auto fill = static_cast<char>(++count_);
    EXPECT_EQ(hipSuccess, hipMemset(at, fill, bytes));
    blocks_[at] = {bytes, fill};
    used_ += up(bytes);
    return true;
  }

  /// Checks that the ends of a random block are unchanged, and frees it.
  void drop(std::mt19937& random) {
    auto at = blocks_.begin();
    std::advance(at, static_cast<ptrdiff_t>(random() % std::min<size_t>(blocks_.size(), 200)));
    const auto [bytes, fill] = at->second;
    for (const size_t where : {size_t{0}, bytes / 2, bytes - 1}) {
      char got = 0;
      EXPECT_EQ(hipSuccess, hipMemcpy(&got, at->first + where, 1, hipMemcpyDeviceToHost));
      EXPECT_EQ(fill, got) << where << " of " << bytes;
    }
    EXPECT_EQ(hipSuccess, hipFree(at->first));
    used_ -= up(bytes);
    blocks_.erase(at);
  }

  size_t used() const { return used_; }
  size_t count() const { return blocks_.size(); }

 private:
  struct Block {
    size_t bytes;
    char fill;
  };
  std::map<char*, Block> blocks_;
  size_t used_ = 0;
  int count_ = 0;
};

/// Returns a random size: most are small, and some are as large as an eighth of all memory.
size_t some_size(std::mt19937& random, size_t all) {
  const int shift = static_cast<int>(random() % 22);
  return std::min<size_t>(1 + random() % (size_t{1} << shift), all / 8);
}

TEST(HipAllocator, RandomBlocksAreApart) {
  const size_t all = free_bytes();
  for (const unsigned seed : {1u, 2u, 3u}) {
    std::mt19937 random(seed);
    Blocks blocks;
    int refused = 0;
    for (int step = 0; step < 4000; ++step) {
      // Phases with more allocations alternate with phases with more frees, so that gaps of all
      // sizes appear.
      const bool more = random() % 10 < (step / 500 % 2 == 0 ? 7u : 3u);
      if (more || blocks.count() == 0) {
        refused += !blocks.add(some_size(random, all));
      } else {
        blocks.drop(random);
      }
      ASSERT_EQ(all - blocks.used(), free_bytes()) << "seed " << seed << ", step " << step;
      if (testing::Test::HasFailure()) return;
    }
    EXPECT_LT(refused, 1000);
  }
  EXPECT_EQ(all, free_bytes());
}

TEST(HipAllocator, AllOfItAgainAfterAllIsFreed) {
  const size_t all = free_bytes();
  for (const unsigned seed : {5u, 6u, 7u, 8u}) {
    {
      std::mt19937 random(seed);
      Blocks blocks;
      for (int step = 0; step < 1500; ++step) {
        if (random() % 3 != 0 || blocks.count() == 0) {
          (void)blocks.add(some_size(random, all));
        } else {
          blocks.drop(random);
        }
      }
    }
    void* whole = nullptr;
    ASSERT_EQ(hipSuccess, hipMalloc(&whole, all)) << "seed " << seed;
    void* more = nullptr;
    EXPECT_EQ(hipErrorOutOfMemory, hipMalloc(&more, 1));
    HIP_OK(hipFree(whole));
  }
}

/// Allocates the smallest blocks until there is no room: memory is used completely, twice in a row.
TEST(HipAllocator, SmallestBlocksFillAllOfIt) {
  const size_t all = free_bytes();
  for (int round = 0; round < 2; ++round) {
    std::vector<void*> held;
    void* one = nullptr;
    while (hipMalloc(&one, 1) == hipSuccess) held.push_back(one);
    EXPECT_EQ(hipErrorOutOfMemory, hipGetLastError());
    EXPECT_EQ(all / kGrain, held.size());
    std::shuffle(held.begin(), held.end(), std::mt19937(9));
    for (void* each : held) ASSERT_EQ(hipSuccess, hipFree(each));
    EXPECT_EQ(all, free_bytes());
  }
}

/// Frees every other block. The freed memory suffices for as many blocks again.
TEST(HipAllocator, HolesAreUsedAgain) {
  const size_t all = free_bytes();
  for (const size_t bytes : {size_t{256}, size_t{1000}, size_t{4096}, size_t{100000}}) {
    std::vector<void*> held;
    void* one = nullptr;
    while (hipMalloc(&one, bytes) == hipSuccess) held.push_back(one);
    const size_t most = held.size();
    EXPECT_EQ(all / up(bytes), most);
    for (int round = 0; round < 5; ++round) {
      for (size_t i = round % 2; i < held.size(); i += 2) HIP_OK(hipFree(held[i]));
      for (size_t i = round % 2; i < held.size(); i += 2) {
        ASSERT_EQ(hipSuccess, hipMalloc(&held[i], bytes)) << bytes << ", round " << round;
      }
    }
    std::sort(held.begin(), held.end());
    EXPECT_EQ(held.end(), std::adjacent_find(held.begin(), held.end()));
    for (void* each : held) HIP_OK(hipFree(each));
    EXPECT_EQ(all, free_bytes());
  }
  (void)hipGetLastError();
}

/// Small blocks that stay allocated here and there don't prevent a large allocation.
TEST(HipAllocator, LargeBlocksFindRoomAmongSmallOnes) {
  const size_t all = free_bytes();
  std::vector<void*> small, kept;
  void *one = nullptr, *large = nullptr;
  while (hipMalloc(&one, kGrain) == hipSuccess) small.push_back(one);
  for (size_t i = 0; i < small.size(); ++i) {
    if (i % 64 == 0) {
      kept.push_back(small[i]);
    } else {
      ASSERT_EQ(hipSuccess, hipFree(small[i]));
    }
  }
  EXPECT_EQ(hipSuccess, hipMalloc(&large, free_bytes()));
  EXPECT_EQ(0u, free_bytes());
  HIP_OK(hipFree(large));
  for (void* each : kept) ASSERT_EQ(hipSuccess, hipFree(each));
  EXPECT_EQ(all, free_bytes());
  (void)hipGetLastError();
}

/// Allocates one size after another, each as large as possible.
TEST(HipAllocator, AnyShareOfItCanBeHadInTurn) {
  const size_t all = free_bytes();
  for (const size_t part : {2, 3, 5, 7, 16, 64, 3, 2, 1}) {
    std::vector<void*> held(part);
    const size_t bytes = all / part / kGrain * kGrain;
    for (void*& each : held) ASSERT_EQ(hipSuccess, hipMalloc(&each, bytes)) << "1/" << part;
    for (void* each : held) HIP_OK(hipFree(each));
  }
}

/// Uses all of the default memory. The search for a free block must not start from the beginning
/// each time, which takes minutes here instead of a moment.
TEST(HipMemory, ManyBlocksDontTakeLong) {
  std::mt19937 random(4);
  std::vector<void*> held(20000);
  const auto start = std::chrono::steady_clock::now();
  for (void*& each : held) {
    const size_t bytes = random() % 4 == 0 ? 4096 + random() % 60000 : 1 + random() % 2000;
    HIP_OK(hipMalloc(&each, bytes));
  }
  std::shuffle(held.begin(), held.end(), random);
  for (size_t i = 0; i < held.size() / 2; ++i) HIP_OK(hipFree(held[i]));
  for (size_t i = 0; i < held.size() / 2; ++i) {
    HIP_OK(hipMalloc(&held[i], 1 + random() % 10000));
  }
  std::shuffle(held.begin(), held.end(), random);
  for (void* each : held) HIP_OK(hipFree(each));
  const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - start;
  EXPECT_LT(seconds.count(), 5.0);
}

}  // namespace
