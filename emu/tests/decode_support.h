#pragma once

// What the comparisons of decoded fields with LLVM's text share.

#include <functional>
#include <optional>
#include <vector>

#include "emu/isa/decode.h"
#include "emu/isa/disassembler.h"
#include "emu/tests/suites.h"

namespace emu::test {

/// Returns whether an operand that was decoded from fields is the operand of LLVM's text. Halves
/// and signs that the fields have may be missing in the text.
bool same_operand(const Operand& ours, const Operand& text);

/// The bytes of an instruction, of four dwords.
std::span<const uint8_t> bytes_of(const std::vector<uint32_t>& words);

/// Decodes one instruction. Returns nothing, and sets `error`, if the decoder refuses it.
std::optional<Inst> decoded(Decoder& decoder, const std::vector<uint32_t>& words,
                            std::string& error);

/// Adds a test of the suite Decode for each target, which calls `compare` with it.
void register_comparisons(const std::string& prefix, const std::vector<Target>& targets,
                          std::function<void(const Target&)> compare);

/// Words, and what they are: an instruction's text, or a part of the error (`text`: null).
struct DecodeCase {
  const char *arch, *name;
  std::vector<uint32_t> words;
  const char *text, *says;
};
/// Adds a test for each case, which must outlive the tests.
void register_cases(const std::string& prefix, const std::vector<DecodeCase>& cases);
void register_memory_cases();

}  // namespace emu::test
