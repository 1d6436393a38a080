// Vector ALU opcodes that LLVM 19 doesn't know, and those of interpolation, for which it has other
// names of operands.

#include "emu/isa/opcodes.h"

namespace emu {
namespace {

enum class On : uint8_t { gfx950, gfx11, gfx12 };

/// The text names v16 as result and v32, v48 and v64 as sources, of as many registers as they have.
/// Sources may also be scalars and constants unless only vector registers are accepted.
struct Added {
  On on;
  FieldLayout layout;
  uint32_t opcode;
  const char* text;
  bool vectors_only = false;
};

constexpr Added kAdded[] = {
    {On::gfx11, FieldLayout::vop1, 0x66, "v_swap_b16 v16, v32", true},
    {On::gfx11, FieldLayout::vop3, 0x182, "v_readfirstlane_b32 s16, v32", true},
    {On::gfx11, FieldLayout::vop3, 0x19c, "v_mov_b16 v16, v32"},
    {On::gfx12, FieldLayout::vop1, 0x66, "v_swap_b16 v16, v32", true},
    {On::gfx12, FieldLayout::vop3, 0x182, "v_readfirstlane_b32 s16, v32", true},
    {On::gfx12, FieldLayout::vop3, 0x19c, "v_mov_b16 v16, v32"},
    {On::gfx11, FieldLayout::vinterp, 0, "v_interp_p10_f32 v16, v32, v48, v64"},
    {On::gfx11, FieldLayout::vinterp, 1, "v_interp_p2_f32 v16, v32, v48, v64"},
    {On::gfx11, FieldLayout::vinterp, 2, "v_interp_p10_f16_f32 v16, v32, v48, v64"},
    {On::gfx11, FieldLayout::vinterp, 3, "v_interp_p2_f16_f32 v16, v32, v48, v64"},
    {On::gfx11, FieldLayout::vinterp, 4, "v_interp_p10_rtz_f16_f32 v16, v32, v48, v64"},
    {On::gfx11, FieldLayout::vinterp, 5, "v_interp_p2_rtz_f16_f32 v16, v32, v48, v64"},
    {On::gfx12, FieldLayout::vinterp, 0, "v_interp_p10_f32 v16, v32, v48, v64"},
    {On::gfx12, FieldLayout::vinterp, 1, "v_interp_p2_f32 v16, v32, v48, v64"},
    {On::gfx12, FieldLayout::vinterp, 2, "v_interp_p10_f16_f32 v16, v32, v48, v64"},
    {On::gfx12, FieldLayout::vinterp, 3, "v_interp_p2_f16_f32 v16, v32, v48, v64"},
    {On::gfx12, FieldLayout::vinterp, 4, "v_interp_p10_rtz_f16_f32 v16, v32, v48, v64"},
    {On::gfx12, FieldLayout::vinterp, 5, "v_interp_p2_rtz_f16_f32 v16, v32, v48, v64"},
    {On::gfx950, FieldLayout::vop1, 0x58, "v_prng_b32 v16, v32"},
    {On::gfx950, FieldLayout::vop1, 0x59, "v_permlane16_swap_b32 v16, v32", true},
    {On::gfx950, FieldLayout::vop1, 0x5a, "v_permlane32_swap_b32 v16, v32", true},
    {On::gfx950, FieldLayout::vop1, 0x5b, "v_cvt_f32_bf16 v16, v32"},
    {On::gfx950, FieldLayout::vop2, 0x16, "v_dot2c_f32_bf16 v16, v32, v48"},
    {On::gfx950, FieldLayout::vop3, 0x116, "v_dot2c_f32_bf16 v16, v32, v48"},
    {On::gfx950, FieldLayout::vop3, 0x198, "v_prng_b32 v16, v32"},
    {On::gfx950, FieldLayout::vop3, 0x199, "v_permlane16_swap_b32 v16, v32", true},
    {On::gfx950, FieldLayout::vop3, 0x19a, "v_permlane32_swap_b32 v16, v32", true},
    {On::gfx950, FieldLayout::vop3, 0x19b, "v_cvt_f32_bf16 v16, v32"},
    {On::gfx950, FieldLayout::vop3, 0x233, "v_bitop3_b16 v16, v32, v48, v64"},
    {On::gfx950, FieldLayout::vop3, 0x234, "v_bitop3_b32 v16, v32, v48, v64"},
    {On::gfx950, FieldLayout::vop3, 0x235, "v_cvt_scalef32_pk_fp8_f32 v16, v32, v48, v64"},
    {On::gfx950, FieldLayout::vop3, 0x236, "v_cvt_scalef32_pk_bf8_f32 v16, v32, v48, v64"},
    {On::gfx950, FieldLayout::vop3, 0x239, "v_cvt_scalef32_pk_f32_fp8 v[16:17], v32, v48"},
    {On::gfx950, FieldLayout::vop3, 0x23a, "v_cvt_scalef32_pk_f32_bf8 v[16:17], v32, v48"},
    {On::gfx950, FieldLayout::vop3, 0x23b, "v_cvt_scalef32_f32_fp8 v16, v32, v48"},
    {On::gfx950, FieldLayout::vop3, 0x23c, "v_cvt_scalef32_f32_bf8 v16, v32, v48"},
    {On::gfx950, FieldLayout::vop3, 0x23d, "v_cvt_scalef32_pk_fp4_f32 v16, v32, v48, v64"},
    {On::gfx950, FieldLayout::vop3, 0x23f, "v_cvt_scalef32_pk_f32_fp4 v[16:17], v32, v48"},
    {On::gfx950, FieldLayout::vop3, 0x265, "v_ashr_pk_i8_i32 v16, v32, v48, v64"},
    {On::gfx950, FieldLayout::vop3, 0x266, "v_ashr_pk_u8_i32 v16, v32, v48, v64"},
    {On::gfx950, FieldLayout::vop3, 0x267, "v_cvt_pk_f16_f32 v16, v32, v48"},
    {On::gfx950, FieldLayout::vop3, 0x268, "v_cvt_pk_bf16_f32 v16, v32, v48"},
    {On::gfx950, FieldLayout::vop3, 0x2a8, "v_minimum3_f32 v16, v32, v48, v64"},
    {On::gfx950, FieldLayout::vop3, 0x2a9, "v_maximum3_f32 v16, v32, v48, v64"},
    {On::gfx950, FieldLayout::vop3p, 0x1a, "v_dot2_f32_bf16 v16, v32, v48, v64"},
    {On::gfx950, FieldLayout::vop3p, 0x1b, "v_pk_minimum3_f16 v16, v32, v48, v64"},
    {On::gfx950, FieldLayout::vop3p, 0x1c, "v_pk_maximum3_f16 v16, v32, v48, v64"},
};

}  // namespace

std::optional<Opcode> added_opcode(int generation, bool gfx950, FieldLayout layout,
                                   uint32_t number) {
  for (const Added& row : kAdded) {
    const bool here = row.on == On::gfx950  ? gfx950
                      : row.on == On::gfx11 ? generation == 11
                                            : generation == 12;
    if (!here || row.layout != layout || row.opcode != number) continue;
    Opcode opcode = opcode_of(parse_instruction(row.text).at(0));
    opcode.selects_halves = generation >= 11 || opcode.name == "v_bitop3_b16";
    for (OperandShape& shape : opcode.operands) {
      shape.accepts = kVectorSource;
      if (!row.vectors_only) shape.accepts |= kScalarSource | kConstantSource | kLiteralSource;
    }
    return opcode;
  }
  return std::nullopt;
}

}  // namespace emu
