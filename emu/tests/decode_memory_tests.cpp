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
  const char* name = nullptr;
  uint32_t bits = 0, mask = 0;         // of the first dword
  Bits opcode = {}, opcode_high = {};  // the opcode's bits, and those above them
  size_t dwords = 2;
  Bits base = {};                      // a pair of scalar registers, or one register
  std::vector<Bits> descriptors = {};  // four or eight scalar registers
  Bits scalar = {};                    // a scalar register or constant
  std::vector<Bits> vectors = {};      // several vector registers
  std::vector<Usual> usual = {};
  /// Bits that make another instruction, or hints that some opcodes lack.
  std::vector<Bits> selectors = {};
  /// If not 0, the hardware ignores the offset's bits from this one on, although LLVM prints them.
  int64_t offset_limit = 0;
};

void add_flat(const std::string& arch, std::vector<Format>& formats) {
  const int generation = generation_of(arch);
  constexpr const char* kNames[] = {"FLAT", "SCRATCH", "GLOBAL"};
  if (generation >= 12) {
    for (uint32_t i = 0; i < 3; ++i) {
      formats.push_back({.name = kNames[i],
                         .bits = 0xec000000 | i << 24,
                         .mask = 0xff000000,
                         .opcode = {14, 8},
                         .dwords = 3,
                         .base = {0, 7},
                         .usual = {{{0, 7}, {124, 124, 8, 106}}}});
    }
    return;
  }
  std::vector<Usual> usual = {{{25, 1}, {0}}, {{0, 13}, {0, 8, 0x7f8}}};
  if (generation == 11) usual.push_back({{48, 7}, {124, 124, 8, 106}});
  if (generation == 10) usual.push_back({{48, 7}, {125, 125, 127, 8}});
  if (generation == 9) usual.push_back({{48, 7}, {0, 127, 127, 8}});
  if (generation != 9) usual.push_back({{55, 1}, {0}});
  std::vector<Bits> selectors;
  if (generation != 11) {
    usual.push_back({{13, 1}, {0}});
    selectors.push_back({13, 1});
  }
  if (generation == 9) selectors.push_back({25, 1});
  const uint8_t segment = generation == 11 ? 16 : 14;
  for (uint32_t i = 0; i < 3; ++i) {
    // AMD's manuals say that flat instructions ignore the offset's highest bit.
    const int64_t limit = i != 0 ? 0 : generation == 10 ? 0x800 : 0x1000;
    formats.push_back({.name = kNames[i],
                       .bits = 0xdc000000 | i << segment,
                       .mask = 0xfc000000 | 3u << segment,
                       .opcode = {18, 7},
                       .base = {48, 7},
                       .usual = usual,
                       .selectors = selectors,
                       .offset_limit = limit});
  }
}

void add_buffers(const std::string& arch, std::vector<Format>& formats) {
  const int generation = generation_of(arch);
  if (generation >= 12) {
    formats.push_back({.name = "VBUFFER",
                       .bits = 0xc4000000,
                       .mask = 0xfc000000,
                       .opcode = {14, 8},
                       .dwords = 3,
                       .descriptors = {{41, 9}},
                       .usual = {{{41, 9}, {8, 48, 64}}, {{0, 7}, {124, 5}}, {{22, 1}, {0}}},
                       .selectors = {{22, 1}}});
    return;
  }
  Format untyped{.name = "MUBUF",
                 .bits = 0xe0000000,
                 .mask = 0xfc000000,
                 .opcode = {18, 7},
                 .descriptors = {{48, 5}},
                 .scalar = {56, 8},
                 .usual = {{{48, 5}, {1, 5, 9}}, {{56, 8}, {5, 128, 193, 124}}}};
  Format typed = untyped;
  typed.name = "MTBUF";
  typed.bits = 0xe8000000;
  typed.opcode = {15, 4};
  // LLVM lacks typed instructions that return a status.
  if (generation != 9)
    typed.selectors.push_back({static_cast<uint8_t>(generation == 10 ? 55 : 53), 1});
  if (generation == 11) {
    untyped.opcode = {18, 8};
    untyped.usual.push_back({{15, 3}, {0}});
  } else {
    untyped.usual.push_back({{16, 1}, {0}});
    untyped.selectors = {{15, 1}, {16, 1}};
  }
  if (generation == 10) {
    untyped.opcode_high = {25, 1};
    typed.opcode = {16, 3};
    typed.opcode_high = {53, 1};
  }
  formats.push_back(untyped);
  formats.push_back(typed);
}

