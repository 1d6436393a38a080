#pragma once

// Elements of every dtype as the numbers that kernels compute with, and back: one element, one
// register, or a run. f16, bf16 and f8e4m3 compute in f32 and are rounded once when they are
// stored; every other type computes as itself. All vector conversions of f16, bf16 and f8e4m3 on
// the CPU are in this file, and give the bits of wick/math/half.h. For kernel sources only (see
// isa.h).

#include <cstdint>

#include "wick/backend/cpu/simd/vec.h"
#include "wick/math/half.h"

namespace wick::cpu::WICK_ISA {
namespace {

using math::bf16;
using math::f16;
using math::f8e4m3;

/// Whether S computes in f32.
template <class S>
inline constexpr bool kNarrow =
    math::kSame<S, bf16> || math::kSame<S, f16> || math::kSame<S, f8e4m3>;

template <class S, bool kIsNarrow = kNarrow<S>>
struct ComputeType {
  using type = S;
};
template <class S>
struct ComputeType<S, true> {
  using type = float;
};
/// The type that elements of S compute in.
template <class S>
using Compute = typename ComputeType<S>::type;

/// Elements of S that fill one register once they are widened.
template <class S>
inline constexpr int kStep = kLanes<Compute<S>>;

// ---- One element ----

/// An element in the type T that computes; integers modulo 2^bits.
template <class T, class S>
WICK_FN T widen_to(S x) {
  if constexpr (kNarrow<S>) {
    return math::to_f32(x);
  } else {
    return static_cast<T>(x);
  }
}
template <class S>
WICK_FN Compute<S> widen(S x) {
  return widen_to<Compute<S>>(x);
}
/// The reverse: floats rounded once, the low bits of integers.
template <class S, class T>
WICK_FN S narrow(T x) {
  if constexpr (kNarrow<S>) {
    return math::from_f32<S>(x);
  } else {
    return static_cast<S>(x);
  }
}

// ---- Registers of 16- and 8-bit floats ----

#if defined(__AVX512BW__)
/// 32 bytes and 32 bytes as one register.
WICK_FN __m512i concat(__m256i low, __m256i high) {
  return _mm512_inserti64x4(_mm512_castsi256_si512(low), high, 1);
}

/// The upper halves of the 32-bit lanes of two registers.
WICK_FN __m512i upper_halves(__m512i low, __m512i high) {
  const __m512i every_other =
      _mm512_set_epi16(63, 61, 59, 57, 55, 53, 51, 49, 47, 45, 43, 41, 39, 37, 35, 33,  //
                       31, 29, 27, 25, 23, 21, 19, 17, 15, 13, 11, 9, 7, 5, 3, 1);
  return _mm512_permutex2var_epi16(low, every_other, high);
}

WICK_FN __m512i f16_of(__m512 low, __m512 high) {
  return concat(_mm512_cvtps_ph(low, _MM_FROUND_TO_NEAREST_INT),
                _mm512_cvtps_ph(high, _MM_FROUND_TO_NEAREST_INT));
}

/// Floats whose upper halves are x rounded to bf16, except for NaN: adds 0x7fff, or 0x8000 if the
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

/// One test for NaN and one permutation serve both registers.
WICK_FN __m512i bf16_of(__m512 low, __m512 high) {
  __m512i x = round_to_bf16(low), y = round_to_bf16(high);
  if (_mm512_cmp_ps_mask(low, high, _CMP_UNORD_Q) != 0) [[unlikely]] {
    x = nan_to_bf16(low, x);
    y = nan_to_bf16(high, y);
  }
  return upper_halves(x, y);
}

WICK_FN __m512 splat_bits(uint32_t bits) {
  return _mm512_castsi512_ps(_mm512_set1_epi32(static_cast<int>(bits)));
}

/// 32 f8e4m3 as f16 of 2^-8 times their value: the fields of f8e4m3 are those of f16 shifted by one
/// bit, with another exponent bias.
WICK_FN __m512i f8_fields(__m256i bytes) {
  const __m512i sign_and_rest = _mm512_slli_epi16(_mm512_cvtepi8_epi16(bytes), 7);
  const __m512i fields = _mm512_and_si512(sign_and_rest, _mm512_set1_epi16(-0x4001));
  const __m512i most = _mm512_set1_epi16(0x3f80);  // NaN of f8e4m3; f16 has another encoding
  const __mmask32 nan = _mm512_cmpeq_epi16_mask(_mm512_and_si512(fields, most), most);
  return _mm512_mask_add_epi16(fields, nan, fields, _mm512_set1_epi16(0x4000));
}

/// 16 floats rounded to f8e4m3, as f16 of 2^-8 times their value. Adding and subtracting a power of
/// two whose last place is that of the result rounds to nearest even; the sign comes from x.
WICK_FN __m256i round_to_f8(__m512 x) {
  const __m512 magnitude = _mm512_andnot_ps(_mm512_set1_ps(-0.0f), x);
  const __m512 finite = _mm512_min_ps(_mm512_set1_ps(448.0f), magnitude);  // keeps NaN
  const __m512i exponent = _mm512_castps_si512(_mm512_and_ps(finite, splat_bits(0x7f800000u)));
  const __m512i normal = _mm512_max_epi32(exponent, _mm512_set1_epi32(0x3c800000));
  const __m512 unit = _mm512_castsi512_ps(_mm512_add_epi32(normal, _mm512_set1_epi32(20 << 23)));
  const __m512 rounded = _mm512_sub_ps(_mm512_add_ps(finite, unit), unit);
  const __m512i scaled = _mm512_castps_si512(_mm512_mul_ps(rounded, _mm512_set1_ps(0x1p-8f)));
  const __m512i sign =
      _mm512_and_si512(_mm512_castps_si512(x), _mm512_set1_epi32(static_cast<int>(0x80000000u)));
  return _mm512_cvtps_ph(_mm512_castsi512_ps(_mm512_or_si512(scaled, sign)),
                         _MM_FROUND_TO_NEAREST_INT);
}

/// 32 floats, the first 16 in `low`, as f8e4m3.
WICK_FN __m256i f8_of(__m512 low, __m512 high) {
  const __m512i half = concat(round_to_f8(low), round_to_f8(high));
  // Masks out the sign. NaN is the only magnitude above 0x7f.
  const __m512i magnitude =
      _mm512_min_epu16(_mm512_srli_epi16(_mm512_slli_epi16(half, 1), 8), _mm512_set1_epi16(0x7f));
  const __m512i sign = _mm512_and_si512(_mm512_srli_epi16(half, 8), _mm512_set1_epi16(0x80));
  return _mm512_cvtepi16_epi8(_mm512_or_si512(magnitude, sign));
}
#endif

#if !defined(__F16C__) && !defined(__aarch64__)
/// f16 in the low halves of 32-bit lanes as floats. The product adjusts the exponent, also of
/// denormals; infinities and NaN get the exponent of all ones, and NaN becomes quiet.
WICK_FN Vec<float> f16_lanes_to_f32(Vec<uint32_t> bits) {
  const Vec<uint32_t> magnitude = (bits & 0x7fffu) << 13;
  const auto value =
      reinterpret_cast<Vec<uint32_t>>(reinterpret_cast<Vec<float>>(magnitude) * 0x1p112f);
  const auto special = reinterpret_cast<Vec<uint32_t>>(magnitude > 0x0f7fffffu) & 0x7f800000u;
  const auto quiet = reinterpret_cast<Vec<uint32_t>>(magnitude > 0x0f800000u) & 0x00400000u;
  return reinterpret_cast<Vec<float>>(value | special | quiet | (bits & 0x8000u) << 16);
}
#endif

// ---- One register of the type that computes ----

template <class T>
WICK_FN Vec<float> load_by_element(const T* p) {
  float lane[kLanes<float>];
  for (int i = 0; i < kLanes<float>; ++i) lane[i] = math::to_f32(p[i]);
  Vec<float> v;
  __builtin_memcpy(&v, lane, sizeof v);
  return v;
}
WICK_FN Vec<float> load_narrow(const f8e4m3* p) { return load_by_element(p); }
WICK_FN Vec<float> load_narrow(const bf16* p) {
#if defined(__AVX512F__)
  const __m256i bits = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(p));
  return reinterpret_cast<Vec<float>>(_mm512_slli_epi32(_mm512_cvtepu16_epi32(bits), 16));
#else
  typedef uint16_t Half __attribute__((vector_size(kVectorBytes / 2)));
  Half bits;
  __builtin_memcpy(&bits, p, sizeof bits);
  return reinterpret_cast<Vec<float>>(__builtin_convertvector(bits, Vec<uint32_t>) << 16);
#endif
}
WICK_FN Vec<float> load_narrow(const f16* p) {
#if defined(__AVX512F__)
  return reinterpret_cast<Vec<float>>(
      _mm512_cvtph_ps(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(p))));
#elif defined(__F16C__)
  return reinterpret_cast<Vec<float>>(
      _mm256_cvtph_ps(_mm_loadu_si128(reinterpret_cast<const __m128i*>(p))));
#elif defined(__aarch64__)
  uint16x4_t bits;
  __builtin_memcpy(&bits, p, sizeof bits);
  return reinterpret_cast<Vec<float>>(vcvt_f32_f16(vreinterpret_f16_u16(bits)));
#else
  typedef uint16_t Half __attribute__((vector_size(kVectorBytes / 2)));
  Half bits;
  __builtin_memcpy(&bits, p, sizeof bits);
  return f16_lanes_to_f32(__builtin_convertvector(bits, Vec<uint32_t>));
#endif
}

