#pragma once

// Tiles for attention by AMD's matrix units (mma.h): which scores a lane holds, places in shared
// memory, and operands. flash_mma.gpu and flash_gradient_mma.gpu share them.
//
// A lane loads neighbouring elements of an operand along k. The scores that a lane holds become an
// operand of the next multiplication, whose k are keys, without passing through shared memory: the
// keys of the other operand are permuted (key_of_slot).

#include "wick/backend/gpu/kernels/attention/flash_rows.h"
#include "wick/backend/gpu/kernels/device/mma.h"

#if WICK_WMMA || WICK_MFMA

namespace wick::gpu {

constexpr u32 kUnitThreads = 128, kUnitRows = 64;  // of a thread block
constexpr u32 kWave = MatrixUnit::kWave, kSums = MatrixUnit::kSums, kDepth = MatrixUnit::kDepth;
/// Blocks of 16 rows that a wave takes.
constexpr u32 kRowTiles = kUnitRows / 16 / (kUnitThreads / kWave);
using Operand = Fragment<MatrixUnit::kPieces>;

WICK_DEVICE u32 lane_of_wave() { return thread_index() % kWave; }
/// thread_index(), from which the compiler doesn't derive numbers before they are needed: kept from
/// one tile to the next, they would take too many registers.
WICK_DEVICE u32 thread_now() {
  u32 x = thread_index();
  forget(x);
  return x;
}

/// Whether a lane holds every other column of 16 (WMMA of gfx11), not neighbouring columns.
constexpr bool kEveryOther = kWave == 32 && MatrixUnit::kPieces == 2;

/// Which scores a lane holds: kSums of every 16 columns of a row. The elements of a lane are
/// [columns / 16][row tile][kSums]. flash_rows.h and gradient_work.h describe the members. kTiles:
/// row tiles of a wave. kAnew: rows and keys are derived anew from the thread whenever they are
/// used. Otherwise the compiler keeps them from one tile to the next, for which some kernels don't
/// have the registers.
template <u32 kTiles, bool kAnew = false>
struct UnitLanesOf {
  static constexpr u32 kRows = kTiles, kNeighbours = kEveryOther ? 1 : 4, kSpan = 16 * kTiles;
  WICK_DEVICE static u32 lane() { return kAnew ? thread_now() % kWave : lane_of_wave(); }
  WICK_DEVICE static u32 row(u32 i) { return lane() % 16 + 16 * i; }
  WICK_DEVICE static constexpr u32 row_of(u32 e) { return e / kSums % kTiles; }
  WICK_DEVICE static constexpr u32 of_row(u32 e, u32 i) { return e + i * kSums; }
  WICK_DEVICE static u32 key(u32 e) {
    const u32 tile = e / (kSums * kTiles) * 16, part = lane() / 16;
    return tile + (kEveryOther ? e % kSums * 2 + part : part * kSums + e % kSums);
  }
  template <class F>
  WICK_DEVICE static float over_row(float x, F&& f) {
    x = f(x, shuffle_xor<16>(x));
    if constexpr (kWave == 64) x = f(x, from_other_half(x));
    return x;
  }
};
using UnitLanes = UnitLanesOf<kRowTiles>;

/// Two numbers as T: rounded, or of bf16 with kCuts truncated. A NaN may become any number of bf16.
/// Of exponentials, the row's sum is NaN, too, and so are its results.
template <class T, bool kCuts>
WICK_DEVICE u32 narrow_numbers(float low, float high) {
  if constexpr (kSame<T, bf16>) {
    u32 x = f32_bits(low), y = f32_bits(high);
    if constexpr (!kCuts) x += 0x7fffu + (x >> 16 & 1), y += 0x7fffu + (y >> 16 & 1);
    return same_halves(x, y, 1);
  } else {
    typedef _Float16 Two __attribute__((ext_vector_type(2)));
    return __builtin_bit_cast(u32, Two{static_cast<_Float16>(low), static_cast<_Float16>(high)});
  }
}

/// The key of an operand's element `slot`, below kDepth: lanes hold the scores of the keys of their
/// pieces.
WICK_DEVICE constexpr u32 key_of_slot(u32 slot) {
  if (kEveryOther) return slot % 8 * 2 + slot / 8;
  if (kWave == 32) return slot;
  return slot / 8 * 4 + slot % 4 + slot % 8 / 4 * 16;
}

// ---- Places in shared memory. 16 bytes of row r with element 8 · piece of a matrix of `width`
// elements a row lie at r · width · 2 + (piece ^ ((r ^ r / 8) & 7)) · 16 bytes. Eight rows of one
// piece, and one row of eight successive blocks of eight rows, then lie in different banks. A place
// is (base ^ steps · 16) + constant, where `base` belongs to the thread and `steps` is a constant
// below 8: a thread needs few registers for all of its places.

/// The part of a place that isn't a constant.
WICK_DEVICE u32 place_of_row(u32 width, u32 row, u32 piece) {
  return row * width * 2 + (piece ^ ((row ^ row >> 3) & 7)) * 16;
}

/// The thread's part of places of operands in a matrix with `width` elements a row.
WICK_DEVICE u32 operand_base(u32 width) {
  const u32 lane = thread_now() % kWave;
  return place_of_row(width, MatrixUnit::row(lane, 0),
                      MatrixUnit::kPieces == 1 ? MatrixUnit::chunk(lane, 0) : 0);
}
/// Loads kDepth of k, from `depth` on, of the 16 rows from `row` on of the matrix at `from`.
WICK_DEVICE Operand load_operand(const char* from, u32 base, u32 width, u32 row, u32 depth) {
  Operand x;
#pragma unroll
  for (u32 i = 0; i < MatrixUnit::kPieces; ++i) {
    const u32 piece = depth / 8 + i;
    const u32 place = (base ^ ((piece ^ row / 8) % 8 * 16)) + piece / 8 * 128 + row * width * 2;
    x.piece[i] = load_whole(reinterpret_cast<const Bytes16*>(from + place));
  }
  return x;
}

// ---- Sums and scores: [columns / 16][row tile][kSums]. kTiles: row tiles of a wave.

template <u32 kTiles = kRowTiles, u32 kCount>
WICK_DEVICE float (&sums_of(float (&all)[kCount], u32 column, u32 row_tile))[kSums] {
  return reinterpret_cast<float(&)[kSums]>(all[(column * kTiles + row_tile) * kSums]);
}

/// The scores of kDepth keys from `depth` on as an operand of T: the next term of each. Leaves the
/// rest in s. narrow(low, high): two numbers as T.
template <class T, u32 kTiles = kRowTiles, u32 kCount, class Narrow>
WICK_DEVICE Operand next_term(float (&s)[kCount], u32 depth, u32 row_tile, Narrow&& narrow) {
  constexpr u32 kTilesAtOnce = kDepth / 16, kWords = kTilesAtOnce * kSums / 2;
  u32 own[kWords];
#pragma unroll
  for (u32 w = 0; w < kWords; ++w) {
    const u32 column = depth / 16 + w / (kSums / 2);
    const u32 e = (column * kTiles + row_tile) * kSums + w % (kSums / 2) * 2;
    own[w] = narrow(s[e], s[e + 1]);
    Vec<T, 2> back;
    back.w[0] = own[w];
    // s − back, as an fma that widens f16 itself.
    s[e] = fma(back[0], -1.0f, s[e]);
    s[e + 1] = fma(back[1], -1.0f, s[e + 1]);
  }
  Operand x;
#pragma unroll
  for (u32 w = 0; w < kWords; ++w) {
    if constexpr (kEveryOther) {  // the lower lanes' words, then the upper lanes'
      const u32 other = shuffle_xor<16>(own[w]);
      const bool upper = lane_of_wave() >= 16;
      x.piece[0].w[w] = upper ? other : own[w];
      x.piece[1].w[w] = upper ? own[w] : other;
    } else {
      x.piece[0].w[w] = own[w];
    }
  }
  return x;
}

}  // namespace wick::gpu

#endif
