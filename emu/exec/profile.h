#pragma once

// Counts what a launch did. Counters at the start of each basic block count instructions by class,
// and each memory access is counted by the hardware transactions that it needs.

#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <shared_mutex>
#include <string_view>
#include <unordered_map>

#include "emu/exec/wave.h"

namespace emu {

enum class Class : uint8_t { valu, matrix, salu, vmem, scratch, lds, smem, branch, wait, count };
inline constexpr int kClasses = static_cast<int>(Class::count);
inline constexpr std::array<const char*, kClasses> kClassNames = {
    "valu", "matrix", "salu", "vmem", "scratch", "lds", "smem", "branch", "wait"};

Class class_of(std::string_view mnemonic);

/// Cycles for which a matrix instruction occupies its SIMD, and 0 for other instructions. WMMA has
/// the rates of gfx11; MFMA those of gfx90a.
uint32_t matrix_cycles(std::string_view mnemonic);

/// Consecutive instructions that always run together under one EXEC.
struct Block {
  std::atomic<uint64_t> runs{0}, lanes{0};        // lanes: the sum over all runs
  std::array<uint32_t, kClasses> instructions{};  // instructions per run
  uint32_t matrix_cycles = 0;                     // per run
};

/// The pseudo-operation that counts a block. Op::data points to the block.
Stop count_block(Wave* w, const Op* op);

/// The lines of 64 bytes that a launch touches, each counted once. Threads add lines at the same
/// time.
class LineSet {
 public:
  LineSet();

  void add(uint64_t line);
  uint64_t count() const { return count_.load(std::memory_order_relaxed); }

 private:
  /// A bit for each line of 256 KiB.
  using Region = std::array<std::atomic<uint64_t>, 64>;
  Region& region(uint64_t number);

  const uint64_t id_;  // tells a thread whose region it found last
  std::atomic<uint64_t> count_{0};
  std::shared_mutex mutex_;
  std::unordered_map<uint64_t, std::unique_ptr<Region>> regions_;
};

/// Memory accesses of one launch. Transactions are the aligned segments of 64 and 128 bytes that
/// each instruction of a wave touches. Conflicts are the LDS cycles beyond one per 32 dwords.
struct MemoryCounts {
  LineSet lines;
  std::atomic<uint64_t> load_bytes{0}, store_bytes{0}, pieces64{0}, pieces128{0};
  std::atomic<uint64_t> lds_accesses{0}, lds_conflicts{0};
};

/// Counts an access of one half's lanes at base + offsets[lane].
void count_global(Wave* w, uint64_t base, const uint32_t* offsets, LaneMask lanes, uint32_t bytes,
                  bool store);
void count_lds(Wave* w, uint64_t base, const uint32_t* offsets, LaneMask lanes, uint32_t bytes);

}  // namespace emu
