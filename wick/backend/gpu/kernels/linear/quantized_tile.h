#pragma once

// Tiles of int8 matrix units: what quantized_int8.gpu and quantized_small_m.gpu share.

#include "wick/backend/gpu/kernels/device/imma.h"
#include "wick/backend/gpu/kernels/device/mma.h"
#include "wick/backend/gpu/kernels/linear/gemm_columns.h"
#include "wick/backend/gpu/kernels/linear/quantized.h"

#if WICK_BYTE_UNIT

namespace wick::gpu {

template <bool kFirst, class A, class B>
struct SelectOf {
  using Type = A;
};
template <class A, class B>
struct SelectOf<false, A, B> {
  using Type = B;
};
/// A or, if kFirst is false, B.
template <bool kFirst, class A, class B>
using Select = typename SelectOf<kFirst, A, B>::Type;

WICK_DEVICE u32 wave_lane() { return thread_index() % ByteUnit::kWave; }
WICK_DEVICE u32 wave() { return thread_index() / ByteUnit::kWave; }

/// The number that is XORed to a word's index in 16 bytes of a row. If 16 neighbouring lanes take
/// half or less of 16 bytes each, of 16 rows or columns, the halves are swapped in shared memory in
/// every second run of eight rows, to avoid bank conflicts.
WICK_DEVICE u32 turned(u32 row) {
  constexpr bool kTurned = ByteUnit::kColumns == 16 && ByteUnit::kWords < 4;
  return kTurned ? row / 8 % 2 * 2 : 0;
}
/// turned() for q6_k's high bits, of which lanes take at most half.
WICK_DEVICE u32 turned_high(u32 row) { return ByteUnit::kColumns == 16 ? row / 8 % 2 * 2 : 0; }
/// Stores 16 bytes; `turn` is the result of turned() or turned_high().
WICK_DEVICE void put_turned(u8* to, u32 turn, const Bytes16& x) {
  *reinterpret_cast<Bytes16*>(to) = {{turn != 0 ? x.w[2] : x.w[0], turn != 0 ? x.w[3] : x.w[1],
                                      turn != 0 ? x.w[0] : x.w[2], turn != 0 ? x.w[1] : x.w[3]}};
}

/// Loads kCount neighbouring words at once.
template <u32 kCount, bool kStreamed>
WICK_DEVICE void load_words(u32* to, const u32* from) {
  if constexpr (kCount == 8) {
    load_words<4, kStreamed>(to, from);
    load_words<4, kStreamed>(to + 4, from + 4);
  } else if constexpr (kCount == 4) {
    Bytes16 x;
    if constexpr (kStreamed) {
      x = load_streamed(reinterpret_cast<const Bytes16*>(from));
    } else {
      x = *reinterpret_cast<const Bytes16*>(from);
    }
#pragma unroll
    for (u32 i = 0; i < 4; ++i) to[i] = x.w[i];
  } else if constexpr (kCount == 2) {
    const u64 x = *reinterpret_cast<const u64*>(from);
    to[0] = static_cast<u32>(x);
    to[1] = static_cast<u32>(x >> 32);
  } else {
    to[0] = *from;
  }
}

/// A lane's quants of a block of 16 rows: nibbles, with their fifth bits if there are any; for
/// eight bits the bytes; for q6_k nibbles and words of high bits as in a unit.
template <class Q>
struct BlockWords {
  using Unit = ByteUnit;
  static constexpr u32 kSlots = ByteUnit::kSlots, kWords = ByteUnit::kWords;
  static constexpr bool kWhole = Q::kBits == 8, kSix = Q::kHigh == 2;
  // q6_k: a word of high bits serves two words of nibbles.
  static constexpr u32 kHighWords = kSix ? (kWords == 4 ? 2 : 1) : Q::kFifth ? kWords : 1;
  u32 w[kSlots][kWhole ? 2 * kWords : kWords];
  u32 high[kSlots][kHighWords];

