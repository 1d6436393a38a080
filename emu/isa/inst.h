#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace emu {

/// What an operand names. Scalar registers have the numbers of their encoding: VCC is 106, EXEC
/// 126.
enum class Kind : uint8_t { none, vgpr, agpr, sgpr, scc, integer, real, special };

struct Operand {
  Kind kind = Kind::none;
  uint8_t dwords = 1;  // registers: how many in a row
  uint16_t reg = 0;    // registers: the first
  bool neg = false, abs = false, sext = false;
  bool hi = false;    // the upper half of a register of 16-bit values (.h)
  uint64_t bits = 0;  // integer: the value, sign extended
  double real = 0;    // real: an inline constant such as 0.5, in the type of its instruction
  std::string name;   // special: src_shared_base, hwreg(…), …
};

/// A cross-lane or sub-register form of a vector instruction.
enum class Form : uint8_t { plain, dpp16, dpp8, sdwa };

/// One instruction, in the terms of AMD's assembler, whatever the architecture.
struct Inst {
  uint64_t address = 0;  // in the code object
  uint8_t size = 0;      // bytes
  Form form = Form::plain;
  std::string name;               // mnemonic without the suffix of its encoding: v_add_f32
  std::vector<Operand> operands;  // destinations first
  std::vector<std::pair<std::string, int64_t>> modifiers;  // offset:16 → {"offset", 16}; glc → 1
  std::vector<std::pair<std::string, std::vector<int>>> lists;  // op_sel:[0,1] → {"op_sel", {0, 1}}
  std::vector<std::pair<std::string, std::string>> words;  // dst_sel:WORD_1 → {"dst_sel", "WORD_1"}
  int64_t immediate = 0;  // the last one in the encoding: of s_waitcnt, s_branch, s_sendmsg …
  int64_t first_immediate = 0;
  std::string text;  // as the assembler writes it

  /// The value of a modifier, or `otherwise` where the instruction has none of that name.
  int64_t modifier(std::string_view name, int64_t otherwise = 0) const;
  /// The list, empty where there is none.
  const std::vector<int>& list(std::string_view name) const;
  std::string_view word(std::string_view name) const;
  bool has(std::string_view name) const;
};

/// Reads what the assembler writes: `v_add_f32_e64 v0, -v1, |v2| clamp`. Both halves of a dual
/// instruction come back, one otherwise. Throws std::runtime_error for text that it doesn't know.
std::vector<Inst> parse_instruction(std::string_view text);

}  // namespace emu
