#pragma once

// For kernel sources only (see isa.h).

#include "wick/backend/cpu/intrinsics.h"
#include "wick/math/fn.h"

#if defined(__AVX512F__)

namespace wick::cpu::WICK_ISA {
namespace {

/// v[r][c] becomes v[c][r], words of 32 bits: 2×2 blocks of one word, then of two, then of four in
/// two steps.
WICK_FN void transpose_16(__m512i (&v)[16]) {
  __m512i t[16];
#pragma GCC unroll 8
  for (int i = 0; i < 16; i += 2) {
    t[i] = _mm512_unpacklo_epi32(v[i], v[i + 1]);
    t[i + 1] = _mm512_unpackhi_epi32(v[i], v[i + 1]);
  }
  // Row 4g + c holds column c (and 4, 8, 12 more in the other blocks) of the rows 4g .. 4g + 3.
#pragma GCC unroll 4
  for (int i = 0; i < 16; i += 4) {
    v[i] = _mm512_unpacklo_epi64(t[i], t[i + 2]);
    v[i + 1] = _mm512_unpackhi_epi64(t[i], t[i + 2]);
    v[i + 2] = _mm512_unpacklo_epi64(t[i + 1], t[i + 3]);
    v[i + 3] = _mm512_unpackhi_epi64(t[i + 1], t[i + 3]);
  }
#pragma GCC unroll 4
  for (int c = 0; c < 4; ++c) {
    t[c] = _mm512_shuffle_i32x4(v[c], v[4 + c], 0x88);      // blocks 0 2 | 0 2
    t[4 + c] = _mm512_shuffle_i32x4(v[c], v[4 + c], 0xdd);  // 1 3 | 1 3
    t[8 + c] = _mm512_shuffle_i32x4(v[8 + c], v[12 + c], 0x88);
    t[12 + c] = _mm512_shuffle_i32x4(v[8 + c], v[12 + c], 0xdd);
  }
#pragma GCC unroll 4
  for (int c = 0; c < 4; ++c) {
    v[c] = _mm512_shuffle_i32x4(t[c], t[8 + c], 0x88);
    v[8 + c] = _mm512_shuffle_i32x4(t[c], t[8 + c], 0xdd);
    v[4 + c] = _mm512_shuffle_i32x4(t[4 + c], t[12 + c], 0x88);
    v[12 + c] = _mm512_shuffle_i32x4(t[4 + c], t[12 + c], 0xdd);
  }
}

}  // namespace
}  // namespace wick::cpu::WICK_ISA

#endif
