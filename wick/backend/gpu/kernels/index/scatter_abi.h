#pragma once

// Arguments of the kernels that scatter elements, or add them, at places that ids name, and of the
// kernels that sort ids.
//
// A source element belongs to a line and has an index i along the dim. Its id names a place of the
// line in the output. If ids don't depend on some of the dims, these dims are columns: all
// elements of a row of columns go to one place.

#include "wick/backend/gpu/kernels/index/index_abi.h"

namespace wick::gpu {

/// scatter_few_BYTES, scatter_add_few_DTYPE: lines of a few source elements.
struct ScatterFewArgs {
  void* out;
  const void* source;
  StridedIndex<3> lines;  ///< source, output and ids
  u32 elems;              ///< source elements
  u32 n;                  ///< source elements of a line
  u32 along;              ///< 1: neighbouring threads take neighbours along the dim; 0: lines
  Divider inner;          ///< n if along, otherwise the number of lines
  i64 source_step, id_step;
  Ids ids;
};

/// The most source elements of a line for scatter_few_* and scatter_add_few_*.
inline constexpr u32 kScatterFew = 32;

/// scatter_lines_BYTES, scatter_add_rows_DTYPE, scatter_add_columns_DTYPE: lines with a word in
/// shared memory for each place.
struct ScatterLinesArgs {
  void* out;
  const void* source;
  StridedIndex<3> lines;  ///< source, output and ids
  u32 n;                  ///< source elements of a line
  u32 places;             ///< of a line
  u32 pitch;              ///< words, or sums, from one line to the next in shared memory
  u32 bits;               ///< places are below 2^bits
  u32 tile_log;           ///< scatter_lines: a thread block takes 2^tile_log lines
  u32 packed;             ///< 1: places are dense, lines aligned to 16 bytes (scatter_add_rows)
  i64 source_step, id_step;
  Ids ids;
};

/// The most threads of a thread block of scatter_lines_* and scatter_add_rows_*, and of
/// scatter_add_columns_*. A warp of the latter two takes one line.
inline constexpr u32 kScatterLineThreads = 256, kScatterColumnThreads = 512;
/// Source elements that a lane of scatter_add_rows_* and scatter_add_columns_* loads in advance.
inline constexpr u32 kScatterAhead = 8;
/// Words between the staged elements of two lines in scatter_add_columns_*.
inline constexpr u32 kScatterStage = 33;

/// Makes a key of each id: line · places + place, or `none`.
struct IdKeys {
  Ids ids;
  StridedIndex<3> lines;  ///< source, output and ids
  Divider n;              ///< ids of a line
  i64 id_step;
  i64 first;  ///< places [first, first + places) have keys
  u32 places;
  u32 none;     ///< above all keys
  u32 reports;  ///< 1: ids out of range are reported
};

/// sort_ids_block, make_id_keys, count_id_digits, scan_id_digits, place_ids: a stable sort of the
/// keys of ids, digit by digit. `order` has, for each key, the index of its id.
struct SortIdsArgs {
  u32 *keys, *order;            ///< sorted by the lower digits; place_ids: null for 0, 1, …
  u32 *keys_next, *order_next;  ///< sorted by this digit, too
  u32* counts;                  ///< [2^digit_bits, tiles]: number of keys; place of the first
  u32 total, tiles;
  u32 shift, digit_bits;
  u32 passes;  ///< of sort_ids_block, which exchanges the two pairs of arrays after each pass
  IdKeys from;
};

/// The most bits of a digit.
inline constexpr u32 kIdDigitBits = 8;
/// Threads of a thread block of sort_ids_block and scan_id_digits; those of the other kernels that
/// sort ids; keys of a thread of count_id_digits and place_ids.
inline constexpr u32 kSortIdsBlockThreads = 1024, kSortIdsThreads = 256, kSortIdsEach = 16;

/// scatter_segments_BYTES, scatter_add_segments_DTYPE, scatter_add_segments_vec_DTYPE: sorted keys.
/// Keys that are equal are a segment: the sources of one place, in order.
struct ScatterSegmentsArgs {
  void* out;
  const void* source;
  const u32 *keys, *order;
  StridedIndex<3> lines;    ///< source, output and ids; in units of columns
  StridedIndex<2> columns;  ///< output and source
  u32 total, none;
  u32 first;      ///< the first thread block's first key
  u32 width_log;  ///< 2^width_log threads take neighbouring columns of one key
  u32 tiles;      ///< thread blocks for the columns of a key
  u32 n;          ///< source elements of a line
  Divider places;
  i64 source_step, out_step;
};

/// Threads of a thread block of scatter_segments_* and scatter_add_segments_*.
inline constexpr u32 kSegmentThreads = 256;

}  // namespace wick::gpu
