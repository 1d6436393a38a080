#pragma once

// How kernels read and write a run of elements: tiles of one compute type that stay in the
// first-level cache. Narrow floats (bf16, f16, f8e4m3) compute in f32 and round once at the store;
// every other type computes as itself. Included by kernel sources only: everything here has
// internal linkage, once for each instruction set.

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

/// The type that an element computes in.
template <class S>
struct ComputeType {
  using type = S;
};
template <>
struct ComputeType<bf16> {
  using type = float;
};
template <>
struct ComputeType<f16> {
  using type = float;
};
template <>
struct ComputeType<f8e4m3> {
  using type = float;
};
template <class S>
using Compute = typename ComputeType<S>::type;

/// Elements of a tile, and the multiple that a kernel's loop always gets: whole vectors, no tails.
template <class C>
inline constexpr int64_t kTile = 4096 / static_cast<int64_t>(sizeof(C) < 4 ? 4 : sizeof(C));
template <class C>
inline constexpr int64_t kPad = sizeof(C) >= 4 ? 16 : 64 / static_cast<int64_t>(sizeof(C));

/// The next piece of n elements: whole vectors, or fewer than one at the end.
template <class C>
inline int64_t next_piece(int64_t n) {
  if (n >= kTile<C>) return kTile<C>;
  return n >= kPad<C> ? n / kPad<C> * kPad<C> : n;
}
template <class C>
inline int64_t padded(int64_t n) {
  return (n + kPad<C> - 1) / kPad<C> * kPad<C>;
}

// ---- Conversion of whole vectors ----

/// n a multiple of 16.
template <class S>
inline void widen(float* __restrict to, const S* __restrict from, int64_t n) {
#if defined(__F16C__)
  if constexpr (math::kSame<S, f16>) {
    for (int64_t i = 0; i < n; i += 8) {
      const __m128i half = _mm_loadu_si128(reinterpret_cast<const __m128i*>(from + i));
      _mm256_storeu_ps(to + i, _mm256_cvtph_ps(half));
    }
    return;
  }
#endif
  const int64_t vectors = n / 16;
  for (int64_t i = 0; i < vectors * 16; ++i) to[i] = math::to_f32(from[i]);
}

/// n a multiple of 16. The processor's f16 conversion rounds as math::from_f32 does.
template <class S>
inline void narrow(S* __restrict to, const float* __restrict from, int64_t n) {
#if defined(__F16C__)
  if constexpr (math::kSame<S, f16>) {
    for (int64_t i = 0; i < n; i += 8) {
      const __m128i half = _mm256_cvtps_ph(_mm256_loadu_ps(from + i), _MM_FROUND_TO_NEAREST_INT);
      _mm_storeu_si128(reinterpret_cast<__m128i*>(to + i), half);
    }
    return;
  }
#endif
  const int64_t vectors = n / 16;
  for (int64_t i = 0; i < vectors * 16; ++i) to[i] = math::from_f32<S>(from[i]);
}

// ---- Memory ----

/// Makes streamed stores visible before whatever publishes the result.
inline void stream_fence() {
#if defined(__x86_64__)
  _mm_sfence();
#endif
}

/// Copies bytes with stores that go around the caches where whole lines are written.
inline void stream_bytes(char* to, const char* from, int64_t bytes) {
#if defined(__x86_64__)
  const int64_t head = static_cast<int64_t>(-reinterpret_cast<uintptr_t>(to) & 63);
  if (head != 0) {
    const int64_t n = head < bytes ? head : bytes;
    __builtin_memcpy(to, from, static_cast<size_t>(n));
    to += n, from += n, bytes -= n;
  }
  for (; bytes >= 64; bytes -= 64, to += 64, from += 64) {
#if defined(__AVX512F__)
    _mm512_stream_si512(reinterpret_cast<__m512i*>(to), _mm512_loadu_si512(from));
#elif defined(__AVX__)
    for (int i = 0; i < 64; i += 32) {
      _mm256_stream_si256(reinterpret_cast<__m256i*>(to + i),
                          _mm256_loadu_si256(reinterpret_cast<const __m256i*>(from + i)));
    }
#else
    for (int i = 0; i < 64; i += 16) {
      _mm_stream_si128(reinterpret_cast<__m128i*>(to + i),
                       _mm_loadu_si128(reinterpret_cast<const __m128i*>(from + i)));
    }
#endif
  }
#endif
  __builtin_memcpy(to, from, static_cast<size_t>(bytes));
}