/// One register's elements, widened.
template <class T>
WICK_FN Vec<Compute<T>> load(const T* p) {
  if constexpr (kNarrow<T>) {
    return load_narrow(p);
  } else {
    Vec<T> v;
    __builtin_memcpy(&v, p, sizeof v);
    return v;
  }
}

/// The first `count` elements, widened; the other lanes are +0 and their memory isn't accessed.
template <class T>
WICK_FN Vec<Compute<T>> load_partial(const T* p, int count) {
#if defined(__AVX512BW__) && defined(__AVX512VL__)
  const auto mask = static_cast<unsigned>((uint64_t{1} << count) - 1);
  if constexpr (math::kSame<T, float>) {
    return reinterpret_cast<Vec<float>>(_mm512_maskz_loadu_ps(static_cast<__mmask16>(mask), p));
  } else if constexpr (math::kSame<T, f16>) {
    return reinterpret_cast<Vec<float>>(
        _mm512_cvtph_ps(_mm256_maskz_loadu_epi16(static_cast<__mmask16>(mask), p)));
  } else if constexpr (math::kSame<T, bf16>) {
    const __m256i bits = _mm256_maskz_loadu_epi16(static_cast<__mmask16>(mask), p);
    return reinterpret_cast<Vec<float>>(_mm512_slli_epi32(_mm512_cvtepu16_epi32(bits), 16));
  }
#endif
  T lane[kStep<T>] = {};
  for (int i = 0; i < count; ++i) lane[i] = p[i];
  return load(lane);
}

