#pragma once

// What products of quantised weights by matrix units for f16 on NVIDIA's sm_90a have in common:
// tiles of 128 rows and 128 columns, stages of four blocks that some warps copy and others
// multiply, and how results are stored. quantized_wgmma.gpu has types whose blocks have scales of
// their own, quantized_wgmma_super.gpu q4_k.
//
// In run_wgmma a thread block takes tiles, a warp of the first eight 16 rows of them. Four more
// warps copy stages into shared memory: the columns by one large copy, the rows, whose pieces are
// small, 16 bytes a thread (a copy of its own for each piece takes the copying unit some 60
// cycles). Bytes moved: the weights once for each 128 columns, the activations (2 bytes a value)
// once for each 128 rows, all but the first time out of the cache.

#include "wick/backend/gpu/kernels/device/hopper.h"
#include "wick/backend/gpu/kernels/linear/quantized_tile.h"

#if WICK_WGMMA

namespace wick::gpu {

constexpr u32 kThreads = kWgmmaQuantizedThreads, kMultiplying = 256,
              kCopying = kThreads - kMultiplying;
constexpr u32 kUnits = kWgmmaRowGroups, kColumns = kWgmmaColumns, kStageBlocks = kWgmmaStageBlocks;
/// A record, the columns of a stage as they come from memory: values, two blocks of all columns at
/// a time, each as two matrices of 64 columns (describe<false>); four bytes of each column; four of
/// each block and column. What these are, a kernel says.
constexpr u32 kValueBytes = kColumns * kStageBlocks * 64, kPairBytes = kValueBytes / 2;
constexpr u32 kMatrixBytes = kPairBytes / 2;
constexpr u32 kOfColumns = kWgmmaOfColumns, kOfBlocks = kWgmmaOfBlocks;
static_assert(kOfColumns == kValueBytes);

/// What a thread prepares of the columns: half a block; 16 threads have a column's chunk. Columns
/// up to the last tile's end are zeros.
struct ColumnHalf {
  u32 half, j, chunk, column;
  ActivationScale s = {0.0f, 0};
  Bytes16 x = {};

  WICK_DEVICE ColumnHalf(const Bytes16* q, const ActivationScale* scales, u32 chunks, u32 columns) {
    const u64 at = u64{block_index()} * kTileThreads + thread_index();
    half = static_cast<u32>(at) % 2, j = static_cast<u32>(at) / 2 % kChunkBlocks;
    chunk = static_cast<u32>(at / kChunkThreads % chunks),
    column = static_cast<u32>(at / kChunkThreads / chunks);
    pdl_launch_dependents();
    pdl_wait();
    if (column >= columns) return;
    const u64 block = (u64{column} * chunks + chunk) * kChunkBlocks + j;
    s = scales[block];
    x = q[block * 2 + half];
  }
};

/// Where the record of a column's block j of a chunk begins, of tiles with so many chunks.
WICK_DEVICE u64 record_at(u32 column, u32 chunk, u32 j, u32 chunks) {
  return (u64{column / kColumns} * chunks * 2 + chunk * 2 + j / kStageBlocks) * kWgmmaRecordBytes;
}
/// Half a block's values, times a factor that is exact, as f16 where products look for them: bytes
/// 0 and 2 of each word, then 1 and 3.
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

/// Nibbles come as n·2^-24, high ones as n·2^-20: what they are multiplied with makes up for it.
constexpr u32 kNibbleUnit = 24, kHighNibble = 4;

/// A stage in shared memory: a record of columns, then of each row group the quants of four
/// blocks and the scales of the chunk.
template <class Q>
struct Stage {
  static constexpr u32 kQuantBytes = Q::kQuants * kPieceBytes / 2;
  static constexpr u32 kScaleBytes = Q::kScales * kPieceBytes;
  static constexpr u32 kRecord =
      Q::kMinimum ? kWgmmaRecordBytes : kOfBlocks;  // what is needed of it
  static constexpr u32 kUnit = kQuantBytes + kScaleBytes;
  static constexpr u32 kBytes = wgmma_stage_bytes(Q::kPieces, Q::kMinimum);
  static constexpr u32 kCount = wgmma_stages(kBytes);
  static_assert(kRecord + kUnits * kUnit <= kBytes);
};

/// What a thread block's warps share.
template <class Q>
struct Shared {
  u8* stages;
  Barrier *full, *empty;

  WICK_DEVICE explicit Shared(u8* shared) : stages(shared) {
    full = reinterpret_cast<Barrier*>(shared + Stage<Q>::kCount * Stage<Q>::kBytes);
    empty = full + Stage<Q>::kCount;
  }
};

/// One of Stage::kCount, and which round of them.
template <class Q>
struct StageTurn {
  u32 at = 0, parity = 0;
  WICK_DEVICE void advance() {
    if (++at < Stage<Q>::kCount) return;
    at = 0;
    parity ^= 1;
  }
};

/// A product, and its tiles: columns first, so that thread blocks which run together share rows.
struct Wgmma {
  const u8* weights;
  const u8* records;
  const Bytes16* q;
  const ActivationScale* scales;
  u32 chunks, rows, columns, column_tiles, tiles;

