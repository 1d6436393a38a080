#pragma once

// The main loop of skinny gemms, which have few rows of a. b is read from memory once, straight
// into the registers that are the matrix unit's operands. A thread block has 32 rows of b. Its
// waves take turns along k, and their sums are added in shared memory.

#include "wick/backend/gpu/kernels/device/mma.h"
#include "wick/backend/gpu/kernels/linear/gemm_store.h"

#if WICK_MATRIX_UNIT

namespace wick::gpu {

inline constexpr u32 kSkinnyRows = kSkinnyColumns;  // rows of b
/// k of a turn: four pieces of each 16 rows in a lane, but at most 64.
inline constexpr u32 kTurn = MatrixUnit::kPieces == 1 ? 64 : 2 * MatrixUnit::kDepth;

/// Two times 16 rows of b along a turn, as they were loaded. kPairs: the layout is kPairsOfRows,
/// otherwise kPiecesOfK.
template <bool kPairs>
class SkinnyRows {
 public:
  static constexpr u32 kSteps = kTurn / MatrixUnit::kDepth, kPieces = MatrixUnit::kPieces;
  using Part = Fragment<kPieces>;

  /// rows: the number of rows that exist from b on.
  WICK_DEVICE SkinnyRows(const u16* b, u32 rows, i64 row_stride, i64 k_stride)
      : k_stride_(k_stride) {
#pragma unroll
    for (u32 p = 0; p < kPieces; ++p) {
      const u32 row = MatrixUnit::row(lane_of_wave(), p);
#pragma unroll
      for (u32 unit = 0; unit < 2; ++unit) {  // a pair's rows are neighbours, one for each unit
        const u32 at = kPairs ? 2 * row : unit * 16 + row, last = rows - (kPairs ? 2 : 1);
        rows_[p][unit] = b + (at < last ? at : last) * row_stride;
      }
    }
  }

  /// Loads elements [first, first + kTurn) of k; zeros from k on.
  WICK_DEVICE void load(u32 first, u32 k) {
    if constexpr (kPairs) {
      for_each_piece([&](u32 step, u32 p, u32 at) {
#pragma unroll
        for (u32 e = 0; e < 8; ++e) {
          u32 pair = 0;
          if (first + at + e < k) {
            pair = *reinterpret_cast<const u32*>(rows_[p][0] + (first + at + e) * k_stride_);
          }
          words_[step][p][e] = pair;
        }
      });
    } else {
      for_each_piece([&](u32 step, u32 p, u32 at) {
#pragma unroll
        for (u32 unit = 0; unit < 2; ++unit) {
          Bytes16 piece = {};
          if (first + at < k) {
            piece = load_streamed(reinterpret_cast<const Bytes16*>(rows_[p][unit] + first + at));
          }
#pragma unroll
          for (u32 i = 0; i < 4; ++i) words_[step][p][4 * unit + i] = piece.w[i];
        }
      });
    }
  }

  /// A step's rows of both units.
  WICK_DEVICE void take(u32 step, Part (&units)[2]) const {
#pragma unroll
    for (u32 p = 0; p < kPieces; ++p) {
      const u32* const w = words_[step][p];
#pragma unroll
      for (u32 i = 0; i < 4; ++i) {
        // A word of a pair has the elements of both units for one k.
        units[0].piece[p].w[i] = kPairs ? (w[2 * i] & 0xffffu) | w[2 * i + 1] << 16 : w[i];
        units[1].piece[p].w[i] = kPairs ? w[2 * i] >> 16 | (w[2 * i + 1] & 0xffff0000u) : w[4 + i];
      }
    }
  }

  /// The row of b, counted from the thread block's first, for a column of a unit.
  WICK_DEVICE u32 row_of(u32 unit, u32 column) const {
    return kPairs ? 2 * column + unit : 16 * unit + column;
  }
  WICK_DEVICE static u32 lane_of_wave() { return thread_index() % MatrixUnit::kWave; }

 private:
  /// Calls visit(step, piece, offset of the piece's first k in the turn).
  template <class Visit>
  WICK_DEVICE static void for_each_piece(Visit&& visit) {
#pragma unroll
    for (u32 step = 0; step < kSteps; ++step) {
#pragma unroll
      for (u32 p = 0; p < kPieces; ++p) {
        visit(step, p, step * MatrixUnit::kDepth + MatrixUnit::chunk(lane_of_wave(), p) * 8);
      }
    }
  }

