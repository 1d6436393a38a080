#pragma once

// Arguments of the sorting kernels, and the constants that the host and the kernels share.
// `elements` are of the width in a kernel's name.

#include "wick/backend/gpu/kernels/layout/strided_index.h"

namespace wick::gpu {

/// Threads of a thread block of sort_short, and the longest rows that it takes.
inline constexpr u32 kSortShortThreads = 256, kSortShort = 128;
/// Elements of a thread; the least and the most threads of a thread block of sort_block, and the
/// longest rows that it takes.
inline constexpr u32 kSortEach = 8, kSortLeastThreads = 128, kSortMostThreads = 1024;
inline constexpr u32 kSortBlock = kSortEach * kSortMostThreads;
/// Threads of the other kernels, and the elements of a chunk of a long row.
inline constexpr u32 kSortThreads = 512, kSortChunk = kSortEach * kSortThreads;
/// Values of a digit.
inline constexpr u32 kSortDigits = 256;
/// The most elements of a row that sort_select keeps, a quarter of a chunk.
inline constexpr u32 kSortMostSelected = kSortChunk / 4;

/// Shared memory of sort_block and sort_scatter: counts of digits, which later hold places, and a
/// word of each element's key.
WICK_FN constexpr u32 sort_shared_bytes(u32 threads) {
  return threads / 32 * kSortDigits * 2 + threads * kSortEach * 4;
}

/// How the bits of an element become a key: an unsigned number of the same width whose order is the
/// wanted one. NaN become the largest key.
struct SortKeys {
  u64 sign;      // the sign bit; 0 for unsigned integers
  u64 most;      // the largest magnitude that isn't NaN
  u64 positive;  // XORed to elements without the sign bit
  u64 negative;  // XORed to elements with the sign bit
  u64 turn;      // all bits for descending order, otherwise 0
};

/// The elements of rows, or the keys and places that another kernel has chosen from them. Steps are
/// in elements.
struct SortInput {
  const void* elements;
  const void* keys;   // not null: keys, [rows, n]
  const u32* places;  // their places in the rows, [rows, n]
  i64 step;
  u32 n;
};
/// Where the first `keep` elements go, and their places. Either may be null.
struct SortOutput {
  void* values;
  u32* indices;
  i64 values_step, indices_step;
  u32 keep;
};
/// Keys and their places, [rows, n].
struct SortMoved {
  void* keys;
  u32* places;
};

/// sort_short_uBITS: rows of at most kSortShort elements, 2^width_log threads for each.
struct SortShortArgs {
  SortInput in;
  SortOutput out;
  SortKeys keys;
  StridedIndex<3> rows;  // offsets of a row in the input, the values and the indices
  u32 width_log;
  u32 across;  // not 0: neighbouring threads move elements of neighbouring rows
};
/// sort_block_uBITS: rows of at most kSortBlock elements, a thread block for each.
struct SortBlockArgs {
  SortInput in;
  SortOutput out;
  SortKeys keys;
  StridedIndex<3> rows;
  u32 each;  // elements of a thread, at most kSortEach
};
/// sort_select_uBITS: the first `keep` keys of each chunk, in the order of their places.
struct SortSelectArgs {
  SortInput in;
  SortMoved out;
  SortKeys keys;
  StridedIndex<3> rows;
  u32 chunks, keep;
  u32 n_out;  // keys that remain of a row
};
/// sort_count_uBITS: how often each value of the digit at `shift` occurs in each chunk,
/// [rows, digits, chunks].
struct SortCountArgs {
  SortInput in;
  u32* counts;
  SortKeys keys;
  StridedIndex<3> rows;
  u32 chunks, shift;
};
/// sort_offsets: counts of chunks become the counts of the chunks before each, and their totals
/// [rows, digits].
struct SortOffsetsArgs {
  u32 *counts, *totals;
  u32 chunks;
  u64 lines;  // rows · digits
};
/// sort_scatter_uBITS: moves keys to where their digit at `shift` belongs. The last pass writes
/// `out`, the others `moved`.
struct SortScatterArgs {
  SortInput in;
  SortMoved moved;
  SortOutput out;
  const u32 *counts, *totals;
  SortKeys keys;
  StridedIndex<3> rows;
  u32 chunks, shift, last;
};

}  // namespace wick::gpu
