#pragma once

// Which line of the source an address of the code comes from.

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace emu {

class Lines {
 public:
  virtual ~Lines() = default;
  /// "file.hip:12", empty where it isn't known. "file.hip:12, in header.h:34" where the code of
  /// that line is a header's. For one thread at a time; a hostile object's tables may make it touch
  /// memory that isn't there.
  virtual std::string at(uint64_t address) = 0;

  /// For a code object's file; reads its line tables when they are first asked for.
  static std::unique_ptr<Lines> of(std::vector<uint8_t> file);
};

}  // namespace emu
