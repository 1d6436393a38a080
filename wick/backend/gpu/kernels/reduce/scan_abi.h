#pragma once

// Arguments of the kernels of cumulative sums and products. Pointers to elements point to the dtype
// in a kernel's name, and pointers to totals to the type in which its elements are accumulated.

#include "wick/backend/gpu/kernels/layout/strided_index.h"
#include "wick/math/orders.h"

namespace wick::gpu {

/// Threads of a thread block, and log2 of that number. A thread scans one group.
inline constexpr u32 kScanThreadsLog = 8, kScanThreads = 1u << kScanThreadsLog;
/// Rows that a thread block of *_columns scans at once.
inline constexpr u32 kScanDown = 256;
/// Columns of a thread block of *_columns_DTYPE, for elements of `bytes`; each column has 16
/// threads. On AMD 32 columns of 4 bytes fill a cache line. Products, and elements of one byte,
/// would take more registers than some devices have for so many threads.
WICK_FN constexpr u32 scan_across(bool amd, bool sums, u32 bytes) {
  return amd && sums && (bytes == 4 || bytes == 2) ? 32 : 16;
}
/// The largest total of a chunk, in bytes: an f64 with an i64 exponent.
inline constexpr u32 kScanTotalBytes = 16;

/// OP_rows_DTYPE: a row takes 2^width_log threads for each chunk. In rows of several chunks, each
/// takes a thread block. Totals are [rows, chunks].
struct ScanRowsArgs {
  void* out;
  const void* in;
  void* totals;          // not null: stores the totals of chunks and nothing else
  const void* before;    // what precedes each chunk; null if rows have one chunk
  StridedIndex<2> kept;  // offsets of a row in the input and in the output
  i64 in_step, out_step;
  u64 n;  // elements of a row
  u32 chunks;
  u32 width_log;
};

/// OP_columns_DTYPE: a thread block takes a chunk of a strip of neighbouring columns. Totals are
/// [outer, columns, chunks].
struct ScanColumnsArgs {
  void* out;
  const void* in;
  void* totals;  // as in ScanRowsArgs
  const void* before;
  StridedIndex<2> outer;  // offsets of the first column in the input and in the output
  u32 columns;            // columns of each index of `outer`
  u32 strips;             // strips of the columns
  i64 in_next, out_next;  // from one column to the next
  i64 in_step, out_step;
  u64 n;  // elements of a column
  u32 chunks;
};

/// OP_carries_TYPE: totals of chunks [rows, chunks] become what precedes each chunk.
struct ScanCarriesArgs {
  void* totals;
  u32 rows, chunks;
};

}  // namespace wick::gpu