  /// Takes word i of a slot of block j from the words of low_piece(j) and high_piece(j).
  WICK_DEVICE void set(u32 s, u32 i, u32 low_bits, u32 high_bits, u32 j) {
    w[s][i] = nibbles_in<Q>(low_bits, high_bits, j);
    if constexpr (Q::kFifth) high[s][i] = fifths_in(high_bits, j);
  }
  /// Loads block j of a unit in shared memory, where put_turned has stored it, or, if turned() is
  /// 0, in global memory.
  WICK_DEVICE void load(const u8* unit, u32 j) {
    const u32 lane = wave_lane(), word = ByteUnit::word(lane);
#pragma unroll
    for (u32 s = 0; s < kSlots; ++s) {
      const u32 row = ByteUnit::row(lane, s), at = word ^ turned(row);
      const u32* from = reinterpret_cast<const u32*>(unit) + row * 4;
      constexpr u32 kPiece = kPieceBytes / 4;
      if constexpr (kWhole) {
        load_words<kWords, false>(w[s], from + 2 * j * kPiece + at);
        load_words<kWords, false>(w[s] + kWords, from + (2 * j + 1) * kPiece + at);
      } else {
        u32 low_bits[kWords], high_bits[kWords] = {};
        load_words<kWords, false>(low_bits, from + Q::low_piece(j) * kPiece + at);
        if constexpr (Q::kHigh == 1) {
          load_words<kWords, false>(high_bits, from + Q::high_piece(j) * kPiece + at);
        }
#pragma unroll
        for (u32 i = 0; i < kWords; ++i) set(s, i, low_bits[i], high_bits[i], j);
      }
      if constexpr (kSix) load_high<false>(high[s], unit, j, s);
    }
  }
  /// q6_k: loads the high bits only. kStreamed: from global memory, where they are read only once.
  template <bool kStreamed>
  WICK_DEVICE static void load_high(u32 (&to)[kHighWords], const u8* unit, u32 j, u32 s) {
    const u32 lane = wave_lane(), word = ByteUnit::word(lane);
    const u32 row = ByteUnit::row(lane, s), turn = kStreamed ? 0 : turned_high(row);
    const u32* from = reinterpret_cast<const u32*>(unit) + row * 4;
    constexpr u32 kPiece = kPieceBytes / 4;
    const u32* bits = from + (8 + j / 2) * kPiece + ((j % 2 * 2 + word / 2) ^ turn);
    load_words<kHighWords, kStreamed>(to, bits);
  }

  /// The quants as int8, kTimes too large.
  WICK_DEVICE ByteUnit::Rows unpack() const {
    ByteUnit::Rows rows;
#pragma unroll
    for (u32 s = 0; s < kSlots; ++s) {
#pragma unroll
      for (u32 i = 0; i < kWords; ++i) {
        u32 &low = rows.low[s * kWords + i], &up = rows.high[s * kWords + i];
        if constexpr (kWhole) {
          low = w[s][i];
          up = w[s][kWords + i];
        } else if constexpr (kSix) {
          const u32 odd = (ByteUnit::word(wave_lane()) + i) % 2, bits = high[s][i / 2];
          low = static_cast<u32>(six_bits<0>(w[s][i], bits, odd));
          up = static_cast<u32>(six_bits<1>(w[s][i], bits, odd));
        } else {
          const u32 fifths = Q::kFifth ? high[s][i % kHighWords] : 0;
          low = quant_bytes<Q, 0>(w[s][i], fifths);
          up = quant_bytes<Q, 1>(w[s][i], fifths);
        }
      }
    }
    return rows;
  }
  /// q2_k: the quants times their factors; factors[s] has those of both halves (row_factors). A
  /// lane's rows of weights are those of its results.
  WICK_DEVICE ByteUnit::Rows unpack(const u32 (&factors)[ByteUnit::kResultRows]) const {
    static_assert(kSlots == ByteUnit::kResultRows);
    ByteUnit::Rows rows = unpack();
#pragma unroll
    for (u32 s = 0; s < kSlots; ++s) {
#pragma unroll
      for (u32 i = 0; i < kWords; ++i) {
        u32 &low = rows.low[s * kWords + i], &up = rows.high[s * kWords + i];
        low = multiply_bytes(low, factors[s] & 255);
        up = multiply_bytes(up, factors[s] >> 8);
      }
    }
    return rows;
  }
};

/// A lane's words of a whole unit, in registers. Those of a block are BlockWords.
template <class Q>
struct UnitWords {
  using Block = BlockWords<Q>;
  static constexpr u32 kSlots = ByteUnit::kSlots, kWords = ByteUnit::kWords;
  static constexpr u32 kPieces = Block::kSix ? kChunkBlocks : Q::kQuants;
  u32 w[kSlots][kPieces][kWords];
  u32 six[Block::kSix ? kChunkBlocks : 1][kSlots][Block::kHighWords];  // q6_k's high bits

