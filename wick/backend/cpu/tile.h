#pragma once

// What kernels over dense runs share: the element types of the dtypes, their conversion to and from
// the type that computes, and stores around the caches. Narrow floats (bf16, f16, f8e4m3) compute
// in f32 and round once at the store; every other type computes as itself. Included by kernel
// sources only: everything here has internal linkage, once for each instruction set.

#include <cstdint>

#include "wick/backend/cpu/halves.h"
#include "wick/backend/cpu/intrinsics.h"
#include "wick/backend/cpu/storage_type.h"
#include "wick/math/half.h"

namespace wick::cpu::WICK_ISA {
namespace {

using math::bf16;
using math::f16;
using math::f8e4m3;

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

/// Elements of a streamed piece: a few lines, so that their stores overlap with the arithmetic of
/// the next piece.
template <class S>
inline constexpr int64_t kStreamed = 4 * kLine<S>;

// ---- Conversion; n a multiple of 16, of f8e4m3 of 32 ----
// Each store is as wide as the loads that read it back: narrower ones couldn't be forwarded. The
// vector forms give the bits of math::to_f32 and math::from_f32.

#if defined(__AVX512BW__)
WICK_FN __m512 splat(uint32_t bits) {
  return _mm512_castsi512_ps(_mm512_set1_epi32(static_cast<int>(bits)));
}

/// 32 of f8e4m3, as f16 an eighth of a byte up: the same fields with another bias, 2^8 too small.
WICK_FN __m512i f8_fields(__m256i bytes) {
  const __m512i sign_and_rest = _mm512_slli_epi16(_mm512_cvtepi8_epi16(bytes), 7);
  const __m512i fields = _mm512_and_si512(sign_and_rest, _mm512_set1_epi16(-0x4001));
  const __m512i most = _mm512_set1_epi16(0x3f80);  // all ones: NaN, which f16 has higher up
  const __mmask32 nan = _mm512_cmpeq_epi16_mask(_mm512_and_si512(fields, most), most);
  return _mm512_mask_add_epi16(fields, nan, fields, _mm512_set1_epi16(0x4000));
}

/// 16 floats rounded to f8e4m3, as f16 2^8 too small. Adding and taking away a power of two whose
/// last place is that of the result rounds to nearest even; the sign comes back from x.
WICK_FN __m256i round_to_f8(__m512 x) {
  const __m512 magnitude = _mm512_andnot_ps(_mm512_set1_ps(-0.0f), x);
  const __m512 finite = _mm512_min_ps(_mm512_set1_ps(448.0f), magnitude);  // NaN stays
  const __m512i exponent = _mm512_castps_si512(_mm512_and_ps(finite, splat(0x7f800000u)));
  const __m512i normal = _mm512_max_epi32(exponent, _mm512_set1_epi32(0x3c800000));
  const __m512 unit = _mm512_castsi512_ps(_mm512_add_epi32(normal, _mm512_set1_epi32(20 << 23)));
  const __m512 rounded = _mm512_sub_ps(_mm512_add_ps(finite, unit), unit);
  const __m512i scaled = _mm512_castps_si512(_mm512_mul_ps(rounded, _mm512_set1_ps(0x1p-8f)));
  const __m512i sign =
      _mm512_and_si512(_mm512_castps_si512(x), _mm512_set1_epi32(static_cast<int>(0x80000000u)));
  return _mm512_cvtps_ph(_mm512_castsi512_ps(_mm512_or_si512(scaled, sign)),
                         _MM_FROUND_TO_NEAREST_INT);
}

WICK_FN void widen(float* __restrict to, const f16* __restrict from, int64_t n) {
  for (int64_t i = 0; i < n; i += 16) {
    const __m256i half = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(from + i));
    _mm512_storeu_ps(to + i, _mm512_cvtph_ps(half));
  }
}
WICK_FN void widen(float* __restrict to, const bf16* __restrict from, int64_t n) {
  for (int64_t i = 0; i < n; i += 16) {
    const __m256i half = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(from + i));
    _mm512_storeu_si512(to + i, _mm512_slli_epi32(_mm512_cvtepu16_epi32(half), 16));
  }
}
WICK_FN void widen(float* __restrict to, const f8e4m3* __restrict from, int64_t n) {
  const __m512 scale = _mm512_set1_ps(256.0f);
  for (int64_t i = 0; i < n; i += 32) {
    const __m512i fields =
        f8_fields(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(from + i)));
    const __m256i low = _mm512_castsi512_si256(fields), high = _mm512_extracti64x4_epi64(fields, 1);
    _mm512_storeu_ps(to + i, _mm512_mul_ps(_mm512_cvtph_ps(low), scale));
    _mm512_storeu_ps(to + i + 16, _mm512_mul_ps(_mm512_cvtph_ps(high), scale));
  }
}

