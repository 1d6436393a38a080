#pragma once

// Conversions of f32 to f16 that don't round as MODE says.

#include "emu/exec/numbers.h"

namespace emu {
namespace {

/// kRounding is the host's constant for a direction.
template <int kRounding>
EMU_INLINE U16 rounded_f16(F32 x) {
  U16 result;
#if defined(__AVX512F__)
  __m512 from[2];
  __m256i to[2];
  __builtin_memcpy(from, &x, sizeof x);
  for (int i = 0; i < 2; ++i) to[i] = _mm512_cvtps_ph(from[i], kRounding);
#else
  __m256 from[4];
  __m128i to[4];
  __builtin_memcpy(from, &x, sizeof x);
  for (int i = 0; i < 4; ++i) to[i] = _mm256_cvtps_ph(from[i], kRounding);
#endif
  __builtin_memcpy(&result, to, sizeof result);
  return result;
}

EMU_INLINE U16 truncated_f16(F32 x) { return rounded_f16<_MM_FROUND_TO_ZERO>(x); }
EMU_INLINE U16 nearest_f16(F32 x) { return rounded_f16<_MM_FROUND_TO_NEAREST_INT>(x); }

EMU_INLINE Packed<F16> pack_rtz(F32 a, F32 b) {
  return {bits_as<F16>(truncated_f16(a)), bits_as<F16>(truncated_f16(b))};
}

}  // namespace
}  // namespace emu
