#pragma once

// Vectors as wide as a register of the instruction set, for kernel sources only (see isa.h): all
// functions have internal linkage. Kernels use the compiler's arithmetic operators on vector types;
// this file defines the operations for which there is no operator. Memory is accessed at any
// alignment.

#include <cstddef>
#include <cstdint>

#include "wick/backend/cpu/intrinsics.h"
#include "wick/math/scalar.h"

namespace wick::cpu::WICK_ISA {
namespace {

#if defined(__AVX512F__)
inline constexpr int kVectorBytes = 64;
#elif defined(__AVX2__)
inline constexpr int kVectorBytes = 32;
#else
inline constexpr int kVectorBytes = 16;
#endif

template <class T>
inline constexpr int kLanes = kVectorBytes / static_cast<int>(sizeof(T));

template <class T>
struct VecType {
  typedef T type __attribute__((vector_size(kVectorBytes)));
};
/// One register of numbers T.
template <class T>
using Vec = typename VecType<T>::type;

/// x in every lane.
template <class T>
WICK_FN Vec<T> splat(T x) {
  return x - Vec<T>{};  // x + 0 would turn -0 into +0
}

/// a * b + c with one rounding.
WICK_FN Vec<float> fma(Vec<float> a, Vec<float> b, Vec<float> c) {
#if defined(__AVX512F__)
  return reinterpret_cast<Vec<float>>(_mm512_fmadd_ps(a, b, c));
#elif defined(__FMA__)
  return reinterpret_cast<Vec<float>>(_mm256_fmadd_ps(a, b, c));
#elif defined(__aarch64__)
  return reinterpret_cast<Vec<float>>(vfmaq_f32(c, a, b));
#else
  for (int i = 0; i < kLanes<float>; ++i) c[i] = math::fma(a[i], b[i], c[i]);
  return c;
#endif
}

/// a * b + c with one rounding where the instruction set has such an instruction, with two
/// elsewhere; modulo 2^bits for integers.
template <class V>
WICK_FN V multiply_add(V a, V b, V c) {
  return a * b + c;
}
#if defined(__FMA__) || defined(__aarch64__)
WICK_FN Vec<float> multiply_add(Vec<float> a, Vec<float> b, Vec<float> c) { return fma(a, b, c); }
WICK_FN Vec<double> multiply_add(Vec<double> a, Vec<double> b, Vec<double> c) {
#if defined(__AVX512F__)
  return reinterpret_cast<Vec<double>>(_mm512_fmadd_pd(a, b, c));
#elif defined(__FMA__)
  return reinterpret_cast<Vec<double>>(_mm256_fmadd_pd(a, b, c));
#else
  return reinterpret_cast<Vec<double>>(vfmaq_f64(c, a, b));
#endif
}
#endif

WICK_FN int64_t min(int64_t a, int64_t b) { return a < b ? a : b; }
WICK_FN int64_t max(int64_t a, int64_t b) { return a > b ? a : b; }

/// a > b ? a : b in each lane.
WICK_FN Vec<double> max(Vec<double> a, Vec<double> b) { return a > b ? a : b; }
WICK_FN Vec<float> max(Vec<float> a, Vec<float> b) {
#if defined(__AVX512F__)
  return reinterpret_cast<Vec<float>>(_mm512_max_ps(a, b));
#elif defined(__AVX2__)
  return reinterpret_cast<Vec<float>>(_mm256_max_ps(a, b));
#else
  return a > b ? a : b;
#endif
}

/// The largest lane of a vector without NaN.
template <class V>
WICK_FN auto reduce_max(V v) {
  constexpr int kCount = static_cast<int>(sizeof(V) / sizeof(v[0]));
  alignas(kVectorBytes) decltype(v[0] + v[0]) lane[kCount];
  __builtin_memcpy(lane, &v, sizeof v);
  for (int half = kCount / 2; half > 0; half /= 2) {
    for (int l = 0; l < half; ++l) lane[l] = lane[l] > lane[l + half] ? lane[l] : lane[l + half];
  }
  return lane[0];
}

/// The first `count` lanes of v; +0 in the others.
template <class V>
WICK_FN V keep_first(V v, int count) {
  using Mask = decltype(v < v);
  Mask lane;
  for (int l = 0; l < static_cast<int>(sizeof lane / sizeof lane[0]); ++l) lane[l] = l;
  const Mask kept = lane < (Mask{} + count);
  return reinterpret_cast<V>(reinterpret_cast<Mask>(v) & kept);
}

/// The exponential of each lane. The compiler keeps the lanes in their register.
template <class A>
WICK_FN Vec<A> exp_lanes(Vec<A> v) {
  alignas(kVectorBytes) A lane[kLanes<A>];
  __builtin_memcpy(lane, &v, sizeof v);
  for (int l = 0; l < kLanes<A>; ++l) lane[l] = math::exp(lane[l]);
  __builtin_memcpy(&v, lane, sizeof v);
  return v;
}
/// The logarithm of each lane.
template <class A>
WICK_FN Vec<A> log_lanes(Vec<A> v) {
  alignas(kVectorBytes) A lane[kLanes<A>];
  __builtin_memcpy(lane, &v, sizeof v);
  for (int l = 0; l < kLanes<A>; ++l) lane[l] = math::log(lane[l]);
  __builtin_memcpy(&v, lane, sizeof v);
  return v;
}

/// Stores a register, with a non-temporal store if kStream; p is then aligned to the register.
template <bool kStream, class V>
WICK_FN void store_register(void* p, V v) {
#if defined(__x86_64__)
  if constexpr (kStream && sizeof(V) == 16) {
    _mm_stream_si128(static_cast<__m128i*>(p), __builtin_bit_cast(__m128i, v));
    return;
  }
#endif
#if defined(__AVX2__)
  if constexpr (kStream && sizeof(V) == 32) {
    _mm256_stream_si256(static_cast<__m256i*>(p), __builtin_bit_cast(__m256i, v));
    return;
  }
#endif
#if defined(__AVX512F__)
  if constexpr (kStream && sizeof(V) == 64) {
    _mm512_stream_si512(static_cast<__m512i*>(p), __builtin_bit_cast(__m512i, v));
    return;
  }
#endif
  __builtin_memcpy(p, &v, sizeof v);
}

/// Copies one cache line to an aligned address with non-temporal stores. The caller calls
/// stream_fence (loops.h) when the work is done.
WICK_FN void stream_line(void* to, const void* from) {
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

}  // namespace
}  // namespace wick::cpu::WICK_ISA
