#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "emu/isa/inst.h"

namespace emu {

/// Decodes machine code of one architecture with LLVM's MC layer. Not thread-safe.
class Decoder {
 public:
  /// `architecture` is the compiler's name, such as gfx1100. Throws std::runtime_error if LLVM
  /// doesn't know it.
  explicit Decoder(const std::string& architecture, bool wave64);
  ~Decoder();
  Decoder(const Decoder&) = delete;
  Decoder& operator=(const Decoder&) = delete;

  /// Decodes the instruction at the start of `code`, whose address in its object is `address`.
  /// Returns two instructions for a dual one. Throws std::runtime_error with the address and the
  /// bytes if they aren't an instruction.
  std::vector<Inst> decode(std::span<const uint8_t> code, uint64_t address);

 private:
  struct Llvm;
  std::unique_ptr<Llvm> llvm_;
};

}  // namespace emu