void add_images(const std::string& arch, std::vector<Format>& formats) {
  const int generation = generation_of(arch);
  if (generation >= 12) {
    Format image{.name = "VIMAGE",
                 .bits = 0xd0000000,
                 .mask = 0xfc000000,
                 .opcode = {14, 8},
                 .dwords = 3,
                 .descriptors = {{41, 9}},
                 .vectors = {{32, 8}, {64, 8}, {72, 8}, {80, 8}, {88, 8}},
                 .usual = {{{41, 9}, {8, 48, 64}},
                           {{22, 4}, {1, 15}},
                           {{3, 4}, {0}},
                           {{7, 7}, {0}},
                           {{40, 1}, {0}},
                           {{56, 8}, {0}},
                           {{72, 8}, {0, 5, 9}},
                           {{80, 8}, {0, 5, 9}},
                           {{88, 8}, {0, 5, 9}}},
                 .selectors = {{0, 3}, {22, 4}, {55, 1}}};
    Format sample = image;
    sample.name = "VSAMPLE";
    sample.bits = 0xe4000000;
    sample.descriptors.push_back({55, 9});
    sample.selectors = {{0, 3}, {22, 4}, {3, 1}};
    std::erase_if(sample.usual, [](const Usual& usual) { return usual.bits.at == 56; });
    sample.usual.push_back({{55, 9}, {8, 80, 0}});
    formats.push_back(image);
    formats.push_back(sample);
    return;
  }
  Format image{.name = "MIMG",
               .bits = 0xf0000000,
               .mask = 0xfc000000,
               .opcode = {18, 8},
               .descriptors = {{48, 5}, {58, 5}},
               .vectors = {{32, 8}, {40, 8}, {88, 8}},
               .usual = {{{48, 5}, {1, 6, 12}}, {{58, 5}, {0, 1, 20}}, {{8, 4}, {1, 15}}},
               .selectors = {{0, 1}, {2, 3}, {8, 4}, {53, 1}}};
  if (generation == 10) {
    image.opcode = {18, 7};
    image.opcode_high = {0, 1};
    image.selectors = {{1, 2}, {3, 3}, {8, 4}, {16, 1}};
    image.descriptors = {{48, 5}, {53, 5}};
    image.vectors = {{32, 8}, {40, 8}};
    image.usual = {{{48, 5}, {1, 6, 12}}, {{53, 5}, {0, 1, 20}}, {{8, 4}, {1, 15}}, {{1, 2}, {0}}};
  }
  formats.push_back(image);
}

std::vector<Format> formats_of(const std::string& arch) {
  std::vector<Format> formats;
  add_flat(arch, formats);
  add_buffers(arch, formats);
  if (generation_of(arch) >= 10) add_images(arch, formats);
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
  if (format.opcode_high.width != 0) put(format.opcode_high, words, opcode >> format.opcode.width);
  return words;
}

/// Returns whether LLVM's text may have other registers, because no image has what the instruction
/// asks for: several samples have no levels and can't be sampled, atomic operations are on one or
/// two dwords.
bool is_senseless(const Inst& inst) {
  const std::string_view dim = inst.word("dim"), name = inst.name;
  const int64_t mask = inst.modifier("dmask");
  if (name.starts_with("image_atomic_")) {
    const bool compares = name.find("cmpswap") != name.npos;
    return inst.has("tfe") || !(compares ? mask == 3 || mask == 15 : mask == 1 || mask == 3);
  }
  // LLVM has no gathers that fill three registers.
  if (name.starts_with("image_gather4") && inst.has("tfe") && inst.has("d16")) return true;
  if (dim.find("MSAA") == dim.npos) return false;
  for (const char* word : {"_mip", "_sample", "_gather4", "_get_lod"}) {
    if (name.find(word) != name.npos) return true;
  }
  return false;
}

