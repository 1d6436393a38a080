#pragma once

// gemm of few rows with columns that are dense along k, as a layer's weights are: reads the matrix
// once, in place. For kernel sources only (see isa.h).

#include <cstdint>

#include "wick/backend/cpu/intrinsics.h"
#include "wick/backend/cpu/linear/gemm.h"
#include "wick/backend/cpu/simd/transpose.h"
#include "wick/math/half.h"

#if defined(__AVX512F__)

namespace wick::cpu::WICK_ISA {
namespace {

/// Element `half` of each word as a float.
template <class S>
WICK_FN __m512 widened(__m512i words, int half) {
  if constexpr (sizeof(S) == 4) {
    return _mm512_castsi512_ps(words);
  } else if constexpr (math::kSame<S, math::bf16>) {
    return _mm512_castsi512_ps(half == 0 ? _mm512_slli_epi32(words, 16)
                                         : _mm512_and_si512(words, _mm512_set1_epi32(-65536)));
  } else {
    return _mm512_cvtph_ps(_mm512_cvtepi32_epi16(half == 0 ? words : _mm512_srli_epi32(words, 16)));
  }
}

/// Loads a cache line of each of 16 columns from element p on. `elems` elements exist; the others
/// become 0.
template <class S>
WICK_FN void load_lines(const S* const* columns, int64_t p, int64_t elems, __m512i (&v)[16]) {
  constexpr int64_t kElems = 64 / static_cast<int64_t>(sizeof(S));
  if (elems >= kElems) {
#pragma GCC unroll 16
    for (int i = 0; i < 16; ++i) v[i] = _mm512_loadu_si512(columns[i] + p);
    return;
  }
  const uint64_t mask = (uint64_t{1} << elems) - 1;
#pragma GCC unroll 16
  for (int i = 0; i < 16; ++i) {
    if constexpr (sizeof(S) == 4) {
      v[i] = _mm512_maskz_loadu_epi32(static_cast<__mmask16>(mask), columns[i] + p);
    } else {
      v[i] = _mm512_maskz_loadu_epi16(static_cast<__mmask32>(mask), columns[i] + p);
    }
  }
}

/// Computes out[c][j] for C rows. Lanes are columns; an output is one chain over k. G groups of 16
/// columns are computed together, so that their chains overlap.
template <class S, int C, int G>
void column_rows(const StripArgs& s) {
  constexpr int kPer = 4 / static_cast<int>(sizeof(S));  // elements per word
  constexpr int64_t kElems = 16 * kPer;
  constexpr int64_t kAhead = 4 * kElems;
  const auto* x = static_cast<const float*>(s.x);
  // Short columns end before a prefetch arrives. For them the columns of the next groups are
  // prefetched.
  const int64_t ahead = s.k >= 2 * kAhead ? kAhead : 16 * G * s.b_stride;
  for (int64_t j0 = 0; j0 < s.cols; j0 += 16 * G) {
    const S* columns[G][16];
    for (int i = 0; i < 16 * G; ++i) {
      const int64_t j = j0 + i < s.cols ? j0 + i : s.cols - 1;  // the last column again, which
                                                                // isn't stored
      columns[i / 16][i % 16] = static_cast<const S*>(s.b) + j * s.b_stride;
    }
    __m512 acc[G][C];
    for (int g = 0; g < G; ++g) {
      for (int c = 0; c < C; ++c) acc[g][c] = _mm512_setzero_ps();
    }
    for (int64_t p = 0; p < s.k; p += kElems) {
      const int64_t elems = s.k - p < kElems ? s.k - p : kElems;
#pragma GCC unroll 2
      for (int g = 0; g < G; ++g) {
        __m512i v[16];
#pragma GCC unroll 16
        for (int i = 0; i < 16; ++i) {
          // Into L2: the cache lines of columns at a power-of-two stride would evict each other
          // from L1.
          __builtin_prefetch(columns[g][i] + p + ahead, 0, 2);
        }
        load_lines(columns[g], p, elems, v);
        transpose_16(v);
        const auto link = [&](int i, int half) __attribute__((always_inline)) {
          const __m512 b = widened<S>(v[i], half);
          const float* at = x + p + i * kPer + half;
#pragma GCC unroll 8
          for (int c = 0; c < C; ++c) {
            acc[g][c] = _mm512_fmadd_ps(_mm512_set1_ps(at[c * s.k]), b, acc[g][c]);
          }
        };
        if (elems == kElems) {
#pragma GCC unroll 16
          for (int i = 0; i < 16; ++i) {
            link(i, 0);
            if constexpr (kPer == 2) link(i, 1);
          }
        } else {
#pragma GCC unroll 16
          for (int i = 0; i < 16; ++i) {
            if (i * kPer < elems) link(i, 0);
            if constexpr (kPer == 2) {
              if (i * kPer + 1 < elems) link(i, 1);
            }
          }
        }
      }
    }
    for (int g = 0; g < G; ++g) {
      const int64_t col = j0 + 16 * g;
      const int64_t left = s.cols - col;
      if (left <= 0) break;
      const auto mask = static_cast<__mmask16>(left >= 16 ? 0xffff : (1 << left) - 1);
      for (int c = 0; c < C; ++c) {
        float* out = static_cast<float*>(s.out) + c * s.out_row_stride + col;
        _mm512_mask_storeu_ps(out, mask, acc[g][c]);
      }
    }
  }
}

}  // namespace
}  // namespace wick::cpu::WICK_ISA

#endif
