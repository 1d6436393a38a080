// gfx12's 8-bit floats: conversions, and dot products of four of them. OPSEL names the byte or word
// that a conversion to f32 reads; for bytes, its two bits are in reverse order.

#include "emu/arch/gfx12/rows.h"
#include "emu/exec/float8_rows.h"

namespace emu::EMU_VARIANT {
namespace {

template <class Format>
void lower_selected(Lowering& l, const Inst& given) {
  const auto& bits = given.list("op_sel");
  const int byte = bits.size() < 2 ? 0 : 2 * bits[0] + bits[1];
  Inst inst = given;
  inst.lists.clear();
  for (const char* kept : {"dpp8", "quad_perm"}) {
    if (!given.list(kept).empty()) inst.lists.emplace_back(kept, given.list(kept));
  }
  lower_from_byte_of<Format>(l, inst, static_cast<unsigned>(byte));
}

/// Products of two 8-bit floats are exact in f32. They are added one after the other.
template <class A, class B>
constexpr auto kDot4 = [](U32 a, U32 b, F32 c) {
  for (uint32_t i = 0; i < 4; ++i) c += from_float8<A>(a >> (8 * i)) * from_float8<B>(b >> (8 * i));
  return c;
};

constexpr Row kRows[] = {
    {"v_cvt_f32_fp8", &lower_selected<Fp8Ocp>},
    {"v_cvt_f32_bf8", &lower_selected<Bf8Ocp>},
    {"v_cvt_pk_f32_fp8", &lower_from_word<Fp8Ocp>},
    {"v_cvt_pk_f32_bf8", &lower_from_word<Bf8Ocp>},
    {"v_cvt_pk_fp8_f32", &lower_to_word<Fp8Ocp>},
    {"v_cvt_pk_bf8_f32", &lower_to_word<Bf8Ocp>},
    {"v_cvt_sr_fp8_f32", &lower_to_byte_of<Fp8Ocp>},
    {"v_cvt_sr_bf8_f32", &lower_to_byte_of<Bf8Ocp>},
    vop<kDot4<Fp8Ocp, Fp8Ocp>>("v_dot4_f32_fp8_fp8"),
    vop<kDot4<Fp8Ocp, Bf8Ocp>>("v_dot4_f32_fp8_bf8"),
    vop<kDot4<Bf8Ocp, Fp8Ocp>>("v_dot4_f32_bf8_fp8"),
    vop<kDot4<Bf8Ocp, Bf8Ocp>>("v_dot4_f32_bf8_bf8"),
};

}  // namespace

std::span<const Row> gfx12_float8_rows() { return kRows; }

}  // namespace emu::EMU_VARIANT