/// LLVM's text, as an instruction: this is the judge. LLVM's name of a load that writes to LDS is
/// that of the plain load with a modifier until gfx940.
std::optional<Inst> judged(const Format& format, const Disassembler& llvm,
                           const std::vector<uint32_t>& words) {
  const auto text = llvm.read(bytes_of(words), 0);
  if (!text || text->text.find("/*") != text->text.npos) return std::nullopt;
  Inst inst = parse_instruction(text->text).at(0);
  if (is_senseless(inst)) return std::nullopt;
  inst.size = text->size;
  const bool segment = inst.name.starts_with("global_") || inst.name.starts_with("scratch_");
  if (segment && inst.has("lds")) inst.name.insert(inst.name.find("_load_") + 5, "_lds");
  // The text has names for formats. The immediate operands end in format, caches and swizzle.
  if (inst.name.starts_with("tbuffer_")) {
    std::erase_if(inst.modifiers, [](const auto& pair) { return pair.first == "format"; });
    inst.modifiers.emplace_back("format", text->immediates.at(text->immediates.size() - 3));
  }
  for (auto& [name, value] : inst.modifiers) {
    if (name == "offset" && format.offset_limit != 0) value &= format.offset_limit - 1;
  }
  return inst;
}

/// The numbers of a list of registers in LLVM's text, such as [v1, v7, v[9:10]].
std::vector<int> listed(const std::string& text) {
  std::vector<int> numbers;
  for (size_t at = text.find('v'); at != text.npos; at = text.find('v', at + 1)) {
    int first = 0, last = 0;
    if (std::sscanf(text.c_str() + at, "v[%d:%d]", &first, &last) == 1) last = first;
    if (std::sscanf(text.c_str() + at, "v%d", &first) == 1) last = first;
    for (int reg = first; reg <= last; ++reg) numbers.push_back(reg);
  }
  return numbers;
}

std::vector<int> addresses_of(const Inst& text) {
  const Operand& operand = text.operands.at(1);
  return operand.kind == Kind::vgpr ? std::vector<int>{operand.reg} : listed(operand.name);
}

bool same_address(const Inst& ours, const Inst& text) {
  return !ours.list("address").empty() && ours.list("address") == addresses_of(text);
}

/// Returns whether LLVM prints an image's instruction with other numbers of registers. It has no
/// lists of one register, and on gfx12 it takes v0 at the end of a list for a register that isn't
/// there.
bool is_misjudged(const Inst& ours, const Inst& text) {
  std::vector<int> registers = ours.list("address");
  if (registers.size() == 1) return registers[0] == addresses_of(text)[0];
  if (registers.empty() || ours.size != 12 || text.size != 12) return false;
  const std::vector<int> printed = addresses_of(text);
  while (registers.size() > printed.size() && registers.back() == 0) registers.pop_back();
  return registers.size() < ours.list("address").size() && registers == printed;
}

/// Modifiers that mean something to the emulator. The others are hints.
constexpr const char* kModifiers[] = {"offset", "glc", "slc",   "dlc",   "scc",   "sc0",
                                      "sc1",    "nt",  "offen", "idxen", "tfe",   "lwe",
                                      "d16",    "a16", "r128",  "unorm", "dmask", "format"};

