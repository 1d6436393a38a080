#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace emu {

/// The kinds of operands. Scalar registers are numbered by their encoding: VCC is 106, EXEC 126.
enum class Kind : uint8_t { none, vgpr, agpr, sgpr, scc, integer, real, special };

struct Operand {
  Kind kind = Kind::none;
  uint8_t dwords = 1;  // registers: number of consecutive registers
  uint16_t reg = 0;    // registers: number of the first
  bool neg = false, abs = false, sext = false;
  bool hi = false;       // 16-bit values: the upper half of the register (.h)
  bool literal = false;  // integer: a dword of the instruction, not an inline constant
  uint64_t bits = 0;     // integer: the value, sign extended
  double real = 0;       // real: an inline constant such as 0.5, in its instruction's type
  std::string name;      // special: src_shared_base, hwreg(…), …
};

/// The encoding form of a vector instruction.
enum class Form : uint8_t { plain, dpp16, dpp8, sdwa };

/// One instruction in terms of AMD's assembler, for any architecture.
struct Inst {
  uint64_t address = 0;  // in the code object
  uint8_t size = 0;      // bytes
  Form form = Form::plain;
  std::string name;               // mnemonic without encoding suffix: v_add_f32
  std::vector<Operand> operands;  // destinations first
  std::vector<std::pair<std::string, int64_t>> modifiers;  // offset:16 → {"offset", 16}; glc → 1
  std::vector<std::pair<std::string, std::vector<int>>> lists;  // op_sel:[0,1] → {"op_sel", {0, 1}}
  std::vector<std::pair<std::string, std::string>> words;  // dst_sel:WORD_1 → {"dst_sel", "WORD_1"}
  int64_t immediate = 0;  // the last one in the encoding, as in s_waitcnt, s_branch, s_sendmsg
  int64_t first_immediate = 0;
  std::string text;   // the assembler's text
  std::string error;  // not empty: why the words aren't an instruction

  /// Returns the value of a modifier, or `otherwise` if the instruction doesn't have it.
  int64_t modifier(std::string_view name, int64_t otherwise = 0) const;
  /// Returns the list of that name, which is empty if there is none.
  const std::vector<int>& list(std::string_view name) const;
  std::string_view word(std::string_view name) const;
  bool has(std::string_view name) const;
};

/// Returns an instruction in assembler syntax. Modifiers are written as in `modifiers`, `lists` and
/// `words`.
std::string to_text(const Inst& inst);

/// Parses an instruction in assembler syntax, such as `v_add_f32_e64 v0, -v1, |v2| clamp`. Returns
/// both halves of a dual instruction, and one instruction otherwise. Throws std::runtime_error for
/// text that it can't parse.
std::vector<Inst> parse_instruction(std::string_view text);

}  // namespace emu
