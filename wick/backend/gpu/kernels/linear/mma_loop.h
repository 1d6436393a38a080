#pragma once

// The main loop of the matrix units in device/mma.h, for f16 and bf16.

#include "wick/backend/gpu/kernels/device/mma.h"
#include "wick/backend/gpu/kernels/linear/main_loop.h"

#if WICK_MATRIX_UNIT

namespace wick::gpu {

/// Copies a tile's rows of a 16-bit operand to shared memory through registers, one slab of kDepth
/// k at a time. Derived classes load a slab into registers; store() writes it to shared memory. A
/// piece is eight k of one row. In shared memory, the pieces of adjacent rows are adjacent, which
/// avoids bank conflicts of the stores and of the loads of fragments.
template <u32 kRows>
class HeldPieces {
 public:
  static constexpr u32 kEach = 2;  // pieces that a thread holds
  static constexpr u32 kChunks = kEach * kLoopThreads / kRows, kDepth = 8 * kChunks;
  /// A gap behind each chunk's pieces avoids bank conflicts of lanes that read several chunks.
  static constexpr u32 kPitch = kRows + 2, kSize = kPitch * kChunks;

  WICK_DEVICE void store(Bytes16* shared) const {
    const u32* h = held_;
    Bytes16* const to = shared + chunk_ * kPitch + row_;
    if (layout_ == kPairsOfRows) {  // a word holds element e of both rows
      // On AMD four of eight lanes begin with the even row and four with the odd one, to avoid bank
      // conflicts. Elsewhere that would take a register too many.
      const u32 first = WICK_AMD ? thread_index() / 4 % 2 : 0;
#pragma unroll
      for (u32 s = 0; s < 2; ++s) {
        const u32 odd = first ^ s;
        Bytes16 piece;
#pragma unroll
        for (u32 i = 0; i < 4; ++i) piece.w[i] = same_halves(h[2 * i], h[2 * i + 1], odd);
        to[odd] = piece;
      }
    } else {
#pragma unroll
      for (u32 s = 0; s < kEach; ++s) {
        to[chunk_step(s) * kPitch + row_step(s)] = {
            {h[4 * s], h[4 * s + 1], h[4 * s + 2], h[4 * s + 3]}};
      }
    }
  }

 protected:
  WICK_DEVICE explicit HeldPieces(u32 layout) : layout_(layout) {
    if (layout == kPiecesOfK) {  // eight lanes take four chunks of two rows, which lie in all banks
      row_ = thread_index() / (2 * kChunks) * 2 + thread_index() / 4 % 2;
      chunk_ = thread_index() % (2 * kChunks) / 8 * 4 + thread_index() % 4;
    } else if (layout == kPairsOfRows) {
      row_ = thread_index() % (kRows / 2) * 2;
      chunk_ = thread_index() / (kRows / 2);
    } else {
      row_ = thread_index() % kRows;
      chunk_ = thread_index() / kRows;
    }
  }
  /// Row and chunk of the thread's piece s, relative to row_ and chunk_.
  WICK_DEVICE u32 row_step(u32 s) const { return layout_ == kPiecesOfK ? s * (kRows / 2) : 0; }
  WICK_DEVICE u32 chunk_step(u32 s) const { return layout_ == kScalar ? s * (kChunks / 2) : 0; }

  u32 held_[4 * kEach];
  u32 layout_, row_, chunk_;
};

/// Loads the slabs of a matrix with constant strides.
template <u32 kRows>
class PieceStage : public HeldPieces<kRows> {
  using Held = HeldPieces<kRows>;
  using Held::held_, Held::layout_, Held::row_, Held::chunk_;

 public:
  using Held::kDepth, Held::kEach;

  WICK_DEVICE PieceStage(const TileRows<u16>& from, u32 layout)
      : Held(layout), k_stride_(from.k_stride) {
    const u32 last = from.rows - (layout == kPairsOfRows ? 2 : 1);
    for (u32 s = 0; s < kEach; ++s) {
      const u32 row = row_ + this->row_step(s);
      at_[s] = from.data + (row < last ? row : last) * from.row_stride +
               (chunk_ + this->chunk_step(s)) * 8 * k_stride_;
    }
  }

  /// Loads the next slab into registers; k behind the last `left` become zeros.
  WICK_DEVICE void load(u32 left) {
    if (layout_ == kPiecesOfK) {
#pragma unroll
      for (u32 s = 0; s < kEach; ++s) {
        Bytes16 piece = {};
        if (chunk_ * 8 < left) piece = *reinterpret_cast<const Bytes16*>(at_[s]);
#pragma unroll
        for (u32 i = 0; i < 4; ++i) held_[4 * s + i] = piece.w[i];
      }
    } else if (layout_ == kPairsOfRows) {
#pragma unroll
      for (u32 e = 0; e < 8; ++e) {
        held_[e] = 0;
        if (chunk_ * 8 + e < left) {
          held_[e] = *reinterpret_cast<const u32*>(at_[0] + e * k_stride_);
        }
      }
    } else {
#pragma unroll
      for (u32 i = 0; i < 8 * kEach; ++i) {
        const u32 s = i / 8, e = i % 8;
        u32 x = 0;
        if ((chunk_ + this->chunk_step(s)) * 8 + e < left) x = at_[s][e * k_stride_];
        held_[i / 2] = i % 2 == 0 ? x : held_[i / 2] | x << 16;
      }
    }
#pragma unroll
    for (u32 s = 0; s < kEach; ++s) at_[s] += kDepth * k_stride_;
  }

