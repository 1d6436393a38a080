#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace emu {

/// What LLVM's disassembler says about an instruction.
struct Disassembly {
  std::string text;
  uint8_t size = 0;                 // bytes
  std::vector<int64_t> immediates;  // in the order of LLVM's operands
};

/// LLVM's disassembler for one architecture. Not thread-safe.
class Disassembler {
 public:
  /// `architecture` is the compiler's name, such as gfx1100. Throws std::runtime_error if LLVM
  /// doesn't know it.
  Disassembler(const std::string& architecture, bool wave64);
  ~Disassembler();
  Disassembler(const Disassembler&) = delete;
  Disassembler& operator=(const Disassembler&) = delete;

  /// Returns nothing if LLVM doesn't know an instruction at the start of `code`.
  std::optional<Disassembly> read(std::span<const uint8_t> code, uint64_t address) const;
  /// Like read(), but also returns instructions of whose operands LLVM says that they are invalid.
  std::optional<Disassembly> read_any(std::span<const uint8_t> code, uint64_t address) const;

 private:
  struct Llvm;
  std::unique_ptr<Llvm> llvm_;
};

}  // namespace emu
