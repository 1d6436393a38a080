#pragma once

// What kernels over dense runs share: the element types of the dtypes, their conversion to and from
// the type that computes, and stores around the caches. Narrow floats (bf16, f16, f8e4m3) compute
// in f32 and round once at the store; every other type computes as itself. Included by kernel
// sources only: everything here has internal linkage, once for each instruction set.

#include <cstdint>

#if defined(__x86_64__)
#include <immintrin.h>
#endif

#include "wick/base/dtype.h"
#include "wick/math/half.h"

namespace wick::cpu::WICK_ISA {
namespace {

using math::bf16;
using math::f16;
using math::f8e4m3;

/// The type that holds one element of a real dtype.
template <DType kDType>
struct StorageType;
#define WICK_STORAGE_TYPE(dtype, T)  \
  template <>                        \
  struct StorageType<DType::dtype> { \
    using type = T;                  \
  };
WICK_STORAGE_TYPE(u8, math::u8)
WICK_STORAGE_TYPE(u32, math::u32)
WICK_STORAGE_TYPE(i16, math::i16)
WICK_STORAGE_TYPE(i32, math::i32)
WICK_STORAGE_TYPE(i64, math::i64)
WICK_STORAGE_TYPE(bf16, bf16)
WICK_STORAGE_TYPE(f16, f16)
WICK_STORAGE_TYPE(f32, float)
WICK_STORAGE_TYPE(f64, double)
WICK_STORAGE_TYPE(f8e4m3, f8e4m3)
#undef WICK_STORAGE_TYPE
template <DType kDType>
using Storage = typename StorageType<kDType>::type;

/// True for the types that compute in f32.
template <class S>
inline constexpr bool kNarrow =
    math::kSame<S, bf16> || math::kSame<S, f16> || math::kSame<S, f8e4m3>;

/// The type that an element computes in.
template <class S, bool kIsNarrow = kNarrow<S>>
struct ComputeType {
  using type = S;
};
template <class S>
struct ComputeType<S, true> {
  using type = float;
};
template <class S>
using Compute = typename ComputeType<S>::type;

/// Elements that kernels handle at once: a cache line of output, whole vectors, no tails inside.
template <class S>
inline constexpr int64_t kLine = 64 / static_cast<int64_t>(sizeof(S));

// ---- Conversion of a constant number of elements, a multiple of 16 ----

template <int64_t kN, class S>
inline void widen(float* __restrict to, const S* __restrict from) {
#if defined(__F16C__)
  if constexpr (math::kSame<S, f16>) {
#pragma GCC unroll 8
    for (int64_t i = 0; i < kN; i += 8) {
      const __m128i half = _mm_loadu_si128(reinterpret_cast<const __m128i*>(from + i));
      _mm256_storeu_ps(to + i, _mm256_cvtph_ps(half));
    }
    return;
  }
#endif
  for (int64_t i = 0; i < kN; ++i) to[i] = math::to_f32(from[i]);
}

/// The processor's conversion to f16 gives the bits of math::from_f32.
template <int64_t kN, class S>
inline void narrow(S* __restrict to, const float* __restrict from) {
#if defined(__F16C__)
  if constexpr (math::kSame<S, f16>) {
#pragma GCC unroll 8
    for (int64_t i = 0; i < kN; i += 8) {
      const __m128i half = _mm256_cvtps_ph(_mm256_loadu_ps(from + i), _MM_FROUND_TO_NEAREST_INT);
      _mm_storeu_si128(reinterpret_cast<__m128i*>(to + i), half);
    }
    return;
  }
#endif
  for (int64_t i = 0; i < kN; ++i) to[i] = math::from_f32<S>(from[i]);
}

// ---- Memory ----

template <class S>
inline S at(const char* p) {
  S value;
  __builtin_memcpy(&value, p, sizeof(S));
  return value;
}

/// Bytes from p to the next line of the cache.
inline int64_t bytes_to_line(const void* p) {
  return static_cast<int64_t>(-reinterpret_cast<uintptr_t>(p) & 63);
}

/// Writes one aligned line around the caches. The loop driver fences when its work is done.
inline void stream_line(void* to, const void* from) {
#if defined(__AVX512F__)
  _mm512_stream_si512(static_cast<__m512i*>(to), _mm512_loadu_si512(from));
#elif defined(__AVX__)
  for (int i = 0; i < 2; ++i) {
    _mm256_stream_si256(static_cast<__m256i*>(to) + i,
                        _mm256_loadu_si256(static_cast<const __m256i*>(from) + i));
  }
#elif defined(__x86_64__)
  for (int i = 0; i < 4; ++i) {
    _mm_stream_si128(static_cast<__m128i*>(to) + i,
                     _mm_loadu_si128(static_cast<const __m128i*>(from) + i));
  }
#else
  __builtin_memcpy(to, from, 64);
#endif
}

/// A value that is harmless in the unused lanes of a vector, even as a divisor.
template <class S>
inline S filler() {
  if constexpr (kNarrow<S>) {
    return S{0};
  } else {
    return static_cast<S>(1);
  }
}

/// Up to a line of elements, the rest filled.
template <class S>
inline void load_part(S* __restrict line, const S* __restrict from, int64_t n) {
  for (int64_t i = 0; i < kLine<S>; ++i) line[i] = filler<S>();
  __builtin_memcpy(line, from, static_cast<size_t>(n) * sizeof(S));
}

}  // namespace
}  // namespace wick::cpu::WICK_ISA
