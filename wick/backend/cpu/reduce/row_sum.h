#pragma once

// The order of operations of a row sum (docs/design/numerics/reduce.md), which sums, means, norms,
// softmax and attention share: chunks of 4096 elements with 128 accumulators each, a fixed tree
// over the accumulators, and a tree over the chunks. For kernel sources only (see isa.h).

#include <cstdint>

#include "wick/backend/cpu/simd/convert.h"
#include "wick/math/combine.h"
#include "wick/math/orders.h"

namespace wick::cpu::WICK_ISA {
namespace {

using math::kSumAccumulators;
using math::kSumChunk;

/// Combines 128 accumulators: the four neighbours of a lane as (a0 + a1) + (a2 + a3), then the 32
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
/// sum_tree in registers. Register i holds lanes 4i .. 4i+3, one in each 128-bit block.
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
/// sum_tree in registers. Register i holds lanes 2i and 2i+1, one in each 128-bit block.
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
#elif defined(__aarch64__)
/// sum_tree in registers. Register i of s holds lanes 4i .. 4i+3.
WICK_FN float sum_tree(const float* acc) {
  float32x4_t s[8];
#pragma GCC unroll 8
  for (int i = 0; i < 8; ++i) {
    const float* a = acc + 16 * i;
    s[i] = vpaddq_f32(vpaddq_f32(vld1q_f32(a), vld1q_f32(a + 4)),
                      vpaddq_f32(vld1q_f32(a + 8), vld1q_f32(a + 12)));
  }
#pragma GCC unroll 4
  for (int i = 0; i < 4; ++i) s[i] = vaddq_f32(s[i], s[i + 4]);  // distance 16
  s[0] = vaddq_f32(s[0], s[2]);                                  // 8
  s[1] = vaddq_f32(s[1], s[3]);
  s[0] = vaddq_f32(s[0], s[1]);                                             // 4
  const float32x2_t t = vadd_f32(vget_low_f32(s[0]), vget_high_f32(s[0]));  // 2
  return vaddv_f32(t);                                                      // 1
}
#endif

/// Sum of f(x) over one chunk of n <= 4096 elements; f maps a vector. Tails are padded with +0,
/// which changes no accumulator: accumulators start at +0, so none is ever -0.
template <class T, class F>
WICK_FN Compute<T> chunk_sum(const T* x, int64_t n, F f) {
  using A = Compute<T>;
  constexpr int kWidth = kLanes<A>;
  constexpr int kVectors = kVectorBytes == 64 ? kSumAccumulators / kWidth : 8;
  constexpr int kGroup = kVectors * kWidth;  // accumulators held in registers at a time
  constexpr int kGroups = kGroup < kSumAccumulators ? kSumAccumulators / kGroup : 1;
  alignas(64) A acc[kSumAccumulators];
  const int64_t full = n / kSumAccumulators * kSumAccumulators;
  for (int g = 0; g < kGroups; ++g) {
    Vec<Compute<T>> a[kVectors] = {};
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
    store(acc + i, load(acc + i) + keep_first(f(load_partial(tail + i, rest - i)), rest - i));
  }
  return sum_tree(acc);
}

/// Combines the sums of a row's chunks, which are added one at a time.
template <class A>
class ChunkSums {
 public:
  WICK_FN void add(A sum) {
    sums_[depth_++] = sum;
    order_.pushed([&] { combine_top(); });
  }
  /// The sum of all chunks; +0 if there are none.
  WICK_FN A total() {
    if (depth_ == 0) return A{};
    while (depth_ > 1) combine_top();
    return sums_[0];
  }

 private:
  WICK_FN void combine_top() {
    --depth_;
    sums_[depth_ - 1] = sums_[depth_ - 1] + sums_[depth_];
  }

  A sums_[53];  // rows have fewer than 2^52 chunks
  int depth_ = 0;
  math::CombineStack order_;
};

/// Sum of f(x) over a contiguous row.
template <class T, class F>
WICK_FN Compute<T> row_sum(const T* x, int64_t n, F f) {
  if (n <= kSumChunk) return chunk_sum(x, n, f);
  ChunkSums<Compute<T>> sums;
  for (int64_t i = 0; i < n; i += kSumChunk) {
    sums.add(chunk_sum(x + i, n - i < kSumChunk ? n - i : kSumChunk, f));
  }
  return sums.total();
}

}  // namespace
}  // namespace wick::cpu::WICK_ISA
