#pragma once

// Main loops compute the sums of a tile of a gemm; each matrix unit has its own.
//
// A loop is a class with
//   kM, kN            rows of a and of b that a thread block multiplies
//   kLoopThreads      threads of the thread block
//   kSharedWords      words of shared memory, aligned to 16 bytes
//   run(a, b, k, shared)   multiplies rows of a and b along k; all threads call it
//   each(visit)       calls visit(row, column, sums) for this thread's sums, four columns at a time
// Kernels select a loop by type, and differ in what they do with the sums.
//
// This file has the operands, and PlainLoop, which serves every dtype and architecture.

#include "wick/backend/gpu/kernels/device/element.h"
#include "wick/backend/gpu/kernels/linear/gemm_store.h"

namespace wick::gpu {

/// Rows of a matrix, of which a tile begins at the first; `rows` of them exist.
template <class T>
struct TileRows {
  const T* data;
  i64 row_stride, k_stride;
  u32 rows;
};

// ---- Accumulation: floats in f32 or f64, integers modulo 2^32 or 2^64.

WICK_DEVICE u32 widen(u8 x) { return x; }
WICK_DEVICE u32 widen(i16 x) { return static_cast<u32>(i32{x}); }
WICK_DEVICE u32 widen(u32 x) { return x; }
WICK_DEVICE u64 widen(i64 x) { return static_cast<u64>(x); }

WICK_DEVICE float multiply_add(float a, float b, float sum) { return fma(a, b, sum); }
WICK_DEVICE double multiply_add(double a, double b, double sum) { return fma(a, b, sum); }
WICK_DEVICE u32 multiply_add(u32 a, u32 b, u32 sum) { return a * b + sum; }
WICK_DEVICE u64 multiply_add(u64 a, u64 b, u64 sum) { return a * b + sum; }

/// Copies a tile's rows of an operand to shared memory through registers, one slab of kOfK k at a
/// time. Derived classes load a slab into registers. store() widens its elements and transposes it:
/// in shared memory, the rows of one k are adjacent. Adjacent threads hold adjacent elements, along
/// rows or along k. Along k, a thread holds several adjacent rows and stores them as one vector.
template <class T, u32 kRows, u32 kOfK>
class HeldStage {
 public:
  using Sum = decltype(widen(T()));
  static constexpr u32 kTile = kRows, kDepth = kOfK;
  static constexpr u32 kTogether = 16 / sizeof(Sum), kPitch = kRows + kTogether;
  static constexpr u32 kElems = kPitch * kDepth;

  WICK_DEVICE void store(Sum* shared) const {
    Sum* const to = shared + k_ * kPitch + row_;
    if (along_k_) {
#pragma unroll
      for (u32 s = 0; s < kEach; s += kTogether) {
        Together rows;
#pragma unroll
        for (u32 i = 0; i < kTogether; ++i) rows.v[i] = widen(held_[s + i]);
        store_whole(reinterpret_cast<Bytes16*>(to + row_step(s)),
                    __builtin_bit_cast(Bytes16, rows));
      }
    } else {
#pragma unroll
      for (u32 s = 0; s < kEach; ++s) to[k_step(s) * kPitch] = widen(held_[s]);
    }
  }

 protected:
  static constexpr u32 kEach = kRows * kDepth / kLoopThreads;
  static_assert(kEach % kTogether == 0);

  WICK_DEVICE explicit HeldStage(bool along_k) {
    along_k_ = along_k;
    row_ = along_k_ ? thread_index() / kDepth * kTogether : thread_index() % kRows;
    k_ = along_k_ ? thread_index() % kDepth : thread_index() / kRows;
  }
  /// Row and k of the thread's element s, relative to row_ and k_.
  WICK_DEVICE u32 row_step(u32 s) const {
    return along_k_ ? s / kTogether * (kLoopThreads / kDepth * kTogether) + s % kTogether : 0;
  }
  WICK_DEVICE u32 k_step(u32 s) const { return along_k_ ? 0 : s * (kLoopThreads / kRows); }

  T held_[kEach];
  u32 row_, k_;
  bool along_k_;

 private:
  struct alignas(16) Together {
    Sum v[kTogether];
  };
};

/// Loads the slabs of a matrix with constant strides.
template <class T, u32 kRows, u32 kOfK>
class PlainStage : public HeldStage<T, kRows, kOfK> {
  using Held = HeldStage<T, kRows, kOfK>;
  using Held::held_, Held::row_, Held::k_, Held::kEach;

 public:
  using Held::kDepth;

  WICK_DEVICE explicit PlainStage(const TileRows<T>& from)
      : Held(from.row_stride != 1), k_stride_(from.k_stride) {
    for (u32 s = 0; s < kEach; ++s) {
      const u32 at = row_ + this->row_step(s), row = at < from.rows ? at : from.rows - 1;
      at_[s] = from.data + row * from.row_stride + (k_ + this->k_step(s)) * k_stride_;
    }
  }

  /// Loads the next slab into registers; k behind the last `left` become zeros.
  WICK_DEVICE void load(u32 left) {
#pragma unroll
    for (u32 s = 0; s < kEach; ++s) {
      held_[s] = T{};
      if (k_ + this->k_step(s) < left) held_[s] = *at_[s];
      at_[s] += kDepth * k_stride_;
    }
  }

