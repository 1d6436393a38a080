#pragma once

// The main loop for Hopper's wgmma, for f16 and bf16. A producer warp copies boxes of both operands
// into a ring of stages; eight consumer warps multiply them.

#include "wick/backend/gpu/kernels/device/mma.h"
#include "wick/backend/gpu/kernels/device/wgmma.h"
#include "wick/backend/gpu/kernels/linear/main_loop.h"

#if WICK_WGMMA

namespace wick::gpu {

/// Stages between the producer warp and the consumer warps. A stage has 64 of k.
template <u32 kRowsA, u32 kRowsB>
struct Ring {
  static constexpr u32 kDepth = 64, kBytesA = kRowsA * 128, kBytesB = kRowsB * 128;
  static constexpr u32 kStageBytes = kBytesA + kBytesB, kStages = kWgmmaStageBytes / kStageBytes;
  /// Includes room to align the first stage to 1 KiB, which the swizzle requires.
  static constexpr u32 kSharedBytes = 1024 + kStages * (kStageBytes + 2 * sizeof(Barrier));
  static_assert(kSharedBytes <= kWgmmaStageBytes + kWgmmaBesides);

  char* stages;
  Barrier *full, *empty;  // of each stage

  /// All threads of the thread block must call it.
  WICK_DEVICE explicit Ring(void* shared, u32 readers) {
    char* const start = static_cast<char*>(shared);
    stages = start + (1024 - shared_address(start) % 1024) % 1024;
    full = reinterpret_cast<Barrier*>(stages + kStages * kStageBytes);
    empty = full + kStages;
    if (thread_index() == 0) {
      for (u32 s = 0; s < kStages; ++s) {
        init(full[s], 1);
        init(empty[s], readers);
      }
      publish_barriers();
    }
    sync();
  }
};

/// A stage of the ring, and the phase of its barriers: the stages are filled in phases 0, 1, 0, …
template <u32 kStages>
struct RingPlace {
  u32 stage = 0, phase = 0;
  WICK_DEVICE void next() {
    if (++stage == kStages) {
      stage = 0;
      phase ^= 1;
    }
  }
};

/// An operand, as the producer warp copies it.
struct CopyRows {
  const CopyMap& map;
  u32 k;        ///< the operand repeats with this period along k
  u32 batched;  ///< 0: all matrices of the batch are the same one; otherwise 1
};

/// kColumns: columns of the tile. kTurnA, kTurnB: the operand is MN-major (rows are neighbours in
/// memory, not k). Order of reduction: the unit's for 16 of k, then the order of k.
template <class T, u32 kColumns, bool kTurnA, bool kTurnB>
class WgmmaLoop {
 public:
  using Sum = float;
  static constexpr u32 kM = kWgmmaRows, kN = kColumns;
  static constexpr u32 kThreads = kWgmmaThreads, kReaders = 8;  // warps that multiply
  using Stages = Ring<kM, kN>;
  using Place = RingPlace<Stages::kStages>;

  /// One thread of the producer copies the slabs of a tile.
  WICK_DEVICE static void copy(const Stages& ring, Place& place, const CopyRows& a,
                               const CopyRows& b, u32 k, const TilePlace& tile) {
    copy(ring, place, a, b, k, tile.row * kM, tile.column * kN, tile.matrix);
  }
  /// The tile begins at these rows of a and of b.
  WICK_DEVICE static void copy(const Stages& ring, Place& place, const CopyRows& a,
                               const CopyRows& b, u32 k, u32 row_a, u32 row_b, u32 matrix) {
    for (u32 at = 0, at_b = 0; at < k; at += Stages::kDepth, at_b += Stages::kDepth) {
      if (at_b >= b.k) at_b = 0;
      wait(ring.empty[place.stage], place.phase ^ 1);
      Barrier& full = ring.full[place.stage];
      arrive_for(full, Stages::kStageBytes);
      char* const to = ring.stages + place.stage * Stages::kStageBytes;
      copy_rows<kM, kTurnA>(to, a, row_a, at, matrix, full);
      copy_rows<kN, kTurnB>(to + Stages::kBytesA, b, row_b, at_b, matrix, full);
      place.next();
    }
  }

  /// The consumer warps multiply the slabs of a tile.
  WICK_DEVICE void run(const Stages& ring, Place& place, u32 k) {
    u32 last = 0;
    for (u32 at = 0; at < k; at += Stages::kDepth) {
      wait(ring.full[place.stage], place.phase);
      const u32 stage = shared_address(ring.stages) + place.stage * Stages::kStageBytes;
      const u64 a = describe<kTurnA>(stage + half() * (kTurnA ? 64 * 64 * 2 : 64 * 128));
      const u64 b = describe<kTurnB>(stage + Stages::kBytesA);
      begin_multiply();
#pragma unroll
      for (u32 step = 0; step < Stages::kDepth / 16; ++step) {
        wgmma_multiply<T, kTurnA, kTurnB>(sums_, a + step * kNextK<kTurnA>,
                                          b + step * kNextK<kTurnB>, at + step);
      }
      commit_multiply();
      // The multiplication committed before is complete, and its stage has been read.
      if (at != 0) {
        wait_multiply<1>();
        release(ring.empty[last]);
      }
      last = place.stage;
      place.next();
    }
    wait_multiply<0>();
    settle(sums_);
    release(ring.empty[last]);
  }

  /// The consumer warps of a half of the tile whose rows don't exist call it instead of run().
  WICK_DEVICE static void skip(const Stages& ring, Place& place, u32 k) {
    for (u32 at = 0; at < k; at += Stages::kDepth) {
      wait(ring.full[place.stage], place.phase);
      release(ring.empty[place.stage]);
      place.next();
    }
  }
  /// The first row of the 64 of the tile that this warp's warpgroup multiplies.
  WICK_DEVICE static u32 first_of_half() { return half() * 64; }

  template <class Visit>
  WICK_DEVICE void each(Visit&& visit) const {
    const u32 first_row = first_of_half() + warp_index() % 4 * 16;
#pragma unroll
    for (u32 j = 0; j < kN / 16; ++j) {
      float sums[MatrixUnit::kSums];
#pragma unroll
      for (u32 i = 0; i < MatrixUnit::kSums; ++i) sums[i] = sums_[j * MatrixUnit::kSums + i];
      MatrixUnit::fours(sums, [&](u32 row, u32 column, const float(&four)[4]) {
        visit(first_row + row, j * 16 + column, four);
      });
    }
  }

 private:
  /// Which 64 rows of the tile: 0 for the second warpgroup, 1 for the third.
  WICK_DEVICE static u32 half() { return warp_index() / 4 - 1; }
  WICK_DEVICE static void release(Barrier& empty) {
    if (lane() == 0) arrive(empty);
  }

  template <u32 kRows, bool kTurned>
  WICK_DEVICE static void copy_rows(char* to, const CopyRows& from, u32 row, u32 k, u32 matrix,
                                    Barrier& full) {
    const i32 z = static_cast<i32>(matrix * from.batched);
    if constexpr (kTurned) {
#pragma unroll
      for (u32 i = 0; i < kRows / 64; ++i) {
        copy_box(to + i * 8192, from.map, static_cast<i32>(row + i * 64), static_cast<i32>(k), z,
                 full);
      }
    } else {
      copy_box(to, from.map, static_cast<i32>(k), static_cast<i32>(row), z, full);
    }
  }

  float sums_[kN / 2];
};

}  // namespace wick::gpu

#endif