  i64 k_stride_;
  const u16* rows_[kPieces][2];
  u32 words_[kSteps][kPieces][8];
};

/// kUnits times 16 rows of a. Each element of a has kParts terms, which lie `part` elements apart
/// in a row and are multiplied with the same b. Rows of a have whole turns, with zeros behind k.
/// Order of reduction: the turns of a wave in order, each in the unit's order; then the waves in
/// order.
template <class T, u32 kUnits, u32 kParts, bool kPairs>
class SkinnyLoop {
 public:
  using Rows = SkinnyRows<kPairs>;
  static constexpr u32 kWaves = kSkinnyThreads / MatrixUnit::kWave;
  static constexpr u32 kRowsA = 16 * kUnits, kPitch = kSkinnyRows + 4;
  static constexpr u32 kSharedFours = kWaves * kRowsA * kPitch / 4;

  WICK_DEVICE SkinnyLoop(const u16* a, u32 rows, i64 row_stride, u32 part) : part_(part) {
#pragma unroll
    for (u32 unit = 0; unit < kUnits; ++unit) {
#pragma unroll
      for (u32 p = 0; p < Rows::kPieces; ++p) {
        const u32 row = unit * 16 + MatrixUnit::row(Rows::lane_of_wave(), p);
        rows_[unit][p] = a + (row < rows ? row : rows - 1) * row_stride;
      }
    }
  }

  /// `b` must already hold the wave's first turn of its k columns. It reads a, which the kernel in
  /// front may have written, so pdl_wait() must come before it.
  WICK_DEVICE void run(Rows& b, u32 k) {
    Rows next = b;
    for (u32 first = wave() * kTurn; first < k; first += kWaves * kTurn) {
      Part a[kSteps][kParts][kUnits];
      load(a, first);
      next.load(first + kWaves * kTurn, k);
#pragma unroll
      for (u32 step = 0; step < kSteps; ++step) {
        Part rows[2];
        b.take(step, rows);
#pragma unroll
        for (u32 part = 0; part < kParts; ++part) {
#pragma unroll
          for (u32 unit = 0; unit < kUnits; ++unit) {
            MatrixUnit::multiply<T>(sums_[unit][0], a[step][part][unit], rows[0]);
            MatrixUnit::multiply<T>(sums_[unit][1], a[step][part][unit], rows[1]);
          }
        }
      }
      b = next;
    }
  }

  /// Adds the waves' sums and visits them as other main loops do. All threads must call it.
  template <class Visit>
  WICK_DEVICE void each(const Rows& b, Four<float>* shared, Visit&& visit) const {
    float* const mine = &shared->v[0] + wave() * (kRowsA * kPitch);
#pragma unroll
    for (u32 unit = 0; unit < kUnits; ++unit) {
#pragma unroll
      for (u32 j = 0; j < 2; ++j) {
        MatrixUnit::fours(sums_[unit][j], [&](u32 row, u32 column, const float(&four)[4]) {
#pragma unroll
          for (u32 i = 0; i < 4; ++i) {
            mine[(unit * 16 + row) * kPitch + b.row_of(j, column + i)] = four[i];
          }
        });
      }
    }
    sync();
    for (u32 at = thread_index(); at < kRowsA * (kSkinnyRows / 4); at += kSkinnyThreads) {
      const u32 row = at / (kSkinnyRows / 4), column = at % (kSkinnyRows / 4) * 4;
      Four<float> sum = shared[(row * kPitch + column) / 4];
#pragma unroll
      for (u32 w = 1; w < kWaves; ++w) {
        const Four<float> more = shared[((w * kRowsA + row) * kPitch + column) / 4];
#pragma unroll
        for (u32 i = 0; i < 4; ++i) sum.v[i] = sum.v[i] + more.v[i];
      }
      visit(row, column, sum.v);
    }
  }

  WICK_DEVICE static u32 wave() { return thread_index() / MatrixUnit::kWave; }

 private:
  using Part = typename Rows::Part;
  static constexpr u32 kSteps = Rows::kSteps;

  WICK_DEVICE void load(Part (&a)[kSteps][kParts][kUnits], u32 first) const {
#pragma unroll
    for (u32 step = 0; step < kSteps; ++step) {
#pragma unroll
      for (u32 part = 0; part < kParts; ++part) {
#pragma unroll
        for (u32 unit = 0; unit < kUnits; ++unit) {
#pragma unroll
          for (u32 p = 0; p < Rows::kPieces; ++p) {
            const u32 at = first + step * MatrixUnit::kDepth + part * part_ +
                           MatrixUnit::chunk(Rows::lane_of_wave(), p) * 8;
            a[step][part][unit].piece[p] = *reinterpret_cast<const Bytes16*>(rows_[unit][p] + at);
          }
        }
      }
    }
  }

  const u16* rows_[kUnits][Rows::kPieces];
  u32 part_;
  float sums_[kUnits][2][MatrixUnit::kSums] = {};
};

}  // namespace wick::gpu

#endif
