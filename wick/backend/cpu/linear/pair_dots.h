#pragma once

// gemm of few rows of bf16 with columns that are dense along k. Each output is a dot product of two
// runs of memory, in pairs, so the matrix is read once and nothing is transposed. For kernel
// sources only (see isa.h).
//
// A sum has 16 chains, one for each lane: lane l adds pairs l, l + 16, ... Then the lanes are
// combined, in each block of four as (l0 + l2) + (l1 + l3), and the blocks as (b0 + b2) + (b1 +
// b3).

#include <cstdint>

#include "wick/backend/cpu/intrinsics.h"
#include "wick/backend/cpu/linear/gemm.h"

#if defined(__AVX512F__)

namespace wick::cpu::WICK_ISA {
namespace {

/// The sums of the lanes of four registers.
WICK_FN __m128 sums_of_lanes(__m512 a, __m512 b, __m512 c, __m512 d) {
  const __m512 ab = _mm512_add_ps(_mm512_unpacklo_ps(a, b), _mm512_unpackhi_ps(a, b));
  const __m512 cd = _mm512_add_ps(_mm512_unpacklo_ps(c, d), _mm512_unpackhi_ps(c, d));
  const __m512 blocks =
      _mm512_add_ps(_mm512_shuffle_ps(ab, cd, 0x44), _mm512_shuffle_ps(ab, cd, 0xee));
  const __m256 half =
      _mm256_add_ps(_mm512_castps512_ps256(blocks), _mm512_extractf32x8_ps(blocks, 1));
  return _mm_add_ps(_mm256_castps256_ps128(half), _mm256_extractf128_ps(half, 1));
}

/// C rows of x times R columns, `apart` columns from each other. Each column is read as a stream.
template <int C, int R>
__attribute__((target("avx512bf16"))) void pair_dot_block(const StripArgs& s, int64_t column,
                                                          int64_t apart) {
  constexpr int64_t kElems = 32;
  constexpr int kSums = (C * R + 3) / 4 * 4;
  const auto* x = static_cast<const uint16_t*>(s.x);
  const auto* b = static_cast<const uint16_t*>(s.b) + column * s.b_stride;
  const int64_t b_apart = apart * s.b_stride;
  __m512 acc[kSums];
#pragma GCC unroll 16
  for (int i = 0; i < kSums; ++i) acc[i] = _mm512_setzero_ps();
  const auto step = [&](__mmask32 mask, int64_t p, bool whole)
      __attribute__((always_inline, target("avx512bf16"))) {
    const auto line = [&](const uint16_t* from) __attribute__((always_inline)) {
      return reinterpret_cast<__m512bh>(whole ? _mm512_loadu_si512(from)
                                              : _mm512_maskz_loadu_epi16(mask, from));
    };
    __m512bh columns[R];
#pragma GCC unroll 4
    for (int r = 0; r < R; ++r) columns[r] = line(b + r * b_apart + p);
#pragma GCC unroll 8
    for (int c = 0; c < C; ++c) {
      const __m512bh row = line(x + c * s.k + p);
#pragma GCC unroll 4
      for (int r = 0; r < R; ++r) {
        acc[c * R + r] = _mm512_dpbf16_ps(acc[c * R + r], row, columns[r]);
      }
    }
  };
  int64_t p = 0;
  for (; p + kElems <= s.k; p += kElems) step(0, p, true);
  if (p < s.k) step(static_cast<__mmask32>((uint64_t{1} << (s.k - p)) - 1), p, false);
  alignas(16) float sums[kSums];
#pragma GCC unroll 4
  for (int i = 0; i < kSums; i += 4) {
    _mm_store_ps(sums + i, sums_of_lanes(acc[i], acc[i + 1], acc[i + 2], acc[i + 3]));
  }
  float* out = static_cast<float*>(s.out) + column;
  for (int c = 0; c < C; ++c, out += s.out_row_stride) {
    for (int r = 0; r < R; ++r) out[r * apart] = sums[c * R + r];
  }
}

/// The columns are cut into R equal parts, which are read as R long streams that hardware
/// prefetchers follow.
template <int C>
void pair_dot_rows(const StripArgs& s) {
  constexpr int R = C == 8 ? 2 : 4;
  const int64_t apart = s.cols / R;
  for (int64_t j = 0; j < apart; ++j) pair_dot_block<C, R>(s, j, apart);
  for (int64_t j = apart * R; j < s.cols; ++j) pair_dot_block<C, 1>(s, j, 0);
}

}  // namespace
}  // namespace wick::cpu::WICK_ISA

#endif
