#pragma once

// A row of activations that each thread block of a gemv prepares by itself: a dense row of f32, its
// rms_norm, or silu of its first half times its second half, quantised to int8 blocks in shared
// memory. The bits are those of quantize_activations.gpu. A decoding step has one row, so a launch
// less outweighs that the thread blocks compute the same.
//
// Order: rms_norm adds squares in the order of docs/design/numerics/reduce.md; see norm_row.h.

#include "wick/backend/gpu/kernels/device/copy.h"
#include "wick/backend/gpu/kernels/linear/block_store.h"
#include "wick/backend/gpu/kernels/linear/row_input_abi.h"
#include "wick/backend/gpu/kernels/norm/norm_row.h"

/// Whether gemvs can prepare their rows. On AMD they take prepared rows: without programmatic
/// dependent launch, a kernel's prologue hides nothing.
#ifndef WICK_GEMV_ROWS
#define WICK_GEMV_ROWS !WICK_AMD
#endif

namespace wick::gpu {

inline constexpr bool kMakesRows = WICK_GEMV_ROWS;

/// Sum of the squares of a row of k values in shared memory, in all threads. sums: 32 floats for
/// each chunk of the row. All threads of the thread block call it after a sync().
WICK_DEVICE float sum_of_row_squares(const float* row, u32 k, float* sums) {
  constexpr u32 kWarps = kAccumulators / kWarp;  // warps of a chunk
  const u32 chunks = (k + kChunk - 1) / kChunk;
#pragma unroll 1
  for (u32 part = warp_index(); part < chunks * kWarps; part += block_threads() / kWarp) {
    const u32 start = part / kWarps * kChunk, mine = part % kWarps * kWarp + lane();
    const u32 n = k - start < kChunk ? k - start : kChunk;
    float sum = 0;
#pragma unroll 4
    for (u32 c = mine; c < n; c += kAccumulators) sum = sum + row[start + c] * row[start + c];
    sum = sum + shuffle_xor<1>(sum);
    sum = sum + shuffle_xor<2>(sum);
    if (lane() % kFour == 0) sums[part / kWarps * kWarp + mine / kFour] = sum;
  }
  sync();
  float t[kRowChunks];
#pragma unroll
  for (u32 i = 0; i < kRowChunks; ++i) {
    t[i] = i < chunks ? warp_sum(sums[i * kWarp + lane()]) : 0.0f;
  }
  return (t[0] + t[1]) + (t[2] + t[3]);
}

/// The shared memory of a row: its values, the norm's weights, and sums of squares.
struct RowMemory {
  float *values, *weights, *sums;

  WICK_DEVICE RowMemory(const RowInput& in, void* shared) : values(static_cast<float*>(shared)) {
    weights = values + (in.step == RowStep::silu_mul ? 2 : 1) * in.k;
    sums = weights + (in.step == RowStep::rms_norm ? in.k : 0);
  }
  /// Starts to copy `count` floats, a multiple of four. All threads call it.
  WICK_DEVICE static void copy(float* to, const float* from, u32 count) {
#pragma unroll 1
    for (u32 i = thread_index(); i < count / kFour; i += block_threads()) {
      start_copy(reinterpret_cast<Bytes16*>(to) + i, reinterpret_cast<const Bytes16*>(from) + i);
    }
  }
  /// Prefetches the norm's weights, which the previous kernel may still be writing.
  WICK_DEVICE static void prefetch_weights(const RowInput& in) {
    constexpr u32 kLine = 128 / sizeof(float);
    if (in.step != RowStep::rms_norm) return;
    const u32 i = thread_index() * kLine;
    if (i < in.k) prefetch(in.weight + i);
  }
  /// Copies the row, and returns the norm's factor. Behind it, all threads see the row and the
  /// weights.
  WICK_DEVICE float load(const RowInput& in, u32 row) const {
    copy(values, in.x + row * in.row, (in.step == RowStep::silu_mul ? 2 : 1) * in.k);
    if (in.step == RowStep::rms_norm) copy(weights, in.weight, in.k);
    end_copies();
    wait_for_copies<0>();
    sync();
    if (in.step != RowStep::rms_norm) return 1.0f;
    const float sum = sum_of_row_squares(values, in.k, sums);
    return 1.0f / sqrt(sum / static_cast<float>(in.k) + in.eps);
  }
  /// Four values from c on behind the step; zeros from k on. factor: what load() returned.
  WICK_DEVICE void get(const RowInput& in, u32 c, float factor, float (&y)[kFour]) const {
    const bool there = c < in.k;
    const u32 at = there ? c : 0;
    load_four(y, values, at, Spread{1, 1});
    float other[kFour];
    if (in.step == RowStep::rms_norm) {
      load_four(other, weights, at, Spread{1, 1});
#pragma unroll
      for (u32 i = 0; i < kFour; ++i) y[i] = (y[i] * factor) * other[i];
    } else if (in.step == RowStep::silu_mul) {
      load_four(other, values + in.k, at, Spread{1, 1});
#pragma unroll
      for (u32 i = 0; i < kFour; ++i) y[i] = silu(y[i]) * other[i];
    }
#pragma unroll
    for (u32 i = 0; i < kFour; ++i) y[i] = there ? y[i] : 0.0f;
  }
};

/// Prepares row `row` of `in` and stores its blocks, padded to `chunks` chunks, in shared memory:
/// the values to q, the scales to `scales`. All threads of the thread block, which are whole warps,
/// call it; they see the blocks after a sync(). kShared, kHalves: as Blocks::shared and
/// Blocks::halves.
template <bool kShared, bool kHalves>
WICK_DEVICE void quantize_row(const RowMemory& memory, const RowInput& in, u32 row, u32 chunks,
                              Bytes16* q, ActivationScale* scales) {
  const float factor = memory.load(in, row);
  const u32 padded = chunks * kChunkBlocks;
  const Blocks to = {reinterpret_cast<i8*>(q), scales, padded,
                     static_cast<u32>(kShared ? kSharedBlocks : 1), kHalves ? 1u : 0u};
#pragma unroll 1
  for (u32 c = thread_index() * kFour; c < padded * kActivationBlock;
       c += block_threads() * kFour) {
    float y[kFour];
    memory.get(in, c, factor, y);
    store_in_block(to, 0, c, y);
  }
}

}  // namespace wick::gpu
