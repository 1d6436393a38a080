#pragma once

// Decodes instructions of buffers from the fields of their encodings: MUBUF and MTBUF until gfx11,
// VBUFFER on gfx12.

#include "emu/isa/memory/fields.h"

namespace emu {

/// Decodes instructions of one architecture. Fields that an opcode doesn't use are ignored, as the
/// hardware does.
class BufferDecoder {
 public:
  BufferDecoder(const Disassembler& disassembler, const Chip& chip);

  /// Decodes the instruction that `words` begins with. Returns nothing if it isn't one of these
  /// instructions. The operands are data, address, descriptor and scalar offset; the address has no
  /// kind if the instruction has neither an index nor an offset in registers, and loads into LDS
  /// have no data. The modifier `format` of typed instructions is the field's value. The
  /// instruction has no text. Throws std::runtime_error for reserved registers and for code that
  /// ends within an instruction.
  std::optional<Inst> decode(std::span<const uint32_t> words);

 private:
  enum class Field : uint8_t { none, address, data, resource, scalar };
  using Opcode = Dictionary<Field>::Opcode;

  struct Layout {
    uint32_t mask, bits;  // of the first dword
    uint8_t dwords;
    Bits opcode, opcode_high;  // the opcode's bits, and those above them
    Bits address, data, resource, scalar, offset;
    Bits has_offset, has_index;  // in vector registers
    Bits accumulation;           // whether the data is in accumulation registers
    Bits lds;                    // whether a load writes to LDS
    Bits status;                 // TFE: whether a register of status follows the data
    Bits format;
    CacheFields caches;
  };

  static std::vector<Layout> layouts_of(const Chip& chip);
  const Opcode* find(const Layout& layout, uint32_t number, bool lds);
  std::optional<Opcode> ask(const Layout& layout, uint32_t number, bool lds) const;
  Operand scalar_of(const Layout& layout, std::span<const uint32_t> words) const;
  void read_modifiers(const Layout& layout, std::span<const uint32_t> words, bool addressed,
                      bool status, Inst& inst) const;

  const Chip chip_;
  const std::vector<Layout> layouts_;
  Dictionary<Field> dictionary_;
};

}  // namespace emu
