#pragma once

// The main loop of large f32 gemms: a ring of slabs in shared memory, which asynchronous copies
// fill where the device has them, and a tile of sums in registers. The tile is large enough that
// loads take few instructions beside the multiply-adds.

#include "wick/backend/gpu/kernels/device/copy.h"
#include "wick/backend/gpu/kernels/linear/main_loop.h"

namespace wick::gpu {

/// Copies a tile's rows to shared memory, kDepth of k at a time, transposed: in shared memory the
/// rows of one k are neighbours. If rows are neighbours in memory and aligned to 16 bytes, four
/// rows are copied at once. Otherwise neighbouring threads copy neighbouring elements, along rows
/// or along k.
template <u32 kRows, u32 kThreads>
class RingRows {
 public:
  static constexpr u32 kDepth = 8, kPitch = kRows + 4, kElems = kPitch * kDepth;

  WICK_DEVICE explicit RingRows(const TileRows<float>& from) : rows_(from.rows) {
    const bool by_rows = from.row_stride == 1;
    fours_ = by_rows && from.k_stride % 4 == 0 && reinterpret_cast<u64>(from.data) % 16 == 0;
    if (fours_) {
      row_ = thread_index() % (kRows / 4) * 4;
      k_ = thread_index() / (kRows / 4);
    } else if (by_rows) {
      row_ = thread_index() % kRows;
      k_ = thread_index() / kRows;
    } else {  // 8 k by 4 rows a warp: the stores have no bank conflicts
      row_ = thread_index() / kDepth;
      k_ = thread_index() % kDepth;
    }
    row_step_ = fours_ || by_rows ? 0 : kThreads / kDepth;
    k_step_ = fours_ ? kThreads / (kRows / 4) : by_rows ? kThreads / kRows : 0;
    to_step_ = k_step_ * kPitch + row_step_;
    step_ = row_step_ * from.row_stride + k_step_ * from.k_stride;
    slab_step_ = kDepth * from.k_stride;
    at_ = from.data + row_ * from.row_stride + k_ * from.k_stride;
  }

  /// Starts to copy the next slab. k behind the last `left`, and rows that don't exist, become
  /// zeros.
  WICK_DEVICE void load(float* shared, u32 left) {
    float* const to = shared + k_ * kPitch + row_;
    if (fours_) {
      copy<4>(to, left);
    } else {
      copy<1>(to, left);
    }
    at_ += slab_step_;
  }

 private:
  template <u32 kWide>
  WICK_DEVICE void copy(float* to, u32 left) const {
    constexpr u32 kEach = kRows * kDepth / kWide / kThreads;
    static_assert(kEach > 0);
    const float* at = at_;
    if (left >= kDepth && rows_ >= kRows) {
#pragma unroll
      for (u32 s = 0; s < kEach; ++s) {
        start_copy_of<4 * kWide>(to, at, 4 * kWide);
        at += step_;
        to += to_step_;
      }
      return;
    }
    u32 row = row_, k = k_;
#pragma unroll
    for (u32 s = 0; s < kEach; ++s) {
      const u32 there = row < rows_ && k < left ? rows_ - row : 0;
      start_copy_of<4 * kWide>(to, at, 4 * (there < kWide ? there : kWide));
      at += step_;
      to += to_step_;
      row += row_step_;
      k += k_step_;
    }
  }

  u32 rows_, row_, k_, row_step_, k_step_, to_step_;
  i64 step_, slab_step_;
  const float* at_;
  bool fours_;
};

/// Fused multiply-adds in the order of k: the results have the CPU's bits.
///
/// A warp has the kWarpsM-th part of the tile's rows and the kWarpsN-th part of its columns. A lane
/// has kRows by kColumns of them, in blocks of 4 by 4. RowsA and RowsB are the classes that copy
/// rows of a and of b to shared memory; they have the public members of RingRows.
template <u32 kRows, u32 kColumns, u32 kLanesM, u32 kWarpsM, u32 kWarpsN, u32 kStages,
          template <u32, u32> class RowsA = RingRows, template <u32, u32> class RowsB = RingRows>
class FmaLoop {
 public:
  using Sum = float;
  static constexpr u32 kLanesN = kWarp / kLanesM, kThreads = kWarpsM * kWarpsN * kWarp;
  static constexpr u32 kM = kRows * kLanesM * kWarpsM, kN = kColumns * kLanesN * kWarpsN;
  using StageA = RowsA<kM, kThreads>;
  using StageB = RowsB<kN, kThreads>;
  static constexpr u32 kDepth = StageA::kDepth, kSlab = StageA::kElems + StageB::kElems;
  static constexpr u32 kSharedWords = kStages * kSlab;

