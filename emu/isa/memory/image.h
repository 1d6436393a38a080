#pragma once

// Decodes instructions of images from the fields of their encodings: MIMG on gfx10 and gfx11,
// VIMAGE and VSAMPLE on gfx12. gfx9's chips for computing have no such instructions.

#include "emu/isa/memory/fields.h"

namespace emu {

/// Decodes instructions of one architecture. Fields that an opcode doesn't use are ignored, as the
/// hardware does.
class ImageDecoder {
 public:
  ImageDecoder(const Disassembler& disassembler, const Chip& chip);

  /// Decodes the instruction that `words` begins with. Returns nothing if it isn't one of these
  /// instructions. The operands are data, address, descriptor and, for samples, the sampler. The
  /// address has as many registers as the opcode and the image's dimensions ask for. If each has a
  /// field, their numbers are the list `address`, and the operand's name shows them. Intersections
  /// of rays have a descriptor and data only. The instruction has no text. Throws
  /// std::runtime_error for reserved registers and for code that ends within an instruction.
  std::optional<Inst> decode(std::span<const uint32_t> words);

 private:
  enum class Field : uint8_t { none, data, address, resource, sampler };
  using Opcode = Dictionary<Field>::Opcode;

  struct Layout {
    uint32_t mask, bits;  // of the first dword
    uint8_t dwords;       // without those of `more`
    Bits opcode, opcode_high;
    Bits dim, components, data, resource, sampler;
    /// The fields of registers of the address. `more` is the number of dwords with four fields each
    /// that follow; the first address field is then one of a list.
    std::vector<Bits> addresses;
    Bits more;
    Bits half_data, half_address, status, status_of_tiles, small_descriptor, unnormalized;
    CacheFields caches;
  };

  static std::vector<Layout> layouts_of(const Chip& chip);
  const Opcode* find(const Layout& layout, uint32_t number);
  std::optional<Opcode> ask(const Layout& layout, uint32_t number) const;
  unsigned data_registers(const Layout& layout, const std::string& name,
                          std::span<const uint32_t> words) const;
  std::vector<int> address_of(const Layout& layout, std::span<const uint32_t> words,
                              unsigned count) const;
  void add_address(const Layout& layout, std::span<const uint32_t> words, unsigned count,
                   Inst& inst) const;
  Operand descriptor_of(Bits bits, std::span<const uint32_t> words, const Operand& shape) const;
  void read_modifiers(const Layout& layout, std::span<const uint32_t> words, Inst& inst) const;

  const Chip chip_;
  const std::vector<Layout> layouts_;
  Dictionary<Field> dictionary_;
};

}  // namespace emu
