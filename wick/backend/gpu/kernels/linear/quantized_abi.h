#pragma once

// Arguments of the kernels of products with block dtypes, and what host and kernels agree on about
// the weights' layout, tiles and shared memory.

#include "wick/backend/gpu/kernels/layout/strided_index.h"
#include "wick/backend/gpu/kernels/linear/blocks_call.h"

namespace wick::gpu {

enum class Stored : u32 { f32, f16, bf16 };

/// Where y[column][row] goes: a column is a row of activations, a row one of the weight.
struct LinearOut {
  void* data = nullptr;
  const float* residual = nullptr;  ///< null: none; else added to the product, which is f32
  StridedIndex<2> columns;          ///< of the result, of the residual
  i64 row[2] = {1, 1};              ///< elements from one row to the next, of either
  Stored stored = Stored::f32;
  u32 fours = 0;  ///< not 0: four neighbouring rows, from a multiple of four on, go at once
};

// ---- Products with block dtypes without kernels of their own ----

/// Rows and columns of a thread block of decoded_few, and of either side of one of decoded_many.
inline constexpr u32 kDecodedFewRows = 16, kDecodedFewColumns = 8, kDecodedSide = 64;
/// decoded_few_FORMAT and decoded_many_FORMAT: rows of blocks in file layout, of k values each.
struct DecodedArgs {
  LinearOut out;
  const void* weights;
  const float* x;  ///< dense rows
  u32 rows, k, columns;
};

// ---- Products with quantised weights: quantized.h ----

/// Rows of a unit; blocks of a chunk; bytes of a piece of a unit.
inline constexpr u32 kUnitRows = 16, kChunkBlocks = 8, kPieceBytes = 16 * kUnitRows;
/// Pieces of a unit: of quants and of what scales them; and bytes of a row behind those.
struct UnitPieces {
  u32 quants, scales, tail;
};
inline constexpr UnitPieces kUnitOfQ4_0{8, 1, 0}, kUnitOfQ4_1{8, 2, 0}, kUnitOfQ8_0{16, 1, 0},
    kUnitOfQ4_K{8, 1, 0}, kUnitOfQ6_K{12, 1, 2};
/// Bytes of which units begin at a multiple.
WICK_FN constexpr u32 unit_align(bool amd) { return amd ? 128 : 32; }
WICK_FN constexpr u32 unit_bytes(UnitPieces unit, bool amd) {
  const u32 used = kPieceBytes * (unit.quants + unit.scales) + kUnitRows * unit.tail;
  return (used + unit_align(amd) - 1) / unit_align(amd) * unit_align(amd);
}

/// What every kernel of products takes: y[column][row].
struct QuantizedGemm {
  LinearOut out;
  const void *weights, *q;              ///< units; [columns][chunks · 256] of int8
  const math::ActivationScale* scales;  ///< [columns][chunks · 8]
  u32 chunks, rows, columns;
};
/// matvec_FORMAT: one column. row_groups: those of a thread block.
struct GemvArgs {
  QuantizedGemm gemm;
  u32 row_groups;
};
/// matvec_columns_FORMAT: segments of so many chunks.
struct GemvColumnsArgs {
  QuantizedGemm gemm;
  u32 segment;
};
/// few_FORMAT and many_FORMAT.
struct QuantizedArgs {
  QuantizedGemm gemm;
};
/// batch_FORMAT_COLUMNS: the first `more` thread blocks take `each` + 1 row thread blocks, others
/// `each`.
struct BatchArgs {
  QuantizedGemm gemm;
  u32 segment, each, more;
};
/// wide_FORMAT. records: what tile_columns makes of the columns.
struct WgmmaArgs {
  QuantizedGemm gemm;
  const void* records;
  u32 column_tiles, tiles;
};
/// tile_columns and tile_columns_shared. nibbles: not 0 for weights of four bits.
struct TileColumnsArgs {
  void* to;
  const void* q;
  const math::ActivationScale* scales;
  u32 chunks, columns, nibbles;
};
/// repack_FORMAT: rows of a file's blocks to units, from row `first` on.
struct RepackArgs {
  void* units;
  const void* in;
  u32 first, rows, chunks, blocks;
  i64 stride;  ///< bytes of a row
};
inline constexpr u32 kRepackThreads = 256;

/// Bytes of a chunk of a column: its values, and ActivationScale of its blocks.
inline constexpr u32 kColumnChunkBytes = 256 + kChunkBlocks * 8;
/// gemv.gpu: threads of a thread block at most: of gemv_q4_0 and gemv_q4_k, and of others; threads
/// of gemv_columns, and its columns.
inline constexpr u32 kGemvFourBits = 512, kGemvOthers = 256;
inline constexpr u32 kGemvColumnsThreads = 256, kGemvColumns = 4;
/// Shared memory of thread blocks of gemv.gpu: the columns' chunks; of each chunk, row and column a
/// sum.
WICK_FN constexpr u32 gemv_bytes(u32 chunks, u32 row_groups) {
  return chunks * kColumnChunkBytes + row_groups * (chunks + 1) * kUnitRows * 4;
}
WICK_FN constexpr u32 gemv_columns_bytes(u32 segment) {
  return segment * kGemvColumns * (kColumnChunkBytes + kUnitRows * 4);
}

/// Bytes of so many chunks of columns as StagedColumns (quantized_tile.h) has them. extra: formats
/// whose products take a block's sum, too.
WICK_FN constexpr u32 staged_bytes(u32 columns, u32 chunks, bool extra, bool amd) {
  const u32 pitch = columns + (amd ? 4 : 0);
  return chunks * (columns * (256 + 16) + kChunkBlocks * pitch * 4 * (extra ? 2 : 1));
}
/// quantized_batch.gpu: warps of a thread block, and floats from a column of chunk sums to the
/// next.
inline constexpr u32 kBatchWarps = 16, kBatchSumPitch = kUnitRows + 4;
/// Shared memory: sums of the warps' chunks; `buffers` segments of so many chunks of the columns,
/// padded; and sums that are kept of so many row thread blocks from one segment to the next.
WICK_FN constexpr u32 batch_bytes(u32 columns, u32 segment, u32 buffers, u32 kept) {
  return kBatchWarps * columns * kBatchSumPitch * 4 +
         buffers * columns * (segment * kColumnChunkBytes + 32) + kept * columns * kUnitRows * 4;
}

/// quantized_small_m.gpu: threads and row thread blocks of a thread block, and its columns. waves:
/// of a thread block.
inline constexpr u32 kFewQuantizedThreads = 256, kFewRowGroups = 2, kFewQuantizedColumns = 16;
WICK_FN constexpr u32 few_bytes(u32 waves, bool extra, bool amd) {
  return staged_bytes(kFewQuantizedColumns, waves, extra, amd) +
         waves * kFewQuantizedColumns * kFewRowGroups * kUnitRows * 4;
}
/// quantized_int8.gpu: threads and row thread blocks of a thread block, and its columns. tables:
/// numbers of a block and row; heads: of a superblock and row.
inline constexpr u32 kManyThreads = 256, kManyRowGroups = 8, kManyColumns = 64;
WICK_FN constexpr u32 many_rows_bytes(UnitPieces unit, u32 tables, u32 heads) {
  return kManyRowGroups *
         (unit.quants * kPieceBytes + (tables * kChunkBlocks + heads) * kUnitRows * 4);
}

/// quantized_wgmma.gpu: threads of a thread block; row thread blocks and columns of its tile;
/// blocks of a stage.
inline constexpr u32 kWgmmaQuantizedThreads = 384;
inline constexpr u32 kWgmmaRowGroups = 8, kWgmmaColumns = 128, kWgmmaStageBlocks = 4;
/// A record, the columns of a stage: values of f16, four bytes of each column (from kWgmmaOfColumns
/// on), four of each block and column (from kWgmmaOfBlocks on).
inline constexpr u32 kWgmmaOfColumns = kWgmmaColumns * kWgmmaStageBlocks * 64;
inline constexpr u32 kWgmmaOfBlocks = kWgmmaOfColumns + kWgmmaColumns * 4;
inline constexpr u32 kWgmmaRecordBytes = kWgmmaOfBlocks + kWgmmaStageBlocks * kWgmmaColumns * 4;
/// Threads of a thread block of tile_columns, 16 of which have a column's chunk.
inline constexpr u32 kTileThreads = 256, kChunkThreads = 16;
/// Bytes of a stage, and stages in shared memory, each with two barriers.
WICK_FN constexpr u32 wgmma_stage_bytes(UnitPieces unit, bool minimum) {
  const u32 rows = unit.quants * kPieceBytes / 2 + unit.scales * kPieceBytes;
  const u32 used = (minimum ? kWgmmaRecordBytes : kWgmmaOfBlocks) + kWgmmaRowGroups * rows;
  return (used + 1023) / 1024 * 1024;
}
inline constexpr u32 kWgmmaBarrierBytes = 2 * 8;
WICK_FN constexpr u32 wgmma_stages(u32 stage_bytes) {
  constexpr u32 kRoom = 227 * 1024, kMost = 5;
  const u32 fit = kRoom / (stage_bytes + kWgmmaBarrierBytes);
  return fit < kMost ? fit : kMost;
}

// ---- Activations to blocks: quantize_activations.gpu ----

/// quantize_rows_DTYPE and silu_mul_quantize_f32. first_row: of the blocks, where the rows go.
struct QuantizeRowsArgs {
  Blocks to;
  const void* in;
  StridedIndex<1> rows;
  u64 first_row;
  Divider blocks_a_row;
  u32 k;
  Spread spread;
};
/// rms_norm_quantize_short, _long and _many.
struct NormQuantizeArgs {
  Blocks to;
  const float* in;
  StridedIndex<1> rows;
  u64 first_row;
  const float* weight;
  u32 k;
  Spread spread, weight_spread;
  float eps;
};
/// Threads of a thread block of quantize_rows and of rms_norm_quantize_many; times that a thread of
/// quantize_rows takes four neighbours.
inline constexpr u32 kQuantizeThreads = 256;
WICK_FN constexpr u32 quantize_turns(bool amd) { return amd ? 2 : 1; }
/// Threads of a thread block of rms_norm_quantize_short and _long at most, and fours of a thread.
inline constexpr u32 kNormQuantizeThreads = 1024, kShortFours = 1, kLongFours = 4;

}  // namespace wick::gpu