template <class T>
WICK_FN void store_by_element(T* p, Vec<float> v) {
  float lane[kLanes<float>];
  __builtin_memcpy(lane, &v, sizeof v);
  for (int i = 0; i < kLanes<float>; ++i) p[i] = math::from_f32<T>(lane[i]);
}
WICK_FN void store_narrow(f8e4m3* p, Vec<float> v) { store_by_element(p, v); }
WICK_FN void store_narrow(bf16* p, Vec<float> v) {
#if defined(__AVX512BW__)
  const auto x = reinterpret_cast<__m512>(v);
  _mm256_storeu_si256(reinterpret_cast<__m256i*>(p), _mm512_castsi512_si256(bf16_of(x, x)));
#else
  typedef uint16_t Half __attribute__((vector_size(kVectorBytes / 2)));
  const auto bits = reinterpret_cast<Vec<uint32_t>>(v);
  const Vec<uint32_t> rounded = bits + 0x7fff + ((bits >> 16) & 1);
  const Vec<uint32_t> result = v != v ? Vec<uint32_t>{} + 0x7fc00000u : rounded;
  const Half upper = __builtin_convertvector(result >> 16, Half);
  __builtin_memcpy(p, &upper, sizeof upper);
#endif
}
WICK_FN void store_narrow(f16* p, Vec<float> v) {
#if defined(__AVX512F__)
  _mm256_storeu_si256(reinterpret_cast<__m256i*>(p),
                      _mm512_cvtps_ph(reinterpret_cast<__m512>(v), _MM_FROUND_TO_NEAREST_INT));
#elif defined(__F16C__)
  _mm_storeu_si128(reinterpret_cast<__m128i*>(p),
                   _mm256_cvtps_ph(reinterpret_cast<__m256>(v), _MM_FROUND_TO_NEAREST_INT));
#elif defined(__aarch64__)
  const float16x4_t half = vcvt_f16_f32(reinterpret_cast<float32x4_t>(v));
  __builtin_memcpy(p, &half, sizeof half);
#else
  store_by_element(p, v);
#endif
}

