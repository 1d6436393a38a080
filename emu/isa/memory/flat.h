#pragma once

// Decodes instructions of flat, global and scratch memory from the fields of their encodings: FLAT
// until gfx11, VFLAT, VGLOBAL and VSCRATCH on gfx12.

#include "emu/isa/memory/fields.h"

namespace emu {

/// Decodes instructions of one architecture. Fields that an opcode doesn't use are ignored, as the
/// hardware does.
class FlatDecoder {
 public:
  FlatDecoder(const Disassembler& disassembler, const Chip& chip);

  /// Decodes the instruction that `words` begins with. Returns nothing if it isn't one of these
  /// instructions. A part of the address that the instruction doesn't have is an operand without a
  /// kind. The instruction has no text. Throws std::runtime_error for reserved registers and for
  /// code that ends within an instruction.
  std::optional<Inst> decode(std::span<const uint32_t> words);

 private:
  enum class Field : uint8_t { none, address, data, base, result };
  enum Segment : uint32_t { kFlat, kScratch, kGlobal, kReserved };
  using Opcode = Dictionary<Field>::Opcode;

  struct Layout {
    uint32_t mask, bits;  // of the first dword
    uint8_t dwords;
    Bits opcode, segment, offset, address, data, base, result;
    Bits has_address;   // scratch: whether a vector register is a part of the address
    Bits accumulation;  // whether the data is in accumulation registers
    Bits lds;           // whether a load writes to LDS
    CacheFields caches;
  };
  /// Which parts of the address an instruction has.
  struct Address {
    bool base = false;
    unsigned registers = 0;  // vector registers
  };

  static Layout layout_of(const Chip& chip);
  const Opcode* find(uint32_t segment, uint32_t number, bool lds);
  std::optional<Opcode> ask(uint32_t segment, uint32_t number, bool lds) const;
  Address address_of(uint32_t segment, std::span<const uint32_t> words) const;
  Operand base_of(std::span<const uint32_t> words, const Operand& shape) const;
  int64_t offset_of(uint32_t segment, std::span<const uint32_t> words) const;

  const Chip chip_;
  const Layout layout_;
  Dictionary<Field> dictionary_;
};

}  // namespace emu
