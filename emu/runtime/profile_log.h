#pragma once

// WICK_EMU_PROFILE=FILE: writes statistics of every kernel as JSON when the process ends, and with
// WICK_EMU_PROFILE_TABLE=1 also as a table on stderr. Kernels run one at a time while profiling, so
// that functions shared by kernels are counted for the kernel that calls them.

#include <array>
#include <map>
#include <mutex>
#include <string>

#include "emu/exec/profile.h"
#include "emu/runtime/module.h"

namespace emu {

class ProfileLog {
 public:
  ProfileLog(std::string file, bool table) : file_(std::move(file)), table_(table) {}

  /// Held from before a launch until the launch has been added.
  std::mutex one_at_a_time;

  /// Adds a launch that has ended, and resets its code's counters.
  void add(const Kernel& kernel, const Launch& launch, const MemoryCounts& memory);

  /// Writes the profile. Returns false, after a line on stderr, if the file can't be written.
  bool write() const;

 private:
  struct Entry {
    uint32_t wave = 0, sgprs = 0, vgprs = 0, lds_bytes = 0, scratch_bytes = 0, items = 0;
    int waves_held = 0, waves_limit = 0;  // per SIMD
    uint64_t launches = 0, groups = 0, waves = 0;
    std::array<uint64_t, kClasses> instructions{};
    uint64_t matrix_cycles = 0;
    uint64_t lanes_on = 0, lanes_possible = 0;  // in vector instructions
    uint64_t load_bytes = 0, store_bytes = 0, pieces64 = 0, pieces128 = 0, lines = 0;
    uint64_t lds_accesses = 0, lds_conflicts = 0;

    uint64_t total() const;
    double occupancy() const;
    double divergence() const;
  };

  std::string json() const;
  std::string table() const;

  const std::string file_;
  const bool table_;
  // Indexed by kernel and architecture.
  std::map<std::pair<std::string, std::string>, Entry> entries_;
};

}  // namespace emu