/// Stores one register's elements, rounded to T.
template <class T>
WICK_FN void store(T* p, Vec<Compute<T>> v) {
  if constexpr (kNarrow<T>) {
    store_narrow(p, v);
  } else {
    __builtin_memcpy(p, &v, sizeof v);
  }
}

/// Stores a, and b behind it, rounded to T. kStream: with non-temporal stores where the elements
/// fill whole cache lines; p is then aligned to a cache line.
template <bool kStream, class T>
WICK_FN void store_pair(T* p, Vec<Compute<T>> a, Vec<Compute<T>> b) {
  if constexpr (!kNarrow<T>) {
    store_register<kStream>(p, a);
    store_register<kStream>(p + kStep<T>, b);
    return;
  }
#if defined(__AVX512BW__)
  if constexpr (math::kSame<T, bf16>) {
    store_register<kStream>(p, bf16_of(reinterpret_cast<__m512>(a), reinterpret_cast<__m512>(b)));
    return;
  } else if constexpr (math::kSame<T, f16>) {
    store_register<kStream>(p, f16_of(reinterpret_cast<__m512>(a), reinterpret_cast<__m512>(b)));
    return;
  }
#endif
  if constexpr (kNarrow<T>) {
    store(p, a);
    store(p + kStep<T>, b);
  }
}

// ---- Runs ----
// Each store is as wide as the loads that read it back: the processor couldn't forward the data of
// narrower stores to them.

/// Widens as many of n elements as whole vectors hold, if kConvertsByRun<S>; returns how many. All,
/// if n is a multiple of 32.
template <class T, class S>
WICK_FN int64_t widen_vectors([[maybe_unused]] T* __restrict to,
                              [[maybe_unused]] const S* __restrict from,
                              [[maybe_unused]] int64_t n) {
  int64_t i = 0;
#if defined(__AVX512BW__)
  if constexpr (math::kSame<S, f8e4m3>) {
    const __m512 scale = _mm512_set1_ps(256.0f);
    for (; i + 32 <= n; i += 32) {
      const __m512i fields =
          f8_fields(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(from + i)));
      const __m256i low = _mm512_castsi512_si256(fields);
      const __m256i high = _mm512_extracti64x4_epi64(fields, 1);
      _mm512_storeu_ps(to + i, _mm512_mul_ps(_mm512_cvtph_ps(low), scale));
      _mm512_storeu_ps(to + i + 16, _mm512_mul_ps(_mm512_cvtph_ps(high), scale));
    }
  } else if constexpr (math::kSame<S, bf16>) {
    for (; i + 16 <= n; i += 16) store(to + i, load(from + i));
  }