  template <class FromA, class FromB>
  WICK_DEVICE void run(const FromA& a, const FromB& b, u32 k, u32* words) {
    float* const shared = reinterpret_cast<float*>(words);
    StageA stage_a(a);
    StageB stage_b(b);
    const auto ask = [&](u32 stage, u32 first) {
      const u32 left = first < k ? k - first : 0;
      float* const to = shared + stage * kSlab;
      stage_a.load(to, left);
      stage_b.load(to + StageA::kElems, left);
      end_copies();
    };
#pragma unroll
    for (u32 s = 0; s + 1 < kStages; ++s) ask(s, s * kDepth);
    wait_for_copies<kStages - 2>();
    sync();
    Held held[2];
    const u32 at_a = first_row(), at_b = StageA::kElems + first_column();
    held[0].load(shared + at_a, shared + at_b);
    // now: the stage that is multiplied. behind: the stage that is filled next.
    u32 now = 0, behind = kStages - 1;
    for (u32 first = 0; first < k; first += kDepth) {
      const float* const slab = shared + now * kSlab;
#pragma unroll
      for (u32 p = 0; p < kDepth; ++p) {
        if (p + 1 < kDepth) {
          held[(p + 1) % 2].load(slab + at_a + (p + 1) * StageA::kPitch,
                                 slab + at_b + (p + 1) * StageB::kPitch);
        } else {
          wait_for_copies<kStages - 2>();
          sync();  // also: all warps have read the stage that is overwritten next
          now = now + 1 < kStages ? now + 1 : 0;
          held[0].load(shared + now * kSlab + at_a, shared + now * kSlab + at_b);
        }
        if (p == 0) {
          ask(behind, first + (kStages - 1) * kDepth);
          behind = behind + 1 < kStages ? behind + 1 : 0;
        }
        multiply(held[p % 2]);
      }
    }
    wait_for_copies<0>();
  }

  template <class Visit>
  WICK_DEVICE void each(Visit&& visit) const {
#pragma unroll
    for (u32 i = 0; i < kRows; ++i) {
#pragma unroll
      for (u32 j = 0; j < kColumns; j += 4) {
        visit(first_row() + i / 4 * (4 * kLanesM) + i % 4, first_column() + j * kLanesN,
              &sums_[i][j]);
      }
    }
  }

 private:
  /// A lane's rows and columns of one k.
  struct Held {
    Four<float> x[kRows / 4], y[kColumns / 4];

    WICK_DEVICE void load(const float* a, const float* b) {
#pragma unroll
      for (u32 i = 0; i < kRows / 4; ++i) {
        x[i] = *reinterpret_cast<const Four<float>*>(a + i * (4 * kLanesM));
      }
#pragma unroll
      for (u32 j = 0; j < kColumns / 4; ++j) {
        y[j] = *reinterpret_cast<const Four<float>*>(b + j * (4 * kLanesN));
      }
    }
  };

  // Lanes whose indices differ in bit 0 share rows (or columns), and lanes that differ in bit 1
  // share columns (or rows). Each half of a warp then reads its operands at once.
  WICK_DEVICE static u32 many() { return (lane() & 1) | (lane() >> 2 & 6); }
  WICK_DEVICE static u32 few() { return lane() >> 1 & 3; }
  static_assert(kLanesM == 8 || kLanesM == 4);
  WICK_DEVICE static u32 first_row() {
    return warp_index() / kWarpsN * (kM / kWarpsM) + (kLanesM == 8 ? many() : few()) * 4;
  }
  WICK_DEVICE static u32 first_column() {
    return warp_index() % kWarpsN * (kN / kWarpsN) + (kLanesM == 8 ? few() : many()) * 4;
  }

  WICK_DEVICE void multiply(const Held& held) {
#pragma unroll
    for (u32 i = 0; i < kRows; ++i) {
#pragma unroll
      for (u32 c = 0; c < kColumns; ++c) {
        const u32 j = i % 2 == 0 ? c : kColumns - 1 - c;
        sums_[i][j] = fma(held.x[i / 4].v[i % 4], held.y[j / 4].v[j % 4], sums_[i][j]);
      }
    }
  }

  float sums_[kRows][kColumns] = {};
};

}  // namespace wick::gpu
