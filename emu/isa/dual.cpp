// VOPD: two operations of gfx11 and later in one instruction.

#include <stdexcept>

#include "emu/isa/vector.h"

namespace emu {
namespace {

constexpr const char* kNames[] = {
    "v_fmac_f32", "v_fmaak_f32",  "v_fmamk_f32",        "v_mul_f32",          "v_add_f32",
    "v_sub_f32",  "v_subrev_f32", "v_mul_dx9_zero_f32", "v_mov_b32",          "v_cndmask_b32",
    "v_max_f32",  "v_min_f32",    "v_dot2acc_f32_f16",  "v_dot2acc_f32_bf16", nullptr,
    nullptr,      "v_add_nc_u32", "v_lshlrev_b32",      "v_and_b32"};

/// Only the second operation can have opcodes from 16.
constexpr uint32_t kFirstOfSecond = 16;

const char* dual_name(int generation, uint32_t opcode) {
  if (generation >= 12 && opcode == 10) return "v_max_num_f32";
  if (generation >= 12 && opcode == 11) return "v_min_num_f32";
  return opcode < std::size(kNames) ? kNames[opcode] : nullptr;
}

Operand vgpr(uint32_t number) {
  Operand out;
  out.kind = Kind::vgpr;
  out.reg = static_cast<uint16_t>(number);
  return out;
}

struct Half {
  uint32_t opcode, vdst, src0, vsrc1;
  bool has_constant() const { return opcode == 1 || opcode == 2; }
  bool has_literal() const { return src0 == kLiteral || has_constant(); }
};

}  // namespace

std::vector<Inst> VectorDecoder::decode_dual(std::span<const uint32_t> words) const {
  if (words.size() < 2) throw std::runtime_error("the code ends within an instruction");
  const uint32_t low = words[0], high = words[1];
  const Half x{field(low, 22, 4), field(high, 24, 8), field(low, 0, 9), field(low, 9, 8)};
  // The lowest bit of the second result's register is the inverse of the first's.
  const Half y{field(low, 17, 5), field(high, 17, 7) << 1 | (~x.vdst & 1), field(high, 0, 9),
               field(high, 9, 8)};
  const bool literal = x.has_literal() || y.has_literal();
  if (literal && words.size() < 3) {
    throw std::runtime_error("the code ends within an instruction");
  }
  const uint32_t next = literal ? words[2] : 0;
  std::vector<Inst> both;
  for (const Half& half : {x, y}) {
    const char* name = dual_name(generation_, half.opcode);
    if (name == nullptr || (&half == &x && half.opcode >= kFirstOfSecond)) return {};
    Inst& inst = both.emplace_back();
    inst.name = name;
    inst.size = literal ? 12 : 8;
    inst.operands = {vgpr(half.vdst), source_operand(generation_, half.src0, Operand(), next)};
    Operand constant;
    constant.kind = Kind::integer;
    constant.literal = true;
    constant.bits = next;
    if (half.opcode == 2) inst.operands.push_back(constant);
    if (inst.name != "v_mov_b32") inst.operands.push_back(vgpr(half.vsrc1));
    if (half.opcode == 1) inst.operands.push_back(constant);
    if (inst.name == "v_cndmask_b32") {
      Operand vcc;
      vcc.kind = Kind::sgpr;
      vcc.reg = 106;
      vcc.dwords = wave64_ ? 2 : 1;
      inst.operands.push_back(vcc);
    }
  }
  return both;
}

}  // namespace emu
