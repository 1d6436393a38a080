#pragma once

// Shared by the gemms of quantised weights that use wgmma in f16 (sm_90a): tiles of 128 rows and
// 128 columns, the pipeline, whose stages are four blocks, and stores of results.
// quantized_wgmma.gpu has the formats whose activations have a scale for each block, except q6_k,
// which quantized_wgmma_six.gpu has; quantized_wgmma_super.gpu has those whose activations share a
// scale (q2_k, q4_k and q5_k).
//
// Index map (run_wgmma): a thread block takes one tile after another. Each of the first eight warps
// multiplies 16 rows of the tile. Four more warps copy stages to shared memory: the columns by one
// bulk copy; the rows, whose pieces are small, by cp.async of 16 bytes per thread, because a bulk
// copy takes about 60 cycles of the copy unit for each piece.
//
// The tiles are those of one weight (WeightTiles), or those of rows that chose an expert
// (ListedTiles), of which empty ones are skipped.
//
// Bytes moved: the weights are read once for each 128 columns, the activations (2 bytes per value)
// once for each 128 rows; all but the first time from the L2 cache.

#include "wick/backend/gpu/kernels/device/hopper.h"
#include "wick/backend/gpu/kernels/device/lanes.h"
#include "wick/backend/gpu/kernels/linear/quantized_tile.h"

#if WICK_WGMMA

namespace wick::gpu {

constexpr u32 kThreads = kWgmmaQuantizedThreads, kMultiplying = 256,
              kCopying = kThreads - kMultiplying;
constexpr u32 kUnits = kWgmmaRowGroups, kColumns = kWgmmaColumns, kStageBlocks = kWgmmaStageBlocks;
/// A record holds the columns of a stage in the layout that is copied to shared memory: the values,
/// as pairs of blocks of all columns, each pair as two matrices of 64 columns (describe<false>);
/// then four bytes for each column; then four bytes for each block and column. Each kernel defines
/// the meaning of the last two.
constexpr u32 kValueBytes = kColumns * kStageBlocks * 64, kPairBytes = kValueBytes / 2;
constexpr u32 kMatrixBytes = kPairBytes / 2;
constexpr u32 kOfColumns = kWgmmaOfColumns, kOfBlocks = kWgmmaOfBlocks;
static_assert(kOfColumns == kValueBytes);

/// The input of a thread of the tile_columns functions: half a block of a column; 16
/// threads share a chunk of a column. Without `list`, columns from the last one to the end of the
/// last tile are zeros. With it, the columns are its pairs, in their order; columns of records that
/// no pair has stay uninitialised, and no result that is stored depends on them.
struct ColumnHalf {
  u32 half, j, chunk;
  u32 column;  ///< of the records; kNoTile: none
  ActivationScale s = {0.0f, 0};
  Bytes16 x = {};