  WICK_DEVICE Block block(u32 j) const {
    Block words;
#pragma unroll
    for (u32 s = 0; s < kSlots; ++s) {
#pragma unroll
      for (u32 i = 0; i < kWords; ++i) {
        words.set(s, i, w[s][Q::low_piece(j)][i],
                  Q::kHigh == 1 ? w[s][Q::high_piece(j) % kPieces][i] : 0, j);
        if constexpr (Block::kWhole) words.w[s][kWords + i] = w[s][Q::low_piece(j) + 1][i];
      }
      if constexpr (Block::kSix) {
#pragma unroll
        for (u32 i = 0; i < Block::kHighWords; ++i) words.high[s][i] = six[j][s][i];
      }
    }
    return words;
  }
  /// Calls load(to, piece, s) for the words of each slot s of each piece whose last block is block
  /// j.
  template <class Load>
  WICK_DEVICE void each_piece(u32 j, const Load& load) {
    if (Q::kBits != 2 || j % 2 != 0) load_piece(Q::low_piece(j), load);
    if constexpr (Block::kWhole) load_piece(Q::low_piece(j) + 1, load);
    if (Q::kHigh == 1 && j % 4 == 3) load_piece(Q::high_piece(j) % kPieces, load);
  }

 private:
  template <class Load>
  WICK_DEVICE void load_piece(u32 piece, const Load& load) {
#pragma unroll
    for (u32 s = 0; s < kSlots; ++s) load(w[s][piece], piece, s);
  }
};

/// The parameters of a block of a row beside its quants. part: in formats with factors of 16
/// values, the factors divided by kTimes; part[0] is that of 32 values.
struct RowBlock {
  float scale = 0, minimum = 0, part[2] = {0, 0};
};
template <class Q>
WICK_DEVICE RowBlock row_block(const UnitScales<Q>& scales, u32 j) {
  RowBlock r;
  r.scale = scales.scale(j);
  if constexpr (Q::kMinimum) r.minimum = scales.minimum(j);
  if constexpr (Q::kParts) {  // exact
    r.part[0] = static_cast<float>(scales.part(j, 0)) * (1.0f / Q::kTimes);
    r.part[1] = static_cast<float>(scales.part(j, 1)) * (1.0f / Q::kTimes);
  } else if constexpr (Q::kFactor) {
    r.part[0] = static_cast<float>(scales.block_factor(j));
  }
  return r;
}

/// The number that a format needs of a block of activations in addition to d: for minima of blocks
/// the bits of d·Σq; for halves that are added at once the bits of Σq as a float, or for q2_k the
/// sums of the block's halves; for offsets the start value of its sums.
template <class Q>
WICK_DEVICE u32 extra_of(const ActivationScale& s) {
  if constexpr (Q::kShared) {
    return Q::kParts ? static_cast<u32>(s.sum) : f32_bits(static_cast<float>(s.sum));
  } else if constexpr (Q::kMinimum) {
    return f32_bits(s.d * static_cast<float>(s.sum));
  } else {
    return static_cast<u32>(ByteUnit::from(-static_cast<i32>(Q::kOffset) * s.sum));
  }
}

/// q4_k and q5_k on gfx11: whether large tiles form the sums of mn · Σq, which are exact, by the
/// f16 matrix unit. Σq is then the sum of two f16.
template <class Q>
inline constexpr bool kMinimaByUnit = WICK_WMMA == 11 && Q::kShared && !Q::kParts;
/// Two integers as f16 in a word; both are exact.
WICK_DEVICE u32 two_halves(i32 low, i32 high) {
  return u32{from_f32<f16>(static_cast<float>(low)).bits} |
         u32{from_f32<f16>(static_cast<float>(high)).bits} << 16;
}
/// Σq of a block, |Σq| ≤ 32 · 127, as the sum of two f16.
WICK_DEVICE u32 two_halves_of(i32 sum) {
  const i32 low = sum & 63;
  return two_halves(low, sum - low);
}

/// Blocks of activations of kColumns columns and at most kChunks chunks, in shared memory: their
/// values, and for each block d and extra_of or, if kHalves, two_halves_of.
template <class Q, u32 kColumns, u32 kChunks, bool kHalves = false>
struct StagedColumns {
  static constexpr u32 kChunkBytes = 256 + 16;  // the padding avoids bank conflicts between columns
  static constexpr bool kExtra = takes_sums(Q::kFormat);
  /// Words from a block's scales to those of the next block. On AMD, neighbouring threads take four
  /// columns of eight blocks, which lie in all banks.
  static constexpr u32 kPitch = kColumns + (WICK_AMD ? 4 : 0);
  static constexpr u32 kBytes = staged_bytes(kColumns, kChunks, kExtra, WICK_AMD != 0);
  static_assert(kBytes ==
                kChunks * (kColumns * kChunkBytes + kChunkBlocks * kPitch * 4 * (kExtra ? 2 : 1)));
  u8* values;  // [chunk][column] of kChunkBytes
  // [chunk][block][column in the order of places], kPitch apart: bits of d.
  u32* scales;
  u32* extras;  // extra_of, in the layout of `scales`

