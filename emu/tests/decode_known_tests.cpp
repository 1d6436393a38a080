// Which instructions of LLVM's dictionary the emulator doesn't decode.

#include <gtest/gtest.h>

#include <set>

#include "emu/tests/assembler.h"
#include "emu/tests/decode_support.h"
#include "emu/tests/reference.h"

namespace emu::test {
namespace {

/// Formats that aren't decoded: exports, interpolation from LDS, parameters in LDS, and images of
/// gfx90a, in whose dictionary LLVM has them. The last name is LLVM's of the word 0.
bool is_left_out(std::string_view name, const std::string& arch) {
  for (std::string_view prefix :
       {"exp", "v_interp_", "lds_", "ds_param", "ds_direct", "v_illegal"}) {
    if (name.starts_with(prefix)) return true;
  }
  // gfx950 lacks some of the matrix instructions of gfx942.
  if (arch == "gfx950" && name.ends_with("_xf32")) return true;
  return generation_of(arch) == 9 && name.starts_with("image_");
}

void find_unknown(const Target& target) {
  Decoder decoder(target.arch, target.wave64);
  const Disassembler llvm(assembled_as(target.arch), target.wave64);
  Random random(5);
  std::set<std::string> unknown;
  for (int i = 0; i < 200000; ++i) {
    std::vector<uint32_t> words;
    for (int k = 0; k < 4; ++k) words.push_back(static_cast<uint32_t>(random.next()));
    // Most words belong to VOP2. These bits say that a word doesn't.
    words[0] |= 0x80000000;
    // LLVM knows some opcodes only if fields that they don't use are 0.
    if (random.chance(2)) words[0] &= 0xffff00ff;
    if (random.chance(2)) words[1] &= 0x0003ffff;
    std::string error;
    if (decoded(decoder, words, error) || error.find("no instruction") != 0) continue;
    const auto text = llvm.read(bytes_of(words), 0);
    if (text) unknown.insert(parse_instruction(text->text).at(0).name);
  }
  for (const std::string& name : unknown) {
    EXPECT_TRUE(is_left_out(name, target.arch)) << name;
  }
}

}  // namespace

void register_decode_known() {
  register_comparisons("knows_the_instructions_of_llvm_", all_chips(), &find_unknown);
}

}  // namespace emu::test
