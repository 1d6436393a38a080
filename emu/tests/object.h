#pragma once

// Code objects for tests: their symbols, descriptors and loading, through LLVM's reader.

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "emu/exec/launch.h"

namespace emu::test {

/// A code object laid out in memory. Relocations of linked objects are none but GOT entries.
class Object {
 public:
  /// Reads a linked or relocatable object. Throws std::runtime_error.
  Object(const std::string& path, const std::string& arch);

  /// The code for waves of this width.
  Code& code(bool wave64);
  /// Kernels by name.
  const std::map<std::string, Descriptor>& kernels() const { return kernels_; }
  uint64_t entry(const std::string& kernel) const { return entries_.at(kernel); }
  /// Address in memory of a symbol of the object, 0 where there is none.
  uint64_t address(const std::string& symbol) const;
  /// Address within the object of a function.
  /// Where address 0 of the object lies.
  uint64_t base() const;
  uint64_t function(const std::string& name) const;
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
