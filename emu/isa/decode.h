#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "emu/isa/inst.h"

namespace emu {

/// Decodes machine code of one architecture from the fields of the encodings. Not thread-safe. The
/// formats of exports, of parameters in LDS and of interpolation before gfx11 aren't known, and
/// neither are opcodes that this project's tables lack and LLVM 19's dictionary, too.
class Decoder {
 public:
  /// `architecture` is the compiler's name, such as gfx1100. Throws std::runtime_error if it isn't
  /// known.
  Decoder(const std::string& architecture, bool wave64);
  ~Decoder();
  Decoder(const Decoder&) = delete;
  Decoder& operator=(const Decoder&) = delete;

  /// Decodes the instruction at the start of `code`, whose address in its object is `address`.
  /// Returns two instructions for a dual one. Throws std::runtime_error with the address and the
  /// bytes if they aren't an instruction.
  std::vector<Inst> decode(std::span<const uint8_t> code, uint64_t address);

 private:
  struct Parts;
  std::unique_ptr<Parts> parts_;
};

/// Returns the generation of an architecture, such as 11 for gfx1100.
int generation_of(std::string_view architecture);

}  // namespace emu