  WICK_DEVICE ColumnHalf(const TileColumnsArgs& p) {
    const u64 at = u64{block_index()} * kTileThreads + thread_index();
    half = static_cast<u32>(at) % 2, j = static_cast<u32>(at) / 2 % kChunkBlocks;
    chunk = static_cast<u32>(at / kChunkThreads % p.chunks),
    column = static_cast<u32>(at / kChunkThreads / p.chunks);
    pdl_launch_dependents();
    pdl_wait();
    u32 row = column;
    if (p.tokens != nullptr) {
      const u32 to = column < p.columns ? p.places[column] : kNoTile;
      const bool here = to != kNoTile && to >= p.first && to - p.first < p.held;
      if (here) row = p.tokens[column];
      column = here ? to - p.first : kNoTile;
      if (!here) return;
    } else if (column >= p.columns) {
      return;
    }
    const u64 block = (u64{row} * p.chunks + chunk) * kChunkBlocks + j;
    s = p.scales[block];
    x = static_cast<const Bytes16*>(p.q)[block * 2 + half];
  }
};

/// Byte offset of the record of block j of a chunk of a column. `chunks`: chunks of a column.
WICK_DEVICE u64 record_at(u32 column, u32 chunk, u32 j, u32 chunks) {
  return (u64{column / kColumns} * chunks * 2 + chunk * 2 + j / kStageBlocks) * kWgmmaRecordBytes;
}
/// Stores half a block's values, times `factor`, as f16 in a record; the products must be exact in
/// f16. Of each word, bytes 0 and 2 go to one piece of 16 bytes, bytes 1 and 3 to another.
WICK_DEVICE void put_values(u8* record, u32 column, u32 j, u32 half, const Bytes16& x,
                            float factor) {
  const u32 in_tile = column % kColumns, in_stage = j % kStageBlocks;
  u8* row = record + in_stage / 2 * kPairBytes + in_tile * 128;
#pragma unroll
  for (u32 step = 0; step < 2; ++step) {
    Bytes16 y;
#pragma unroll
    for (u32 i = 0; i < 4; ++i) {
      const u32 word = x.w[i] >> step * 8;
      y.w[i] = narrow_two<f16>(static_cast<float>(static_cast<i8>(word)) * factor,
                               static_cast<float>(static_cast<i8>(word >> 16)) * factor);
    }
    const u32 piece = in_stage % 2 * 4 + step * 2 + half;
    reinterpret_cast<Bytes16*>(row)[piece ^ in_tile % 8] = y;
  }
}

/// A low nibble is used as the f16 n·2^-24, a high one as n·2^-20, with its fifth bit or a factor
/// if it has one. The activations of high nibbles are scaled by 2^-4 for that, and 2^24 is applied
/// with the scales. Other quants are used as they are: q8_0 and those that are indices of a table.
constexpr u32 kNibbleUnit = 24, kHighNibble = 4;
template <class Q>
inline constexpr bool kAsNibbles = Q::kBits != 8 && !Q::kCoded;

/// A stage in shared memory: a record of columns; then, for each row group, the quants of four
/// blocks and the scales of the chunk.
template <class Q>
struct Stage {
  static constexpr u32 kQuantBytes = Q::kQuants * kPieceBytes / 2;
  static constexpr u32 kScaleBytes = scale_bytes(Q::kPieces);
  static constexpr u32 kRecord = wgmma_record_bytes(Q::kFormat);
  static constexpr u32 kUnit = kQuantBytes + kScaleBytes;
  static constexpr u32 kBytes = wgmma_stage_bytes(Q::kFormat);
  static constexpr u32 kCount = wgmma_stages(kBytes);
  static_assert(kRecord + kUnits * kUnit <= kBytes);
  static_assert(kScaleBytes <= kWarp * 16 && kScaleBytes % 16 == 0);  // a warp copies them at once

  /// Where byte b of the quants of half a chunk is in a unit. The pieces of q6_k's high bits follow
  /// those of all nibbles.
  WICK_DEVICE static constexpr u32 quants_at(u32 half, u32 b) {
    if constexpr (Q::kHigh != 2) return half * kQuantBytes + b;
    constexpr u32 kLow = kStageBlocks * kPieceBytes, kHigh = kQuantBytes - kLow;
    return b < kLow ? half * kLow + b : 2 * kLow + half * kHigh + (b - kLow);
  }
};

/// Stages and barriers in the shared memory of a thread block.
template <class Q>
struct Shared {
  u8* stages;
  Barrier *full, *empty;

  WICK_DEVICE explicit Shared(u8* shared) : stages(shared) {
    full = reinterpret_cast<Barrier*>(shared + Stage<Q>::kCount * Stage<Q>::kBytes);
    empty = full + Stage<Q>::kCount;
  }
};

template <class Q>
using StageTurn = PipelineState<Stage<Q>::kCount>;

/// Halves of a tile's columns that have columns.
template <u32 kCount>
struct Sides {};

/// Operands of the gemm.
struct Wgmma {
  const u8* records;
  const Bytes16* q;
  const ActivationScale* scales;
  u32 chunks, rows;

  /// The units of row group g of a weight.
  template <class Q>
  WICK_DEVICE const u8* units(const void* weight, u32 g) const {
    // Row groups past the last one are replaced by the last one.
    const u32 count = (rows + kUnitRows - 1) / kUnitRows;
    return static_cast<const u8*>(weight) + u64{g < count ? g : count - 1} * chunks * kUnitBytes<Q>;
  }
  WICK_DEVICE const u8* record_of(u32 column_tile, u32 stage) const {
    return records + (u64{column_tile} * chunks * 2 + stage) * kWgmmaRecordBytes;
  }
};

/// Tiles of a gemm with one weight. Neighbouring tiles are those of the same rows, so that thread
/// blocks that run at the same time read the same weights.
struct WeightTiles : Wgmma {
  /// Weights don't depend on the kernel before, so that they are copied while it runs.
  static constexpr bool kEarly = true;
  const u8* weights;
  u32 all_columns, column_tiles, tiles;

