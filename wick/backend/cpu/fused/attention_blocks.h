#pragma once

// Keys and values of pages of blocks (base/block_pages.h) as registers of f32. An element is the
// product of its quant and the scale of its block, rounded to f16: the value that a cache of f16
// would hold. For kernel sources only (see isa.h).

#include "wick/backend/cpu/simd/convert.h"
#include "wick/math/blocks.h"
#include "wick/math/orders.h"

namespace wick::cpu::WICK_ISA {
namespace {

/// A byte of pages of q8_0 and of q4_0. Pointers to them count bytes.
struct ByteQ8_0 {
  uint8_t byte;
};
struct ByteQ4_0 {
  uint8_t byte;
};
template <class T>
inline constexpr bool kIsBlocks = math::kSame<T, ByteQ8_0> || math::kSame<T, ByteQ4_0>;

template <class T>
inline constexpr int64_t kBlockBytes = math::kSame<T, ByteQ8_0> ? sizeof(math::BlockQ8_0)
                                                                : sizeof(math::BlockQ4_0);
/// Bytes of the blocks of a page's keys for 32 elements.
template <class T>
inline constexpr int64_t kGroupBytes = kBlockBytes<T>* math::kAttentionChunk;

/// One register of floats, rounded to f16.
WICK_FN Vec<float> round_to_f16(Vec<float> x) {
#if defined(__AVX512F__)
  const __m256i half = _mm512_cvtps_ph(reinterpret_cast<__m512>(x), _MM_FROUND_TO_NEAREST_INT);
  return reinterpret_cast<Vec<float>>(_mm512_cvtph_ps(half));
#elif defined(__F16C__)
  const __m128i half = _mm256_cvtps_ph(reinterpret_cast<__m256>(x), _MM_FROUND_TO_NEAREST_INT);
  return reinterpret_cast<Vec<float>>(_mm256_cvtph_ps(half));
#else
  f16 half[kLanes<float>];
  store(half, x);
  return load(half);
#endif
}

/// A register's quants: bytes at p, or their low (kHigh: high) halves.
template <class T, bool kHigh>
WICK_FN Vec<float> load_quants(const T* p) {
  // GCC converts vectors of bytes by element, so x86 has intrinsics of its own.
#if defined(__AVX2__)
#if defined(__AVX512F__)
  __m128i bytes = _mm_loadu_si128(reinterpret_cast<const __m128i*>(p));
#else
  __m128i bytes = _mm_loadl_epi64(reinterpret_cast<const __m128i*>(p));
#endif
  if constexpr (math::kSame<T, ByteQ4_0>) {
    const __m128i halves = kHigh ? _mm_srli_epi16(bytes, 4) : bytes;
    bytes = _mm_sub_epi8(_mm_and_si128(halves, _mm_set1_epi8(15)), _mm_set1_epi8(8));
  }
#if defined(__AVX512F__)
  return reinterpret_cast<Vec<float>>(_mm512_cvtepi32_ps(_mm512_cvtepi8_epi32(bytes)));
#else
  return reinterpret_cast<Vec<float>>(_mm256_cvtepi32_ps(_mm256_cvtepi8_epi32(bytes)));
#endif
#else
  Vec<float> quants;
  for (int l = 0; l < kLanes<float>; ++l) {
    const int byte = p[l].byte;
    if constexpr (math::kSame<T, ByteQ8_0>) {
      quants[l] = static_cast<float>(static_cast<int8_t>(byte));
    } else {
      quants[l] = static_cast<float>((kHigh ? byte >> 4 : byte & 15) - 8);
    }
  }
  return quants;
#endif
}

/// Calls body(i, quants) for the elements i of a group of keys, in order; quants(j) are those of
/// the keys from j on.
template <class T, class Body>
WICK_FN void for_each_element_of(const T* group, Body&& body) {
  const T* const quants = group + math::kBlockScaleBytes * math::kAttentionChunk;
  if constexpr (math::kSame<T, ByteQ8_0>) {
    for (int i = 0; i < math::kBlock; ++i) {
      const T* const row = quants + i * math::kAttentionChunk;
      body(
          i, [row](int64_t j)
                 __attribute__((always_inline)) { return load_quants<T, false>(row + j); });
    }
  } else {
    for (int i = 0; i < math::kBlock / 2; ++i) {
      const T* const row = quants + i * math::kAttentionChunk;
      body(
          i, [row](int64_t j)
                 __attribute__((always_inline)) { return load_quants<T, false>(row + j); });
    }
    for (int i = 0; i < math::kBlock / 2; ++i) {
      const T* const row = quants + i * math::kAttentionChunk;
      body(
          i + math::kBlock / 2, [row](int64_t j) __attribute__((always_inline)) {
            return load_quants<T, true>(row + j);
          });
    }
  }
}

/// The scales of a group of keys, from key j on.
template <class T>
WICK_FN Vec<float> scales_of(const T* group, int64_t j) {
  return load(reinterpret_cast<const f16*>(group) + j);
}

/// The 32 values of a block, in registers.
inline constexpr int kVecsOfBlock = math::kBlock / kLanes<float>;
template <class T>
WICK_FN void load_block(Vec<float> (&to)[kVecsOfBlock], const T* block) {
  f16 d;
  __builtin_memcpy(&d, block, sizeof d);
  const Vec<float> scale = splat(math::to_f32(d));
  const T* const quants = block + math::kBlockScaleBytes;
#pragma GCC unroll 8
  for (int n = 0; n < kVecsOfBlock; ++n) {
    const int first = n * kLanes<float>;
    Vec<float> q;
    if constexpr (math::kSame<T, ByteQ8_0>) {
      q = load_quants<T, false>(quants + first);
    } else {
      q = first < math::kBlock / 2 ? load_quants<T, false>(quants + first)
                                   : load_quants<T, true>(quants + first - math::kBlock / 2);
    }
    to[n] = round_to_f16(q * scale);
  }
}

}  // namespace
}  // namespace wick::cpu::WICK_ISA