template <class S>
inline S at(const char* p) {
  S value;
  __builtin_memcpy(&value, p, sizeof(S));
  return value;
}

/// Elements `stride` bytes apart into a dense array.
template <class S>
inline void gather(S* __restrict to, const char* __restrict from, int64_t stride, int64_t n) {
  for (int64_t i = 0; i < n; ++i) to[i] = at<S>(from + i * stride);
}
template <class S>
inline void scatter(char* __restrict to, int64_t stride, const S* __restrict from, int64_t n) {
  for (int64_t i = 0; i < n; ++i) __builtin_memcpy(to + i * stride, from + i, sizeof(S));
}

/// A value that is harmless in the unused lanes of a vector, even as a divisor.
template <class S>
inline S filler() {
  if constexpr (math::kSame<S, Compute<S>>) {
    return static_cast<S>(1);
  } else {
    return S{0};
  }
}

/// A tile's elements in the compute type, from memory directly where it already lies so. n is what
/// next_piece gave; the result has padded(n) elements.
template <class S>
__attribute__((noinline)) const Compute<S>* load_tile(Compute<S>* tile, const char* in,
                                                      int64_t stride, int64_t n) {
  using C = Compute<S>;
  const bool dense = stride == static_cast<int64_t>(sizeof(S));
  const bool whole = n >= kPad<C>;
  if constexpr (math::kSame<S, C>) {
    if (dense && whole) return reinterpret_cast<const C*>(in);
    if (dense) {
      __builtin_memcpy(tile, in, static_cast<size_t>(n) * sizeof(S));
    } else {
      gather<S>(tile, in, stride, n);
    }
    for (int64_t i = n; i < padded<C>(n); ++i) tile[i] = filler<S>();
  } else {
    if (dense && whole) {
      widen(tile, reinterpret_cast<const S*>(in), n);
      return tile;
    }
    alignas(64) S raw[kTile<C>];
    gather<S>(raw, in, stride, n);
    for (int64_t i = n; i < padded<C>(n); ++i) raw[i] = filler<S>();
    widen(tile, raw, padded<C>(n));
  }
  return tile;
}

/// One value in every element of a tile.
template <class S>
const Compute<S>* splat_tile(Compute<S>* tile, const char* in, int64_t n) {
  using C = Compute<S>;
  C value;
  if constexpr (math::kSame<S, C>) {
    value = at<S>(in);
  } else {
    value = math::to_f32(at<S>(in));
  }
  const int64_t count = n < kTile<C> ? padded<C>(n) : kTile<C>;
  for (int64_t i = 0; i < count; ++i) tile[i] = value;
  return tile;
}

/// Writes the first n elements of a tile, rounded to the storage type.
template <class S>
__attribute__((noinline)) void store_tile(char* out, int64_t stride, const Compute<S>* tile,
                                          int64_t n, bool stream) {
  using C = Compute<S>;
  const bool dense = stride == static_cast<int64_t>(sizeof(S));
  const S* source;
  alignas(64) S raw[math::kSame<S, C> ? 1 : kTile<C>];
  if constexpr (math::kSame<S, C>) {
    source = tile;
  } else {
    if (dense && !stream && n >= kPad<C>) {
      narrow(reinterpret_cast<S*>(out), tile, n);
      return;
    }
    narrow(raw, tile, padded<C>(n));
    source = raw;
  }
  if (!dense) {
    scatter<S>(out, stride, source, n);
  } else if (stream) {
    stream_bytes(out, reinterpret_cast<const char*>(source), n * static_cast<int64_t>(sizeof(S)));
  } else {
    __builtin_memcpy(out, source, static_cast<size_t>(n) * sizeof(S));
  }
}

/// True when results may be written where they belong without passing through a tile.
template <class S>
inline bool writes_directly(int64_t stride, bool stream) {
  return math::kSame<S, Compute<S>> && stride == static_cast<int64_t>(sizeof(S)) && !stream;
}

}  // namespace
}  // namespace wick::cpu::WICK_ISA
