#pragma once

// Arguments of the reduction kernels, and the constants of the reduction order and of the
// distribution of work that the host and the kernels share. Pointers point to elements of the dtype
// in a kernel's name.

#include "wick/backend/gpu/kernels/layout/locate_once.h"
#include "wick/math/orders.h"

namespace wick::gpu {

/// Elements of a chunk and its accumulators in the reduction order
/// (docs/design/numerics/reduce.md).
inline constexpr u32 kChunk = math::kSumChunk, kAccumulators = math::kSumAccumulators;
/// Neighbouring accumulators of a thread in sums.
inline constexpr u32 kSumEach = 4;
/// The most threads of a thread block: in kernels of rows and in combine.gpu; in sums of columns.
inline constexpr u32 kRowThreads = 256, kColumnThreads = 512;
/// Short rows of a thread: in sums; in min/max.
inline constexpr u32 kShortSums = 2, kShortMinMaxes = 4;
/// The most rows of columns for which a thread of min/max takes whole columns.
inline constexpr u32 kFewMinMaxes = 4;
/// Partial results that a thread of combine.gpu combines.
inline constexpr u32 kCombined = 16;
/// The most vectors of a row of min_max_short_rows; a thread takes each vector.
inline constexpr u32 kShortMinMaxPacks = 8;

/// Neighbouring columns of a thread of *_wide_columns, for elements of `bytes`.
WICK_FN constexpr u32 wide_columns(u32 bytes) { return bytes == 1 ? 8 : 16 / bytes; }

/// The elements that are reduced to one result, in their order. Dims are outermost first, strides
/// in elements; there are fewer than 2^53 elements.
struct Line {
  static constexpr u32 kMaxRank = 8;
  u32 rank = 0;
  // The divider of a size above 2^31 is 2^31, which no index below it reaches.
  Divider divider[kMaxRank];
  i64 size[kMaxRank] = {};
  double inverse[kMaxRank] = {};
  i64 stride[kMaxRank] = {};

  /// Offset of element `index`.
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

/// Results, each reduced in blocks of elements. Block b of result o gives partial result o · blocks
/// + b.
struct Rows {
  // Offsets of a result's first element, and of the result.
  StridedIndex<2> kept;
  u64 n = 0;           // elements of a result
  u64 block = 0;       // elements of each block but the last
  u32 blocks = 1;      // blocks of a result
  u32 width_log = 0;   // log2 of the threads of a chunk, or of a block without chunks
  u32 chunks_log = 0;  // log2 of the chunks of a block
  u32 packs = 0;       // not 0: four neighbouring elements may be loaded at once

  WICK_FN u64 total() const { return u64{kept.elems} * blocks; }
  /// Splits a number below total() into a result, which is returned, and a block.
  WICK_FN u32 split(u64 index, u32& which) const {
    which = 0;
    if (blocks == 1) return static_cast<u32>(index);
    const u32 result = static_cast<u32>(index) / blocks;
    which = static_cast<u32>(index) - result * blocks;
    return result;
  }
  /// Number of elements from `start` on, at most `most`.
  WICK_FN u32 count(u64 start, u64 most) const {
    const u64 left = n > start ? n - start : 0;
    return static_cast<u32>(left < most ? left : most);
  }
};

/// Lanes of the reduction order that a thread has of a row of at most 128 elements.
inline constexpr u32 kShortLanes = 4;
/// log2 of the threads of such a row, which has 2^width_log lanes.
WICK_FN constexpr u32 short_width_log(u32 width_log) { return width_log > 2 ? width_log - 2 : 0; }

/// Rows that are mapped to rows: norms and softmax.
struct NormRows {
  StridedIndex<2> kept;  // offsets of rows in the input and in the output
  i64 in_step = 1, out_step = 1;
  u64 n = 0;          // elements of a row
  u32 width_log = 0;  // log2 of the threads of a chunk
  // log2 of the chunks that are taken at once. A row of more chunks is taken in several rounds.
  u32 chunks_log = 0;
  // Whether four neighbouring elements may be loaded, and stored, at once.
  u32 in_packs = 0, out_packs = 0;

