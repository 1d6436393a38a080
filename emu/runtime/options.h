#pragma once

// What the environment says, read once.

#include <cstdint>
#include <string>
#include <vector>

namespace emu {

struct Options {
  std::vector<std::string> devices;  // WICK_EMU_DEVICES
  std::vector<size_t> device_bytes;  // WICK_EMU_MEMORY, one a device
  std::string check;                 // WICK_EMU_CHECK as given; empty: off
  uint64_t seed = 0;                 // WICK_EMU_SEED; 0: everything in order
  double timeout = 0;                // WICK_EMU_TIMEOUT in seconds; 0: none
  std::string profile;               // WICK_EMU_PROFILE: a file; empty: none
  bool profile_table = false;        // WICK_EMU_PROFILE_TABLE
  int threads = 1;                   // WICK_EMU_THREADS, else as many as there are cores

  bool checks() const { return !check.empty(); }
  /// Whether findings of a kind are asked for: it is named, or all are.
  bool wants(std::string kind) const;
  static Options from_environment();
};

/// One line on stderr.
void complain(const std::string& what);

}  // namespace emu