#endif
#if defined(__F16C__) || defined(__aarch64__)
  if constexpr (math::kSame<S, f16>) {
    for (; i + kStep<S> <= n; i += kStep<S>) store(to + i, load(from + i));
  }
#endif
  return i;
}

/// to[0, n) = from[0, n) in the type T that computes, both dense.
template <class T, class S>
WICK_FN void widen_run(T* __restrict to, const S* __restrict from, int64_t n) {
  for (int64_t i = widen_vectors(to, from, n); i < n; ++i) to[i] = widen_to<T>(from[i]);
}

/// Rounds as many of n numbers as whole vectors hold, if kConvertsByRun<S>; returns how many. All,
/// if n is a multiple of 32.
template <class S, class T>
WICK_FN int64_t narrow_vectors([[maybe_unused]] S* __restrict to,
                               [[maybe_unused]] const T* __restrict from,
                               [[maybe_unused]] int64_t n) {
  int64_t i = 0;
#if defined(__AVX512BW__)
  if constexpr (math::kSame<S, f8e4m3>) {
    for (; i + 32 <= n; i += 32) {
      _mm256_storeu_si256(reinterpret_cast<__m256i*>(to + i),
                          f8_of(_mm512_loadu_ps(from + i), _mm512_loadu_ps(from + i + 16)));
    }
  } else if constexpr (kNarrow<S>) {
    for (; i + 32 <= n; i += 32) store_pair<false>(to + i, load(from + i), load(from + i + 16));
  }
#elif defined(__F16C__)
  if constexpr (math::kSame<S, f16>) {
    for (; i + 16 <= n; i += 16) {
      const __m128i low = _mm256_cvtps_ph(_mm256_loadu_ps(from + i), _MM_FROUND_TO_NEAREST_INT);
      const __m128i high =
          _mm256_cvtps_ph(_mm256_loadu_ps(from + i + 8), _MM_FROUND_TO_NEAREST_INT);
      _mm256_storeu_si256(reinterpret_cast<__m256i*>(to + i), _mm256_set_m128i(high, low));
    }
  }
#endif
#if defined(__F16C__) || defined(__aarch64__)
  if constexpr (math::kSame<S, f16>) {
    for (; i + kStep<S> <= n; i += kStep<S>) store(to + i, load(from + i));
  }
#endif
  return i;
}

/// to[0, n) = from[0, n) rounded once, both dense.
template <class S, class T>
WICK_FN void narrow_run(S* __restrict to, const T* __restrict from, int64_t n) {
  for (int64_t i = narrow_vectors(to, from, n); i < n; ++i) to[i] = narrow<S>(from[i]);
}

/// narrow_run of numbers that S holds exactly.
template <class S>
WICK_FN void narrow_run_exact(S* __restrict to, const float* __restrict from, int64_t n) {
#if defined(__AVX512BW__)
  if constexpr (math::kSame<S, bf16>) {
    int64_t i = 0;
    for (; i + 32 <= n; i += 32) {
      const __m512i low = _mm512_loadu_si512(from + i), high = _mm512_loadu_si512(from + i + 16);
      _mm512_storeu_si512(to + i, upper_halves(low, high));
    }
    for (; i < n; ++i) to[i] = narrow<S>(from[i]);
    return;
  }
#endif
  narrow_run(to, from, n);
}

/// Whether the runs above have instructions for S. Kernels then convert a cache line, compute it
/// and convert it back, and the compiler keeps all three in registers; else one plain loop over
/// elements is faster.
template <class S>
#if defined(__AVX512BW__)
inline constexpr bool kConvertsByRun = kNarrow<S>;
#elif defined(__F16C__) || defined(__aarch64__)
inline constexpr bool kConvertsByRun = math::kSame<S, f16>;
#else
inline constexpr bool kConvertsByRun = false;
#endif

}  // namespace
}  // namespace wick::cpu::WICK_ISA