  /// The first tile from `tile` on, in steps of the grid's size, that isn't empty; as a thread
  /// block takes them.
  WICK_DEVICE u32 existing(u32 tile) const { return tile; }
  WICK_DEVICE u32 first_row_group(u32 tile) const { return tile / column_tiles * kUnits; }
  WICK_DEVICE NextColumns columns(u32 tile) const {
    return {tile % column_tiles * kColumns, all_columns};
  }
  WICK_DEVICE const void* weight(u32) const { return weights; }
  /// Calls multiply for a tile, with Sides<2>.
  template <class Multiply>
  WICK_DEVICE void for_sides(u32, Multiply&& multiply) const {
    multiply(Sides<2>());
  }
  WICK_DEVICE const u8* record(u32 tile, u32 stage) const {
    return record_of(tile % column_tiles, stage);
  }
};

/// Tiles of grouped_linear. Neighbouring tiles are those of the same columns, because the columns
/// of a tile have a weight of their own. `first`: the tile of the list whose records come first.
struct ListedTiles : Wgmma {
  static constexpr bool kEarly = false;
  ExpertTileList list;
  u32 first, row_tiles, tiles;

  WICK_DEVICE u32 existing(u32 tile) const {
    while (tile < tiles && list.tiles[first + tile / row_tiles].count == 0) tile += grid_blocks();
    return tile;
  }
  WICK_DEVICE u32 first_row_group(u32 tile) const { return tile % row_tiles * kUnits; }
  WICK_DEVICE ChosenColumns columns(u32 tile) const {
    return ChosenTile(list, first + tile / row_tiles).columns;
  }
  WICK_DEVICE const void* weight(u32 tile) const {
    return ChosenTile(list, first + tile / row_tiles).weight;
  }
  /// Calls multiply for a tile, with the Sides of its columns. Few experts have more than one.
  template <class Multiply>
  WICK_DEVICE void for_sides(u32 tile, Multiply&& multiply) const {
    if (columns(tile).count() <= kColumns / 2) {
      multiply(Sides<1>());
    } else {
      multiply(Sides<2>());
    }
  }
  WICK_DEVICE const u8* record(u32 tile, u32 stage) const {
    return record_of(tile / row_tiles, stage);
  }
};

/// The copying warps call this: copies the stages of the thread block's tiles as stages become
/// free. Each warp copies two row groups.
template <class Q, class Tiles>
WICK_DEVICE void copy_stages(const Tiles& p, const Shared<Q>& shared) {
  using S = Stage<Q>;
  constexpr u32 kEach = kUnits / (kCopying / kWarp);
  const u32 warp = warp_index() - kMultiplying / kWarp, stages = p.chunks * 2;
  const auto copy_rows = [&](const void* weight, u32 tile, u32 stage, u32 at) {
    u32 to = shared_address(shared.stages) + at * S::kBytes + S::kRecord + warp * kEach * S::kUnit +
             lane() * 16;
#pragma unroll 1
    for (u32 i = 0; i < kEach; ++i, to += S::kUnit) {
      const u8* from = p.template units<Q>(weight, p.first_row_group(tile) + warp * kEach + i) +
                       u64{stage / 2} * kUnitBytes<Q> + lane() * 16;
#pragma unroll
      for (u32 b = 0; b < S::kQuantBytes; b += kWarp * 16) {
        const bool whole = b + kWarp * 16 <= S::kQuantBytes;
        if (whole || b + lane() * 16 < S::kQuantBytes) {
          copy_sixteen(to + b, from + S::quants_at(stage % 2, b));
        }
      }
      if (lane() * 16 < S::kScaleBytes) {
        copy_sixteen(to + S::kQuantBytes, from + 2 * S::kQuantBytes);
      }
    }
    arrive_when_copied(shared.full[at]);
  };
  const auto copy_columns = [&](u32 tile, u32 stage, u32 at) {
    if (thread_index() != kMultiplying) return;
    arrive_for(shared.full[at], S::kRecord);
    copy_piece(shared.stages + at * S::kBytes, p.record(tile, stage), S::kRecord, shared.full[at]);
  };
  StageTurn<Q> turn;
  u32 stage = 0;
  if constexpr (Tiles::kEarly) {
    const u32 first = stages < S::kCount ? stages : S::kCount;
#pragma unroll 1
    for (u32 i = 0; i < first; ++i) copy_rows(p.weight(block_index()), block_index(), i, i);
    pdl_wait();
#pragma unroll 1
    for (; stage < first; ++stage, turn.advance()) copy_columns(block_index(), stage, turn.at);
  } else {
    pdl_wait();
  }
#pragma unroll 1
  for (u32 tile = p.existing(block_index()); tile < p.tiles;
       tile = p.existing(tile + grid_blocks()), stage = 0) {
    const void* const weight = p.weight(tile);
#pragma unroll 1
    for (; stage < stages; ++stage, turn.advance()) {
      wait(shared.empty[turn.at], turn.parity ^ 1);  // returns at once in the first round
      copy_columns(tile, stage, turn.at);
      copy_rows(weight, tile, stage, turn.at);
    }
  }
}

/// A lane's quants of a block: two rows, 8 apart, of its warp's unit.
template <class Q>
struct WgmmaRows {
  static constexpr u32 kWords = Q::kBits == 8 ? 2 : 1;
  u32 w[2][kWords];  // nibbles, or bytes of both halves
  u32 fifths[2];     // the fifth bits, in the lowest bits of nibbles

