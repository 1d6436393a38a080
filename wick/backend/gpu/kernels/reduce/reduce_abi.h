#pragma once

// Arguments of the kernels of reductions, and what host and kernels agree on about the order and
// the spread of their work. Pointers are to elements of the dtype that a kernel is named after.

#include "wick/backend/gpu/kernels/layout/strided_index.h"

namespace wick::gpu {

/// Elements of a chunk of the order (docs/design/numerics/reduce.md), and its accumulators.
inline constexpr u32 kChunk = 4096, kAccumulators = 128;
/// Neighbouring accumulators of a thread of sums.
inline constexpr u32 kSumEach = 4;
/// Threads of a thread block at most: of rows and of combine.gpu; of sums of columns.
inline constexpr u32 kRowThreads = 256, kColumnThreads = 512;
/// Short rows of a thread: of sums; of the best.
inline constexpr u32 kShortSums = 2, kShortMinMaxes = 4;
/// Rows of columns that a thread of the best takes at once, where there are so few.
inline constexpr u32 kFewMinMaxes = 4;
/// Partial results that a thread of combine.gpu takes.
inline constexpr u32 kCombined = 16;
/// Packs of a row, a thread each, that min_max_short_rows takes at most.
inline constexpr u32 kShortMinMaxPacks = 8;

/// Neighbouring columns of a thread of *_wide_columns, of so many bytes an element.
WICK_FN constexpr u32 wide_columns(u32 bytes) { return bytes == 1 ? 8 : 16 / bytes; }

/// Where an index lies in every operand: Nest::locate in little code, for once a thread.
template <u32 N>
WICK_FN void locate_once(const StridedIndex<N>& strided, u32 index, i64 (&at)[N]) {
  for (u32 k = 0; k < N; ++k) at[k] = 0;
#if defined(__CUDACC__) || defined(__HIP__)
#pragma unroll 1
#endif
  for (u32 d = strided.rank; d > 0; --d) {
    const u32 outer = d == 1 ? 0 : strided.size[d - 1].divide(index);
    const i64 here = index - outer * strided.size[d - 1].by;
    for (u32 k = 0; k < N; ++k) at[k] += here * strided.stride[k][d - 1];
    index = outer;
  }
}

/// The elements that become one result, in their order: dims outermost first, strides in elements.
/// Any number of elements below 2^53.
struct Line {
  static constexpr u32 kMaxRank = 8;
  u32 rank = 0;
  Divider divider[kMaxRank];  // of a size above 2^31: of 2^31, which no index below it reaches
  i64 size[kMaxRank] = {};
  double inverse[kMaxRank] = {};
  i64 stride[kMaxRank] = {};

  /// Where element `index` lies.
  WICK_FN i64 locate(u64 index) const {
    i64 at = 0;
    u32 d = rank;
#if defined(__CUDACC__) || defined(__HIP__)
#pragma unroll 1
#endif
    for (; d > 1; --d) {
      const u64 outer = index >> 31 == 0 ? divider[d - 1].divide(static_cast<u32>(index))
                                         : divide_long(index, d - 1);
      at += (static_cast<i64>(index) - static_cast<i64>(outer) * size[d - 1]) * stride[d - 1];
      index = outer;
    }
    return at + static_cast<i64>(index) * stride[0];
  }

 private:
  WICK_FN u64 divide_long(u64 index, u32 d) const {
    const i64 near = static_cast<i64>(static_cast<double>(index) * inverse[d]);
    const i64 rest = static_cast<i64>(index) - near * size[d];
    return static_cast<u64>(near + (rest < 0 ? -1 : rest >= size[d] ? 1 : 0));
  }
};

/// Results that are reduced a block of elements at a time: result o, block b gives partial result
/// o · blocks + b.
struct Rows {
  StridedIndex<2> kept;  // where a result's elements start, and where the result goes
  u64 n = 0;             // elements of a result
  u64 block = 0;         // elements of each block but the last
  u32 blocks = 1;        // of a result
  u32 width_log = 0;     // threads for a chunk; where there are no chunks, for a block
  u32 chunks_log = 0;    // chunks of a block
  u32 packs = 0;         // neighbouring fours may be loaded at once

  WICK_FN u64 total() const { return u64{kept.elems} * blocks; }
  /// Which result and block a number below `total` means. Gives the result.
  WICK_FN u32 split(u64 index, u32& which) const {
    which = 0;
    if (blocks == 1) return static_cast<u32>(index);
    const u32 result = static_cast<u32>(index) / blocks;
    which = static_cast<u32>(index) - result * blocks;
    return result;
  }
  /// Elements from `start` on, `most` at most.
  WICK_FN u32 count(u64 start, u64 most) const {
    const u64 left = n > start ? n - start : 0;
    return static_cast<u32>(left < most ? left : most);
  }
};

/// Lanes of the order that a thread has of a row of at most 128 elements; and the threads that such
/// a row of 2^width_log lanes takes.
inline constexpr u32 kShortLanes = 4;
WICK_FN constexpr u32 short_width_log(u32 width_log) { return width_log > 2 ? width_log - 2 : 0; }

/// Rows that become rows: norms and softmax.
struct NormRows {
  StridedIndex<2> kept;  // where rows start in the input, and in the output
  i64 in_step = 1, out_step = 1;
  u64 n = 0;           // elements of a row
  u32 width_log = 0;   // threads for a chunk
  u32 chunks_log = 0;  // chunks side by side; a row of more is taken so many at a time
  // Whether fours of elements may be loaded, and stored, at once.
  u32 in_packs = 0, out_packs = 0;

