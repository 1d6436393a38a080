#pragma once

// Maps addresses of code to source lines.

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace emu {

class Lines {
 public:
  virtual ~Lines() = default;
  /// Returns "file.hip:12", or "file.hip:12, in header.h:34" if the code comes from a header that
  /// this line uses. Returns an empty string if the line is unknown. Not thread-safe. The tables of
  /// a hostile object may make it access unmapped memory.
  virtual std::string at(uint64_t address) = 0;

  /// Creates the reader for a code object's file; it reads the line tables on first use.
  static std::unique_ptr<Lines> of(std::vector<uint8_t> file);
};

}  // namespace emu
