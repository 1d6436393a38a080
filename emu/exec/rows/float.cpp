// f32 arithmetic.

#include <array>

#include "emu/exec/rows/rows.h"
#include "emu/exec/valu.h"

namespace emu::EMU_VARIANT {
namespace {

constexpr Row kRows[] = {
    hot<[](F32 a, F32 b) { return a + b; }>("v_add_f32"),
    hot<[](F32 a, F32 b) { return a - b; }>("v_sub_f32"),
    hot<[](F32 a, F32 b) { return b - a; }>("v_subrev_f32"),
    hot<[](F32 a, F32 b) { return a * b; }>("v_mul_f32"),
    hot<[](F32 a, F32 b, F32 c) { return fma(a, b, c); }>("v_fma_f32"),
    hot_accumulate<[](F32 a, F32 b, F32 c) { return fma(a, b, c); }>("v_fmac_f32"),
    vop<[](F32 a, F32 k, F32 b) { return fma(a, k, b); }>("v_fmamk_f32"),
    vop<[](F32 a, F32 b, F32 k) { return fma(a, b, k); }>("v_fmaak_f32"),
    vop<[](Mixed a, Mixed b, Mixed c) { return fma(a.value, b.value, c.value); }>("v_fma_mix_f32"),
};

}  // namespace

std::span<const Row> float_rows() { return kRows; }

}  // namespace emu::EMU_VARIANT
