#pragma once

#include "wick/backend/cpu/linear/quantized_dot.h"
#include "wick/backend/cpu/linear/quantized_types.h"
#include "wick/math/activation.h"

// Quantises activations to int8 blocks of 32, with the steps and the bits of
// wick/math/activation.h. For kernel sources only (see isa.h).

namespace wick::cpu::WICK_ISA {
namespace {

/// Where a tile holds one block of one column.
template <class T>
struct TileBlock {
  int8_t* q;
  float* d;
  uint8_t* extra;
};

template <class T>
WICK_SIMD TileBlock<T> tile_block(uint8_t* tile, int64_t width, int64_t block, int64_t column) {
  uint8_t* at = tile + block * width * Packed<T>::kTileBlockBytes;
  return {reinterpret_cast<int8_t*>(at + column * kBlockElems),
          reinterpret_cast<float*>(at + width * kBlockElems + column * 4),
          at + width * (kBlockElems + 4) + column * 4 * Packed<T>::kExtras};
}

template <class T>
WICK_SIMD void store_extra(uint8_t* extra, float d, int32_t sum) {
  if constexpr (T::kHasMin) {
    const float scaled = d * static_cast<float>(sum);
    __builtin_memcpy(extra, &scaled, 4);
  } else {
    const int32_t from = -T::kOffset * sum;
    __builtin_memcpy(extra, &from, 4);
  }
}

/// The sum of q of the first half of a block.
WICK_SIMD int32_t first_sum(const int8_t* q) {
  int32_t sum = 0;
  for (int i = 0; i < kBlockElems / 2; ++i) sum += q[i];
  return sum;
}

/// Stores two sums in one word.
WICK_SIMD void store_pair(uint8_t* extra, int32_t first, int32_t second) {
  const int16_t pair[2] = {static_cast<int16_t>(first), static_cast<int16_t>(second)};
  __builtin_memcpy(extra, pair, sizeof pair);
}

/// Quantises consecutive blocks that share a scale.
template <class T>
WICK_SIMD void quantize_shared(const float* x, const TileBlock<T>* to) {
  constexpr int kBlocks = T::kSharedBlocks;
  static_assert(kBlocks == math::kSharedBlocks);
  int8_t q[kBlocks * kBlockElems];
  int32_t sums[kBlocks];
  const float d = math::quantize_activations(x, kBlocks, q, sums);
  for (int b = 0; b < kBlocks; ++b) {
    __builtin_memcpy(to[b].q, q + b * kBlockElems, kBlockElems);
    *to[b].d = d;
    if constexpr (T::kParts == 2) {
      const int32_t first = first_sum(to[b].q);
      store_pair(to[b].extra, first, sums[b] - first);
    } else {
      if (b % 2 == 0) store_pair(to[b].extra, sums[b], sums[b + 1]);
    }
  }
}

/// Quantises the blocks that share a scale, or one block.
template <class T>
WICK_SIMD void quantize_group(const float* x, const TileBlock<T>* all) {
  if constexpr (T::kSharedBlocks > 1) {
    quantize_shared<T>(x, all);
  } else {
    const TileBlock<T>& to = *all;
    const math::ActivationScale scale = math::quantize_activation(x, to.q);
    *to.d = scale.d;
    if constexpr (T::kParts == 1) {
      store_extra<T>(to.extra, scale.d, scale.sum);
    } else {
      const int32_t first = first_sum(to.q);
      store_extra<T>(to.extra, scale.d, first);
      store_extra<T>(to.extra + 4, scale.d, scale.sum - first);
      if constexpr (T::kFolds) {
        const int32_t from = -T::kFoldOffset * scale.sum;
        __builtin_memcpy(to.extra + 8, &from, 4);
      }
    }
  }
}

#if defined(__AVX512BW__)

/// Lane i of the result combines the 16 lanes of v[i], by a transposition that reduces in each
/// step.
template <class Combine>
WICK_SIMD __m512i reduce_rows(const __m512i* v, Combine combine) {
  __m512i pairs[8], quads[4];
#pragma GCC unroll 8
  for (int i = 0; i < 8; ++i) {
    pairs[i] = combine(_mm512_unpacklo_epi32(v[2 * i], v[2 * i + 1]),
                       _mm512_unpackhi_epi32(v[2 * i], v[2 * i + 1]));
  }
#pragma GCC unroll 4
  for (int i = 0; i < 4; ++i) {
    quads[i] = combine(_mm512_unpacklo_epi64(pairs[2 * i], pairs[2 * i + 1]),
                       _mm512_unpackhi_epi64(pairs[2 * i], pairs[2 * i + 1]));
  }
  const __m512i a = combine(_mm512_shuffle_i32x4(quads[0], quads[1], 0x88),
                            _mm512_shuffle_i32x4(quads[0], quads[1], 0xdd));
  const __m512i b = combine(_mm512_shuffle_i32x4(quads[2], quads[3], 0x88),
                            _mm512_shuffle_i32x4(quads[2], quads[3], 0xdd));
  return combine(_mm512_shuffle_i32x4(a, b, 0x88), _mm512_shuffle_i32x4(a, b, 0xdd));
}

/// Sorts the bytes of two blocks, which packing instructions left in groups of four, and stores the
/// blocks.
WICK_SIMD void store_two_blocks(__m512i packed, int8_t* first, int8_t* second) {
  const __m512i order = _mm512_setr_epi32(0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15);
  const __m512i q = _mm512_permutexvar_epi32(order, packed);
  _mm256_storeu_si256(reinterpret_cast<__m256i*>(first), _mm512_castsi512_si256(q));
  _mm256_storeu_si256(reinterpret_cast<__m256i*>(second), _mm512_extracti64x4_epi64(q, 1));
}

/// Sixteen blocks at once, which share divisions and reductions. Four of them may share a scale.
template <class T>
WICK_SIMD void quantize_sixteen(const float* const* x, const TileBlock<T>* to) {
  const __m512i magnitude = _mm512_set1_epi32(0x7fffffff);
  __m512i v[16], second[16];
#pragma GCC unroll 16
  for (int i = 0; i < 16; ++i) {
    v[i] = _mm512_max_epu32(_mm512_and_si512(_mm512_loadu_si512(x[i]), magnitude),
                            _mm512_and_si512(_mm512_loadu_si512(x[i] + 16), magnitude));
  }
  __m512i largest = reduce_rows(
      v,
      [](__m512i a, __m512i b) __attribute__((always_inline)) { return _mm512_max_epu32(a, b); });
  if constexpr (T::kSharedBlocks > 1) {
    static_assert(T::kSharedBlocks == 4);
    largest = _mm512_max_epu32(largest, _mm512_shuffle_epi32(largest, _MM_PERM_CDAB));
    largest = _mm512_max_epu32(largest, _mm512_shuffle_epi32(largest, _MM_PERM_BADC));
  }
  if (_mm512_cmpge_epu32_mask(largest, _mm512_set1_epi32(0x7f800000)) != 0) [[unlikely]] {
    for (int i = 0; i < 16; i += T::kSharedBlocks) quantize_group<T>(x[i], to + i);
    return;
  }
  const __m512 amax = _mm512_castsi512_ps(largest);
  const __mmask16 live = _mm512_cmp_ps_mask(amax, _mm512_set1_ps(1e-30f), _CMP_GT_OQ);
  const __m512i least = _mm512_castps_si512(_mm512_div_ps(amax, _mm512_set1_ps(127.0f)));
  // ActivationStep::round_up
  const __m512 d = _mm512_castsi512_ps(_mm512_maskz_and_epi32(
      live, _mm512_add_epi32(least, _mm512_set1_epi32(0x000fffff)), _mm512_set1_epi32(~0xfffff)));
  alignas(64) float inverse[16], scale[16];
  _mm512_store_ps(inverse, _mm512_maskz_div_ps(live, _mm512_set1_ps(1.0f), d));
  _mm512_store_ps(scale, d);
#pragma GCC unroll 8
  for (int i = 0; i < 16; i += 2) {
    __m512i words[2];
#pragma GCC unroll 2
    for (int j = 0; j < 2; ++j) {
      const __m512 s = _mm512_set1_ps(inverse[i + j]);
      const __m512i a = _mm512_cvtps_epi32(_mm512_mul_ps(_mm512_loadu_ps(x[i + j]), s));
      const __m512i b = _mm512_cvtps_epi32(_mm512_mul_ps(_mm512_loadu_ps(x[i + j] + 16), s));
      words[j] = _mm512_packs_epi32(a, b);
      v[i + j] = T::kParts == 1 ? _mm512_add_epi32(a, b) : a;
      if (T::kParts == 2) second[i + j] = b;
    }
    store_two_blocks(_mm512_packs_epi16(words[0], words[1]), to[i].q, to[i + 1].q);
  }
  constexpr auto add = [](__m512i a, __m512i b) __attribute__((always_inline)) {
    return _mm512_add_epi32(a, b);
  };
  constexpr int kExtras = Packed<T>::kExtras;
  alignas(64) int32_t extra[kExtras][16];
  const __m512i sum = reduce_rows(v, add);
  if constexpr (T::kSharedBlocks > 1) {
    // The low halves of two words: of both parts of each block, or of a pair of blocks.
    const __m512i pair = T::kParts == 2
                             ? _mm512_mask_blend_epi16(
                                   0xaaaaaaaa, sum, _mm512_slli_epi32(reduce_rows(second, add), 16))
                             : _mm512_mask_blend_epi16(0x22222222, sum, _mm512_srli_epi64(sum, 16));
    _mm512_store_si512(extra[0], pair);
  } else if constexpr (T::kHasMin) {
    _mm512_store_ps(extra[0], _mm512_mul_ps(d, _mm512_cvtepi32_ps(sum)));
  } else {
    const __m512i offset = _mm512_set1_epi32(-T::kOffset);
    _mm512_store_si512(extra[0], _mm512_mullo_epi32(sum, offset));
    if constexpr (T::kParts == 2) {
      const __m512i other = reduce_rows(second, add);
      _mm512_store_si512(extra[1], _mm512_mullo_epi32(other, offset));
      if constexpr (T::kFolds) {
        _mm512_store_si512(extra[2], _mm512_mullo_epi32(_mm512_add_epi32(sum, other),
                                                        _mm512_set1_epi32(-T::kFoldOffset)));
      }
    }
  }
  for (int i = 0; i < 16; ++i) {
    *to[i].d = scale[i];
    for (int word = 0; word < kExtras; ++word) {
      __builtin_memcpy(to[i].extra + 4 * word, &extra[word][i], 4);
    }
  }
}

#endif

/// Quantises `width` columns of 32·blocks floats into one tile. Index map: blocks in column order,
/// with AVX-512 sixteen at a time. Moves 4 bytes in and 1.25 bytes out per value.
template <class T>
void quantize_tile(const float* const* columns, int64_t width, int64_t blocks, uint8_t* tile) {
#if defined(__AVX512BW__)
  const float* from[16];
  TileBlock<T> to[16];
  int filled = 0;
  for (int64_t c = 0; c < width; ++c) {
    for (int64_t b = 0; b < blocks; ++b) {
      from[filled] = columns[c] + b * kBlockElems;
      to[filled] = tile_block<T>(tile, width, b, c);
      if (++filled < 16) continue;
      quantize_sixteen<T>(from, to);
      filled = 0;
    }
  }
  if (filled == 0) return;
  // The last sixteen are filled with copies of the first group, which store the same bytes again.
  for (int i = filled; i < 16; ++i) {
    from[i] = from[i % T::kSharedBlocks];
    to[i] = to[i % T::kSharedBlocks];
  }
  quantize_sixteen<T>(from, to);
#else
  for (int64_t c = 0; c < width; ++c) {
    for (int64_t b = 0; b < blocks; b += T::kSharedBlocks) {
      TileBlock<T> to[T::kSharedBlocks];
      for (int i = 0; i < T::kSharedBlocks; ++i) to[i] = tile_block<T>(tile, width, b + i, c);
      quantize_group<T>(columns[c] + b * kBlockElems, to);
    }
  }
#endif
}

}  // namespace
}  // namespace wick::cpu::WICK_ISA
