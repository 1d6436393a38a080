#pragma once

// Arguments of the kernels that move elements: copies, casts, fills and sequences. Pointers point
// to elements of the dtype, or units of the size, in a kernel's name.

#include "wick/backend/gpu/kernels/layout/strided_index.h"

namespace wick::gpu {

/// copy_BYTES. The operands of the strided index are out and in.
struct CopyArgs {
  void* out;
  const void* in;
  StridedIndex<2> strided;
};

/// fill_BYTES: sets units to the first bytes of `value`.
struct FillArgs {
  void* out;
  u32 value[4];
  StridedIndex<1> strided;
};

/// Rows of n units, dense in the output and `step` apart in the input. The last dim of the strided
/// index counts a row's windows: one more than its bytes fill if rows may begin at any address.
struct Windows {
  i64 n = 0;
  i64 step = 0;
};
/// copy_windows_BYTES: writes rows in windows of 16 bytes.
struct CopyWindowsArgs {
  void* out;
  const void* in;
  StridedIndex<2> strided;
  Windows windows;
};

/// Matrices of rows × cols units whose rows are dense in the input and whose columns are dense in
/// the output. `outer` counts matrices.
struct Transposition {
  u32 rows = 0, cols = 0;
  i64 in_row = 0;      ///< units from one row to the next in the input
  i64 out_col = 0;     ///< units from one column to the next in the output
  Divider tiles_wide;  ///< divides by the tiles along a row
  Divider tiles;       ///< divides by the tiles of a matrix
  StridedIndex<2> outer;
};
/// transpose_BYTES and transpose_BYTES_together.
struct TransposeArgs {
  void* out;
  const void* in;
  Transposition shape;
};
/// Units along a side of a tile, for units of `bytes`, of which `together` share a word.
WICK_FN constexpr u32 tile_side(u32 bytes, u32 together) {
  return bytes > 4 ? 32 : together == 4 ? 128 : 64;
}

/// An image has `count` planes of n units each, `plane` units apart; the interleaved side has the
/// `count` units of one place side by side. `outer` counts images.
struct Interleave {
  u32 count = 0, n = 0;
  i64 plane = 0;
  u32 tile = 0;   ///< places of a thread block, a multiple of 16
  Divider tiles;  ///< divides by the tiles of an image
  Divider each;   ///< divides by `count`
  /// Divides by the number of aligned 16-byte windows that a tile's piece of a plane may touch.
  Divider windows;
  StridedIndex<2> outer;
};
/// deinterleave_BYTES and interleave_BYTES.
struct InterleaveArgs {
  void* out;
  const void* in;
  Interleave planes;
};
/// The most planes; the bytes of a tile, including the ends of its windows.
inline constexpr u32 kMostPlanes = 32, kInterleaveBytes = 16384;

/// cast_FROM_TO. The strided index counts vectors of map_vec() elements, and `rest` elements follow
/// the last vector.
struct CastArgs {
  void* out;
  const void* in;
  StridedIndex<2> strided;
  u32 rest;
};
/// cast_scalar_FROM: elements of any layout. to: the number of the dtype in dtypes.def.
struct CastScalarArgs {
  void* out;
  const void* in;
  StridedIndex<2> strided;
  u32 to;
};

/// Element i is start + i·step: in u64 if `whole` isn't 0, otherwise in f64 with real_start and
/// real_step.
struct Sequence {
  u64 first;  ///< index of the first element of this launch
  u64 start, step;
  double real_start, real_step;
  u64 whole;
};
/// iota_DTYPE.
struct IotaArgs {
  void* out;
  StridedIndex<1> strided;
  Sequence sequence;
};
/// iota_vectorized_DTYPE: dense elements, aligned to 16 bytes. packs: vectors of 16 bytes.
struct IotaVectorizedArgs {
  void* out;
  u32 packs;
  Sequence sequence;
};

}  // namespace wick::gpu
