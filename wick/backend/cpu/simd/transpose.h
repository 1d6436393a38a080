#pragma once

// Transpositions of words in registers, for kernel sources only (see isa.h).

#include <cstdint>

#include "wick/backend/cpu/intrinsics.h"
#include "wick/math/fn.h"

namespace wick::cpu::WICK_ISA {
namespace {

#if defined(__AVX512F__)
/// v[r][c] becomes v[c][r], words of 32 bits: interleaves words of neighbouring rows, then pairs of
/// words, then blocks of four in two steps.
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
#endif

using Word = uint32_t __attribute__((may_alias));
using WordQuad = uint32_t __attribute__((vector_size(16)));
typedef uint32_t WordQuadAnywhere __attribute__((vector_size(16), aligned(1), may_alias));

/// to[p * W + w] = rows[w][p] for p in [0, n), w in [0, W): blocks of 16×16 with AVX-512, else of
/// 4×4 in 128-bit registers, which every instruction set has.
template <int W>
WICK_FN void transpose_words(const Word* const* rows, int64_t n, Word* to) {
  static_assert(W % 4 == 0);
  int64_t p = 0;
#if defined(__AVX512F__)
  for (; W == 16 && p + 16 <= n; p += 16) {
    __m512i v[16];
#pragma GCC unroll 16
    for (int w = 0; w < 16; ++w) v[w] = _mm512_loadu_si512(rows[w % W] + p);
    transpose_16(v);
#pragma GCC unroll 16
    for (int i = 0; i < 16; ++i) _mm512_storeu_si512(to + (p + i) * W, v[i]);
  }
#endif
  for (; p + 4 <= n; p += 4) {
#pragma GCC unroll 4
    for (int g = 0; g < W; g += 4) {
      const WordQuad a = *reinterpret_cast<const WordQuadAnywhere*>(rows[g] + p);
      const WordQuad b = *reinterpret_cast<const WordQuadAnywhere*>(rows[g + 1] + p);
      const WordQuad c = *reinterpret_cast<const WordQuadAnywhere*>(rows[g + 2] + p);
      const WordQuad d = *reinterpret_cast<const WordQuadAnywhere*>(rows[g + 3] + p);
      const WordQuad ab0 = __builtin_shufflevector(a, b, 0, 4, 1, 5);
      const WordQuad ab1 = __builtin_shufflevector(a, b, 2, 6, 3, 7);
      const WordQuad cd0 = __builtin_shufflevector(c, d, 0, 4, 1, 5);
      const WordQuad cd1 = __builtin_shufflevector(c, d, 2, 6, 3, 7);
      const auto put = [&](int row, WordQuad v) __attribute__((always_inline)) {
        *reinterpret_cast<WordQuadAnywhere*>(to + (p + row) * W + g) = v;
      };
      put(0, __builtin_shufflevector(ab0, cd0, 0, 1, 4, 5));
      put(1, __builtin_shufflevector(ab0, cd0, 2, 3, 6, 7));
      put(2, __builtin_shufflevector(ab1, cd1, 0, 1, 4, 5));
      put(3, __builtin_shufflevector(ab1, cd1, 2, 3, 6, 7));
    }
  }
  for (; p < n; ++p) {
    for (int w = 0; w < W; ++w) {
      // Rows of 16-bit elements may begin between words.
      const auto* from = reinterpret_cast<const char*>(rows[w]) + p * sizeof(Word);
      __builtin_memcpy(to + p * W + w, from, sizeof(Word));
    }
  }
}

}  // namespace
}  // namespace wick::cpu::WICK_ISA
