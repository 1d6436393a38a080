// Conversions from and to 8-bit floats: FNUZ formats on gfx942, OCP formats on gfx950. SDWA selects
// the byte or word that a conversion to f32 reads.

#include "emu/arch/gfx9/rows.h"
#include "emu/exec/float8_rows.h"

namespace emu::EMU_VARIANT {
namespace {

template <class Fnuz, class Ocp>
constexpr Row from_byte_row(const char* name) {
  return {name, &lower_by_format<&lower_from_byte<Fnuz, 0>, &lower_from_byte<Ocp, 0>>};
}
template <class Fnuz, class Ocp>
constexpr Row from_word_row(const char* name) {
  return {name, &lower_by_format<&lower_from_word<Fnuz>, &lower_from_word<Ocp>>};
}
template <class Fnuz, class Ocp>
constexpr Row to_word_row(const char* name) {
  return {name, &lower_by_format<&lower_to_word<Fnuz>, &lower_to_word<Ocp>>};
}
template <class Fnuz, class Ocp>
constexpr Row to_byte_row(const char* name) {
  return {name, &lower_by_format<&lower_to_byte_of<Fnuz>, &lower_to_byte_of<Ocp>>};
}

constexpr Row kRows[] = {
    from_byte_row<Fp8Fnuz, Fp8Ocp>("v_cvt_f32_fp8"),
    from_byte_row<Bf8Fnuz, Bf8Ocp>("v_cvt_f32_bf8"),
    from_word_row<Fp8Fnuz, Fp8Ocp>("v_cvt_pk_f32_fp8"),
    from_word_row<Bf8Fnuz, Bf8Ocp>("v_cvt_pk_f32_bf8"),
    to_word_row<Fp8Fnuz, Fp8Ocp>("v_cvt_pk_fp8_f32"),
    to_word_row<Bf8Fnuz, Bf8Ocp>("v_cvt_pk_bf8_f32"),
    to_byte_row<Fp8Fnuz, Fp8Ocp>("v_cvt_sr_fp8_f32"),
    to_byte_row<Bf8Fnuz, Bf8Ocp>("v_cvt_sr_bf8_f32"),
};

}  // namespace

std::span<const Row> gfx9_float8_rows() { return kRows; }

}  // namespace emu::EMU_VARIANT
