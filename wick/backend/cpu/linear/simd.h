#pragma once

// Vectors for the float kernels. Included by sources that wick_kernels() builds, once for each
// instruction set; all of it has internal linkage or is always inlined (see isa.h).

#include <cstdint>

#include "wick/backend/cpu/halves.h"
#include "wick/backend/cpu/intrinsics.h"
#include "wick/backend/cpu/linear/transpose_16.h"
#include "wick/math/half.h"

namespace wick::cpu::WICK_ISA {
namespace {

#if defined(__AVX512F__)
constexpr int kVectorBytes = 64;
#elif defined(__AVX2__)
constexpr int kVectorBytes = 32;
#else
constexpr int kVectorBytes = 16;
#endif

/// A register of T, and the same as it may lie anywhere in memory.
template <class T>
struct Simd {
  static constexpr int kLanes = kVectorBytes / static_cast<int>(sizeof(T));
  typedef T V __attribute__((vector_size(kVectorBytes)));
  typedef T Unaligned __attribute__((vector_size(kVectorBytes), aligned(sizeof(T)), may_alias));

  static WICK_FN V load(const T* p) { return *reinterpret_cast<const Unaligned*>(p); }
  static WICK_FN void store(T* p, V v) { *reinterpret_cast<Unaligned*>(p) = v; }
  static WICK_FN V broadcast(T x) { return x - V{}; }
  /// a * b + c with one rounding for floats; where the instruction set has no fma, with two.
  static WICK_FN V fma(V a, V b, V c) { return a * b + c; }
};

#if defined(__AVX512F__)
template <>
WICK_FN Simd<float>::V Simd<float>::fma(V a, V b, V c) {
  return reinterpret_cast<V>(_mm512_fmadd_ps(a, b, c));
}
template <>
WICK_FN Simd<double>::V Simd<double>::fma(V a, V b, V c) {
  return reinterpret_cast<V>(_mm512_fmadd_pd(a, b, c));
}
#elif defined(__AVX2__)
template <>
WICK_FN Simd<float>::V Simd<float>::fma(V a, V b, V c) {
  return reinterpret_cast<V>(_mm256_fmadd_ps(a, b, c));
}
template <>
WICK_FN Simd<double>::V Simd<double>::fma(V a, V b, V c) {
  return reinterpret_cast<V>(_mm256_fmadd_pd(a, b, c));
}
#elif defined(__aarch64__)
template <>
WICK_FN Simd<float>::V Simd<float>::fma(V a, V b, V c) {
  return reinterpret_cast<V>(vfmaq_f32(c, a, b));
}
template <>
WICK_FN Simd<double>::V Simd<double>::fma(V a, V b, V c) {
  return reinterpret_cast<V>(vfmaq_f64(c, a, b));
}
#endif

/// An element as its compute type: 16- and 8-bit floats as f32, integers modulo 2^32 or 2^64.
template <class T, class S>
WICK_FN T widen(S x) {
  if constexpr (sizeof(T) == sizeof(S)) {
    return static_cast<T>(x);
  } else if constexpr (math::kSame<T, float>) {
    return math::to_f32(x);
  } else {
    return static_cast<T>(x);
  }
}

/// The reverse: one rounding for floats, the low bits for integers.
template <class S, class T>
WICK_FN S narrow(T x) {
  if constexpr (math::kSame<T, float> && !math::kSame<S, float>) {
    return math::from_f32<S>(x);
  } else {
    return static_cast<S>(x);
  }
}

/// to[0, n) = from[0, n) in the compute type, both dense.
template <class T, class S>
WICK_FN void widen_run(const S* from, T* to, int64_t n) {
  int64_t i = 0;
#if defined(__AVX512F__)
  if constexpr (math::kSame<S, math::f16>) {
    for (; i + 16 <= n; i += 16) {
      const __m256i half = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(from + i));
      _mm512_storeu_ps(to + i, _mm512_cvtph_ps(half));
    }
  } else if constexpr (math::kSame<S, math::bf16>) {
    for (; i + 16 <= n; i += 16) {
      const __m256i half = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(from + i));
      _mm512_storeu_si512(to + i, _mm512_slli_epi32(_mm512_cvtepu16_epi32(half), 16));
    }
  }
#elif defined(__F16C__)
  if constexpr (math::kSame<S, math::f16>) {
    for (; i + 8 <= n; i += 8) {
      const __m128i half = _mm_loadu_si128(reinterpret_cast<const __m128i*>(from + i));
      _mm256_storeu_ps(to + i, _mm256_cvtph_ps(half));
    }
  }
#endif
  for (; i < n; ++i) to[i] = widen<T>(from[i]);
}