  /// Loads block j of a stage. unit: the warp's unit of the stage.
  WICK_DEVICE void load(const u8* unit, u32 j) {
    constexpr u32 kPiece = kPieceBytes / 4;
    const u32* from = reinterpret_cast<const u32*>(unit) + lane();  // row lane / 4, word lane % 4
#pragma unroll
    for (u32 r = 0; r < 2; ++r) {
      const u32* of_row = from + r * 8 * 4;
      const u32 low = of_row[j * Q::kBits / 4 * kPiece];
      if constexpr (Q::kBits == 8) {
        w[r][0] = low;
        w[r][1] = of_row[(2 * j + 1) * kPiece];
      } else {
        const u32 high = Q::kHigh == 1 ? of_row[Q::kBits * kPiece] : 0;
        w[r][0] = nibbles_in<Q>(low, high, j);
        fifths[r] = Q::kFifth ? fifths_in(high, j) : 0;
      }
    }
  }
  /// Converts to f16, as the operands of two wgmma of k = 16. by: the factor of each row and half,
  /// as two f16.
  WICK_DEVICE void unpack(u32 (&a)[8], const u32 (&by)[2][2]) const {
    unpack(a);
#pragma unroll
    for (u32 i = 0; i < 8; ++i) a[i] = multiply_halves(a[i], by[i % 2][i / 2 % 2]);
  }
  WICK_DEVICE void unpack(u32 (&a)[8]) const {
#pragma unroll
    for (u32 r = 0; r < 2; ++r) {
      if constexpr (Q::kCoded) {
        unsigned_bytes(a[r], a[4 + r], entries<Q, 0, kSigns>(w[r][0]));
        unsigned_bytes(a[2 + r], a[6 + r], entries<Q, 1, kSigns>(w[r][0]));
      } else if constexpr (Q::kBits == 8) {
        bytes(a[r], a[4 + r], w[r][0]);
        bytes(a[2 + r], a[6 + r], w[r][1]);
      } else {
        nibbles(a[r], a[2 + r], w[r][0], fifths[r]);
        nibbles(a[4 + r], a[6 + r], w[r][0] >> 8, fifths[r] >> 8);
      }
    }
  }

