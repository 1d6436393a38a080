#pragma once

// Vectors of one instruction set, for kernel sources only (see isa.h): everything here has internal
// linkage. Arithmetic is the compiler's own on vector types; only fma, the 16-bit conversions and a
// few shuffles name instructions. The order of a row sum (docs/design/numerics/reduce.md) lives
// here too, because sums, means, norms, softmax and attention share it.

#include <cstddef>
#include <cstdint>

#include "wick/backend/cpu/halves.h"
#include "wick/backend/cpu/intrinsics.h"
#include "wick/math/half.h"
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

template <class A>
inline constexpr int kLanes = kVectorBytes / static_cast<int>(sizeof(A));

typedef float F32 __attribute__((vector_size(kVectorBytes)));
typedef double F64 __attribute__((vector_size(kVectorBytes)));
typedef uint32_t U32 __attribute__((vector_size(kVectorBytes)));
typedef uint16_t U16 __attribute__((vector_size(kVectorBytes / 2)));

/// What an element type computes in, and the vector of that.
template <class T>
struct Compute {
  using Scalar = float;
  using Vector = F32;
};
template <>
struct Compute<double> {
  using Scalar = double;
  using Vector = F64;
};
template <class T>
using AccOf = typename Compute<T>::Scalar;
template <class T>
using VecOf = typename Compute<T>::Vector;

/// Elements of T that fill one vector of its compute type.
template <class T>
inline constexpr int kStep = kLanes<AccOf<T>>;

// One element to its compute type and back (rounded once, to nearest even).
WICK_FN float widen(float x) { return x; }
WICK_FN double widen(double x) { return x; }
WICK_FN float widen(math::f16 x) { return math::to_f32(x); }
WICK_FN float widen(math::bf16 x) { return math::to_f32(x); }
WICK_FN float widen(math::f8e4m3 x) { return math::to_f32(x); }

template <class T, class A>
WICK_FN T narrow(A x) {
  if constexpr (math::kSame<T, A>) {
    return x;
  } else {
    return math::from_f32<T>(x);
  }
}

// x in every lane (x + 0 wouldn't keep -0).
WICK_FN F32 splat(float x) { return x - F32{}; }
WICK_FN F64 splat(double x) { return x - F64{}; }

// Unaligned loads of one vector's elements, converted.
WICK_FN F32 load(const float* p) {
  F32 v;
  __builtin_memcpy(&v, p, sizeof v);
  return v;
}
WICK_FN F64 load(const double* p) {
  F64 v;
  __builtin_memcpy(&v, p, sizeof v);
  return v;
}
template <class T>
WICK_FN F32 load_by_element(const T* p) {
  float lane[kLanes<float>];
  for (int i = 0; i < kLanes<float>; ++i) lane[i] = math::to_f32(p[i]);
  return load(lane);
}
WICK_FN F32 load(const math::f8e4m3* p) { return load_by_element(p); }
WICK_FN F32 load(const math::bf16* p) {
#if defined(__AVX512F__)
  const __m256i bits = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(p));
  return reinterpret_cast<F32>(_mm512_slli_epi32(_mm512_cvtepu16_epi32(bits), 16));
#else
  U16 bits;
  __builtin_memcpy(&bits, p, sizeof bits);
  return reinterpret_cast<F32>(__builtin_convertvector(bits, U32) << 16);
#endif
}
WICK_FN F32 load(const math::f16* p) {
#if defined(__AVX512F__)
  return reinterpret_cast<F32>(
      _mm512_cvtph_ps(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(p))));
#elif defined(__F16C__)
  return reinterpret_cast<F32>(
      _mm256_cvtph_ps(_mm_loadu_si128(reinterpret_cast<const __m128i*>(p))));
#else
  return load_by_element(p);
#endif
}

/// The first `count` elements; the other lanes are +0 and their memory isn't touched.
template <class T>
WICK_FN VecOf<T> load_partial(const T* p, int count) {
#if defined(__AVX512BW__) && defined(__AVX512VL__)
  const auto mask = static_cast<unsigned>((uint64_t{1} << count) - 1);
  if constexpr (math::kSame<T, float>) {
    return reinterpret_cast<F32>(_mm512_maskz_loadu_ps(static_cast<__mmask16>(mask), p));
  } else if constexpr (math::kSame<T, math::f16>) {
    return reinterpret_cast<F32>(
        _mm512_cvtph_ps(_mm256_maskz_loadu_epi16(static_cast<__mmask16>(mask), p)));
  } else if constexpr (math::kSame<T, math::bf16>) {
    const __m256i bits = _mm256_maskz_loadu_epi16(static_cast<__mmask16>(mask), p);
    return reinterpret_cast<F32>(_mm512_slli_epi32(_mm512_cvtepu16_epi32(bits), 16));
  }
#endif
  T lane[kStep<T>] = {};
  for (int i = 0; i < count; ++i) lane[i] = p[i];
  return load(lane);
}

