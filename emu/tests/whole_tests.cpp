// Elements of 64 and 128 bits are read and written as a whole: another host thread never sees a
// part of one. Scans with look-back, which pass a value with its flag, depend on it.

#include <gtest/gtest.h>

#include <atomic>
#include <thread>

#include "emu/exec/formats.h"

namespace emu::test {
namespace {

constexpr uint32_t kRounds = 300000, kMostRounds = 1u << 31;
/// How often the reader must see a new value, so that both threads have run at once.
constexpr int kChanges = 100;

/// Register contents: 16 lanes of N registers, 128 bytes apart.
template <int N>
struct Registers {
  alignas(128) char bytes[128 * N] = {};

  void fill(uint32_t value) {
    for (int reg = 0; reg < N; ++reg) {
      for (int lane = 0; lane < kChunk; ++lane) put(reg, lane, value);
    }
  }
  void put(int reg, int lane, uint32_t value) {
    std::memcpy(bytes + 128 * reg + 4 * lane, &value, sizeof value);
  }
  uint32_t get(int reg, int lane) const {
    uint32_t value;
    std::memcpy(&value, bytes + 128 * reg + 4 * lane, sizeof value);
    return value;
  }
  /// Counts the lanes whose dwords differ, among the first `lanes`.
  int torn(int lanes) const {
    int count = 0;
    for (int lane = 0; lane < lanes; ++lane) {
      for (int reg = 1; reg < N; ++reg) count += get(reg, lane) != get(0, lane);
    }
    return count;
  }
};

/// One thread writes elements whose dwords are all equal, another reads them. The writer goes on
/// until the reader has seen it write, since either thread may run first.
template <int N, class Write, class Read>
int torn_elements(const Write& write, const Read& read) {
  alignas(64) static char memory[16 * 4 * N];
  std::memset(memory, 0, sizeof memory);
  std::atomic<bool> done{false};
  std::atomic<int> changes{0};
  std::thread writer([&] {
    Registers<N> registers;
    for (uint32_t i = 1; i <= kRounds || (changes < kChanges && i < kMostRounds); ++i) {
      registers.fill(i);
      write(memory, registers.bytes);
    }
    done = true;
  });
  int torn = 0;
  Registers<N> registers;
  uint32_t last = 0;
  while (!done) {
    torn += read(memory, registers);
    const uint32_t now = registers.get(0, 0);
    if (now != last) ++changes;
    last = now;
  }
  writer.join();
  EXPECT_GE(changes, kChanges) << "the reader hardly ran";
  return torn;
}

template <int N>
void expect_whole() {
  using Format = Dwords<N>;
  const auto one = [](char* to, const char* from) { Format::store_lane(to, from); };
  const auto sixteen = [](char* to, const char* from) { Format::store_chunk(to, from); };
  const auto lane = [](const char* from, Registers<N>& to) {
    Format::load_lane(from, to.bytes);
    return to.torn(1);
  };
  const auto uniform = [](const char* from, Registers<N>& to) {
    Format::load_uniform(from, to.bytes);
    return to.torn(kChunk);
  };
  const auto chunk = [](const char* from, Registers<N>& to) {
    Format::load_chunk(from, to.bytes);
    return to.torn(kChunk);
  };
  EXPECT_EQ((torn_elements<N>(one, lane)), 0);
  EXPECT_EQ((torn_elements<N>(one, uniform)), 0);
  EXPECT_EQ((torn_elements<N>(sixteen, chunk)), 0);
  EXPECT_EQ((torn_elements<N>(sixteen, lane)), 0);
}

TEST(WholeElements, Of64Bits) { expect_whole<2>(); }
TEST(WholeElements, Of128Bits) { expect_whole<4>(); }

}  // namespace
}  // namespace emu::test