bool agrees(const Inst& ours, const Inst& text) {
  if (ours.name != text.name || ours.size != text.size) return false;
  if (ours.operands.size() != text.operands.size()) return false;
  for (size_t i = 0; i < ours.operands.size(); ++i) {
    const Operand &one = ours.operands[i], &other = text.operands[i];
    if (same_operand(one, other) || (i == 1 && same_address(ours, text))) continue;
    const bool same = i > 0 || one.reg == other.reg;
    if (i > 1 || !same || !is_misjudged(ours, text)) return false;
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

constexpr uint32_t kMostRegisters = 12;  // of an image's address

/// Returns whether the words name registers that can't be a pair or a descriptor or don't exist,
/// for which LLVM reads others, or constants that an offset can't be.
bool is_misplaced(const Format& format, int generation, const std::vector<uint32_t>& words) {
  const uint32_t base = format.base.of(words);
  if (base % 2 != 0 || (generation == 9 && base == 125)) return true;
  for (const Bits bits : format.descriptors) {
    const uint32_t first = bits.of(words) * (generation >= 12 ? 1 : 4);
    const bool apart = first + 4 > (generation == 9 ? 102u : 106u) && first < 108;
    if (first % 4 != 0 || apart || first >= 124) return true;
  }
  for (const Bits bits : format.vectors) {
    if (bits.of(words) + kMostRegisters > 256) return true;
  }
  const uint32_t scalar = format.scalar.of(words);
  return scalar > 208 && !(scalar >= 240 && scalar <= 248);
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
    // gfx10's lists have 5, 9 or 13 registers. If the address needs more, LLVM prints them all.
    const size_t lists = generation == 10 ? 1 + 4 * (words[0] >> 1 & 3) : 0;
    if (reserved && lists > 1 && listed(text.operands.at(1).name).size() == lists) return true;
    ADD_FAILURE() << described(format, opcode, words) << "\n   " << text.text << ": " << error;
    return false;
  }
  if (agrees(*ours, text)) return true;
  if (!format.vectors.empty() && is_misplaced(format, generation, words)) return true;
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
    if (contains(format.opcode, at) || contains(format.opcode_high, at)) continue;
    if (std::any_of(format.selectors.begin(), format.selectors.end(),
                    [at](Bits bits) { return contains(bits, at); })) {
      continue;
    }
    std::vector<uint32_t> flipped = words;
    flipped[at / 32] ^= 1u << at % 32;
    if (llvm.read(bytes_of(flipped), 0)) continue;
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
  for (int i = 0; i < 1500 && compared < kCompared; ++i) {
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

/// Opcodes that the emulator knows although LLVM 19 doesn't, and intersections of rays, which LLVM
/// knows with special values of some fields only.
bool is_added(const std::string& arch, const Format& format, uint32_t opcode) {
  const std::string_view name = format.name;
  if (name == "MIMG" && arch == "gfx1030") return opcode == 0xe6 || opcode == 0xe7;
  if (name == "MIMG" || name == "VIMAGE") return opcode == 0x19 || opcode == 0x1a;
  if (arch != "gfx950") return false;
  return (name == "GLOBAL" && (opcode == 0x7d || opcode == 0x7e)) ||
         (name == "MUBUF" && opcode == 0x52);
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
    const int width = format.opcode.width + format.opcode_high.width;
    int opcodes = 0, wrong = 0;
    for (uint32_t opcode = 0; opcode < 1u << width && wrong < 8; ++opcode) {
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
      {"gfx1100",
       "half_a_buffer_load",
       {0xe0500000},
       nullptr,
       "the code ends within an instruction"},
      {"gfx1100",
       "buffer_without_an_address",
       {0xe0500008, 0x050c2010},
       "buffer_load_b32 v32, off, s[48:51], s5 offset:8",
       ""},
      {"gfx1100",
       "buffer_with_an_index",
       {0xe0500008, 0x808c2010},
       "buffer_load_b32 v32, v16, s[48:51], 0 idxen offset:8",
       ""},
      {"gfx1100",
       "buffer_with_both",
       {0xe0540fff, 0xc1cc2010},
       "buffer_load_b64 v[32:33], v[16:17], s[48:51], -1 idxen offen offset:4095",
       ""},
      {"gfx1100",
       "buffer_in_trap_registers",
       {0xe0500000, 0x051c2010},
       "buffer_load_b32 v32, off, ttmp[4:7], s5",
       ""},
      {"gfx1100",
       "buffer_with_a_status",
       {0xe0500000, 0x052c2010},
       "buffer_load_b32 v[32:33], off, s[48:51], s5 tfe",
       ""},
      {"gfx1100",
       "buffer_atomic_without_a_status",
       {0xe0d44000, 0x052c2010},
       "buffer_atomic_add_u32 v32, off, s[48:51], s5 glc",
       ""},
      {"gfx1100",
       "buffer_unused_bits",
       {0xe0538008, 0x050c2010},
       "buffer_load_b32 v32, off, s[48:51], s5 offset:8",
       ""},
      {"gfx1100", "invalidation_of_a_cache", {0xe0ac0008, 0x050c2010}, "buffer_gl0_inv", ""},
      {"gfx1100", "descriptor_at_vcc", {0xe0500000, 0x051a2010}, nullptr, "reserved operand"},
      {"gfx1100", "null_descriptor", {0xe0500000, 0x051f2010}, nullptr, "reserved operand"},
      {"gfx1100", "literal_offset", {0xe0500000, 0xff0c2010}, nullptr, "reserved operand"},
      {"gfx1100", "offset_in_vccz", {0xe0500000, 0xfb0c2010}, nullptr, "reserved operand"},
      {"gfx1100",
       "buffer_address_beyond_the_last_register",
       {0xe0500000, 0x05cc20ff},
       nullptr,
       "reserved operand"},
      {"gfx1100", "unknown_buffer_opcode", {0xe3fc0000, 0x050c2010}, nullptr, "no instruction"},
      {"gfx1100",
       "typed_load",
       {0xe8b08008, 0x054c2010},
       "tbuffer_load_format_xy v[32:33], v16, s[48:51], s5 format:22 offen offset:8",
       ""},
      {"gfx1030",
       "buffer_opcode_of_eight_bits",
       {0xe2000008, 0x050c2000},
       "buffer_load_format_d16_x v32, off, s[48:51], s5 offset:8",
       ""},
      {"gfx1030",
       "buffer_hints",
       {0xe030d008, 0x054c2010},
       "buffer_load_dword v32, v16, s[48:51], s5 offen offset:8 glc slc dlc",
       ""},
      {"gfx1030",
       "buffer_load_into_lds",
       {0xe0311008, 0x050c2010},
       "buffer_load_dword v16, s[48:51], s5 offen offset:8 lds",
       ""},
      {"gfx1030",
       "typed_opcode_of_four_bits",
       {0xe8b00008, 0x052c2000},
       "tbuffer_load_format_d16_x v32, off, s[48:51], s5 format:22 offset:8",
       ""},
      {"gfx90a",
       "buffer_in_accumulation_registers",
       {0xe0529008, 0x058c2010},
       "buffer_load_dword a32, v16, s[48:51], s5 offen offset:8 slc scc",
       ""},
      {"gfx942",
       "buffer_caches",
       {0xe052d008, 0x050c2010},
       "buffer_load_dword v32, v16, s[48:51], s5 offen offset:8 sc0 nt sc1",
       ""},
      {"gfx942", "invalidation_of_a_cache", {0xe0a48008, 0x050c2010}, "buffer_inv sc1", ""},
      {"gfx942", "wide_buffer_load_into_lds", {0xe05d1008, 0x050c2010}, nullptr, "no instruction"},
      {"gfx950",
       "wide_buffer_load_into_lds",
       {0xe05d1008, 0x050c2010},
       "buffer_load_dwordx4 v16, s[48:51], s5 offen offset:8 lds",
       ""},
      {"gfx942", "atomic_of_gfx950", {0xe1481008, 0x050c2010}, nullptr, "no instruction"},
      {"gfx950",
       "atomic_of_gfx950",
       {0xe1481008, 0x050c2010},
       "buffer_atomic_pk_add_bf16 v32, v16, s[48:51], s5 offen offset:8",
       ""},
      {"gfx90a", "buffer_store_into_lds", {0xe0711008, 0x050c2010}, nullptr, "no instruction"},
      {"gfx1200",
       "buffer_with_an_offset",
       {0xc4853ffc, 0x40006020, 0x00000810},
       "buffer_load_b32 v32, v16, s[48:51], null offen offset:8",
       ""},
      {"gfx1200",
       "buffer_atomic_with_a_result",
       {0xc44d4005, 0x40186020, 0x00000810},
       "buffer_atomic_add_u32 v32, v16, s[48:51], s5 offen offset:8 scope:SCOPE_DEV "
       "th:TH_ATOMIC_RETURN",
       ""},
      {"gfx1200",
       "typed_load",
       {0xc4200005, 0x0b006020, 0x00000810},
       "tbuffer_load_format_x v32, off, s[48:51], s5 format:22 offset:8",
       ""},
      {"gfx1200", "vector_descriptor", {0xc4050005, 0x00022020, 0x00000010}, nullptr, "reserved"},
      {"gfx1200",
       "unaligned_descriptor",
       {0xc4050005, 0x00006420, 0x00000010},
       nullptr,
       "reserved operand"},
      {"gfx1100",
       "image_load",
       {0xf0000f04, 0x000c2010},
       "image_load v[32:35], v[16:17], s[48:55] dmask:15 dim:SQ_RSRC_IMG_2D",
       ""},
      {"gfx1100",
       "image_load_of_a_list",
       {0xf0000505, 0x000c2010, 0x0b0a0914},
       "image_load v[32:33], [v16, v20], s[48:55] dmask:5 dim:SQ_RSRC_IMG_2D",
       ""},
      {"gfx1100",
       "image_load_of_one_address_in_a_list",
       {0xf0000f01, 0x000c2010, 0x0b0a0914},
       "image_load v[32:35], [v16], s[48:55] dmask:15 dim:SQ_RSRC_IMG_1D",
       ""},
      {"gfx1100",
       "image_with_half_a_list",
       {0xf0000505, 0x000c2010},
       nullptr,
       "the code ends within an instruction"},
      {"gfx1100",
       "image_sample_of_half_floats",
       {0xf06f0f04, 0x500c2010},
       "image_sample v[32:33], v16, s[48:55], s[80:83] dmask:15 a16 d16 dim:SQ_RSRC_IMG_2D",
       ""},
      {"gfx1100",
       "list_with_a_tail",
       {0xf0ac0f05, 0x500c2010, 0x28201812},
       "image_sample_c_d_o v[32:35], [v16, v18, v24, v32, v40, v41, v42, v43], s[48:55], s[80:83] "
       "dmask:15 dim:SQ_RSRC_IMG_2D",
       ""},
      {"gfx1100",
       "image_in_the_last_registers",
       {0xf0000f04, 0x000cfd10},
       nullptr,
       "reserved operand"},
      {"gfx1100",
       "image_address_beyond_the_last_register",
       {0xf0000f04, 0x000c20ff},
       nullptr,
       "reserved operand"},
      {"gfx1100",
       "image_descriptor_beyond_the_last_register",
       {0xf0000f04, 0x00192010},
       nullptr,
       "reserved operand"},
      {"gfx1100",
       "image_without_components",
       {0xf0000004, 0x000c2010},
       "image_load v32, v[16:17], s[48:55] dmask:0 dim:SQ_RSRC_IMG_2D",
       ""},
      {"gfx1100",
       "intersection_of_a_ray",
       {0xf0648f80, 0x00010409},
       "image_bvh_intersect_ray v[4:7], s[4:7]",
       ""},
      {"gfx1100", "unknown_image_opcode", {0xf3f80f04, 0x000c2010}, nullptr, "no instruction"},
      {"gfx1030",
       "image_opcode_of_eight_bits",
       {0xf0000f31, 0x00020105},
       "image_msaa_load v[1:4], v[5:7], s[8:15] dmask:15 dim:SQ_RSRC_IMG_2D_MSAA",
       ""},
      {"gfx1030",
       "image_list_of_nine",
       {0xf0e80f0c, 0x028c2010, 0x14131211, 0x17161518},
       "image_sample_c_d_o v[32:35], [v16, v17, v18, v19, v20, v24, v21, v22], s[48:55], s[80:83] "
       "dmask:15 dim:SQ_RSRC_IMG_2D",
       ""},
      {"gfx1030",
       "image_list_that_is_too_short",
       {0xf0e80f0a, 0x028c2010, 0x14131211},
       nullptr,
       "reserved operand"},
      {"gfx1200",
       "image_load",
       {0xd3c03f81, 0x00006120, 0x00001410},
       "image_load v[32:35], [v16, v20], s[48:55] dmask:15 dim:SQ_RSRC_IMG_2D",
       ""},
      {"gfx1200",
       "image_load_of_a_line",
       {0xd0400000, 0x00006020, 0x09080710},
       "image_load v32, v16, s[48:55] dmask:1 dim:SQ_RSRC_IMG_1D",
       ""},
      {"gfx1200",
       "image_sample_with_a_tail",
       {0xe7c70001, 0x28006020, 0x14121110},
       "image_sample_d v[32:35], [v16, v17, v18, v20, v21, v22], s[48:55], s[80:83] dmask:15 "
       "dim:SQ_RSRC_IMG_2D",
       ""},
      {"gfx90a",
       "image_on_a_chip_without_images",
       {0xf0001f00, 0x000c2010},
       nullptr,
       "no instruction"},
      {"gfx90a",
       "read_of_accumulation",
       {0xd3d84028, 0x1800010a},
       "v_accvgpr_read_b32 v40, a10",
       ""},
      {"gfx90a",
       "write_of_accumulation",
       {0xd3d9c7ff, 0xf8000007},
       "v_accvgpr_write_b32 a255, s7",
       ""},
      {"gfx90a", "read_of_a_scalar", {0xd3d84028, 0x18000007}, nullptr, "reserved operand"},
      {"gfx1100", "export", {0xf8000800, 0x03020100}, nullptr, "no instruction"},
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