  /// Number of elements in the chunk that begins with element `start`.
  WICK_FN u32 count(u64 start) const {
    const u64 left = n > start ? n - start : 0;
    return static_cast<u32>(left < 4096 ? left : 4096);
  }
};

/// Results whose reduced dim isn't the innermost one. Neighbouring threads take neighbouring
/// results.
struct Columns {
  // Kept dims except the innermost: offsets of columns and of their results.
  StridedIndex<2> outer;
  u32 columns = 1;                // columns of each index of `outer`
  i64 in_step = 1, out_step = 1;  // from one column to the next
  u64 n = 0;                      // elements of a column
  u32 blocks = 1;                 // blocks of a column
  u64 block = 0;                  // elements of each block but the last
  u32 strips = 1;                 // thread blocks along a row of columns
  u32 lanes_log = 0;              // log2 of the threads that share a column
  u32 across_log = 0;             // log2 of the threads along the columns
};

/// Partial results [outer][blocks][columns] that are combined to one for each result.
struct Partials {
  StridedIndex<2> kept;  // the results, row-major: outer dims, then columns
  u32 columns = 1;
  u32 blocks = 1;
  u32 blocks_out = 1;  // blocks of the output; 1: the results are final
  u32 width_log = 0;   // log2 of the threads of each result
};

/// Types whose numbers are compared in pairs, where hardware can.
enum class TwoOf : u32 { none, f16, bf16 };

/// How the bits of a number become a key, an unsigned integer, of which the largest wins. NaN have
/// keys from `nan` on.
template <class K>
struct KeyRule {
  K fold = 0;  // for floats: the bits of the magnitude
  K mul = 1, add = 0;
  K nan = ~K(0);
  TwoOf two = TwoOf::none;
  u32 flip = 0;  // XORed to a pair of numbers; then the best pair is the largest
};

/// Where a result goes: the number, of `bytes` bytes, or its index as u32 if `index` isn't 0.
struct MinMaxTarget {
  void* out;
  u32 index, bytes;
};
/// Partial results of min/max: keys, and the indices of their elements.
template <class K>
struct MinMaxPartials {
  K* keys;
  u32* at;
};

/// REDUCER_rows_DTYPE and REDUCER_strided_DTYPE: store results, or partial results if `partials`
/// isn't null. The mean is the sum with a divisor other than 1.
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
/// combine_REDUCER_TYPE: combines partial results to results, or, if `next` isn't null, to fewer
/// partial results.
struct CombineSumsArgs {
  void *out, *next;
  const void* in;
  Partials partials;
  double divisor;
  StoredAs as;
};

/// min_max_rows_uBITS and min_max_strided_uBITS, with keys of type K: store results, or partial
/// results if partials.keys isn't null.
template <class K>
struct MinMaxRowsArgs {
  MinMaxTarget target;
  MinMaxPartials<K> partials;
  const void* in;
  Rows rows;
  Line line;
  KeyRule<K> rule;
};
/// min_max_short_rows_uBITS.
template <class K>
struct MinMaxShortRowsArgs {
  MinMaxTarget target;
  const void* in;
  Rows rows;
  KeyRule<K> rule;
};
/// min_max_columns_uBITS and min_max_wide_columns_uBITS.
template <class K>
struct MinMaxColumnsArgs {
  MinMaxTarget target;
  MinMaxPartials<K> partials;
  const void* in;
  Columns columns;
  Line line;
  KeyRule<K> rule;
};
/// min_max_few_columns_uBITS: columns of at most kFewMinMaxes rows, `step` elements apart.
template <class K>
struct MinMaxFewColumnsArgs {
  MinMaxTarget target;
  const void* in;
  Columns columns;
  i64 step;
  KeyRule<K> rule;
};
/// combine_min_max_uBITS: combines partial results to results.
template <class K>
struct CombineMinMaxArgs {
  MinMaxTarget target;
  MinMaxPartials<K> in;
  Partials partials;
  KeyRule<K> rule;
};

/// Elements of a vector of a thread that holds `steps` vectors of a row, for elements of `bytes`.
WICK_FN constexpr u32 held_each(u32 steps, u32 bytes) {
  return steps == 32 ? (bytes < 4 ? 4 / bytes : 1) : steps == 16 && bytes == 4 ? 2 : 4;
}
/// Elements of a vector if rows may begin at any address.
WICK_FN constexpr u32 held_each_anywhere(u32 steps, u32 bytes) {
  return steps == 32 ? held_each(steps, bytes) : 2;
}
/// Softmax with rows held in registers: threads of a thread block; chunks of each block of a
/// cluster; blocks of a cluster at most.
inline constexpr u32 kHeldThreads = 512, kClusterChunks = 4, kMostClusterBlocks = 8;

}  // namespace wick::gpu