  WICK_DEVICE explicit StagedColumns(u8* shared) {
    values = shared;
    scales = reinterpret_cast<u32*>(values + kChunks * kColumns * kChunkBytes);
    extras = scales + kChunks * kChunkBlocks * kPitch;
  }

  /// Loads chunks [first, first + count) of a tile's columns, which have `all` chunks each. The
  /// last column is repeated past the end.
  template <class Columns>
  WICK_DEVICE void load(const Bytes16* q, const ActivationScale* from, u32 first, u32 count,
                        u32 all, const Columns& columns) const {
    constexpr u32 kInColumn = kChunks * 16;
    for (u32 i = thread_index(); i < kColumns * kInColumn; i += block_threads()) {
      const u32 c = i / kInColumn, at = i % kInColumn;
      if (at >= count * 16) continue;
      const u64 start = (u64{columns.clamped_source(c)} * all + first) * 16;
      put_turned(values + (at / 16 * kColumns + c) * kChunkBytes + at % 16 * 16, turned(c),
                 load_whole(q + start + at));
    }
    constexpr u32 kUnit = ByteUnit::kColumns, kBlocks = kChunks * kChunkBlocks;
    constexpr u32 kFour = WICK_AMD ? 4 : 1, kAtOnce = WICK_AMD ? kChunkBlocks : kBlocks;
    for (u32 i = thread_index(); i < kColumns * kBlocks; i += block_threads()) {
      const u32 at = i / (kFour * kAtOnce) % (kBlocks / kAtOnce) * kAtOnce + i % kAtOnce;
      if (at >= count * kChunkBlocks) continue;
      const u32 place = i / (kFour * kBlocks) * kFour + i / kAtOnce % kFour;
      const u32 c = place / kUnit * kUnit + ByteUnit::column_at(place % kUnit);
      const u64 start = (u64{columns.clamped_source(c)} * all + first) * kChunkBlocks;
      const ActivationScale s = from[start + at];
      scales[at * kPitch + place] = f32_bits(s.d);
      if constexpr (kHalves) {
        extras[at * kPitch + place] = two_halves_of(s.sum);
      } else if constexpr (kExtra) {
        extras[at * kPitch + place] = extra_of<Q>(s);
      }
    }
  }

