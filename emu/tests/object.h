#pragma once

// Loads code objects for tests with LLVM's reader, and gives access to their symbols and
// descriptors.

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "emu/exec/launch.h"

namespace emu::test {

/// A code object laid out in memory. The only relocations of linked objects are GOT entries.
class Object {
 public:
  /// Reads a linked or relocatable object. Throws std::runtime_error.
  Object(const std::string& path, const std::string& arch);

  /// Returns the code lowered for waves of 64 or 32 lanes.
  Code& code(bool wave64);
  /// Kernel descriptors by name.
  const std::map<std::string, Descriptor>& kernels() const { return kernels_; }
  uint64_t entry(const std::string& kernel) const { return entries_.at(kernel); }
  /// Returns the memory address of a symbol of the object, or 0 if there is none.
  uint64_t address(const std::string& symbol) const;
  /// Returns the memory address of the object's address 0.
  uint64_t base() const;
  /// Returns the address of a function within the object.
  uint64_t function(const std::string& name) const;
  /// Returns the number of bytes of a function.
  uint64_t size(const std::string& function) const;
  uint32_t kernarg_bytes(const std::string& kernel) const {
    return kernels_.at(kernel).kernarg_bytes;
  }

 private:
  struct Free {
    void operator()(void* p) const { std::free(p); }
  };
  std::string arch_;
  std::unique_ptr<uint8_t, Free> image_;
  std::vector<uint8_t> text_;
  uint64_t text_address_ = 0;
  std::vector<Symbol> functions_;
  std::map<std::string, Descriptor> kernels_;
  std::map<std::string, uint64_t> entries_, symbols_;
  std::unique_ptr<Code> codes_[2];
};

}  // namespace emu::test