 private:
  static constexpr u64 kSigns = 0x8080808080808080u;
  /// Nibbles of bytes 0 and 2 as f16: n·2^-24 and n·2^-20, which are their bits in place.
  WICK_DEVICE static void nibbles(u32& low, u32& high, u32 word, u32 fifths) {
    low = word & 0x000f000fu;
    high = word & 0x00f000f0u;
    if constexpr (Q::kFifth) {
      low |= fifths << 4 & 0x00100010u;
      high |= fifths << 4 & 0x01000100u;
    }
    // n − 8, n − 16, or for q3_k n − 4.
    constexpr u32 kOff = Q::kTimes == 32 ? 4 : Q::kOffset;
    if constexpr (kOff != 0) {
      low = add_halves(low, (0x8000u | kOff) * 0x00010001u);
      high = add_halves(high, (0x8000u | kOff << 4) * 0x00010001u);
    }
  }
  /// Bytes 0 and 2, and bytes 1 and 3, as f16: builds 1024 + 128 + b and subtracts 1152.
  WICK_DEVICE static void bytes(u32& even, u32& odd, u32 word) {
    unsigned_bytes(even, odd, word ^ 0x80808080u);
  }
  /// bytes() for bytes to which 128 has been added.
  WICK_DEVICE static void unsigned_bytes(u32& even, u32& odd, u32 x) {
    even = add_halves(pick_bytes(x, 0x64646464u, 0x4240u), 0xe480e480u);
    odd = add_halves(pick_bytes(x, 0x64646464u, 0x4341u), 0xe480e480u);
  }
};

/// A lane's column of the tile of result y[i], from the lane's first one on, lane % 4 · 2; see
/// store_wgmma.
WICK_DEVICE constexpr u32 column_of(u32 i) { return i / 4 * 8 + i % 2; }

/// The columns of the result in which a lane's y[i] are stored.
template <class Columns>
struct StorePlaces {
  Columns columns;
  WICK_DEVICE explicit StorePlaces(const Columns& of) : columns(of) {}
  /// The column must exist, unless the result isn't used. All lanes must call it.
  WICK_DEVICE u32 place(u32 i) const { return columns.place(lane() % 4 * 2 + column_of(i)); }
};
/// A lane holds the places of every 32nd column: 32 places for each lane would take its registers.
template <>
struct StorePlaces<ChosenColumns> {
  u32 held[kColumns / kWarp];
  WICK_DEVICE explicit StorePlaces(const ChosenColumns& of) {
#pragma unroll
    for (u32 n = 0; n < kColumns / kWarp; ++n) {
      const u32 c = n * kWarp + lane();
      held[n] = of.has(c) ? of.place(c) : 0;
    }
  }
  WICK_DEVICE u32 place(u32 i) const {
    return from_lane(held[column_of(i) / kWarp], lane() % 4 * 2 + column_of(i) % kWarp);
  }
};

/// Stores a warp's y of its 16 rows and of all columns of a tile. With g = lane / 4 and t = lane %
/// 4, y[32·h + 4·j + i] is row g + i / 2 · 8 and column 64·h + 8·j + 2·t + i % 2. Rows are
/// contiguous in `out`, and columns have one stride. kWhole: the tile has no rows or columns out of
/// range.
template <class T, bool kWhole, class Columns>
WICK_DEVICE void store_wgmma(const LinearOut& out, const Columns& columns, u32 first_row, u32 rows,
                             const float (&y)[64]) {
  const u32 first = lane() % 4 * 2, row = first_row + warp_index() * kUnitRows + lane() / 4;
  const auto inside = [&](u32 i) {
    return kWhole || (columns.has(first + column_of(i)) && row + i / 2 % 2 * 8 < rows);
  };
  const bool apart = out.columns.rank != 0;
  const i64 stride = apart ? out.columns.stride[0][0] : 0;
  const i64 residual_stride = apart ? out.columns.stride[1][0] : 0;
  T* to = static_cast<T*>(out.data) + row;
  const StorePlaces<Columns> places(columns);
  constexpr u32 kBatch = kSame<Columns, NextColumns> ? 16 : 4;
#pragma unroll
  for (u32 b = 0; b < 64; b += kBatch) {
    float value[kBatch];
#pragma unroll
    for (u32 i = 0; i < kBatch; ++i) value[i] = y[b + i];
    if (kSame<T, float> && out.residual != nullptr) {
      const float* from = out.residual + row;
      float residual[kBatch];  // all loads are in flight before the first use
#pragma unroll
      for (u32 i = 0; i < kBatch; ++i) {
        const u32 column = places.place(b + i);
        if (inside(b + i)) residual[i] = from[column * residual_stride + i / 2 % 2 * 8];
      }
#pragma unroll
      for (u32 i = 0; i < kBatch; ++i) value[i] = residual[i] + value[i];
    }
#pragma unroll
    for (u32 i = 0; i < kBatch; ++i) {
      const u32 column = places.place(b + i);
      if (inside(b + i)) to[column * stride + i / 2 % 2 * 8] = narrow<T>(value[i]);
    }
  }
}

template <class T, class Columns>
WICK_DEVICE void store_wgmma(const LinearOut& out, const Columns& columns, u32 first_row, u32 rows,
                             const float (&y)[64]) {
  if (columns.count() >= kColumns && first_row + kUnits * kUnitRows <= rows) {
    store_wgmma<T, true>(out, columns, first_row, rows, y);
  } else {
    store_wgmma<T, false>(out, columns, first_row, rows, y);
  }
}

/// Stores y of a tile as the dtype out.stored.
template <class Tiles>
WICK_DEVICE void store_wgmma(const LinearOut& out, const Tiles& p, u32 tile, const float (&y)[64]) {
  const auto columns = p.columns(tile);
  const u32 first_row = p.first_row_group(tile) * kUnitRows;
  if (out.stored == Stored::f32) {
    store_wgmma<float>(out, columns, first_row, p.rows, y);
  } else if (out.stored == Stored::f16) {
    store_wgmma<f16>(out, columns, first_row, p.rows, y);
  } else {
    store_wgmma<bf16>(out, columns, first_row, p.rows, y);
  }
}

/// Runs the pipeline. The multiplying warps call take(tile, shared, turn) for each tile of the
/// thread block.
template <class Q, class Tiles, class Take>
WICK_DEVICE void run_wgmma(const Tiles& p, u8* memory, Take&& take) {
  const Shared<Q> shared(memory);
  if (thread_index() == 0) {
    for (u32 i = 0; i < Stage<Q>::kCount; ++i) {
      init(shared.full[i], 1 + kCopying);
      init(shared.empty[i], kMultiplying);
    }
    publish_barriers();
  }
  pdl_launch_dependents();
  sync();
  if (warp_index() >= kMultiplying / kWarp) {
    give_registers<24>();
    copy_stages<Q>(p, shared);
  } else {
    take_registers<240>();
    if constexpr (!Tiles::kEarly) pdl_wait();
    StageTurn<Q> turn;
    for (u32 tile = p.existing(block_index()); tile < p.tiles;
         tile = p.existing(tile + grid_blocks())) {
      take(tile, shared, turn);
    }
  }
}

extern WICK_SHARED KiB dynamic_shared[];

}  // namespace wick::gpu

