#include "emu/isa/encoding.h"

namespace emu {
namespace {

// The first matching row counts: VOP1 and VOPC use two opcodes of VOP2, and gfx9's VOP3P uses
// opcodes of VOP3.

constexpr Encoding kGfx9[] = {
    {FieldLayout::vop1, 0xfe000000, 0x7e000000, 9, 8},
    {FieldLayout::vopc, 0xfe000000, 0x7c000000, 17, 8},
    {FieldLayout::vop2, 0x80000000, 0x00000000, 25, 6},
    // Opcodes from 64 are matrix and accumulation register instructions, which have other fields.
    {FieldLayout::vop3p, 0xffc00000, 0xd3800000, 16, 7},
    {FieldLayout::vop3, 0xff800000, 0xd3800000, 0, 0},
    {FieldLayout::vop3, 0xfc000000, 0xd0000000, 16, 10},
};

// gfx12 has gfx11's encodings of vector ALU instructions, with other opcodes. gfx10 lacks the last
// two.
constexpr Encoding kGfx11[] = {
    {FieldLayout::vop1, 0xfe000000, 0x7e000000, 9, 8},
    {FieldLayout::vopc, 0xfe000000, 0x7c000000, 17, 8},
    {FieldLayout::vop2, 0x80000000, 0x00000000, 25, 6},
    {FieldLayout::vop3p, 0xff800000, 0xcc000000, 16, 7},
    {FieldLayout::vop3, 0xfc000000, 0xd4000000, 16, 10},
    {FieldLayout::vopd, 0xfc000000, 0xc8000000, 17, 9},
    {FieldLayout::vinterp, 0xff000000, 0xcd000000, 16, 7},
};

std::span<const Encoding> encodings(int generation) {
  if (generation == 9) return kGfx9;
  if (generation == 10) return std::span(kGfx11).first(std::size(kGfx11) - 2);
  return kGfx11;
}

}  // namespace

const Encoding* find_encoding(int generation, uint32_t word) {
  for (const Encoding& encoding : encodings(generation)) {
    if ((word & encoding.mask) != encoding.bits) continue;
    return encoding.op_bits == 0 ? nullptr : &encoding;
  }
  return nullptr;
}

}  // namespace emu