  /// A lane's operands for block j of a chunk; `tile` is the index of a tile of kColumns columns.
  WICK_DEVICE ByteUnit::Columns operands(u32 chunk, u32 j, u32 tile) const {
    const u32 lane = wave_lane();
    const u32 column = tile * ByteUnit::kColumns + ByteUnit::column(lane);
    const u32* from =
        reinterpret_cast<const u32*>(values + (chunk * kColumns + column) * kChunkBytes) + j * 8 +
        (ByteUnit::word(lane) ^ turned(column));
    ByteUnit::Columns b;
    load_words<ByteUnit::kWords, false>(b.low, from);
    load_words<ByteUnit::kWords, false>(b.high, from + 4);
    return b;
  }
};

/// p = fma(d·d_x, I, fma(m, d_x·Σq, p)) for the results of a lane. `scale` has the bits of d_x of
/// each of its columns, `extra` the value of extra_of.
template <class Q>
WICK_DEVICE void add_block(float (&p)[ByteUnit::kResults], const ByteUnit::Rows& rows,
                           const RowBlock (&of_row)[ByteUnit::kResultRows],
                           const ByteUnit::Columns& columns,
                           const u32 (&scale)[ByteUnit::kResultColumns],
                           const u32 (&extra)[ByteUnit::kResultColumns],
                           const ByteUnit::Start& start = {}) {
  constexpr u32 kEach = ByteUnit::kResultColumns;
  i32 sums[ByteUnit::kResults], second[ByteUnit::kResults];
#pragma unroll
  for (u32 i = 0; i < ByteUnit::kResults; ++i) {
    sums[i] = Q::kOffset != 0 ? static_cast<i32>(extra[i % kEach]) : start[i];
    second[i] = start[i];
  }
  if constexpr (Q::kParts) {
    ByteUnit::low(sums, rows, columns);
    ByteUnit::high(second, rows, columns);
  } else {
    ByteUnit::multiply(sums, rows, columns);
  }
#pragma unroll
  for (u32 i = 0; i < ByteUnit::kResults; ++i) {
    const RowBlock& r = of_row[i / kEach];
    float dot = ByteUnit::to_float(sums[i]);
    if constexpr (Q::kParts) {  // below 2^24
      dot = fma(r.part[1], ByteUnit::to_float(second[i]), r.part[0] * dot);
    } else if constexpr (Q::kFactor) {  // below 2^24
      dot = r.part[0] * dot;
    }
    if constexpr (Q::kMinimum) p[i] = fma(r.minimum, bits_f32(extra[i % kEach]), p[i]);
    p[i] = fma(r.scale * bits_f32(scale[i % kEach]), dot, p[i]);
    forget(p[i]);  // otherwise clang delays it until registers run out
  }
}

/// add_block for block j of a chunk in shared memory; `tile` is the index of a tile of columns.
template <class Q, u32 kColumns, u32 kChunks>
WICK_DEVICE void add_block(float (&p)[ByteUnit::kResults], const ByteUnit::Rows& rows,
                           const RowBlock (&of_row)[ByteUnit::kResultRows],
                           const StagedColumns<Q, kColumns, kChunks>& columns, u32 chunk, u32 j,
                           u32 tile, const ByteUnit::Columns& operands,
                           const ByteUnit::Start& start = {}) {
  constexpr u32 kEach = ByteUnit::kResultColumns;
  const u32 at = (chunk * kChunkBlocks + j) * columns.kPitch + tile * ByteUnit::kColumns +
                 ByteUnit::result_place(wave_lane());
  u32 scale[kEach], extra[kEach] = {};
  load_words<kEach, false>(scale, columns.scales + at);
  if constexpr (StagedColumns<Q, kColumns, kChunks>::kExtra) {
    load_words<kEach, false>(extra, columns.extras + at);
  }
  add_block<Q>(p, rows, of_row, operands, scale, extra, start);
}

// ---- q2_k, q4_k and q5_k: half a superblock at a time ----

// The sum of factors times dot products, exact below 2^24: integer or float, whichever is faster.
// For q2_k it is the matrix unit's sum.
#if WICK_AMD
template <class Q>
using Products = i32;
#else
template <class Q>
using Products = Select<Q::kParts, i32, float>;
#endif
/// The factor of block j, in the form that add_products takes. For q2_k: the factors of its halves
/// in two bytes.
template <class Q>
WICK_DEVICE u32 factor_of(const UnitScales<Q>& scales, u32 j) {
  if constexpr (Q::kParts) {
    return static_cast<u32>(scales.part(j, 0) | scales.part(j, 1) << 8);
  } else {
#if WICK_AMD
    return scales.factor(j);
#else
    return f32_bits(bits_f32(scales.factor(j) | 0x4b000000u) - 8388608.0f);
#endif
  }
}
#if WICK_AMD
WICK_DEVICE i32 add_products(i32 sum, u32 factor, i32 dot) {
  return sum + multiply_small(static_cast<i32>(factor), dot);
}
#else
WICK_DEVICE float add_products(float sum, u32 factor, i32 dot) {
  return fma(bits_f32(factor), ByteUnit::to_float(dot), sum);
}
#endif

/// The integer sums of half a superblock, for the results of a lane.
template <class Q>
struct HalfSums {
  Products<Q> sums[Q::kSums][ByteUnit::kResults] = {};

