#pragma once

// Arguments of the gemm kernels with quantised weights, and the weights' layout and the sizes of
// tiles and of shared memory that the host and the kernels share.

#include "wick/backend/gpu/kernels/layout/strided_index.h"
#include "wick/backend/gpu/kernels/linear/blocks_call.h"
#include "wick/math/code_blocks.h"

namespace wick::gpu {

enum class Stored : u32 { f32, f16, bf16 };

/// The destination of y[column][row]: a column is a row of activations, a row is a row of the
/// weight.
struct LinearOut {
  void* data = nullptr;
  const float* residual = nullptr;  ///< null: none; otherwise added to the result, which is f32
  StridedIndex<2> columns;          ///< offsets in the result and in the residual
  i64 row[2] = {1, 1};              ///< distance of rows in the result and in the residual
  Stored stored = Stored::f32;
  u32 fours = 0;  ///< not 0: four aligned, neighbouring rows may be stored at once
};

// ---- Gemms with block dtypes that are decoded: decoded_few.gpu, decoded_many.gpu ----

/// Threads of a thread block; rows and columns of a thread block of decoded_few; rows of a thread
/// block of decoded_many, which has as many columns.
inline constexpr u32 kDecodedThreads = 256, kDecodedFewRows = 16, kDecodedFewColumns = 8,
                     kDecodedSide = 64;
/// decoded_one, decoded_few and decoded_many. weights: rows of k values, in blocks in file layout.
struct DecodedArgs {
  LinearOut out;
  const void* weights;
  const float* x;  ///< dense rows
  u32 format;      ///< its number in quants.def
  u32 rows, k, columns;
};
/// decoded_repack. unit: 16, 4, 2 or 1 bytes, which the pointers, row_bytes and stride are
/// multiples of.
struct DecodedRepackArgs {
  void* out;
  const void* in;
  u32 rows, unit;
  u64 row_bytes;
  i64 stride;  ///< bytes of a row of `in`
};

// ---- Gemms with quantised weights in units: quantized.h ----

/// Rows of a unit; blocks of a chunk; bytes of a piece of a unit.
inline constexpr u32 kUnitRows = 16, kChunkBlocks = 8, kPieceBytes = 16 * kUnitRows;
/// Contents of a unit: pieces of quants, pieces of scales behind them, and bytes of each row behind
/// those.
struct UnitPieces {
  u32 quants, scales, tail;
};
/// A format: its unit, and how integer products of its quants are formed and added.
struct UnitFormat {
  UnitPieces unit;
  u32 bits = 4;     ///< low bits of a quant in one place: 8, 4 or 2
  u32 high = 0;     ///< bits of a quant in another place: 0 or 1; q6_k 2
  u32 offset = 0;   ///< subtracted from the quants where their products are summed
  u32 factors = 0;  ///< values that share an integer factor of the block's scale: 0 (none), 16, 32
  bool minimum = false;
  /// The activations of half a superblock share a scale. 0: they don't; otherwise the number of
  /// integer sums of a half.
  u32 halves = 0;
  math::CodeTable table = math::CodeTable::none;  ///< quants are indices of this table
  bool exponents = false;                         ///< scales are powers of two, stored in a byte
};
inline constexpr UnitFormat kFormatOfQ4_0{.unit = {8, 1, 0}, .offset = 8},
    kFormatOfQ4_1{.unit = {8, 2, 0}, .minimum = true},
    kFormatOfQ5_0{.unit = {10, 1, 0}, .high = 1, .offset = 16},
    kFormatOfQ5_1{.unit = {10, 2, 0}, .high = 1, .minimum = true},
    kFormatOfQ8_0{.unit = {16, 1, 0}, .bits = 8},
    kFormatOfQ2_K{.unit = {4, 1, 4}, .bits = 2, .factors = 16, .minimum = true, .halves = 1},
    kFormatOfQ3_K{.unit = {6, 1, 0}, .bits = 2, .high = 1, .factors = 16},
    kFormatOfQ4_K{.unit = {8, 1, 0}, .factors = 32, .minimum = true, .halves = 1},
    kFormatOfQ5_K{.unit = {10, 1, 0}, .high = 1, .factors = 32, .minimum = true, .halves = 2},
    kFormatOfQ6_K{.unit = {12, 1, 2}, .high = 2, .factors = 16},
    kFormatOfIQ4_NL{.unit = {8, 1, 0}, .table = math::CodeTable::normal},
    kFormatOfIQ4_XS{.unit = {8, 0, 8}, .factors = 32, .table = math::CodeTable::normal},
    kFormatOfMXFP4{.unit = {8, 0, 8}, .table = math::CodeTable::e2m1, .exponents = true};

/// The exponent of blocks that pad rows, units and row groups.
inline constexpr u32 kPaddingExponent = 120;

/// Whether gemms need the sum of each block of activations.
WICK_FN constexpr bool takes_sums(UnitFormat f) { return f.offset != 0 || f.minimum; }
/// The alignment of units in bytes.
WICK_FN constexpr u32 unit_align(bool amd) { return amd ? 128 : 32; }
WICK_FN constexpr u32 unit_bytes(UnitPieces unit, bool amd) {
  const u32 used = kPieceBytes * (unit.quants + unit.scales) + kUnitRows * unit.tail;
  return (used + unit_align(amd) - 1) / unit_align(amd) * unit_align(amd);
}

/// The arguments that all of these gemm kernels share. They compute y[column][row].
struct QuantizedGemm {
  LinearOut out;
  const void *weights, *q;              ///< units; [columns][chunks · 256] of int8
  const math::ActivationScale* scales;  ///< [columns][chunks · 8]
  u32 chunks, rows, columns;
};
/// gemv_FORMAT: one column. row_groups: row groups of a thread block, 1 or 2. blocks: of a row,
/// without the last chunk's padding.
struct GemvArgs {
  QuantizedGemm gemm;
  u32 row_groups, blocks;
};
/// gemv_columns_FORMAT. segment: chunks of a segment.
struct GemvColumnsArgs {
  QuantizedGemm gemm;
  u32 segment;
};
/// small_m_FORMAT and int8_FORMAT.
struct QuantizedArgs {
  QuantizedGemm gemm;
};
/// batch_FORMAT_COLUMNS. segment: chunks of a segment. The first `more` thread blocks take `each` +
/// 1 row groups, other blocks take `each`.
struct BatchArgs {
  QuantizedGemm gemm;
  u32 segment, each, more;
};
/// wgmma_FORMAT. records: the columns in the layout that tile_columns writes.
struct WgmmaArgs {
  QuantizedGemm gemm;
  const void* records;
  u32 column_tiles, tiles;
};
/// tile_columns, tile_columns_shared and tile_columns_unscaled. nibbles: not 0 if the weights'
/// quants are used as nibbles of f16 (kHighNibble). halves: not 0 if sums of activations are those
/// of half a block.
struct TileColumnsArgs {
  void* to;
  const void* q;
  const math::ActivationScale* scales;
  u32 chunks, columns, nibbles, halves;
  /// grouped_linear: for each column its row of q, and its column of all records (kNoTile: none),
  /// of which columns [first, first + held) are written. Null: column i is row i.
  const u32 *tokens, *places;
  u32 first, held;
};
/// The column of a pair that is in no tile.
inline constexpr u32 kNoTile = ~u32{0};
/// repack_FORMAT: copies rows of blocks in file layout to units. `first` is the first row.
struct RepackArgs {
  void* units;
  const void* in;
  u32 first, rows, chunks, blocks;
  i64 stride;  ///< bytes of a row
};
inline constexpr u32 kRepackThreads = 256;

/// Bytes of a chunk of a column: its values, and the ActivationScale of each block.
inline constexpr u32 kColumnChunkBytes = 256 + kChunkBlocks * 8;
/// gemv.gpu: the most threads of a thread block, for formats with few registers (gemv_threads) and
/// for others; threads and columns of a thread block of gemv_columns.
inline constexpr u32 kGemvFourBits = 512, kGemvOthers = 256;
WICK_FN constexpr u32 gemv_threads(UnitFormat f) {
  return f.unit.quants <= 8 && f.unit.scales <= 1 ? kGemvFourBits : kGemvOthers;
}
inline constexpr u32 kGemvColumnsThreads = 256, kGemvColumns = 4;
/// Bytes of shared memory of a thread block of gemv.gpu: the chunks of the columns, and a sum for
/// each chunk, row and column.
WICK_FN constexpr u32 gemv_bytes(u32 chunks, u32 row_groups) {
  return chunks * kColumnChunkBytes + row_groups * (chunks + 1) * kUnitRows * 4;
}
WICK_FN constexpr u32 gemv_columns_bytes(u32 segment, u32 columns = kGemvColumns) {
  return segment * columns * (kColumnChunkBytes + kUnitRows * 4);
}

/// Bytes of `chunks` chunks of `columns` columns in the layout of StagedColumns (quantized_tile.h).
/// extra: whether gemms of the format also need the sum of each block.
WICK_FN constexpr u32 staged_bytes(u32 columns, u32 chunks, bool extra, bool amd) {
  const u32 pitch = columns + (amd ? 4 : 0);
  return chunks * (columns * (256 + 16) + kChunkBlocks * pitch * 4 * (extra ? 2 : 1));
}
/// quantized_batch.gpu: warps of a thread block; distance of columns of chunk sums, in floats.
inline constexpr u32 kBatchWarps = 16, kBatchSumPitch = kUnitRows + 4;
/// Bytes of shared memory: sums of the warps' chunks; `buffers` padded segments of `segment` chunks
/// of the columns; and the sums of `kept` row groups, which are kept from one segment to the next.
WICK_FN constexpr u32 batch_bytes(u32 columns, u32 segment, u32 buffers, u32 kept) {
  return kBatchWarps * columns * kBatchSumPitch * 4 +
         buffers * columns * (segment * kColumnChunkBytes + 32) + kept * columns * kUnitRows * 4;
}

/// quantized_small_m.gpu: threads, row groups and columns of a thread block.
inline constexpr u32 kSmallMQuantizedThreads = 256, kSmallMRowGroups = 2,
                     kSmallMQuantizedColumns = 16;
/// Bytes of shared memory. waves: waves of a thread block.
WICK_FN constexpr u32 small_m_bytes(u32 waves, bool extra, bool amd) {
  return staged_bytes(kSmallMQuantizedColumns, waves, extra, amd) +
         waves * kSmallMQuantizedColumns * kSmallMRowGroups * kUnitRows * 4;
}
/// quantized_int8.gpu: threads, row groups and columns of a thread block.
inline constexpr u32 kInt8Threads = 256, kInt8RowGroups = 8, kInt8Columns = 64;
/// Numbers for each block and row, and for each superblock and row, beside the quants.
WICK_FN constexpr u32 int8_tables(UnitFormat f) {
  if (f.halves != 0) return 2;
  return f.factors == 16 ? 3 : f.minimum || f.factors == 32 ? 2 : 1;
}
WICK_FN constexpr u32 int8_heads(UnitFormat f) { return f.halves != 0 ? 2 : 0; }
/// Bytes of shared memory for rows of the weight.
WICK_FN constexpr u32 int8_rows_bytes(UnitFormat f) {
  return kInt8RowGroups * (f.unit.quants * kPieceBytes +
                           (int8_tables(f) * kChunkBlocks + int8_heads(f)) * kUnitRows * 4);
}

/// quantized_wgmma.gpu: threads of a thread block; row groups and columns of its tile; blocks of a
/// pipeline stage.
inline constexpr u32 kWgmmaQuantizedThreads = 384;
inline constexpr u32 kWgmmaRowGroups = 8, kWgmmaColumns = 128, kWgmmaStageBlocks = 4;
/// A record holds the columns of a stage: the values in f16, from kWgmmaOfColumns on four bytes for
/// each column, and from kWgmmaOfBlocks on four bytes for each block of a column.
inline constexpr u32 kWgmmaOfColumns = kWgmmaColumns * kWgmmaStageBlocks * 64;
inline constexpr u32 kWgmmaOfBlocks = kWgmmaOfColumns + kWgmmaColumns * 4;
inline constexpr u32 kWgmmaRecordBytes = kWgmmaOfBlocks + kWgmmaStageBlocks * kWgmmaColumns * 4;
/// Threads of a thread block of tile_columns; threads that share a chunk of a column.
inline constexpr u32 kTileThreads = 256, kChunkThreads = 16;
/// Bytes of the scales of a unit.
WICK_FN constexpr u32 scale_bytes(UnitPieces unit) {
  return unit.scales * kPieceBytes + unit.tail * kUnitRows;
}
/// Bytes of a record that a gemm of the format reads.
WICK_FN constexpr u32 wgmma_record_bytes(UnitFormat f) {
  return f.minimum || f.high == 2 ? kWgmmaRecordBytes : kWgmmaOfBlocks;
}
/// Bytes of a stage.
WICK_FN constexpr u32 wgmma_stage_bytes(UnitFormat f) {
  const u32 rows = f.unit.quants * kPieceBytes / 2 + scale_bytes(f.unit);
  const u32 used = wgmma_record_bytes(f) + kWgmmaRowGroups * rows;
  return (used + 1023) / 1024 * 1024;
}
/// Bytes of the two barriers of a stage.
inline constexpr u32 kWgmmaBarrierBytes = 2 * 8;
/// Number of stages that fit into shared memory, at most five.
WICK_FN constexpr u32 wgmma_stages(u32 stage_bytes) {
  constexpr u32 kRoom = 227 * 1024, kMost = 5;
  const u32 fit = kRoom / (stage_bytes + kWgmmaBarrierBytes);
  return fit < kMost ? fit : kMost;
}

// ---- Quantisation of activations: quantize_activations.gpu ----

/// quantize_rows_DTYPE, silu_mul_quantize_f32 and gelu_mul_quantize_f32. first_row: the row of `to`
/// that the first row goes to.
struct QuantizeRowsArgs {
  Blocks to;
  const void* in;
  StridedIndex<1> rows;
  u64 first_row;
  Divider blocks_a_row;
  u32 k;
  Spread spread;
};
/// rms_norm_quantize_short, rms_norm_quantize_long and rms_norm_quantize_many; on AMD also
/// rms_norm_quantize_warp.
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
/// Threads of a thread block of quantize_rows (on AMD, at most) and of rms_norm_quantize_many.
inline constexpr u32 kQuantizeThreads = 256;
/// Vectors of four elements that a thread of quantize_rows takes.
WICK_FN constexpr u32 quantize_turns(bool amd) { return amd ? 2 : 1; }
/// rms_norm_quantize_short and rms_norm_quantize_long: the most threads of a thread block; vectors
/// of four elements that a thread takes in each.
inline constexpr u32 kNormQuantizeThreads = 1024, kShortFours = 1, kLongFours = 4;
/// rms_norm_quantize_warp: threads of a thread block, whose warps take a row each; the most
/// elements of a row.
inline constexpr u32 kNormQuantizeWarpThreads = 64, kMostOfNormWarp = 1024;

}  // namespace wick::gpu