// Unaligned stores of one vector, rounded to the element type.
WICK_FN void store(float* p, F32 v) { __builtin_memcpy(p, &v, sizeof v); }
WICK_FN void store(double* p, F64 v) { __builtin_memcpy(p, &v, sizeof v); }
template <class T>
WICK_FN void store_by_element(T* p, F32 v) {
  float lane[kLanes<float>];
  store(lane, v);
  for (int i = 0; i < kLanes<float>; ++i) p[i] = math::from_f32<T>(lane[i]);
}
WICK_FN void store(math::f8e4m3* p, F32 v) { store_by_element(p, v); }
WICK_FN void store(math::bf16* p, F32 v) {
#if defined(__AVX512BW__)
  const auto x = reinterpret_cast<__m512>(v);
  _mm256_storeu_si256(reinterpret_cast<__m256i*>(p), _mm512_castsi512_si256(bf16_of(x, x)));
#else
  const U32 bits = reinterpret_cast<U32>(v);
  const U32 rounded = bits + 0x7fff + ((bits >> 16) & 1);
  const U32 result = v != v ? U32{} + 0x7fc00000u : rounded;
  const U16 upper = __builtin_convertvector(result >> 16, U16);
  __builtin_memcpy(p, &upper, sizeof upper);
#endif
}
WICK_FN void store(math::f16* p, F32 v) {
#if defined(__AVX512F__)
  _mm256_storeu_si256(reinterpret_cast<__m256i*>(p),
                      _mm512_cvtps_ph(reinterpret_cast<__m512>(v), _MM_FROUND_TO_NEAREST_INT));
#elif defined(__F16C__)
  _mm_storeu_si128(reinterpret_cast<__m128i*>(p),
                   _mm256_cvtps_ph(reinterpret_cast<__m256>(v), _MM_FROUND_TO_NEAREST_INT));
#else
  store_by_element(p, v);
#endif
}

// ---- Two vectors at once: a line of 16-bit elements on AVX-512, or two lines of f32. ----

