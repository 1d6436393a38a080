#pragma once

// f32 to 16 bits on AVX-512, two vectors at a time: the 32 results fill a line of the cache. For
// kernel sources only (see isa.h); the bits are those of math::from_f32.

#include "wick/backend/cpu/intrinsics.h"
#include "wick/math/scalar.h"

#if defined(__AVX512BW__)

namespace wick::cpu::WICK_ISA {
namespace {

/// Two vectors of 32 bytes each, joined.
WICK_FN __m512i join(__m256i low, __m256i high) {
  return _mm512_inserti64x4(_mm512_castsi256_si512(low), high, 1);
}

/// The upper halves of two vectors' 32-bit lanes.
WICK_FN __m512i upper_halves(__m512i low, __m512i high) {
  const __m512i every_other =
      _mm512_set_epi16(63, 61, 59, 57, 55, 53, 51, 49, 47, 45, 43, 41, 39, 37, 35, 33,  //
                       31, 29, 27, 25, 23, 21, 19, 17, 15, 13, 11, 9, 7, 5, 3, 1);
  return _mm512_permutex2var_epi16(low, every_other, high);
}

WICK_FN __m512i f16_of(__m512 low, __m512 high) {
  return join(_mm512_cvtps_ph(low, _MM_FROUND_TO_NEAREST_INT),
              _mm512_cvtps_ph(high, _MM_FROUND_TO_NEAREST_INT));
}

/// Floats whose upper halves are rounded to bf16, but not NaN: 0x7fff is added, or 0x8000 where the
/// lowest kept bit is set.
WICK_FN __m512i round_to_bf16(__m512 x) {
  const __m512i bits = _mm512_castps_si512(x);
  const __mmask16 odd = _mm512_test_epi32_mask(bits, _mm512_set1_epi32(0x10000));
  const __m512i bias =
      _mm512_mask_blend_epi32(odd, _mm512_set1_epi32(0x7fff), _mm512_set1_epi32(0x8000));
  return _mm512_add_epi32(bits, bias);
}
WICK_FN __m512i nan_to_bf16(__m512 x, __m512i rounded) {
  const __mmask16 nan = _mm512_cmp_ps_mask(x, x, _CMP_UNORD_Q);
  return _mm512_mask_mov_epi32(rounded, nan, _mm512_set1_epi32(0x7fc00000));
}

/// One test for NaN and one permutation serve both vectors.
WICK_FN __m512i bf16_of(__m512 low, __m512 high) {
  __m512i x = round_to_bf16(low), y = round_to_bf16(high);
  if (_mm512_cmp_ps_mask(low, high, _CMP_UNORD_Q) != 0) [[unlikely]] {
    x = nan_to_bf16(low, x);
    y = nan_to_bf16(high, y);
  }
  return upper_halves(x, y);
}

}  // namespace
}  // namespace wick::cpu::WICK_ISA

#endif
