// Decoding of scalar instructions: fields against LLVM's text, and fields that have no meaning.

#include <gtest/gtest.h>

#include <cstring>

#include "emu/tests/assembler.h"
#include "emu/tests/decode_support.h"
#include "emu/tests/reference.h"

namespace emu::test {
namespace {

/// The prefixes of the encodings, as AMD's manuals give them.
struct Prefix {
  const char* name;
  uint32_t bits, mask;
};

std::vector<Prefix> prefixes(int generation) {
  return {{"SOPP", 0xbf800000, 0xff800000},
          {"SOPC", 0xbf000000, 0xff800000},
          {"SOP1", 0xbe800000, 0xff800000},
          {"SOPK", 0xb0000000, 0xf0000000},
          {"SOP2", 0x80000000, 0xc0000000},
          {"SMEM", generation == 9 ? 0xc0000000 : 0xf4000000, 0xfc000000}};
}

bool is_number(const Operand& operand) {
  return operand.kind == Kind::integer || operand.kind == Kind::special;
}

bool is_null(const Operand& operand) { return operand.kind == Kind::sgpr && operand.reg == 124; }

/// Returns whether the fields and the text say the same. The text has names for some numbers, such
/// as wait counts, and describes them in several words.
bool agrees(const Prefix& prefix, const Inst& ours, const Inst& text, int64_t immediate) {
  if (ours.name != text.name) return false;
  if (std::strcmp(prefix.name, "SOPP") == 0) {
    return text.operands.empty() || (ours.immediate & 0xffff) == (immediate & 0xffff);
  }
  if (ours.operands.size() != text.operands.size()) return false;
  const bool memory = std::strcmp(prefix.name, "SMEM") == 0;
  for (size_t i = 0; i < ours.operands.size(); ++i) {
    const Operand &one = ours.operands[i], &other = text.operands[i];
    if (same_operand(one, other)) continue;
    if (memory && one.kind == Kind::integer && one.bits == 0 && is_null(other)) continue;
    const bool number = !memory && is_number(one) && !one.literal && is_number(other);
    if (!number || ((ours.immediate ^ immediate) & 0xffff) != 0) return false;
    if (other.kind == Kind::integer && ((one.bits ^ other.bits) & 0xffff) != 0) return false;
  }
  return ours.modifier("offset") == text.modifier("offset") && ours.has("glc") == text.has("glc") &&
         ours.has("dlc") == text.has("dlc") && ours.word("scope") == text.word("scope");
}

/// Returns whether the register of a wide result or base would be misaligned, or reach beyond the
/// general registers.
bool is_misplaced(const Prefix& prefix, int generation, uint32_t word) {
  if (std::strcmp(prefix.name, "SMEM") != 0) return (word >> 16 & 1) != 0;
  const uint32_t data = word >> 6 & 127, base = 2 * (word & 63), end = generation == 9 ? 102 : 106;
  return data % 4 != 0 || base % 4 != 0 || data + 16 > end || base + 4 > end;
}

/// Half of the words name registers that exist and are aligned, since others are refused.
std::vector<uint32_t> random_words(const Prefix& prefix, int generation, Random& random) {
  std::vector<uint32_t> words;
  for (int i = 0; i < 4; ++i) words.push_back(static_cast<uint32_t>(random.next()));
  const bool memory = std::strcmp(prefix.name, "SMEM") == 0;
  if (random.chance(2)) words[0] &= memory ? ~0x63fu : ~0x00030303u;
  if (memory && random.chance(2)) words[0] = (words[0] & ~0x3fu) | random.below(25) * 2;
  if (memory && random.chance(2)) {
    words[1] = (words[1] & 0x01ffffff) | (generation == 9    ? 0u
                                          : generation == 10 ? 125u
                                                             : 124u)
                                             << 25;
  }
  if (memory && random.chance(2)) words[1] &= generation >= 12 ? 0xfeffffff : 0xfe1fffff;
  if (!memory && random.chance(4)) words[0] = (words[0] & ~0xffu) | 255;
  if (!memory && random.chance(4)) words[0] &= ~0xffffu;
  words[0] = (words[0] & ~prefix.mask) | prefix.bits;
  return words;
}

void compare_with_llvm(const Target& target) {
  Decoder decoder(target.arch, target.wave64);
  const Disassembler llvm(assembled_as(target.arch), target.wave64);
  Random random(11);
  const int generation = generation_of(target.arch);
  for (const Prefix& prefix : prefixes(generation)) {
    int compared = 0, wrong = 0;
    for (int i = 0; i < 60000 && wrong <= 8; ++i) {
      const std::vector<uint32_t> words = random_words(prefix, generation, random);
      // SOP2 has the other formats among its opcodes, and so has SOPK.
      const bool other = (prefix.name[3] == '2' && (words[0] & 0xf0000000) == 0xb0000000) ||
                         (prefix.name[3] == 'K' && (words[0] & 0xfe800000) >= 0xbe800000);
      if (other || (prefix.name[3] == 'K' && (words[0] >> 23) >= 0x17d)) continue;
      const std::span code(reinterpret_cast<const uint8_t*>(words.data()), 16);
      const auto text = llvm.read(code, 0);
      if (!text || text->text.find("/*") != text->text.npos) continue;
      if (text->text.find("UC_VERSION") != text->text.npos) continue;  // names, not the number
      const Inst want = parse_instruction(text->text).at(0);
      Inst got;
      try {
        got = decoder.decode(code, 0).at(0);
      } catch (const std::runtime_error& error) {
        // LLVM disassembles wide operands in registers that aren't aligned or don't exist.
        const bool reserved = std::strstr(error.what(), "reserved") != nullptr;
        if (reserved && is_misplaced(prefix, generation, words[0])) continue;
        ADD_FAILURE() << text->text << ": " << error.what();
        return;
      }
      ++compared;
      const int64_t immediate = text->immediates.empty() ? 0 : text->immediates.back();
      if (got.size == text->size && agrees(prefix, got, want, immediate)) continue;
      ADD_FAILURE() << text->text << "\n   fields: " << to_text(got) << ", size " << int{got.size}
                    << " of " << int{text->size};
      ++wrong;
    }
    EXPECT_GT(compared, 300) << prefix.name;
  }
}

/// What LLVM's text doesn't show, and words that aren't instructions.
const std::vector<DecodeCase>& cases() {
  static const std::vector<DecodeCase> all = {
      {"gfx1100", "number_of_a_barrier", {0xbfbd0005}, "s_barrier", ""},
      {"gfx1100", "source_of_getpc", {0xbe864719}, "s_getpc_b64 s[6:7]", ""},
      {"gfx1100", "wait", {0xbf89fc07}, "s_waitcnt 64519", ""},
      {"gfx1100", "negative_offset", {0xf4000080, 0xf81ffff8}, "s_load_b32 s2, s[0:1], -8", ""},
      {"gfx1100",
       "offset_and_register",
       {0xf4000080, 0x0a000010},
       "s_load_b32 s2, s[0:1], s5 offset:16",
       ""},
      {"gfx1200", "negative_offset", {0xf4000080, 0xf8fffff8}, "s_load_b32 s2, s[0:1], -8", ""},
      {"gfx90a", "register_in_the_offset", {0xc0000080, 7}, "s_load_dword s2, s[0:1], s7", ""},
      {"gfx90a",
       "offset_and_register",
       {0xc0024080, 0x0a000010},
       "s_load_dword s2, s[0:1], s5 offset:16",
       ""},
      {"gfx90a", "m0", {0xbe82007c}, "s_mov_b32 s2, m0", ""},
      {"gfx1100", "m0", {0xbe82007d}, "s_mov_b32 s2, m0", ""},
      {"gfx1100", "odd_pair", {0xbe870106}, nullptr, "reserved result register"},
      {"gfx1100",
       "odd_pair_from_memory",
       {0xf4040140, 0xf8000000},
       nullptr,
       "reserved result register"},
      {"gfx1100", "four_registers_at_s2", {0xf4080080, 0xf8000000}, nullptr, "reserved operand"},
      {"gfx1100",
       "sixteen_registers_at_s96",
       {0xf4101800, 0xf8000000},
       nullptr,
       "reserved operand"},
      {"gfx1100", "four_registers_at_vcc", {0xf4081a00, 0xf8000000}, nullptr, "reserved operand"},
      {"gfx1100", "reserved_source", {0xbe8200d5}, nullptr, "reserved operand"},
      {"gfx1100", "constant_as_an_address", {0xbe804881}, nullptr, "reserved operand"},
      {"gfx1100", "half_a_literal", {0xbe8200ff}, nullptr, "the code ends within an instruction"},
      {"gfx1100", "half_a_load", {0xf4000080}, nullptr, "the code ends within an instruction"},
  };
  return all;
}

}  // namespace

void register_decode_scalar() {
  register_cases("scalar_", cases());
  register_comparisons("scalar_fields_agree_with_llvm_", all_chips(), &compare_with_llvm);
}

}  // namespace emu::test