/// Writes one vector's bytes, around the caches if asked to: p is then aligned to the vector.
template <bool kStream, class V>
WICK_FN void store_bytes(void* p, V v) {
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

/// Stores a, then b behind it, rounded. Streamed if asked to, where the elements fill whole lines:
/// p is then aligned to a line.
template <bool kStream, class T>
WICK_FN void store_pair(T* p, VecOf<T> a, VecOf<T> b) {
  if constexpr (math::kSame<T, AccOf<T>>) {
    store_bytes<kStream>(p, a);
    store_bytes<kStream>(p + kStep<T>, b);
    return;
  }
#if defined(__AVX512BW__)
  if constexpr (math::kSame<T, math::bf16>) {
    store_bytes<kStream>(p, bf16_of(reinterpret_cast<__m512>(a), reinterpret_cast<__m512>(b)));
    return;
  } else if constexpr (math::kSame<T, math::f16>) {
    store_bytes<kStream>(p, f16_of(reinterpret_cast<__m512>(a), reinterpret_cast<__m512>(b)));
    return;
  }
#endif
  if constexpr (!math::kSame<T, AccOf<T>>) {
    store(p, a);
    store(p + kStep<T>, b);
  }
}

WICK_FN int64_t smaller(int64_t a, int64_t b) { return a < b ? a : b; }
WICK_FN int64_t larger(int64_t a, int64_t b) { return a > b ? a : b; }

/// a > b ? a : b, lane by lane.
WICK_FN F64 larger(F64 a, F64 b) { return a > b ? a : b; }
WICK_FN F32 larger(F32 a, F32 b) {
#if defined(__AVX512F__)
  return reinterpret_cast<F32>(
      _mm512_max_ps(reinterpret_cast<__m512>(a), reinterpret_cast<__m512>(b)));
#elif defined(__AVX2__)
  return reinterpret_cast<F32>(
      _mm256_max_ps(reinterpret_cast<__m256>(a), reinterpret_cast<__m256>(b)));
#else
  return a > b ? a : b;
#endif
}

/// The largest lane of a vector without NaN.
template <class V>
WICK_FN auto largest_lane(V v) {
  constexpr int kCount = static_cast<int>(sizeof(V) / sizeof(v[0]));
  alignas(kVectorBytes) decltype(v[0] + v[0]) lane[kCount];
  store(lane, v);
  for (int half = kCount / 2; half > 0; half /= 2) {
    for (int l = 0; l < half; ++l) lane[l] = lane[l] > lane[l + half] ? lane[l] : lane[l + half];
  }
  return lane[0];
}

/// a * b + c, rounded once.
WICK_FN F32 fma(F32 a, F32 b, F32 c) {
#if defined(__AVX512F__)
  return reinterpret_cast<F32>(_mm512_fmadd_ps(
      reinterpret_cast<__m512>(a), reinterpret_cast<__m512>(b), reinterpret_cast<__m512>(c)));
#elif defined(__FMA__)
  return reinterpret_cast<F32>(_mm256_fmadd_ps(
      reinterpret_cast<__m256>(a), reinterpret_cast<__m256>(b), reinterpret_cast<__m256>(c)));
#else
  F32 r;
  for (int i = 0; i < kLanes<float>; ++i) r[i] = math::fma(a[i], b[i], c[i]);
  return r;
#endif
}

// The row sum: chunks of 4096, 128 accumulators a chunk, a fixed tree over them.
inline constexpr int64_t kSumChunk = 4096;
inline constexpr int kSumAccumulators = 128;

/// Joins 128 accumulators: the four neighbours of a lane as (a0 + a1) + (a2 + a3), then the 32
/// lanes by an xor tree with distances 16, 8, 4, 2, 1.
template <class A>
WICK_FN A sum_tree(const A* acc) {
  A lane[32];
  for (int l = 0; l < 32; ++l) {
    lane[l] = (acc[4 * l] + acc[4 * l + 1]) + (acc[4 * l + 2] + acc[4 * l + 3]);
  }
  for (int distance = 16; distance > 0; distance /= 2) {
    for (int l = 0; l < distance; ++l) lane[l] = lane[l] + lane[l + distance];
  }
  return lane[0];
}
#if defined(__AVX512F__)
/// The same order. Vector i holds lanes 4i .. 4i+3, one in each of its 128-bit blocks.
WICK_FN float sum_tree(const float* acc) {
  const auto pairs = [](__m512 a, __m512 b) {  // a01 a23 b01 b23 in each block
    return _mm512_add_ps(_mm512_shuffle_ps(a, b, 0x88), _mm512_shuffle_ps(a, b, 0xdd));
  };
  __m512 v[8];
  for (int i = 0; i < 8; ++i) v[i] = _mm512_loadu_ps(acc + 16 * i);
  // Element r of block b is lane 4r + b, or 16 more in the second.
  const __m512 low = pairs(pairs(v[0], v[1]), pairs(v[2], v[3]));
  const __m512 high = pairs(pairs(v[4], v[5]), pairs(v[6], v[7]));
  __m512 s = _mm512_add_ps(low, high);
  s = _mm512_add_ps(s, _mm512_permute_ps(s, 0x4e));  // distance 8
  s = _mm512_add_ps(s, _mm512_permute_ps(s, 0xb1));  // distance 4
  const __m256 t = _mm256_add_ps(_mm512_castps512_ps256(s), _mm512_extractf32x8_ps(s, 1));  // 2
  const __m128 u = _mm_add_ps(_mm256_castps256_ps128(t), _mm256_extractf128_ps(t, 1));      // 1
  return _mm_cvtss_f32(u);
}
#elif defined(__AVX2__)
/// The same order. Vector i holds lanes 2i and 2i+1, one in each of its 128-bit blocks.
WICK_FN float sum_tree(const float* acc) {
  const auto pairs = [](__m256 a, __m256 b) {  // a01 a23 b01 b23 in each block
    return _mm256_add_ps(_mm256_shuffle_ps(a, b, 0x88), _mm256_shuffle_ps(a, b, 0xdd));
  };
  __m256 s[4];  // element r of block b of vector k is lane 8k + 2r + b
  for (int k = 0; k < 4; ++k) {
    const float* a = acc + 32 * k;
    s[k] = pairs(pairs(_mm256_loadu_ps(a), _mm256_loadu_ps(a + 8)),
                 pairs(_mm256_loadu_ps(a + 16), _mm256_loadu_ps(a + 24)));
  }
  __m256 t = _mm256_add_ps(_mm256_add_ps(s[0], s[2]), _mm256_add_ps(s[1], s[3]));       // 16, 8
  t = _mm256_add_ps(t, _mm256_permute_ps(t, 0x4e));                                     // 4
  t = _mm256_add_ps(t, _mm256_permute_ps(t, 0xb1));                                     // 2
  const __m128 u = _mm_add_ps(_mm256_castps256_ps128(t), _mm256_extractf128_ps(t, 1));  // 1
  return _mm_cvtss_f32(u);
}
#endif

/// The first `count` lanes of v; +0 in the others.
template <class V>
WICK_FN V first_lanes(V v, int count) {
  using Mask = decltype(v < v);
  Mask lane;
  for (int l = 0; l < static_cast<int>(sizeof lane / sizeof lane[0]); ++l) lane[l] = l;
  const Mask kept = lane < (Mask{} + count);
  return reinterpret_cast<V>(reinterpret_cast<Mask>(v) & kept);
}

/// Sum of f(x) over one chunk of n <= 4096 elements; f maps a vector. Tails are padded with +0,
/// which changes no accumulator: those start at +0 and so are never -0.
template <class T, class F>
WICK_FN AccOf<T> chunk_sum(const T* x, int64_t n, F f) {
  using A = AccOf<T>;
  constexpr int kWidth = kLanes<A>;
  constexpr int kVectors = kVectorBytes == 64 ? kSumAccumulators / kWidth : 8;
  constexpr int kGroup = kVectors * kWidth;  // accumulators held in registers at a time
  constexpr int kGroups = kGroup < kSumAccumulators ? kSumAccumulators / kGroup : 1;
  alignas(64) A acc[kSumAccumulators];
  const int64_t full = n / kSumAccumulators * kSumAccumulators;
  for (int g = 0; g < kGroups; ++g) {
    VecOf<T> a[kVectors] = {};
    for (int64_t i = g * kGroup; i < full; i += kSumAccumulators) {
#pragma GCC unroll 16
      for (int v = 0; v < kVectors; ++v) a[v] = a[v] + f(load(x + i + v * kWidth));
    }
#pragma GCC unroll 16
    for (int v = 0; v < kVectors; ++v) store(acc + g * kGroup + v * kWidth, a[v]);
  }
  const T* tail = x + full;
  const int rest = static_cast<int>(n - full);
  int i = 0;
  for (; i + kWidth <= rest; i += kWidth) store(acc + i, load(acc + i) + f(load(tail + i)));
  if (i < rest) {
    store(acc + i, load(acc + i) + first_lanes(f(load_partial(tail + i, rest - i)), rest - i));
  }
  return sum_tree(acc);
}

/// Joins the chunks of a row as they come: neighbours by twos, their sums by twos, and so on; one
/// without a neighbour goes up as it is.
template <class A>
class ChunkSums {
 public:
  WICK_FN void add(A sum) {
    for (int64_t i = count_++; (i & 1) != 0; i >>= 1) sum = waiting_[--depth_] + sum;
    waiting_[depth_++] = sum;
  }
  /// +0 of no chunk.
  WICK_FN A total() const {
    if (depth_ == 0) return A{};
    A sum = waiting_[depth_ - 1];
    for (int i = depth_ - 2; i >= 0; --i) sum = waiting_[i] + sum;
    return sum;
  }

 private:
  A waiting_[52];  // sums of fewer and fewer chunks
  int depth_ = 0;
  int64_t count_ = 0;
};

/// Sum of f(x) over a contiguous row.
template <class T, class F>
WICK_FN AccOf<T> row_sum(const T* x, int64_t n, F f) {
  if (n <= kSumChunk) return chunk_sum(x, n, f);
  ChunkSums<AccOf<T>> sums;
  for (int64_t i = 0; i < n; i += kSumChunk) {
    sums.add(chunk_sum(x + i, n - i < kSumChunk ? n - i : kSumChunk, f));
  }
  return sums.total();
}

}  // namespace
}  // namespace wick::cpu::WICK_ISA
