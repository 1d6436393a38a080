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

/// Elements of a cache line. Kernels get multiples of it, so their loops are whole vectors without
/// tails; the end of a run goes through a padded line.
template <class S>
inline constexpr int64_t kLine = 64 / static_cast<int64_t>(sizeof(S));

/// Elements of a stepwise conversion.
inline constexpr int64_t kPiece = 256;
/// Elements of a streamed piece: a few lines, so that their stores overlap with the arithmetic of
/// the next piece.
template <class S>
inline constexpr int64_t kStreamed = 4 * kLine<S>;

// ---- Conversion; n a multiple of 16 ----
// Each store is as wide as the loads that read it back: narrower ones couldn't be forwarded. (The
// masked intrinsics are the plain instructions, without the compiler's warning about its own
// header.)

template <class S>
inline void widen(float* __restrict to, const S* __restrict from, int64_t n) {
  if constexpr (math::kSame<S, f16>) {
#if defined(__AVX512F__)
    for (int64_t i = 0; i < n; i += 16) {
      const __m256i half = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(from + i));
      _mm512_storeu_ps(to + i, _mm512_maskz_cvtph_ps(0xffff, half));
    }
    return;
#elif defined(__F16C__)
    for (int64_t i = 0; i < n; i += 8) {
      const __m128i half = _mm_loadu_si128(reinterpret_cast<const __m128i*>(from + i));
      _mm256_storeu_ps(to + i, _mm256_cvtph_ps(half));
    }
    return;
#endif
  }
  const int64_t whole = n / 16 * 16;
  for (int64_t i = 0; i < whole; ++i) to[i] = math::to_f32(from[i]);
}

/// The processor's conversion to f16 gives the bits of math::from_f32. n a multiple of 32.
template <class S>
inline void narrow(S* __restrict to, const float* __restrict from, int64_t n) {
  if constexpr (math::kSame<S, f16>) {
    constexpr int kNearest = 0;  // ties to even
#if defined(__AVX512F__)
    for (int64_t i = 0; i < n; i += 32) {
      const __m256i low = _mm512_maskz_cvtps_ph(0xffff, _mm512_loadu_ps(from + i), kNearest);
      const __m256i high = _mm512_maskz_cvtps_ph(0xffff, _mm512_loadu_ps(from + i + 16), kNearest);
      _mm512_storeu_si512(to + i,
                          _mm512_maskz_inserti64x4(0xff, _mm512_castsi256_si512(low), high, 1));
    }
    return;
#elif defined(__F16C__)
    for (int64_t i = 0; i < n; i += 16) {
      const __m128i low = _mm256_cvtps_ph(_mm256_loadu_ps(from + i), kNearest);
      const __m128i high = _mm256_cvtps_ph(_mm256_loadu_ps(from + i + 8), kNearest);
      _mm256_storeu_si256(reinterpret_cast<__m256i*>(to + i), _mm256_set_m128i(high, low));
    }
    return;
#endif
  }
  const int64_t whole = n / 16 * 16;
  for (int64_t i = 0; i < whole; ++i) to[i] = math::from_f32<S>(from[i]);
}

template <class S>
inline Compute<S> load(S x) {
  if constexpr (kNarrow<S>) {
    return math::to_f32(x);
  } else {
    return x;
  }
}
template <class S>
inline S store(Compute<S> x) {
  if constexpr (kNarrow<S>) {
    return math::from_f32<S>(x);
  } else {
    return x;
  }
}

/// True for types whose conversion is an instruction that only intrinsics reach: kernels convert a
/// piece, compute it and convert it back. Else one loop does all three in registers.
#if defined(__F16C__)
template <class S>
inline constexpr bool kStepwise = math::kSame<S, f16>;
#else
template <class S>
inline constexpr bool kStepwise = false;
#endif

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

template <class S>
inline void stream_tile(S* to, const S* tile, int64_t n) {
  for (int64_t i = 0; i < n; i += kLine<S>) stream_line(to + i, tile + i);
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
struct PaddedLine {
  alignas(64) S elems[kLine<S>];
  PaddedLine(const S* from, int64_t n) {
    for (S& element : elems) element = filler<S>();
    __builtin_memcpy(elems, from, static_cast<size_t>(n) * sizeof(S));
  }
  const S* pointer() const { return elems; }
};

/// Covers a run of n elements with calls of lines(y, inputs.., count), count a multiple of a line.
/// The end of the run, and the start of a streamed one up to a line's boundary, go through padded
/// lines, so that no byte outside the run is touched. Streamed results come in pieces small enough
/// that their stores overlap with the arithmetic of the next.
template <class S, class Lines, class... In>
inline void cover(int64_t n, bool stream, const Lines& lines, S* y, const In*... in) {
  auto part = [&lines](int64_t count, S* to, const In*... from) {
    alignas(64) S result[kLine<S>];
    lines(result, PaddedLine<S>(from, count).pointer()..., kLine<S>);
    __builtin_memcpy(to, result, static_cast<size_t>(count) * sizeof(S));
  };
  int64_t i = 0;
  if (stream) {
    const int64_t head = bytes_to_line(y) / static_cast<int64_t>(sizeof(S));
    if (head > 0 && head <= n) {
      part(head, y, in...);
      i = head;
    }
    for (; n - i >= kStreamed<S>; i += kStreamed<S>) {
      alignas(64) S tile[kStreamed<S>];
      lines(tile, (in + i)..., kStreamed<S>);
      stream_tile(y + i, tile, kStreamed<S>);
    }
  }
  if (const int64_t whole = (n - i) / kLine<S> * kLine<S>; whole > 0) {
    lines(y + i, (in + i)..., whole);
    i += whole;
  }
  if (i < n) part(n - i, y + i, (in + i)...);
}

}  // namespace
}  // namespace wick::cpu::WICK_ISA
