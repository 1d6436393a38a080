#pragma once

// The arguments of the grouped_linear kernels, shared by host and device.

#include "wick/backend/gpu/kernels/device/fault.h"
#include "wick/backend/gpu/kernels/linear/gemm_abi.h"
#include "wick/backend/gpu/kernels/linear/quantized_abi.h"

namespace wick::gpu {

/// The weights of a mixture of experts, and the ids that choose one for each pair. A pair is a row
/// of x and one of its n ids; pairs lie along the grid's y axis.
struct Experts {
  static constexpr math::u32 kMost = 256;  // per launch, because a kernel takes 4 KiB of arguments

  const void* weights[kMost] = {};
  math::u32 first = 0;             ///< the id of weights[0]
  math::u32 held = 0;              ///< number of weights in this launch
  math::u32 count = 0;             ///< number of all experts
  math::u32 first_pair = 0;        ///< the pair at block_index_y() 0
  math::u32 each = 1;              ///< n, the number of ids of a row
  const math::u32* ids = nullptr;  ///< one for each pair
  FaultLine* line = nullptr;       ///< where an id that is out of range is reported
  math::u32 note = 0;              ///< of the call, for the report
};

// ---- Tiles: the rows that chose an expert, several at a time ----

/// A tile: pairs [first, first + count) in the order of experts, with the weight of their expert.
struct ExpertTile {
  const void* weight;
  math::u32 first, count;
};
/// The pairs of a call in the order of experts, and within an expert in their own order. Pairs
/// whose id is out of range come last and are in no tile.
struct ExpertTileList {
  const ExpertTile* tiles;
  const math::u32* tokens;  ///< the row of x of each pair
  const math::u32* places;  ///< the row of the result of each pair
};
/// expert_tiles: makes a list for tiles of `width` pairs. The thread blocks take the experts of
/// `experts`; one more takes the pairs whose id is out of range. Expert e with `count` pairs from
/// `start` on has the tiles from start / width + e on, of which those that it doesn't need are
/// empty. The list has `all` = pairs / width + experts.count tiles.
struct ExpertTilesArgs {
  Experts experts;
  ExpertTile* tiles;
  math::u32 *tokens, *places;
  /// Null, or for each pair its tile times width, plus its index in the tile; kNoTile without tile.
  math::u32* columns;
  math::u32 pairs, width, all;
  void* out;             ///< the result, which gets zeros for ids that are out of range
  math::u64 row_halves;  ///< units of 16 bits in a row of the result
};
inline constexpr math::u32 kExpertTilesThreads = 256;

/// compact_tiles: copies the tiles of a list that aren't empty, in their order, and counts them. It
/// is one thread block.
struct CompactTilesArgs {
  const ExpertTile* tiles;
  ExpertTile* kept;
  math::u32* count;
  math::u32 all;  ///< tiles of the list
};

/// int8_grouped_FORMAT and small_m_grouped_FORMAT. gemm.weights and gemm.columns aren't used. The
/// tiles from `first` on lie along y.
struct GroupedTilesArgs {
  QuantizedGemm gemm;
  ExpertTileList list;
  math::u32 first;
};
/// batch_grouped_FORMAT_COLUMNS. batch: as for batch_FORMAT_COLUMNS.
struct GroupedBatchArgs {
  BatchArgs batch;
  ExpertTileList list;
  math::u32 first;
};
/// wgmma_grouped_FORMAT. records: those of tiles from `first` on, in the layout that tile_columns
/// writes. row_tiles: tiles of the rows of a weight. tiles: row_tiles for each tile of the list.
struct GroupedWgmmaArgs {
  QuantizedGemm gemm;
  ExpertTileList list;
  const void* records;
  math::u32 first, row_tiles, tiles;
};
/// decoded_tiles. format: as in DecodedArgs.
struct GroupedDecodedTilesArgs {
  LinearOut out;
  ExpertTileList list;
  const float* x;  ///< dense rows
  math::u32 format, rows, k, first;
};
/// grouped_DTYPE_ROWS of gemv_stream.gpu, grouped_rows_DTYPE of gemv_float.gpu. shape: that of one
/// row; a_row and out_row are the distances of rows of x and of the result.
struct GroupedRowsArgs {
  void* out;
  const void* x;
  ExpertTileList list;
  Gemm shape;
  math::u32 format, first;
};

/// grouped_DTYPE_TILE of grouped_mma.gpu. x: the pairs' rows of activations, in the order of the
/// list, shape.a_row apart; rows of weights are shape.b_row apart. Rows have whole slabs of k.
/// shape.scale: one for each of these rows. k_of_b: see MatrixRows. tiles: of the list, from
/// `first` on.
struct GroupedMmaArgs {
  void* out;
  const void* x;
  ExpertTileList list;
  Gemm shape;
  math::u32 k_of_b, first, tiles;
};
/// grouped_DTYPE_COLUMNS of grouped_wgmma.gpu. map_x: the rows that are `x` of GroupedMmaArgs.
/// list: `count` tiles, none empty, whose weights are the addresses of CopyMaps. The maps have
/// boxes of COLUMNS rows.
struct GroupedHopperArgs {
  CopyMap map_x;
  void* out;
  ExpertTileList list;
  const math::u32* count;
  Gemm shape;
  math::u32 k_of_b;
};

// ---- One pair at a time ----

/// grouped_DTYPE of gemv_float.gpu and of gemv_stream.gpu. shape: that of one row.
struct GroupedFloatArgs {
  void* out;
  const void* x;
  Experts experts;
  Gemm shape;
  math::u32 format;
};
/// grouped_FORMAT of gemv.gpu. q, scales: as in QuantizedGemm. segment: chunks of a segment.
struct GroupedGemvArgs {
  LinearOut out;
  Experts experts;
  const void* q;
  const math::ActivationScale* scales;
  math::u32 chunks, rows, segment;
  /// Not 0 if the ids were written before the previous kernel began. Each thread block then
  /// prefetches its weights while the previous kernel runs.
  math::u32 early;
};
/// decoded_grouped. format: as in DecodedArgs.
struct GroupedDecodedArgs {
  LinearOut out;
  Experts experts;
  const float* x;  ///< dense rows
  math::u32 format, rows, k;
};

}  // namespace wick::gpu