  /// Adds the products of a block to the sum with index `number`, which must be known at compile
  /// time. `factor` has the result of factor_of for each of the lane's rows; for q2_k `rows` are
  /// already multiplied by them.
  WICK_DEVICE void add(u32 number, const ByteUnit::Rows& rows,
                       const u32 (&factor)[ByteUnit::kResultRows], const ByteUnit::Columns& columns,
                       const ByteUnit::Start& start = {}) {
    if constexpr (Q::kParts) {
      ByteUnit::multiply(sums[number], rows, columns);
    } else {
      i32 dots[ByteUnit::kResults];
#pragma unroll
      for (u32 i = 0; i < ByteUnit::kResults; ++i) dots[i] = start[i];
      ByteUnit::multiply(dots, rows, columns);
#pragma unroll
      for (u32 i = 0; i < ByteUnit::kResults; ++i) {
        Products<Q>& sum = sums[number][i];
        sum = add_products(sum, factor[i / ByteUnit::kResultColumns], dots[i]);
        forget(sum);  // otherwise clang delays it until registers run out
      }
    }
  }
  /// The products of result i times d.
  WICK_DEVICE float times(float d, u32 i) const {
    float t = d * static_cast<float>(sums[0][i]);
    if constexpr (Q::kSums == 2) t = fma(d, static_cast<float>(sums[1][i]), t);
    return t;
  }
};
/// The quants of a block, for HalfSums::add.
template <class Q>
WICK_DEVICE ByteUnit::Rows half_rows(const BlockWords<Q>& words,
                                     const u32 (&factor)[ByteUnit::kResultRows]) {
  if constexpr (Q::kParts) {
    return words.unpack(factor);
  } else {
    return words.unpack();
  }
}

/// The parameters of half a superblock of a row beside its quants and factors. offset: mn of each
/// block, for q2_k as bytes of two blocks.
template <class Q>
struct RowHalf {
  float d, dmin;
  Select<Q::kParts, u32, float> offset[Q::kParts ? kSharedBlocks / 2 : kSharedBlocks];
};
/// The parameters of the half that begins with block `first`.
template <class Q>
WICK_DEVICE RowHalf<Q> row_half(const UnitScales<Q>& scales, u32 first) {
  RowHalf<Q> r = {scales.d(), scales.dmin(), {}};
  if constexpr (Q::kParts) {
    r.offset[0] = scales.pair_offsets(first);
    r.offset[1] = scales.pair_offsets(first + 2);
  } else {
#pragma unroll
    for (u32 j = 0; j < kSharedBlocks; ++j) {
      r.offset[j] = byte_float(scales.offsets(first / kSharedBlocks), j);
    }
  }
  return r;
}

/// Adds a half to p for the results of a lane. get(word, scale, j) gives for each of the lane's
/// columns the bits of d_x (scale) or the result of extra_of for block j.
template <class Q, class Get>
WICK_DEVICE void add_half(float (&p)[ByteUnit::kResults], const HalfSums<Q>& products,
                          const RowHalf<Q> (&of_row)[ByteUnit::kResultRows], const Get& get) {
  constexpr u32 kEach = ByteUnit::kResultColumns;
  Select<Q::kParts, i32, float> minima[ByteUnit::kResults] = {};  // exact
#pragma unroll
  for (u32 j = 0; j < kSharedBlocks; ++j) {
    u32 sums[kEach];
    get(sums, false, j);
#pragma unroll
    for (u32 i = 0; i < ByteUnit::kResults; ++i) {
      const RowHalf<Q>& r = of_row[i / kEach];
      if constexpr (Q::kParts) {
        minima[i] = dot_pair(sums[i % kEach], r.offset[j / 2], j % 2, minima[i]);
      } else {
        minima[i] = fma(r.offset[j], bits_f32(sums[i % kEach]), minima[i]);
      }
      forget(minima[i]);
    }
  }
  u32 scale[kEach];
  get(scale, true, 0);
#pragma unroll
  for (u32 i = 0; i < ByteUnit::kResults; ++i) {
    const RowHalf<Q>& r = of_row[i / kEach];
    p[i] = add_half(p[i], products.times(r.d, i), r.dmin, static_cast<float>(minima[i]),
                    bits_f32(scale[i % kEach]));
    forget(p[i]);
  }
}

/// add_half for the half that begins with block `first` of a chunk in shared memory; `tile` is the
/// index of a tile of columns.
template <class Q, u32 kColumns, u32 kChunks>
WICK_DEVICE void add_half(float (&p)[ByteUnit::kResults], const HalfSums<Q>& products,
                          const RowHalf<Q> (&of_row)[ByteUnit::kResultRows],
                          const StagedColumns<Q, kColumns, kChunks>& columns, u32 chunk, u32 first,
                          u32 tile) {
  const u32 at = (chunk * kChunkBlocks + first) * columns.kPitch + tile * ByteUnit::kColumns +
                 ByteUnit::result_place(wave_lane());
  add_half<Q>(p, products, of_row,
              [&](u32(&to)[ByteUnit::kResultColumns], bool scale, u32 j) WICK_INLINE {
                load_words<ByteUnit::kResultColumns, false>(
                    to, (scale ? columns.scales : columns.extras) + at + j * columns.kPitch);
              });
}

#if WICK_WMMA == 11
/// add_half for formats with kMinimaByUnit: the offsets of `row` are two equal f16 each, and the
/// sums of the columns two_halves_of. The other half of the unit's depth stays 0.
template <class Q, u32 kColumns, u32 kChunks>
WICK_DEVICE void add_half(float (&p)[ByteUnit::kResults], const HalfSums<Q>& products,
                          const RowHalf<Q> (&of_row)[1],
                          const StagedColumns<Q, kColumns, kChunks, true>& columns, u32 chunk,
                          u32 first, u32 tile) {
  const u32 at = (chunk * kChunkBlocks + first) * columns.kPitch + tile * ByteUnit::kColumns;
  const u32* const sums = columns.extras + at + ByteUnit::place_of(wave_lane() % 16);
  Fragment<2> of_rows = {}, of_columns = {};
#pragma unroll
  for (u32 j = 0; j < kSharedBlocks; ++j) {
    of_rows.piece[0].w[j] = f32_bits(of_row[0].offset[j]);
    of_columns.piece[0].w[j] = sums[j * columns.kPitch];
  }
  float minima[ByteUnit::kResults] = {};
  MatrixUnit::multiply<f16>(minima, of_rows, of_columns);
  u32 scale[ByteUnit::kResultColumns];
  load_words<ByteUnit::kResultColumns, false>(
      scale, columns.scales + at + ByteUnit::result_place(wave_lane()));
#pragma unroll
  for (u32 i = 0; i < ByteUnit::kResults; ++i) {
    p[i] = add_half(p[i], products.times(of_row[0].d, i), of_row[0].dmin, minima[i],
                    bits_f32(scale[i]));
    forget(p[i]);
  }
}
#endif

}  // namespace wick::gpu

#endif