  WICK_DEVICE u32 first_column(u32 tile) const { return tile % column_tiles * kColumns; }
  WICK_DEVICE u32 first_row_group(u32 tile) const { return tile / column_tiles * kUnits; }
  template <class Q>
  WICK_DEVICE const u8* units(u32 tile, u32 i) const {
    // Past the last row group the last one again.
    const u32 count = (rows + kUnitRows - 1) / kUnitRows, g = first_row_group(tile) + i;
    return weights + u64{g < count ? g : count - 1} * chunks * kUnitBytes<Q>;
  }
  WICK_DEVICE const u8* record(u32 tile, u32 stage) const {
    return records + (u64{tile % column_tiles} * chunks * 2 + stage) * kWgmmaRecordBytes;
  }
};

/// By the copying warps: stages of the thread block's tiles, as room for them comes. A warp brings
/// two of the row groups.
template <class Q>
WICK_DEVICE void copy_stages(const Wgmma& p, const Shared<Q>& shared) {
  using S = Stage<Q>;
  constexpr u32 kEach = kUnits / (kCopying / kWarp);
  const u32 warp = warp_index() - kMultiplying / kWarp, stages = p.chunks * 2;
  const auto copy_rows = [&](u32 tile, u32 stage, u32 at) {
    u32 to = shared_address(shared.stages) + at * S::kBytes + S::kRecord + warp * kEach * S::kUnit +
             lane() * 16;
#pragma unroll 1
    for (u32 i = 0; i < kEach; ++i, to += S::kUnit) {
      const u8* from =
          p.units<Q>(tile, warp * kEach + i) + u64{stage / 2} * kUnitBytes<Q> + lane() * 16;
      const u8* quants = from + stage % 2 * S::kQuantBytes;
#pragma unroll
      for (u32 b = 0; b < S::kQuantBytes; b += kWarp * 16) copy_sixteen(to + b, quants + b);
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
  // Weights of the first stages, before what makes the activations has ended.
  const u32 first = stages < S::kCount ? stages : S::kCount;
#pragma unroll 1
  for (u32 stage = 0; stage < first; ++stage) copy_rows(block_index(), stage, stage);
  pdl_wait();
  StageTurn<Q> turn;
  u32 stage = 0;
#pragma unroll 1
  for (; stage < first; ++stage, turn.advance()) copy_columns(block_index(), stage, turn.at);
#pragma unroll 1
  for (u32 tile = block_index(); tile < p.tiles; tile += grid_blocks(), stage = 0) {
#pragma unroll 1
    for (; stage < stages; ++stage, turn.advance()) {
      wait(shared.empty[turn.at], turn.parity ^ 1);  // at once in the first round
      copy_columns(tile, stage, turn.at);
      copy_rows(tile, stage, turn.at);
    }
  }
}

/// What a lane multiplies: its two rows, 8 apart, of its warp's unit.
template <class Q>
struct WgmmaRows {
  static constexpr u32 kWords = Q::kQuants / kChunkBlocks;
  u32 w[2][kWords];

  /// Block j of a stage: `unit` is the warp's.
  WICK_DEVICE void load(const u8* unit, u32 j) {
    const u32* from = reinterpret_cast<const u32*>(unit) + lane();  // row lane / 4, word lane % 4
#pragma unroll
    for (u32 r = 0; r < 2; ++r) {
#pragma unroll
      for (u32 i = 0; i < kWords; ++i) {
        w[r][i] = from[(j * kWords + i) * (kPieceBytes / 4) + r * 8 * 4];
      }
    }
  }
  /// As f16, for two products. Of Q4_K what nibbles are multiplied by, twice, of each row.
  WICK_DEVICE void unpack(u32 (&a)[8], const u32 (&by)[2]) const {
    unpack(a);
#pragma unroll
    for (u32 i = 0; i < 8; ++i) a[i] = multiply_halves(a[i], by[i % 2]);
  }
  WICK_DEVICE void unpack(u32 (&a)[8]) const {
#pragma unroll
    for (u32 r = 0; r < 2; ++r) {
      if constexpr (kSame<Q, Q8_0>) {
        bytes(a[r], a[4 + r], w[r][0]);
        bytes(a[2 + r], a[6 + r], w[r][1]);
      } else {
        nibbles(a[r], a[2 + r], w[r][0]);
        nibbles(a[4 + r], a[6 + r], w[r][0] >> 8);
      }
    }
  }

 private:
  /// Of bytes 0 and 2: n·2^-24 and n·2^-20, which is how the nibbles read as f16.
  WICK_DEVICE static void nibbles(u32& low, u32& high, u32 word) {
    low = word & 0x000f000fu;
    high = word & 0x00f000f0u;
    if constexpr (kSame<Q, Q4_0>) {  // less 8
      low = add_halves(low, 0x80088008u);
      high = add_halves(high, 0x80808080u);
    }
  }
  /// Bytes 0 and 2, bytes 1 and 3: 1024 + 128 + b.
  WICK_DEVICE static void bytes(u32& even, u32& odd, u32 word) {
    const u32 x = word ^ 0x80808080u;
    even = add_halves(pick_bytes(x, 0x64646464u, 0x4240u), 0xe480e480u);
    odd = add_halves(pick_bytes(x, 0x64646464u, 0x4341u), 0xe480e480u);
  }
};

/// Stores a warp's y of its 16 rows and of all columns of a tile: y[32·h + 4·j + i] is row g + i /
/// 2 · 8 and column 64·h + 8·j + 2·t + i % 2. Rows lie side by side, columns at one distance.
/// kWhole: all of it.
template <class T, bool kWhole>
WICK_DEVICE void store_wgmma(const LinearOut& out, const Wgmma& p, u32 tile, const float (&y)[64]) {
  const u32 first = p.first_column(tile) + lane() % 4 * 2;
  const u32 row = (p.first_row_group(tile) + warp_index()) * kUnitRows + lane() / 4;
  const auto column = [&](u32 i) { return first + i / 4 * 8 + i % 2; };
  const auto inside = [&](u32 i) {
    return kWhole || (column(i) < p.columns && row + i / 2 % 2 * 8 < p.rows);
  };
  const bool apart = out.columns.rank != 0;
  const i64 stride = apart ? out.columns.stride[0][0] : 0;
  const i64 residual_stride = apart ? out.columns.stride[1][0] : 0;
  T* to = static_cast<T*>(out.data) + row;
  constexpr u32 kBatch = 32;
#pragma unroll
  for (u32 b = 0; b < 64; b += kBatch) {
    float value[kBatch];
#pragma unroll
    for (u32 i = 0; i < kBatch; ++i) value[i] = y[b + i];
    if (kSame<T, float> && out.residual != nullptr) {
      const float* from = out.residual + row;
      float residual[kBatch];  // all of them on their way before one is needed
#pragma unroll
      for (u32 i = 0; i < kBatch; ++i) {
        if (inside(b + i)) residual[i] = from[column(b + i) * residual_stride + i / 2 % 2 * 8];
      }
#pragma unroll
      for (u32 i = 0; i < kBatch; ++i) value[i] = residual[i] + value[i];
    }
#pragma unroll
    for (u32 i = 0; i < kBatch; ++i) {
      if (inside(b + i)) to[column(b + i) * stride + i / 2 % 2 * 8] = narrow<T>(value[i]);
    }
  }
}

template <class T>
WICK_DEVICE void store_wgmma(const LinearOut& out, const Wgmma& p, u32 tile, const float (&y)[64]) {
  const bool whole = p.first_column(tile) + kColumns <= p.columns &&
                     (p.first_row_group(tile) + kUnits) * kUnitRows <= p.rows;
  if (whole) {
    store_wgmma<T, true>(out, p, tile, y);
  } else {
    store_wgmma<T, false>(out, p, tile, y);
  }
}

/// So, as the dtype that is wanted.
WICK_DEVICE void store_wgmma(const LinearOut& out, const Wgmma& p, u32 tile, const float (&y)[64]) {
  if (out.stored == Stored::f32) {
    store_wgmma<float>(out, p, tile, y);
  } else if (out.stored == Stored::f16) {
    store_wgmma<f16>(out, p, tile, y);
  } else {
    store_wgmma<bf16>(out, p, tile, y);
  }
}

/// `take(tile, shared, turn)` by the warps that multiply, for each of the thread block's tiles.
template <class Q, class Take>
WICK_DEVICE void run_wgmma(const Wgmma& p, u8* memory, Take&& take) {
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
    StageTurn<Q> turn;
    for (u32 tile = block_index(); tile < p.tiles; tile += grid_blocks()) take(tile, shared, turn);
  }
}

/// Stages begin at multiples of 1024 bytes: see describe.
struct alignas(1024) KiB {
  u8 bytes[1024];
};
extern WICK_SHARED KiB dynamic_shared[];

}  // namespace wick::gpu

#define WICK_WGMMA_KERNEL(name, format)                                                           \
  WICK_KERNEL(wgmma_##name, WgmmaArgs, wick::gpu::kThreads, 1) {                                  \
    wick::gpu::multiply_wgmma<wick::gpu::format>(                                                 \
        args.gemm.out,                                                                            \
        {static_cast<const wick::math::u8*>(args.gemm.weights),                                   \
         static_cast<const wick::math::u8*>(args.records),                                        \
         static_cast<const wick::gpu::Bytes16*>(args.gemm.q), args.gemm.scales, args.gemm.chunks, \
         args.gemm.rows, args.gemm.columns, args.column_tiles, args.tiles},                       \
        reinterpret_cast<wick::math::u8*>(wick::gpu::dynamic_shared));                            \
  }

#endif