  /// Elements of the chunk that begins with element `start`.
  WICK_FN u32 count(u64 start) const {
    const u64 left = n > start ? n - start : 0;
    return static_cast<u32>(left < 4096 ? left : 4096);
  }
};

/// Results whose elements lie across: neighbouring threads take neighbouring results.
struct Columns {
  StridedIndex<2>
      outer;        // kept dims but the innermost: where columns start, where their results go
  u32 columns = 1;  // of each of them
  i64 in_step = 1, out_step = 1;  // from a column to the next
  u64 n = 0;                      // elements of a column
  u32 blocks = 1;                 // of a column
  u64 block = 0;                  // elements of each but the last
  u32 strips = 1;                 // thread blocks side by side
  u32 lanes_log = 0;              // threads that share a column
  u32 across_log = 0;             // threads side by side
};

/// Partial results, [outer][blocks][columns], on their way to one of each result.
struct Partials {
  StridedIndex<2> kept;  // the results, row-major: outer dims, then columns
  u32 columns = 1;
  u32 blocks = 1;
  u32 blocks_out = 1;  // 1: results
  u32 width_log = 0;   // threads for each
};

/// Types whose numbers hardware may compare by twos.
enum class TwoOf : u32 { none, f16, bf16 };

/// How the bits of a number become a key by which numbers are compared, as unsigned integers: the
/// largest key is the best. NaN have keys from `nan` on.
template <class K>
struct KeyRule {
  K fold = 0;  // of floats: the magnitude's bits
  K mul = 1, add = 0;
  K nan = ~K(0);
  TwoOf two = TwoOf::none;
  u32 flip = 0;  // of two numbers the bits that make the best the largest
};

/// Where the best goes: the number, of `bytes`, or its index in u32.
struct MinMaxTarget {
  void* out;
  u32 index, bytes;
};
/// Partial results of the best: keys, and where they were.
template <class K>
struct MinMaxPartials {
  K* keys;
  u32* at;
};

/// REDUCER_rows_DTYPE and REDUCER_lines_DTYPE: results, or partial results where `parts` isn't
/// null. The mean is the sum with a divisor other than 1.
struct SumRowsArgs {
  void *out, *partials;
  const void* in;
  Rows rows;
  Line line;
  double divisor;
};
/// REDUCER_columns_DTYPE and REDUCER_wide_columns_DTYPE.
struct SumColumnsArgs {
  void *out, *partials;
  const void* in;
  Columns columns;
  Line line;
  double divisor;
};

/// The dtype that combine.gpu stores: that of the partial results, or a narrower one.
enum class StoredAs : u32 { partial, f16, bf16, f8e4m3, u16, u8 };
/// join_REDUCER_TYPE: partial results to results, or, where `next` isn't null, to fewer partial
/// results.
struct CombineSumsArgs {
  void *out, *next;
  const void* in;
  Partials partials;
  double divisor;
  StoredAs as;
};

/// best_rows_uBITS and best_lines_uBITS: with keys of type K, results or, where parts.keys isn't
/// null, partial results.
template <class K>
struct MinMaxRowsArgs {
  MinMaxTarget target;
  MinMaxPartials<K> partials;
  const void* in;
  Rows rows;
  Line line;
  KeyRule<K> rule;
};
/// best_short_rows_uBITS.
template <class K>
struct MinMaxShortRowsArgs {
  MinMaxTarget target;
  const void* in;
  Rows rows;
  KeyRule<K> rule;
};
/// best_columns_uBITS and best_wide_columns_uBITS.
template <class K>
struct MinMaxColumnsArgs {
  MinMaxTarget target;
  MinMaxPartials<K> partials;
  const void* in;
  Columns columns;
  Line line;
  KeyRule<K> rule;
};
/// best_few_columns_uBITS: columns of up to kFewMinMaxes rows, `step` apart.
template <class K>
struct MinMaxFewColumnsArgs {
  MinMaxTarget target;
  const void* in;
  Columns columns;
  i64 step;
  KeyRule<K> rule;
};
/// join_best_uBITS: partial results to results.
template <class K>
struct CombineMinMaxArgs {
  MinMaxTarget target;
  MinMaxPartials<K> in;
  Partials partials;
  KeyRule<K> rule;
};

/// Neighbouring elements of a thread that holds some packs of a row, by how many packs and by the
/// bytes of an element.
WICK_FN constexpr u32 held_each(u32 steps, u32 bytes) {
  return steps == 32 ? (bytes < 4 ? 4 / bytes : 1) : steps == 16 && bytes == 4 ? 2 : 4;
}
/// The same where rows begin anywhere.
WICK_FN constexpr u32 held_each_anywhere(u32 steps, u32 bytes) {
  return steps == 32 ? held_each(steps, bytes) : 2;
}
/// Threads of a thread block that holds rows of softmax; chunks of each of the thread blocks that
/// share one, and how many may.
inline constexpr u32 kHeldThreads = 512, kClusterChunks = 4, kMostClusterBlocks = 8;

}  // namespace wick::gpu