#define WICK_WGMMA_OPERANDS(records, gemm)                                                       \
  {                                                                                              \
    static_cast<const wick::math::u8*>(records), static_cast<const wick::gpu::Bytes16*>(gemm.q), \
        gemm.scales, gemm.chunks, gemm.rows                                                      \
  }
#define WICK_WGMMA_KERNEL(name, format)                                                 \
  WICK_KERNEL(wgmma_##name, WgmmaArgs, wick::gpu::kThreads, 1) {                        \
    wick::gpu::multiply_wgmma<wick::gpu::format>(                                       \
        args.gemm.out,                                                                  \
        wick::gpu::WeightTiles{WICK_WGMMA_OPERANDS(args.records, args.gemm),            \
                               static_cast<const wick::math::u8*>(args.gemm.weights),   \
                               args.gemm.columns, args.column_tiles, args.tiles},       \
        reinterpret_cast<wick::math::u8*>(wick::gpu::dynamic_shared));                  \
  }                                                                                     \
  WICK_KERNEL(wgmma_grouped_##name, GroupedWgmmaArgs, wick::gpu::kThreads, 1) {         \
    wick::gpu::multiply_wgmma<wick::gpu::format>(                                       \
        args.gemm.out,                                                                  \
        wick::gpu::ListedTiles{WICK_WGMMA_OPERANDS(args.records, args.gemm), args.list, \
                               args.first, args.row_tiles, args.tiles},                 \
        reinterpret_cast<wick::math::u8*>(wick::gpu::dynamic_shared));                  \
  }

#endif
