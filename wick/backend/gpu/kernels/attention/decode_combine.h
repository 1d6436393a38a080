#pragma once

// Combination of the partial results of the thread blocks of decode.gpu that share a query's
// chunks.

#include "wick/backend/gpu/kernels/attention/decode.h"

namespace wick::gpu {

/// The combination by one thread block. Work: Decode.
template <class Work>
struct DecodeCombine {
  Work& work;

  /// True in the last thread block to arrive, of those that computed partial results of the same
  /// outputs. All threads must call it.
  WICK_DEVICE bool is_last() {
    const u32 chunks = work.end_chunk() - work.first_chunk();
    const u32 arriving = chunks < work.plan.splits ? chunks : work.plan.splits;
    device_fence();
    sync();
    u32* arrived = work.plan.arrived +
                   block_index() / work.plan.cluster / work.plan.splits * work.plan.cluster +
                   work.rank;
    if (thread_index() == 0) *work.shared.last = count_up(arrived) == arriving - 1 ? 1 : 0;
    sync();
    if (*work.shared.last == 0) return false;
    device_fence();
    if (thread_index() == 0) *arrived = 0;
    return true;
  }

  static constexpr u32 kCombined = 64;  // chunks whose factors are in shared memory at once
  static constexpr u32 kAtOnce = 8;     // chunks whose outputs are loaded at once

  /// Four arrays [kCombined] for each row, which replace its exponentials in shared memory: the
  /// sums of the chunks, the factors of the result of earlier chunks, the factors of the chunks,
  /// and their largest scores.
  struct Factors {
    float *sum, *by_earlier, *by_chunk, *largest;
    WICK_DEVICE Factors(float* s, u32 r) {
      sum = s + r * kAttentionChunk;
      by_earlier = sum + kCombined, by_chunk = by_earlier + kCombined,
      largest = by_chunk + kCombined;
    }
  };

  /// Computes the Factors of `count` chunks from `first` on. Keeps the largest score so far in
  /// `soft` from one call to the next. All threads must call it.
  WICK_DEVICE void find_factors(const AttentionPartials& partials, u32 first, u32 count) {
    sync();
    for (u32 i = thread_index(); i < work.some_rows * kCombined; i += work.threads()) {
      const u32 r = work.first_row + i / kCombined, at = i % kCombined;
      if (at >= count) continue;
      const Factors row(work.shared.s, r);
      const auto ml = *reinterpret_cast<const Vec<float, 2>*>(
          partials.largest_sum + 2 * (work.row_number(r) * partials.chunks + first + at));
      row.largest[at] = ml[0], row.sum[at] = ml[1];
    }
    sync();
    for (u32 i = thread_index(); i < work.some_rows * kCombined; i += work.threads()) {
      const u32 r = work.first_row + i / kCombined, at = i % kCombined;
      if (at >= count) continue;
      const Factors row(work.shared.s, r);
      float before = first == work.first_chunk() ? row.largest[0] : work.shared.soft[2 * r];
      if constexpr (Work::kSinks) {
        const float sink = work.of(work.head + r);
        if (first == work.first_chunk() && sink != -detail::kInfF32) before = sink;
      }
      for (u32 j = 0; j < at; ++j) before = row.largest[j] > before ? row.largest[j] : before;
      const Combine combine(before, row.largest[at]);
      row.by_earlier[at] = combine.by_earlier, row.by_chunk[at] = combine.by_chunk;
      if (at + 1 == count) work.shared.soft[2 * r + 1] = combine.largest;
    }
    sync();
    if (thread_index() < work.some_rows) {
      float* soft = work.shared.soft + 2 * (work.first_row + thread_index());
      soft[0] = soft[1];
    }
  }

  /// Combines the chunks in index order and stores the results. All threads must call it.
  WICK_DEVICE void combine(const AttentionPartials& partials) {
    for (u32 round = 0; round < work.some_rows * work.width; round += work.threads()) {
      const bool mine = round + thread_index() < work.some_rows * work.width;
      const u32 r = work.first_row + (mine ? (round + thread_index()) / work.width : 0);
      const u32 x = work.first_x + (mine ? (round + thread_index()) % work.width : 0);
      const Factors row(work.shared.s, r);
      const float* from = partials.out + work.row_number(r) * partials.chunks * work.c.e + x;
      float o = 0.0f, l = 0.0f;
      bool starts = true;  // whether the row's first chunk starts its sums
      if constexpr (Work::kSinks) {
        starts = work.of(work.head + r) == -detail::kInfF32;
        if (!starts) l = 1.0f;
      }
      for (u32 first = work.first_chunk(); first < work.end_chunk(); first += kCombined) {
        const u32 rest = work.end_chunk() - first, count = rest < kCombined ? rest : kCombined;
        const auto load = [&](float(&to)[kAtOnce], u32 at) WICK_INLINE {
#pragma unroll
          for (u32 i = 0; i < kAtOnce; ++i) {
            if (at + i < count) to[i] = from[u64{first + at + i} * work.c.e];
          }
        };
        float chunk[kAtOnce] = {};
        load(chunk, 0);  // in flight during find_factors
        // If all chunks fit, the factors of the first round serve all rounds.
        if (round == 0 || work.end_chunk() - work.first_chunk() > kCombined) {
          find_factors(partials, first, count);
        }
#pragma unroll 1
        for (u32 at = 0; at < count; at += kAtOnce) {
          float next[kAtOnce] = {};
          load(next, at + kAtOnce);
#pragma unroll
          for (u32 i = 0; i < kAtOnce; ++i) {
            if (at + i >= count) break;
            const float a = row.by_earlier[at + i], b = row.by_chunk[at + i], sum = row.sum[at + i];
            bool start_here = first + at + i == work.first_chunk();
            if constexpr (Work::kSinks) {
              if (is_hidden({row.largest[at + i], sum})) continue;
              start_here = start_here && starts;
            }
            o = start_here ? chunk[i] : fma(o, a, chunk[i] * b);
            l = start_here ? sum : fma(l, a, sum * b);
          }
#pragma unroll
          for (u32 i = 0; i < kAtOnce; ++i) chunk[i] = next[i];
        }
      }
      const float y[1] = {o / l};
      if (mine) work.put_result(r, x, y);
    }
  }
};

}  // namespace wick::gpu
