#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "emu/isa/inst.h"

namespace emu {

/// Reads machine code of one architecture through LLVM's MC layer. Not for several threads at once.
class Decoder {
 public:
  /// `architecture` as the compiler names it: gfx1100. Throws std::runtime_error where LLVM doesn't
  /// know it.
  explicit Decoder(const std::string& architecture, bool wave64);
  ~Decoder();
  Decoder(const Decoder&) = delete;
  Decoder& operator=(const Decoder&) = delete;

  /// The instruction at the start of `code`, which lies at `address` of its object; two for a dual
  /// one. Throws std::runtime_error, with the address and the bytes, for what isn't an instruction.
  std::vector<Inst> decode(std::span<const uint8_t> code, uint64_t address);

 private:
  struct Llvm;
  std::unique_ptr<Llvm> llvm_;
};

}  // namespace emu
