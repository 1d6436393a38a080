#pragma once

// Combination of the partial results of the thread blocks of decode.gpu that share a query's
// chunks.

#include "wick/backend/gpu/kernels/attention/decode.h"
#include "wick/backend/gpu/kernels/device/lanes.h"

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
    u32* const arrived = work.plan.arrived + work.set * work.plan.cluster + work.rank;
    if (thread_index() == 0) *work.shared.last = count_up(arrived) == arriving - 1 ? 1 : 0;
    sync();
    if (*work.shared.last == 0) return false;
    device_fence();
    if (thread_index() == 0) *arrived = 0;
    return true;
  }

  static constexpr u32 kCombined = 64;  // chunks whose steps are in shared memory at once
  static constexpr u32 kAtOnce = 8;     // chunks whose outputs are loaded at once

  /// How a chunk changes the results of the chunks before it. The steps of a row replace its
  /// exponentials in shared memory.
  struct alignas(16) Step {
    float by_earlier, by_chunk;  // factors of the result before and of the chunk's
    float sum;                   // the chunk's term of the sum of exponentials
    enum Kind : u32 { kAdd, kStart, kSkip } kind;

    WICK_DEVICE float of_output(float before, float chunk) const {
      const float both = fma(before, by_earlier, chunk * by_chunk);
      return kind == kAdd ? both : kind == kStart ? chunk : before;
    }
    WICK_DEVICE float of_sum(float before) const {
      const float both = fma(before, by_earlier, sum);
      return kind == kAdd ? both : kind == kStart ? sum : before;
    }
  };
  static_assert(kCombined * sizeof(Step) == kAttentionChunk * sizeof(float) &&
                kCombined % kWarp == 0 && kWarp % kAtOnce == 0);
  WICK_DEVICE Step* steps_of(u32 r) const {
    return reinterpret_cast<Step*>(work.shared.s + r * kAttentionChunk);
  }
  /// Whether row r begins with its first chunk, not with a sink.
  WICK_DEVICE bool starts(u32 r) const {
    if constexpr (Work::kSinks) return work.of(work.head + r) == -detail::kInfF32;
    return true;
  }

  /// The steps of a warp's row for up to 32 chunks from `first` on, one for each lane; lanes behind
  /// the last chunk skip. Returns the largest score so far; `before`: that of the chunks before.
  WICK_DEVICE float find_steps(const AttentionPartials& partials, u32 r, u32 first, u32 count,
                               float before, Step* to) const {
    const bool here = lane() < count;
    float largest = -detail::kInfF32, sum = 0.0f;
    if (here) {
      const auto both = *reinterpret_cast<const Vec<float, 2>*>(
          partials.largest_sum + 2 * (work.row_number(r) * partials.chunks + first + lane()));
      largest = both[0], sum = both[1];
    }
    const bool is_first = first + lane() == work.first_chunk();
    if (first == work.first_chunk() && starts(r)) before = from_lane(largest, 0);
    // The largest score of the lanes up to this one. A later NaN isn't larger than a number.
    float most = largest == largest ? largest : -detail::kInfF32;
#pragma unroll
    for (u32 distance = 1; distance < kWarp; distance *= 2) {
      const float earlier = from_lane(most, (lane() - distance) % kWarp);
      if (lane() >= distance && !(most > earlier)) most = earlier;
    }
    const float below = from_lane(most, (lane() - 1) % kWarp);
    const Combine combine(lane() != 0 && below > before ? below : before, largest);
    Step step = {combine.by_earlier, combine.by_chunk, sum * combine.by_chunk, Step::kAdd};
    if (is_first && starts(r)) step.kind = Step::kStart, step.sum = sum;
    if (!here || (Work::kSinks && is_hidden({largest, sum}))) step.kind = Step::kSkip;
    to[lane()] = step;
    return from_lane(combine.largest, count - 1);
  }

  /// Finds the steps of `count` chunks from `first` on. Keeps the largest score so far in `soft`
  /// from one call to the next. All threads must call it.
  WICK_DEVICE void find_steps(const AttentionPartials& partials, u32 first, u32 count) {
    sync();
    for (u32 r = work.first_row + warp_index(); r < work.first_row + work.some_rows;
         r += work.warps()) {
      float* const kept = work.shared.soft + 2 * r;
      float before = kept[0];
      if constexpr (Work::kSinks) {
        if (first == work.first_chunk()) before = work.of(work.head + r);
      }
      warp_sync();
#pragma unroll 1
      for (u32 at = 0; at < count; at += kWarp) {
        const u32 rest = count - at;
        before = find_steps(partials, r, first + at, rest < kWarp ? rest : kWarp, before,
                            steps_of(r) + at);
      }
      if (lane() == 0) kept[0] = before;
    }
    sync();
  }

  /// Combines the chunks in index order and stores the results, two neighbouring elements of a row
  /// for each thread. All threads must call it.
  WICK_DEVICE void combine(const AttentionPartials& partials) {
    constexpr u32 kWide = 2;
    using Pair = Vec<float, kWide>;
    const u32 end = work.end_chunk(), chunks = end - work.first_chunk();
    const u32 elems = work.some_rows * work.width;
    for (u32 round = 0; round < elems; round += kWide * work.threads()) {
      const u32 elem = round + kWide * thread_index();
      const bool mine = elem < elems;
      const u32 r = work.first_row + (mine ? elem / work.width : 0);
      const u32 x = work.first_x + (mine ? elem % work.width : 0);
      const float* from = partials.out + work.row_number(r) * partials.chunks * work.c.e + x;
      float o[kWide] = {}, l = starts(r) ? 0.0f : 1.0f;
      for (u32 first = work.first_chunk(); first < end; first += kCombined) {
        const u32 rest = end - first, count = rest < kCombined ? rest : kCombined;
        const auto load = [&](Pair(&to)[kAtOnce], u32 at) WICK_INLINE {
#pragma unroll
          for (u32 i = 0; i < kAtOnce; ++i) {
            if (at + i < count) {
              to[i] = *reinterpret_cast<const Pair*>(from + u64{first + at + i} * work.c.e);
            }
          }
        };
        Pair now[kAtOnce] = {}, next[kAtOnce] = {};
        load(now, 0);  // in flight during find_steps
        load(next, kAtOnce);
        // If all chunks fit, the steps of the first round serve all rounds.
        if (round == 0 || chunks > kCombined) find_steps(partials, first, count);
#pragma unroll 1
        for (u32 at = 0; at < count; at += kAtOnce) {
#pragma unroll
          for (u32 i = 0; i < kAtOnce; ++i) {
            const Step step = steps_of(r)[at + i];
#pragma unroll
            for (u32 e = 0; e < kWide; ++e) o[e] = step.of_output(o[e], now[i][e]);
            l = step.of_sum(l);
          }
#pragma unroll
          for (u32 i = 0; i < kAtOnce; ++i) now[i] = next[i];
          load(next, at + 2 * kAtOnce);
        }
      }
      const float y[kWide] = {o[0] / l, o[1] / l};
      work.put_result(r, mine ? x : ~0u, y);
    }
  }
};

}  // namespace wick::gpu
