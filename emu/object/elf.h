#pragma once

// Reads the structures of an ELF file that loading a code object needs. All accesses are checked
// against the file's bounds. What is read more than once by tables that overlap is an error, so
// that work and memory grow with the file's size.

#include <string_view>
#include <vector>

#include "emu/object/bytes.h"

namespace emu::elf {

struct Segment {
  uint32_t type = 0, flags = 0;
  uint64_t offset = 0, address = 0, file_bytes = 0, memory_bytes = 0, alignment = 0;
};

struct Symbol {
  std::string_view name;
  uint8_t type = 0, binding = 0;
  bool defined = false;
  uint64_t value = 0, size = 0;
};

struct Relocation {
  uint64_t address = 0;
  uint32_t type = 0, symbol = 0;
  int64_t addend = 0;
};

inline constexpr uint32_t kLoad = 1, kDynamic = 2, kNote = 4;
inline constexpr uint32_t kExecutable = 1, kWritable = 2;
inline constexpr uint8_t kObject = 1, kFunction = 2, kLocal = 0;

/// Holds views into the bytes that it was read from. Throws ObjectError.
struct File {
  explicit File(Bytes bytes);

  Bytes bytes;
  uint8_t abi = 0, abi_version = 0;
  uint16_t type = 0, machine = 0;
  uint32_t flags = 0;
  std::vector<Segment> segments;
  std::vector<Symbol> symbols;          // from .symtab, or from .dynsym if there is no .symtab
  std::vector<Symbol> dynamic_symbols;  // the symbols that relocations name
  std::vector<Relocation> relocations;

  /// Returns the file's bytes at a virtual address.
  Bytes at(uint64_t address, uint64_t size, const char* what) const;
  /// Returns the descriptors of the notes with that owner and type. Objects that were linked from
  /// several have several.
  std::vector<Bytes> notes(std::string_view owner, uint32_t wanted) const;

 private:
  void read_sections(uint64_t offset, uint16_t count, uint16_t entry);
};

}  // namespace emu::elf
