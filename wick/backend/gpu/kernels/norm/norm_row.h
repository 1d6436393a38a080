#pragma once

// rms_norm of one row by a thread block, or by a warp, that holds it in registers. It has few steps
// and little code, for rows on the critical path of a decoding step. It keeps the order of
// docs/design/numerics/reduce.md: a thread block's squares go to shared memory, where 128 threads
// add up a chunk; a warp's lanes hold whole accumulators.

#include "wick/backend/gpu/kernels/device/element.h"
#include "wick/backend/gpu/kernels/layout/strided_index.h"
#include "wick/backend/gpu/kernels/norm/norm_abi.h"
#include "wick/backend/gpu/kernels/reduce/reduce_abi.h"

namespace wick::gpu {

inline constexpr u32 kFour = 4;

template <class T>
WICK_DEVICE void load_four(float (&y)[kFour], const T* x, u32 c, const Spread& spread) {
  if (spread.wide != 0) {
    const auto pack = load_whole(reinterpret_cast<const Vec<T, kFour>*>(x + c));
#pragma unroll
    for (u32 i = 0; i < kFour; ++i) y[i] = pack[i];
  } else {
#pragma unroll
    for (u32 i = 0; i < kFour; ++i) y[i] = widen(x[(i64{c} + i) * spread.step]);
  }
}

/// One accumulator of a chunk: the sum of every 128th of n squares.
WICK_DEVICE float accumulate(const float* squares, u32 n) {
  float sum = 0;
  if (n == kChunk) {
#pragma unroll
    for (u32 c = 0; c < kChunk; c += kAccumulators) sum = sum + squares[c];
  } else {
    for (u32 c = 0; c < n; c += kAccumulators) sum = sum + squares[c];
  }
  return sum;
}

/// Sum of the squares in `squares`, in all threads. The sum of four neighbouring accumulators
/// overwrites the square of the first one.
WICK_DEVICE float sum_of_squares(float* squares, u32 k) {
  constexpr u32 kWarps = kAccumulators / kWarp;  // warps of a chunk
  const u32 chunks = (k + kChunk - 1) / kChunk;
  sync();
  for (u32 part = warp_index(); part < chunks * kWarps; part += block_threads() / kWarp) {
    const u32 start = part / kWarps * kChunk, mine = part % kWarps * kWarp + lane();
    const u32 n = k - start < kChunk ? k - start : kChunk;
    float* from = squares + start + mine;
    float sum = accumulate(from, n == kChunk ? kChunk : n > mine ? n - mine : 0);
    sum = sum + shuffle_xor<1>(sum);
    sum = sum + shuffle_xor<2>(sum);
    if (lane() % kFour == 0) *from = sum;
  }
  sync();
  float t[kRowChunks];
#pragma unroll
  for (u32 i = 0; i < kRowChunks; ++i) {
    t[i] = i < chunks ? warp_sum(squares[i * kChunk + lane() * kFour]) : 0.0f;
  }
  return (t[0] + t[1]) + (t[2] + t[3]);
}

/// The factor r of a row of n elements that a warp holds. In step s a lane holds the elements from
/// 128·s + 4·lane on, which belong to four neighbouring accumulators, and 0 for elements from n on.
template <u32 kSteps>
WICK_DEVICE float rms_factor_of_warp(const float (&x)[kSteps][kFour], u32 n, float eps) {
  float sums[kFour] = {};
#pragma unroll
  for (u32 s = 0; s < kSteps; ++s) {
#pragma unroll
    for (u32 i = 0; i < kFour; ++i) sums[i] = sums[i] + x[s][i] * x[s][i];
  }
  const float sum = warp_sum((sums[0] + sums[1]) + (sums[2] + sums[3]));
  return 1.0f / sqrt(sum / static_cast<float>(n) + eps);
}

/// The row that rms_norm_row adds; NoRow: none.
struct AddedRow {
  const float* row;  ///< null: none
  Spread spread;
};
struct NoRow {};

/// kSteps: vectors of four that a thread holds. kHeld: weights are loaded together with the row,
/// otherwise when they are used. shared: four bytes for each of the k elements, rounded up to 128
/// elements. put(c, y) receives the four elements from element c of the row on, for all c below
/// `padded`; elements from k on are zeros. Whole warps call it.
template <u32 kSteps, bool kHeld, class Added, class Put>
WICK_DEVICE void rms_norm_row(const float* row, const float* weight, u32 k, u32 padded,
                              const Spread& spread, const Spread& weight_spread, float eps,
                              Bytes16* shared, const Added& added, const Put& put) {
  float* squares = reinterpret_cast<float*>(shared);
  const u32 first = thread_index() * kFour, stride = block_threads() * kFour;
  constexpr bool kMayAdd = !kSame<Added, NoRow>;
  float x[kSteps][kFour] = {}, w[kHeld ? kSteps : 1][kFour] = {},
        more[kMayAdd ? kSteps : 1][kFour] = {};
  // A division by a power of two equals multiplication by its exact inverse.
  const float inverse = 1.0f / static_cast<float>(k);
  // Eight threads share a cache line.
  if (kHeld && weight_spread.wide != 0 && thread_index() % 8 == 0) {
#pragma unroll
    for (u32 s = 0; s < kSteps; ++s) {
      if (first + s * stride < k) prefetch(weight + first + s * stride);
    }
  }
  pdl_launch_dependents();
  pdl_wait();
#pragma unroll
  for (u32 s = 0; s < kSteps; ++s) {
    if (first + s * stride < k) load_four(x[s], row, first + s * stride, spread);
  }
  if constexpr (kHeld) {
#pragma unroll
    for (u32 s = 0; s < kSteps; ++s) {
      if (first + s * stride < k) load_four(w[s], weight, first + s * stride, weight_spread);
    }
  }
  if constexpr (kMayAdd) {
#pragma unroll
    for (u32 s = 0; s < kSteps; ++s) {
      const u32 c = first + s * stride;
      if (added.row != nullptr && c < k) load_four(more[s], added.row, c, added.spread);
    }
  }
#pragma unroll
  for (u32 s = 0; s < kSteps; ++s) {
    const u32 c = first + s * stride;
    if (c >= k) continue;
    float y[kFour];
#pragma unroll
    for (u32 i = 0; i < kFour; ++i) y[i] = x[s][i] * x[s][i];
    *reinterpret_cast<Vec<float, kFour>*>(squares + c) = Vec<float, kFour>::of(y);
  }
  const float sum = sum_of_squares(squares, k);
  const float mean = (k & (k - 1)) == 0 ? sum * inverse : sum / static_cast<float>(k);
  const float r = 1.0f / sqrt(mean + eps);
#pragma unroll
  for (u32 s = 0; s < kSteps; ++s) {
    const u32 c = first + s * stride;
    if (c - lane() * kFour >= padded) continue;  // c of the warp's first lane
    float(&late)[kFour] = w[kHeld ? s : 0];
    if (!kHeld && c < k) load_four(late, weight, c, weight_spread);
    float y[kFour];
#pragma unroll
    for (u32 i = 0; i < kFour; ++i) y[i] = c < k ? (x[s][i] * r) * late[i] : 0.0f;
    if constexpr (kMayAdd) {
      if (added.row != nullptr) {
#pragma unroll
        for (u32 i = 0; i < kFour; ++i) y[i] = more[s][i] + y[i];
      }
    }
    put(c, y);
  }
}

}  // namespace wick::gpu
