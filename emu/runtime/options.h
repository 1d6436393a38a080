#pragma once

// The options in the environment, which are read once.

#include <cstdint>
#include <string>
#include <vector>

namespace emu {

struct Options {
  std::vector<std::string> devices;  // WICK_EMU_DEVICES
  std::vector<size_t> device_bytes;  // WICK_EMU_MEMORY, one per device
  std::string check;                 // WICK_EMU_CHECK as given; empty: off
  uint64_t seed = 0;                 // WICK_EMU_SEED; 0: waves and workgroups run in order
  double timeout = 0;                // WICK_EMU_TIMEOUT in seconds; 0: none
  std::string profile;               // WICK_EMU_PROFILE: a file; empty: none
  bool profile_table = false;        // WICK_EMU_PROFILE_TABLE
  int threads = 1;                   // WICK_EMU_THREADS; by default the number of cores

  bool checks() const { return !check.empty(); }
  /// Returns whether a check is enabled, by its name or by "all".
  bool wants(std::string kind) const;
  static Options from_environment();
};

/// Prints one line on stderr.
void complain(const std::string& what);

}  // namespace emu
