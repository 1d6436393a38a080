// Decoding of memory instructions: every opcode's fields against LLVM's text, and bits that an
// opcode doesn't use.

#include <gtest/gtest.h>

#include "emu/tests/decode_formats.h"
#include "emu/tests/decode_support.h"
#include "emu/tests/reference.h"

namespace emu::test {
namespace {

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

}  // namespace

void register_decode_memory() {
  register_memory_cases();
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
