// The dwords of modifiers that may follow a vector instruction: DPP and SDWA.

#include <stdexcept>

#include "emu/isa/vector.h"

namespace emu {
namespace {

struct Control {
  uint32_t first, last;  // values of DPP_CTRL
  const char* name;
  int least;                      // the modifier's value for `first`
  int first_family, last_family;  // generations that have it
};

constexpr int kNewest = 99;
constexpr Control kControls[] = {
    {0x101, 0x10f, "row_shl", 1, 9, kNewest},
    {0x111, 0x11f, "row_shr", 1, 9, kNewest},
    {0x121, 0x12f, "row_ror", 1, 9, kNewest},
    {0x130, 0x130, "wave_shl", 1, 9, 9},
    {0x134, 0x134, "wave_rol", 1, 9, 9},
    {0x138, 0x138, "wave_shr", 1, 9, 9},
    {0x13c, 0x13c, "wave_ror", 1, 9, 9},
    {0x140, 0x140, "row_mirror", 1, 9, kNewest},
    {0x141, 0x141, "row_half_mirror", 1, 9, kNewest},
    {0x142, 0x142, "row_bcast", 15, 9, 9},
    {0x143, 0x143, "row_bcast", 31, 9, 9},
    {0x150, 0x15f, "row_newbcast", 0, 9, 9},
    {0x150, 0x15f, "row_share", 0, 10, kNewest},
    {0x160, 0x16f, "row_xmask", 0, 10, kNewest},
};

void read_control(int generation, uint32_t control, Inst& inst) {
  if (control < 0x100) {
    std::vector<int> quad;
    for (unsigned i = 0; i < 4; ++i) quad.push_back(static_cast<int>(field(control, 2 * i, 2)));
    inst.lists.emplace_back("quad_perm", std::move(quad));
    return;
  }
  for (const Control& row : kControls) {
    if (control < row.first || control > row.last) continue;
    if (generation < row.first_family || generation > row.last_family) continue;
    inst.modifiers.emplace_back(row.name, row.least + static_cast<int>(control - row.first));
    return;
  }
  char text[80];
  std::snprintf(text, sizeof text, "reserved DPP control 0x%x of gfx%d in '%s'", control,
                generation, inst.name.c_str());
  throw std::runtime_error(text);
}

/// Throws if the instruction has operands of more than 32 bits, unless it is of gfx9 and broadcasts
/// one lane of each row. No other control works for such operands.
void check_widths(int generation, uint32_t src0, uint32_t dword, const Inst& inst) {
  for (const Operand& operand : inst.operands) {
    if (operand.kind != Kind::vgpr || operand.dwords == 1) continue;
    if (generation >= 10) throw std::runtime_error("reserved operand");
    const uint32_t control = field(dword, 8, 9);
    if (src0 != kDpp16 || control < 0x150 || control > 0x15f) {
      throw std::runtime_error("reserved DPP control of 64-bit operands");
    }
  }
}

/// The part of a register that a three-bit field of SDWA names.
const char* part_name(uint32_t bits) {
  constexpr const char* kNames[] = {"BYTE_0", "BYTE_1", "BYTE_2", "BYTE_3",
                                    "WORD_0", "WORD_1", "DWORD",  "reserved"};
  return kNames[bits & 7];
}

}  // namespace

void read_dpp(int generation, uint32_t src0, uint32_t dword, Inst& inst) {
  check_widths(generation, src0, dword, inst);
  if (src0 != kDpp16) {
    std::vector<int> lanes;
    for (unsigned i = 0; i < 8; ++i) lanes.push_back(static_cast<int>(field(dword, 8 + 3 * i, 3)));
    inst.form = Form::dpp8;
    inst.lists.emplace_back("dpp8", std::move(lanes));
    if (src0 == kDpp8FetchInactive) inst.modifiers.emplace_back("fi", 1);
    return;
  }
  inst.form = Form::dpp16;
  read_control(generation, field(dword, 8, 9), inst);
  inst.modifiers.emplace_back("row_mask", field(dword, 28, 4));
  inst.modifiers.emplace_back("bank_mask", field(dword, 24, 4));
  if (field(dword, 19, 1) != 0) inst.modifiers.emplace_back("bound_ctrl", 1);
  if (generation >= 10 && field(dword, 18, 1) != 0) inst.modifiers.emplace_back("fi", 1);
}

void read_sdwa(int generation, uint32_t dword, bool compares, size_t first, Inst& inst) {
  inst.form = Form::sdwa;
  const auto modify = [&](size_t i, unsigned at) {
    if (first + i >= inst.operands.size()) return;
    Operand& source = inst.operands[first + i];
    source.sext = field(dword, at, 1) != 0;
    source.neg = field(dword, at + 1, 1) != 0;
    source.abs = field(dword, at + 2, 1) != 0;
  };
  modify(0, 19);
  modify(1, 27);
  inst.words.emplace_back("src0_sel", part_name(field(dword, 16, 3)));
  if (first + 1 < inst.operands.size()) {
    inst.words.emplace_back("src1_sel", part_name(field(dword, 24, 3)));
  }
  if (compares) {
    // SDST replaces VCC as the result's register. Its field is that of a scalar operand.
    if (field(dword, 15, 1) == 0 || inst.operands.empty() || first == 0) return;
    inst.operands[0] = result_register(generation, field(dword, 8, 7), inst.operands[0]);
    return;
  }
  constexpr const char* kUnused[] = {"UNUSED_PAD", "UNUSED_SEXT", "UNUSED_PRESERVE", "UNUSED_PAD"};
  inst.words.emplace_back("dst_sel", part_name(field(dword, 8, 3)));
  inst.words.emplace_back("dst_unused", kUnused[field(dword, 11, 2)]);
  if (field(dword, 13, 1) != 0) inst.modifiers.emplace_back("clamp", 1);
  const uint32_t omod = field(dword, 14, 2);
  if (omod == 3) inst.modifiers.emplace_back("div", 2);
  if (omod == 1 || omod == 2) inst.modifiers.emplace_back("mul", 2 * omod);
}

}  // namespace emu
