#pragma once

// Counts of what a launch did: instructions by class through counters at the start of every run of
// instructions that execute together, and memory by what each access needs of the hardware.

#include <array>
#include <atomic>
#include <cstdint>
#include <string_view>

#include "emu/exec/wave.h"

namespace emu {

enum class Class : uint8_t { valu, matrix, salu, vmem, scratch, lds, smem, branch, wait, count };
inline constexpr int kClasses = static_cast<int>(Class::count);
inline constexpr std::array<const char*, kClasses> kClassNames = {
    "valu", "matrix", "salu", "vmem", "scratch", "lds", "smem", "branch", "wait"};

Class class_of(std::string_view mnemonic);

/// Instructions that always run together, and with the same EXEC.
struct Block {
  std::atomic<uint64_t> runs{0}, lanes{0};        // lanes: summed over the runs
  std::array<uint32_t, kClasses> instructions{};  // of one run
};

/// The pseudo-operation that counts a block; Op::data is the block.
Stop count_block(Wave* w, const Op* op);

/// Memory of one launch. Transactions: aligned pieces of 64 and 128 bytes that each instruction of
/// a wave touches. Conflicts: cycles that LDS takes beyond one for 32 dwords.
struct MemoryCounts {
  std::atomic<uint64_t> load_bytes{0}, store_bytes{0}, pieces64{0}, pieces128{0};
  std::atomic<uint64_t> lds_accesses{0}, lds_conflicts{0};
};

/// One half's lanes at base + offsets[lane].
void count_global(Wave* w, uint64_t base, const uint32_t* offsets, LaneMask lanes, uint32_t bytes,
                  bool store);
void count_lds(Wave* w, uint64_t base, const uint32_t* offsets, LaneMask lanes, uint32_t bytes);

}  // namespace emu
