// Decoding of memory instructions: every opcode's fields against LLVM's text, bits that an opcode
// doesn't use, and words that aren't instructions.

#include <gtest/gtest.h>

#include <cstring>
#include <set>

#include "emu/isa/dictionary.h"
#include "emu/tests/decode_support.h"
#include "emu/tests/reference.h"

namespace emu::test {
namespace {

/// A field, and the values of which some opcodes need one.
struct Usual {
  Bits bits;
  std::vector<uint32_t> values;
};

/// A format as AMD's manuals give it.
struct Format {
  const char* name;
  uint32_t bits, mask;  // of the first dword
  Bits opcode;
  size_t dwords;
  Bits base;  // a pair of scalar registers, or one register
  std::vector<Usual> usual;
  std::vector<Bits>
      selectors;  // bits that make another instruction, or hints that some opcodes lack
  /// If not 0, the hardware ignores the offset's bits from this one on, although LLVM prints them.
  int64_t offset_limit = 0;
};

void add_flat(const std::string& arch, std::vector<Format>& formats) {
  const int generation = generation_of(arch);
  if (generation >= 12) {
    const Usual base{{0, 7}, {124, 124, 8, 106}};
    const std::vector<Usual> usual = {base, {{49, 1}, {0, 1}}, {{52, 1}, {0, 1}}};
    formats.push_back({"VFLAT", 0xec000000, 0xff000000, {14, 8}, 3, {0, 7}, usual, {}, 0});
    formats.push_back({"VSCRATCH", 0xed000000, 0xff000000, {14, 8}, 3, {0, 7}, usual, {}, 0});
    formats.push_back({"VGLOBAL", 0xee000000, 0xff000000, {14, 8}, 3, {0, 7}, usual, {}, 0});
    return;
  }
  const Bits lds{13, 1}, accumulation{55, 1},
      glc{static_cast<uint8_t>(generation == 11 ? 14 : 16), 1};
  std::vector<Usual> usual = {{glc, {0, 1}}, {{25, 1}, {0}}, {{0, 13}, {0, 8, 0x7f8}}};
  if (generation == 11) usual.push_back({{48, 7}, {124, 124, 8, 106}});
  if (generation == 10) usual.push_back({{48, 7}, {125, 125, 127, 8}});
  if (generation == 9) usual.push_back({{48, 7}, {0, 127, 127, 8}});
  if (generation != 11) usual.push_back({lds, {0}});
  if (generation != 9) usual.push_back({accumulation, {0}});
  std::vector<Bits> selectors;
  if (generation != 11) selectors.push_back(lds);
  if (generation == 9) selectors.push_back({25, 1});
  const uint8_t segment = generation == 11 ? 16 : 14;
  const char* const names[] = {"FLAT", "SCRATCH", "GLOBAL"};
  for (uint32_t i = 0; i < 3; ++i) {
    const uint32_t bits = 0xdc000000 | i << segment, mask = 0xfc000000 | 3u << segment;
    // AMD's manuals say that flat instructions ignore the offset's highest bit.
    const int64_t limit = i != 0 ? 0 : generation == 10 ? 0x800 : 0x1000;
    formats.push_back({names[i], bits, mask, {18, 7}, 2, {48, 7}, usual, selectors, limit});
  }
}

std::vector<Format> formats_of(const std::string& arch) {
  std::vector<Format> formats;
  add_flat(arch, formats);
  return formats;
}

void put(Bits bits, std::vector<uint32_t>& words, uint32_t value) {
  const auto mask = static_cast<uint32_t>((u64{1} << bits.width) - 1) << bits.at % 32;
  uint32_t& word = words[bits.at / 32];
  word = (word & ~mask) | (value << bits.at % 32 & mask);
}

std::vector<uint32_t> random_words(const Format& format, uint32_t opcode, Random& random) {
  std::vector<uint32_t> words;
  for (int i = 0; i < 4; ++i) words.push_back(static_cast<uint32_t>(random.next()));
  for (const Usual& usual : format.usual) {
    if (random.chance(4)) continue;
    put(usual.bits, words, usual.values[random.below(static_cast<u32>(usual.values.size()))]);
  }
  words[0] = (words[0] & ~format.mask) | format.bits;
  put(format.opcode, words, opcode);
  return words;
}

/// LLVM's text, as an instruction: this is the judge. LLVM's name of a load that writes to LDS is
/// that of the plain load with a modifier until gfx940.
std::optional<Inst> judged(const Format& format, const Disassembler& llvm,
                           const std::vector<uint32_t>& words) {
  const auto text = llvm.read(bytes_of(words), 0);
  if (!text || text->text.find("/*") != text->text.npos) return std::nullopt;
  Inst inst = parse_instruction(text->text).at(0);
  inst.size = text->size;
  const bool segment = inst.name.starts_with("global_") || inst.name.starts_with("scratch_");
  if (segment && inst.has("lds")) inst.name.insert(inst.name.find("_load_") + 5, "_lds");
  for (auto& [name, value] : inst.modifiers) {
    if (name == "offset" && format.offset_limit != 0) value &= format.offset_limit - 1;
  }
  return inst;
}

/// Modifiers that mean something to the emulator. The others are hints.
constexpr const char* kModifiers[] = {"offset", "glc", "slc",   "dlc",   "scc",   "sc0",
                                      "sc1",    "nt",  "offen", "idxen", "tfe",   "lwe",
                                      "d16",    "a16", "r128",  "unorm", "dmask", "format"};

bool agrees(const Inst& ours, const Inst& text) {
  if (ours.name != text.name || ours.size != text.size) return false;
  if (ours.operands.size() != text.operands.size()) return false;
  for (size_t i = 0; i < ours.operands.size(); ++i) {
    if (!same_operand(ours.operands[i], text.operands[i])) return false;
  }
  // LLVM has no modifiers of instructions that only invalidate caches, but for the scope.
  for (const char* name : kModifiers) {
    if (!text.operands.empty() && ours.modifier(name) != text.modifier(name)) return false;
  }
  // LLVM has names for some of the odd hints, which ask for the old value, and numbers for others.
  // Of hints to cascade it doesn't say whether they ask for it.
  const bool cascades = text.word("th").find("CASCADE") != std::string_view::npos;
  const auto returns = [](const Inst& inst) {
    const std::string_view hint = inst.word("th");
    return hint.starts_with("TH_ATOMIC") &&
           (hint.find("RETURN") != hint.npos || hint.ends_with("3") || hint.ends_with("5") ||
            hint.ends_with("7"));
  };
  return ours.word("scope") == text.word("scope") && (cascades || returns(ours) == returns(text)) &&
         ours.word("dim") == text.word("dim");
}

/// Returns whether the words name registers that can't be a pair, or that don't exist. LLVM then
/// reads other registers.
bool is_misplaced(const Format& format, int generation, const std::vector<uint32_t>& words) {
  const uint32_t base = format.base.of(words);
  return base % 2 != 0 || (generation == 9 && base == 125);
}

std::string described(const Format& format, uint32_t opcode, const std::vector<uint32_t>& words) {
  char text[120];
  std::snprintf(text, sizeof text, "%s, opcode 0x%x: 0x%08x 0x%08x 0x%08x", format.name, opcode,
                words[0], words[1], words[2]);
  return text;
}

/// Compares the fields with what LLVM says. Returns false if they differ.
bool compare(const Format& format, uint32_t opcode, const std::vector<uint32_t>& words,
             const Inst& text, Decoder& decoder, int generation) {
  std::string error;
  const auto ours = decoded(decoder, words, error);
  if (!ours) {
    const bool reserved = error.find("reserved") != error.npos;
    if (reserved && is_misplaced(format, generation, words)) return true;
    ADD_FAILURE() << described(format, opcode, words) << "\n   " << text.text << ": " << error;
    return false;
  }
  if (agrees(*ours, text)) return true;
  ADD_FAILURE() << described(format, opcode, words) << "\n   " << text.text
                << "\n   fields: " << to_text(*ours) << ", size " << int{ours->size} << " of "
                << int{text.size};
  return false;
}

bool contains(Bits bits, size_t at) { return at >= bits.at && at < size_t{bits.at} + bits.width; }

/// If LLVM refuses an instruction because one bit has another value, the hardware ignores the bit,
/// or the bit makes a field a reserved one.
bool flips_are_ignored(const Format& format, uint32_t opcode, const std::vector<uint32_t>& words,
                       const Inst& text, Decoder& decoder, const Disassembler& llvm) {
  for (size_t at = 0; at < 32 * format.dwords; ++at) {
    if (at < 32 && (format.mask >> at & 1) != 0) continue;
    if (contains(format.opcode, at)) continue;
    if (std::any_of(format.selectors.begin(), format.selectors.end(),
                    [at](Bits bits) { return contains(bits, at); })) {
      continue;
    }
    std::vector<uint32_t> flipped = words;
    flipped[at / 32] ^= 1u << at % 32;
    if (judged(format, llvm, flipped)) continue;
    std::string error;
    const auto ours = decoded(decoder, flipped, error);
    const bool reserved = error.find("reserved") != error.npos || error.find("no inst") == 0;
    if (ours ? agrees(*ours, text) : reserved) continue;
    ADD_FAILURE() << described(format, opcode, words) << ", bit " << at << " flipped\n   "
                  << text.text << "\n   fields: " << (ours ? to_text(*ours) : error);
    return false;
  }
  return true;
}

constexpr int kCompared = 60, kFlipped = 2;  // instructions of each opcode

/// Returns how many instructions of an opcode were compared, or -1 if one differs.
int compare_opcode(const Format& format, uint32_t opcode, Decoder& decoder,
                   const Disassembler& llvm, int generation) {
  Random random(opcode * 16 + 3);
  int compared = 0;
  for (int i = 0; i < 400 && compared < kCompared; ++i) {
    if (i == 150 && compared == 0) return 0;
    const std::vector<uint32_t> words = random_words(format, opcode, random);
    const auto text = judged(format, llvm, words);
    if (!text) continue;
    if (!compare(format, opcode, words, *text, decoder, generation)) return -1;
    if (compared++ < kFlipped && !is_misplaced(format, generation, words) &&
        !flips_are_ignored(format, opcode, words, *text, decoder, llvm)) {
      return -1;
    }
  }
  return compared;
}

/// Opcodes that the emulator knows although LLVM 19 doesn't.
bool is_added(const std::string& arch, const Format& format, uint32_t opcode) {
  return arch == "gfx950" && std::strcmp(format.name, "GLOBAL") == 0 &&
         (opcode == 0x7d || opcode == 0x7e);
}

void expect_unknown(const Format& format, uint32_t opcode, Decoder& decoder) {
  Random random(opcode);
  for (int i = 0; i < 20; ++i) {
    const std::vector<uint32_t> words = random_words(format, opcode, random);
    std::string error;
    ASSERT_FALSE(decoded(decoder, words, error)) << described(format, opcode, words);
    ASSERT_EQ(error.find("no instruction"), 0u) << error;
  }
}

void compare_with_llvm(const Target& target) {
  Decoder decoder(target.arch, target.wave64);
  // LLVM 19 doesn't know gfx950, which has gfx942's instructions and more.
  const Disassembler llvm(target.arch == "gfx950" ? "gfx942" : target.arch, target.wave64);
  const int generation = generation_of(target.arch);
  for (const Format& format : formats_of(target.arch)) {
    int opcodes = 0, wrong = 0;
    for (uint32_t opcode = 0; opcode < 1u << format.opcode.width && wrong < 8; ++opcode) {
      const int compared = compare_opcode(format, opcode, decoder, llvm, generation);
      if (compared < 0) ++wrong;
      if (compared > 0) ++opcodes;
      if (compared > 0) EXPECT_GT(compared, 10) << format.name << " 0x" << std::hex << opcode;
      if (compared == 0 && !is_added(target.arch, format, opcode)) {
        expect_unknown(format, opcode, decoder);
      }
    }
    EXPECT_GT(opcodes, 10) << format.name;
  }
}

/// What LLVM's text doesn't show, and words that aren't instructions.
const std::vector<DecodeCase>& cases() {
  static const std::vector<DecodeCase> all = {
      {"gfx1100", "half", {0xdc520000}, nullptr, "the code ends within an instruction"},
      {"gfx1200",
       "two_thirds",
       {0xee050030, 0x00000040},
       nullptr,
       "the code ends within an instruction"},
      {"gfx1100",
       "unused_fields",
       {0xde521ff8, 0x40b02010},
       "global_load_b32 v64, v16, s[48:49] offset:-8",
       ""},
      {"gfx1200",
       "unused_fields",
       {0xeec53fb0, 0x9003ff40, 0xfffff810},
       "global_load_b32 v64, v16, s[48:49] offset:-8",
       ""},
      {"gfx1100",
       "highest_bit_of_a_flat_offset",
       {0xdc501008, 0x407c0010},
       "flat_load_b32 v64, v[16:17] offset:8",
       ""},
      {"gfx1030",
       "highest_bit_of_a_flat_offset",
       {0xdc300808, 0x407d0010},
       "flat_load_dword v64, v[16:17] offset:8",
       ""},
      {"gfx90a",
       "base_of_flat_memory",
       {0xdc500008, 0x40302010},
       "flat_load_dword v64, v[16:17] offset:8",
       ""},
      {"gfx1030",
       "base_that_is_exec_hi",
       {0xdc308000, 0x407f0010},
       "global_load_dword v64, v[16:17], off",
       ""},
      {"gfx1030",
       "scratch_without_an_address",
       {0xdc304008, 0x407f0010},
       "scratch_load_dword v64, off, off offset:8",
       ""},
      {"gfx1030",
       "scratch_with_a_base",
       {0xdc304008, 0x40300010},
       "scratch_load_dword v64, off, s48 offset:8",
       ""},
      {"gfx90a",
       "scratch_with_an_address",
       {0xdc504008, 0x407f0010},
       "scratch_load_dword v64, v16, off offset:8",
       ""},
      {"gfx942",
       "scratch_with_both",
       {0xdc506008, 0x40300010},
       "scratch_load_dword v64, v16, s48 offset:8",
       ""},
      {"gfx1100",
       "scratch_with_both",
       {0xdc510008, 0x40b00010},
       "scratch_load_b32 v64, v16, s48 offset:8",
       ""},
      {"gfx1100",
       "scratch_with_neither",
       {0xdc510008, 0x407c0010},
       "scratch_load_b32 v64, off, off offset:8",
       ""},
      {"gfx90a",
       "accumulation_registers",
       {0xdd098000, 0x40ff2010},
       "global_atomic_add a64, v[16:17], a32, off glc",
       ""},
      {"gfx90a",
       "atomic_without_a_result",
       {0xdd088000, 0x407f2010},
       "global_atomic_add v[16:17], v32, off",
       ""},
      {"gfx1200",
       "atomic_with_a_result",
       {0xee0d4030, 0x10100040, 0x00000010},
       "global_atomic_add_u32 v64, v16, v32, s[48:49] th:TH_ATOMIC_RETURN",
       ""},
      {"gfx90a",
       "load_into_lds",
       {0xdc50a008, 0x097f0710},
       "global_load_lds_dword v[16:17], off offset:8",
       ""},
      {"gfx942",
       "load_into_lds",
       {0xdca88008, 0x09300710},
       "global_load_lds_dword v16, s[48:49] offset:8",
       ""},
      {"gfx950",
       "wide_load_into_lds",
       {0xddf58008, 0x097f0710},
       "global_load_lds_dwordx4 v[16:17], off offset:8 sc0",
       ""},
      {"gfx942", "wide_load_into_lds", {0xddf48008, 0x097f0710}, nullptr, "no instruction"},
      {"gfx90a", "atomic_into_lds", {0xdd08a008, 0x097f0710}, nullptr, "no instruction"},
      {"gfx1200",
       "invalidation",
       {0xee0ac003, 0x01080004, 0x00000501},
       "global_inv scope:SCOPE_DEV",
       ""},
      {"gfx1100", "fourth_segment", {0xdc530000, 0x407c0010}, nullptr, "no instruction"},
      {"gfx1100", "unknown_opcode", {0xddfe0000, 0x407c0010}, nullptr, "no instruction"},
      {"gfx1100",
       "result_beyond_the_last_register",
       {0xdc5e0000, 0xfd7c0010},
       nullptr,
       "reserved operand"},
      {"gfx1100",
       "address_beyond_the_last_register",
       {0xdc520000, 0x017c00ff},
       nullptr,
       "reserved operand"},
      {"gfx1100",
       "data_beyond_the_last_register",
       {0xdc760000, 0x017cfd10},
       nullptr,
       "reserved operand"},
      {"gfx1100", "odd_base", {0xdc520000, 0x01310010}, nullptr, "reserved result register"},
      {"gfx1100", "base_in_m0", {0xdc520000, 0x017d0010}, nullptr, "reserved result register"},
      {"gfx90a", "base_in_m0", {0xdc508000, 0x017c0010}, nullptr, "reserved operand"},
      {"gfx90a", "null_base", {0xdc508000, 0x017d0010}, nullptr, "reserved operand"},
      {"gfx1100", "scratch_base_in_exec_hi", {0xdc510000, 0x017f0010}, nullptr, "reserved operand"},
  };
  return all;
}

}  // namespace

void register_decode_memory() {
  register_cases("memory_", cases());
  register_comparisons("memory_fields_agree_with_llvm_",
                       {{"gfx1100", false},
                        {"gfx1100", true},
                        {"gfx1101", false},
                        {"gfx1151", false},
                        {"gfx1030", false},
                        {"gfx1200", false},
                        {"gfx1200", true},
                        {"gfx1201", false},
                        {"gfx90a", true},
                        {"gfx942", true},
                        {"gfx950", true}},
                       &compare_with_llvm);
}

}  // namespace emu::test