 private:
  const T* at_[kEach];
  i64 k_stride_;
};

/// Fused multiply-adds in the order of k: f32, f64 and integer sums have the CPU's bits.
///
/// A warp has a quarter of the tile's rows and half of its columns. A lane has blocks of 4 by 4 of
/// them.
template <class StageA, class StageB>
class PlainLoop {
 public:
  static constexpr u32 kTile = StageA::kTile, kM = kTile, kN = kTile, kDepth = StageA::kDepth;
  using Sum = typename StageA::Sum;
  // A single buffer for deep slabs: it needs as many barriers and as much shared memory as two
  // shallow ones.
  static constexpr u32 kSlabs = kDepth * sizeof(Sum) > 64 ? 1 : 2;
  static constexpr u32 kSlabElems = StageA::kElems + StageB::kElems;
  static constexpr u32 kSharedWords = kSlabs * kSlabElems * sizeof(Sum) / 4;

  /// One slab is multiplied while the next one is loaded into registers. The loads are issued
  /// before the multiplication. Behind the last slab they load nothing, which keeps compilers from
  /// moving them.
  template <class RowsA, class RowsB>
  WICK_DEVICE void run(const RowsA& a, const RowsB& b, u32 k, u32* shared_words) {
    Sum* const shared = reinterpret_cast<Sum*>(shared_words);
    StageA stage_a(a);
    StageB stage_b(b);
    const u32 slabs = (k + kDepth - 1) / kDepth;
    stage_a.load(k);
    stage_b.load(k);
    for (u32 slab = 0; slab < slabs; ++slab) {
      Sum* const now = shared + slab % kSlabs * kSlabElems;
      if (kSlabs == 1 && slab > 0) sync();
      stage_a.store(now);
      stage_b.store(now + StageA::kElems);
      sync();
      stage_a.load(left(slab + 1, k));
      stage_b.load(left(slab + 1, k));
      multiply(now, now + StageA::kElems);
    }
  }

  template <class Visit>
  WICK_DEVICE void each(Visit&& visit) const {
#pragma unroll
    for (u32 i = 0; i < kBlocks * 4; ++i) {
#pragma unroll
      for (u32 j = 0; j < kBlocks; ++j) {
        visit(first_row() + i / 4 * 16 + i % 4, first_column() + j * 32, &sums_[i][4 * j]);
      }
    }
  }

 private:
  static constexpr u32 kBlocks = kTile / 64;
  // Steps of a slab that are unrolled; more would take too many registers.
  static constexpr u32 kUnrolled = kTile == 128 ? kDepth : 4;
  WICK_DEVICE static u32 first_row() { return warp_index() / 2 * (kM / 4) + lane() / 8 * 4; }
  WICK_DEVICE static u32 first_column() { return warp_index() % 2 * (kN / 2) + lane() % 8 * 4; }
  /// Number of k from a slab's first on.
  WICK_DEVICE static u32 left(u32 slab, u32 k) { return slab * kDepth < k ? k - slab * kDepth : 0; }

  WICK_DEVICE void multiply(const Sum* a, const Sum* b) {
#pragma unroll kUnrolled
    for (u32 p = 0; p < kDepth; ++p) {
      Four<Sum> x[kBlocks], y[kBlocks];
#pragma unroll
      for (u32 i = 0; i < kBlocks; ++i) {
        x[i] = *reinterpret_cast<const Four<Sum>*>(a + p * StageA::kPitch + first_row() + i * 16);
        y[i] =
            *reinterpret_cast<const Four<Sum>*>(b + p * StageB::kPitch + first_column() + i * 32);
      }
#pragma unroll
      for (u32 i = 0; i < kBlocks * 4; ++i) {
#pragma unroll
        for (u32 j = 0; j < kBlocks * 4; ++j) {
          sums_[i][j] = multiply_add(x[i / 4].v[i % 4], y[j / 4].v[j % 4], sums_[i][j]);
        }
      }
    }
  }

  Sum sums_[kBlocks * 4][kBlocks * 4] = {};
};

/// The body of a kernel: runs the loop for its tile, then stores. T: the dtype of a's elements.
template <class T, class A, class B, class Loop, class Shared>
WICK_DEVICE void multiply_tile(Loop& loop, void* out, const A* a, const B* b, const Gemm& p,
                               Shared* shared) {
  TilePlace place(block_index(), (p.m + Loop::kM - 1) / Loop::kM, (p.n + Loop::kN - 1) / Loop::kN);
  place.matrix += p.first;
  i64 start[4];
  p.batch.locate(place.matrix, start);
  const u32 row = place.row * Loop::kM, column = place.column * Loop::kN;
  const u32 k = p.k - ((place.matrix + 1) % p.parts == 0 ? p.shorter : 0);
  loop.run(TileRows<A>{a + start[1] + row * p.a_row, p.a_row, p.a_k, p.m - row},
           TileRows<B>{b + start[2] + column * p.b_row, p.b_row, p.b_k, p.n - column}, k, shared);
  store_tile<T>(loop, out, p, start, place);
}

}  // namespace wick::gpu