  /// Moves back by k elements along k.
  WICK_DEVICE void rewind(u32 k) {
    for (u32 s = 0; s < kEach; ++s) at_[s] -= k * k_stride_;
  }

 private:
  const u16* at_[kEach];
  i64 k_stride_;
};

/// Half of a thread block's waves take its upper rows, the other half its lower rows; the waves of
/// each half share the columns. Order of reduction: the unit's within its depth, then slabs in the
/// order of k.
template <class T, u32 kTile, class StageA = PieceStage<kTile>, class StageB = StageA>
class MmaLoop {
 public:
  using Sum = float;
  using Stage = HeldPieces<kTile>;
  static constexpr u32 kM = kTile, kN = kTile;
  // AMD has one slab instead of two: it has less shared memory, and a multiprocessor must hold more
  // thread blocks.
  static constexpr u32 kSlabs = WICK_AMD ? 1 : 2;
  static constexpr u32 kSharedPieces = kSlabs * 2 * Stage::kSize;

  /// k_of_b: b repeats with this period along k; a multiple of the stage's depth if it is below k.
  WICK_DEVICE MmaLoop(u32 layout_a, u32 layout_b, u32 k_of_b)
      : layout_a_(layout_a), layout_b_(layout_b), k_of_b_(k_of_b) {}

  template <class RowsA, class RowsB>
  WICK_DEVICE void run(const RowsA& a, const RowsB& b, u32 k, Bytes16* shared) {
    StageA stage_a(a, layout_a_);
    StageB stage_b(b, layout_b_);
    const u32 slabs = (k + Stage::kDepth - 1) / Stage::kDepth;
    if (slabs == 0) return;
    stage_a.load(k);
    stage_b.load(k);
    for (u32 slab = 0; slab < slabs; ++slab) {
      Bytes16* const now = shared + slab % kSlabs * (2 * Stage::kSize);
      if (kSlabs == 1 && slab > 0) sync();
      stage_a.store(now);
      stage_b.store(now + Stage::kSize);
      sync();
      if (slab + 1 < slabs) {
        const u32 done = (slab + 1) * Stage::kDepth;
        if (done == k_of_b_) stage_b.rewind(k_of_b_);
        stage_a.load(k - done);
        stage_b.load(k - done);
      }
      multiply(now, now + Stage::kSize);
    }
  }

  template <class Visit>
  WICK_DEVICE void each(Visit&& visit) const {
#pragma unroll
    for (u32 i = 0; i < kUnitsM; ++i) {
#pragma unroll
      for (u32 j = 0; j < kUnitsN; ++j) {
        MatrixUnit::fours(sums_[i][j], [&](u32 row, u32 column, const float(&four)[4]) {
          visit(first_row() + i * 16 + row, first_column() + j * 16 + column, four);
        });
      }
    }
  }

 private:
  using Part = Fragment<MatrixUnit::kPieces>;
  static constexpr u32 kWavesM = 2, kWavesN = kLoopThreads / MatrixUnit::kWave / kWavesM;
  static constexpr u32 kUnitsM = kM / kWavesM / 16, kUnitsN = kN / kWavesN / 16;
  WICK_DEVICE static u32 wave() { return thread_index() / MatrixUnit::kWave; }
  WICK_DEVICE static u32 first_row() { return wave() / kWavesN * (kUnitsM * 16); }
  WICK_DEVICE static u32 first_column() { return wave() % kWavesN * (kUnitsN * 16); }

  WICK_DEVICE static Part part(const Bytes16* rows, u32 step) {
    const u32 lane_of_wave = thread_index() % MatrixUnit::kWave;
    Part p;
#pragma unroll
    for (u32 i = 0; i < MatrixUnit::kPieces; ++i) {
      const u32 chunk = step * (MatrixUnit::kDepth / 8) + MatrixUnit::chunk(lane_of_wave, i);
      p.piece[i] = rows[chunk * Stage::kPitch + MatrixUnit::row(lane_of_wave, i)];
    }
    return p;
  }

  WICK_DEVICE void multiply(const Bytes16* a, const Bytes16* b) {
#pragma unroll
    for (u32 step = 0; step < Stage::kDepth / MatrixUnit::kDepth; ++step) {
      Part y[kUnitsN];
#pragma unroll
      for (u32 j = 0; j < kUnitsN; ++j) y[j] = part(b + first_column() + j * 16, step);
#pragma unroll
      for (u32 i = 0; i < kUnitsM; ++i) {
        const Part x = part(a + first_row() + i * 16, step);
#pragma unroll
        for (u32 j = 0; j < kUnitsN; ++j) MatrixUnit::multiply<T>(sums_[i][j], x, y[j]);
      }
    }
  }

  float sums_[kUnitsM][kUnitsN][MatrixUnit::kSums] = {};
  u32 layout_a_, layout_b_, k_of_b_;
};

}  // namespace wick::gpu

#endif