/// The reverse.
template <class S, class T>
WICK_FN void narrow_run(const T* from, S* to, int64_t n) {
  int64_t i = 0;
#if defined(__AVX512F__)
  if constexpr (math::kSame<S, math::f16>) {
    for (; i + 16 <= n; i += 16) {
      const __m256i half = _mm512_cvtps_ph(_mm512_loadu_ps(from + i), _MM_FROUND_TO_NEAREST_INT);
      _mm256_storeu_si256(reinterpret_cast<__m256i*>(to + i), half);
    }
  } else if constexpr (math::kSame<S, math::bf16>) {
    for (; i + 32 <= n; i += 32) {
      _mm512_storeu_si512(to + i,
                          bf16_of(_mm512_loadu_ps(from + i), _mm512_loadu_ps(from + i + 16)));
    }
  }
#elif defined(__F16C__)
  if constexpr (math::kSame<S, math::f16>) {
    for (; i + 8 <= n; i += 8) {
      const __m128i half = _mm256_cvtps_ph(_mm256_loadu_ps(from + i), _MM_FROUND_TO_NEAREST_INT);
      _mm_storeu_si128(reinterpret_cast<__m128i*>(to + i), half);
    }
  }
#endif
  for (; i < n; ++i) to[i] = narrow<S>(from[i]);
}

using Word = uint32_t __attribute__((may_alias));
using Quad = uint32_t __attribute__((vector_size(16)));
using QuadAnywhere = uint32_t __attribute__((vector_size(16), aligned(1), may_alias));

/// to[p * W + w] = rows[w][p] for p in [0, n), w in [0, W): blocks of 16×16 with AVX-512, the rest
/// of 4×4 in 128-bit registers, which every instruction set has.
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
      const Quad a = *reinterpret_cast<const QuadAnywhere*>(rows[g] + p);
      const Quad b = *reinterpret_cast<const QuadAnywhere*>(rows[g + 1] + p);
      const Quad c = *reinterpret_cast<const QuadAnywhere*>(rows[g + 2] + p);
      const Quad d = *reinterpret_cast<const QuadAnywhere*>(rows[g + 3] + p);
      const Quad ab0 = __builtin_shufflevector(a, b, 0, 4, 1, 5);
      const Quad ab1 = __builtin_shufflevector(a, b, 2, 6, 3, 7);
      const Quad cd0 = __builtin_shufflevector(c, d, 0, 4, 1, 5);
      const Quad cd1 = __builtin_shufflevector(c, d, 2, 6, 3, 7);
      Word* at = to + p * W + g;
      *reinterpret_cast<QuadAnywhere*>(at) = __builtin_shufflevector(ab0, cd0, 0, 1, 4, 5);
      *reinterpret_cast<QuadAnywhere*>(at + W) = __builtin_shufflevector(ab0, cd0, 2, 3, 6, 7);
      *reinterpret_cast<QuadAnywhere*>(at + 2 * W) = __builtin_shufflevector(ab1, cd1, 0, 1, 4, 5);
      *reinterpret_cast<QuadAnywhere*>(at + 3 * W) = __builtin_shufflevector(ab1, cd1, 2, 3, 6, 7);
    }
  }
  for (; p < n; ++p) {
    for (int w = 0; w < W; ++w) __builtin_memcpy(to + p * W + w, rows[w] + p, sizeof(Word));
  }
}

}  // namespace
}  // namespace wick::cpu::WICK_ISA