// n a multiple of 32.
WICK_FN void narrow(f16* __restrict to, const float* __restrict from, int64_t n) {
  for (int64_t i = 0; i < n; i += 32) {
    _mm512_storeu_si512(to + i, f16_of(_mm512_loadu_ps(from + i), _mm512_loadu_ps(from + i + 16)));
  }
}
WICK_FN void narrow(bf16* __restrict to, const float* __restrict from, int64_t n) {
  for (int64_t i = 0; i < n; i += 32) {
    _mm512_storeu_si512(to + i, bf16_of(_mm512_loadu_ps(from + i), _mm512_loadu_ps(from + i + 16)));
  }
}
WICK_FN void narrow(f8e4m3* __restrict to, const float* __restrict from, int64_t n) {
  for (int64_t i = 0; i < n; i += 32) {
    const __m512i half =
        join(round_to_f8(_mm512_loadu_ps(from + i)), round_to_f8(_mm512_loadu_ps(from + i + 16)));
    // The sign goes out at the top for a moment; NaN is the only magnitude above 0x7f.
    const __m512i magnitude =
        _mm512_min_epu16(_mm512_srli_epi16(_mm512_slli_epi16(half, 1), 8), _mm512_set1_epi16(0x7f));
    const __m512i sign = _mm512_and_si512(_mm512_srli_epi16(half, 8), _mm512_set1_epi16(0x80));
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(to + i),
                        _mm512_cvtepi16_epi8(_mm512_or_si512(magnitude, sign)));
  }
}
#elif defined(__F16C__)
WICK_FN void widen(float* __restrict to, const f16* __restrict from, int64_t n) {
  for (int64_t i = 0; i < n; i += 8) {
    const __m128i half = _mm_loadu_si128(reinterpret_cast<const __m128i*>(from + i));
    _mm256_storeu_ps(to + i, _mm256_cvtph_ps(half));
  }
}
/// n a multiple of 32.
WICK_FN void narrow(f16* __restrict to, const float* __restrict from, int64_t n) {
  for (int64_t i = 0; i < n; i += 16) {
    const __m128i low = _mm256_cvtps_ph(_mm256_loadu_ps(from + i), _MM_FROUND_TO_NEAREST_INT);
    const __m128i high = _mm256_cvtps_ph(_mm256_loadu_ps(from + i + 8), _MM_FROUND_TO_NEAREST_INT);
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(to + i), _mm256_set_m128i(high, low));
  }
}
#endif

/// For floats that come from S and so needn't be rounded. n a multiple of 32.
template <class S>
WICK_FN void narrow_exact(S* __restrict to, const float* __restrict from, int64_t n) {
#if defined(__AVX512BW__)
  if constexpr (math::kSame<S, bf16>) {
    for (int64_t i = 0; i < n; i += 32) {
      const __m512i low = _mm512_loadu_si512(from + i), high = _mm512_loadu_si512(from + i + 16);
      _mm512_storeu_si512(to + i, upper_halves(low, high));
    }
    return;
  }
#endif
  narrow(to, from, n);
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

/// True for types whose conversion has intrinsics: kernels convert a line, compute it and convert
/// it back, and the compiler keeps all three in registers. Else one plain loop does.
template <class S>
#if defined(__AVX512BW__)
inline constexpr bool kStepwise = kNarrow<S>;
#elif defined(__F16C__)
inline constexpr bool kStepwise = math::kSame<S, f16>;
#else
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

/// Up to kN elements, the rest filled.
template <class S, int64_t kN>
struct PaddedLine {
  alignas(64) S elems[kN];
  PaddedLine(const S* from, int64_t n) {
    for (S& element : elems) element = filler<S>();
    __builtin_memcpy(elems, from, static_cast<size_t>(n) * sizeof(S));
  }
  const S* pointer() const { return elems; }
};

/// Elements that are whole lines of every one of the types.
template <class... S>
constexpr int64_t line_of_all() {
  int64_t n = 1;
  ((n = kLine<S> > n ? kLine<S> : n), ...);
  return n;
}

/// Covers a run of n elements with calls of lines(y, inputs.., count), count a multiple of a line
/// of every operand. The end of the run, and the start of a streamed one up to a line's boundary,
/// go through padded lines, so that no byte outside the run is touched. Streamed results come in
/// pieces small enough that their stores overlap with the arithmetic of the next.
template <class S, class Lines, class... In>
inline void cover(int64_t n, bool stream, const Lines& lines, S* y, const In*... in) {
  constexpr int64_t kN = line_of_all<S, In...>();
  auto part = [&lines](int64_t count, S* to, const In*... from) {
    alignas(64) S result[kN];
    lines(result, PaddedLine<In, kN>(from, count).pointer()..., kN);
    __builtin_memcpy(to, result, static_cast<size_t>(count) * sizeof(S));
  };
  int64_t i = 0;
  if (stream) {
    const int64_t head = bytes_to_line(y) / static_cast<int64_t>(sizeof(S));
    if (head > 0 && head <= n) {
      part(head, y, in...);
      i = head;
    }
    constexpr int64_t kCount = kStreamed < S >> kN ? kStreamed<S> : kN;
    for (; n - i >= kCount; i += kCount) {
      alignas(64) S tile[kCount];
      lines(tile, (in + i)..., kCount);
      stream_tile(y + i, tile, kCount);
    }
  }
  if (const int64_t whole = (n - i) / kN * kN; whole > 0) {
    lines(y + i, (in + i)..., whole);
    i += whole;
  }
  if (i < n) part(n - i, y + i, (in + i)...);
}

}  // namespace
}  // namespace wick::cpu::WICK_ISA
