#pragma once

// Arguments of the kernels that move elements: copies, casts, fills and sequences. Pointers are to
// elements of the dtype or unit that a kernel is named after.

#include "wick/backend/gpu/kernels/layout/strided_index.h"

namespace wick::gpu {

/// copy_BYTES: units of the nest's two operands, out and in.
struct CopyArgs {
  void* out;
  const void* in;
  StridedIndex<2> strided;
};

/// fill_BYTES: units that hold the first bytes of `value`.
struct FillArgs {
  void* out;
  u32 value[4];
  StridedIndex<1> strided;
};

/// Rows of n units, dense in the output, `step` apart in the input. The nest's last dim counts a
/// row's windows: one more than its bytes fill, where rows begin anywhere.
struct Windows {
  i64 n = 0;
  i64 step = 0;
};
/// copy_windows_BYTES: rows by 16 bytes of the output at a time.
struct CopyWindowsArgs {
  void* out;
  const void* in;
  StridedIndex<2> strided;
  Windows windows;
};

/// Matrices of rows × cols units: dense along columns in the input, along rows in the output.
/// `outer` counts matrices.
struct Transposition {
  u32 rows = 0, cols = 0;
  i64 in_row = 0;      ///< units from one row to the next in the input
  i64 out_col = 0;     ///< units from one column to the next in the output
  Divider tiles_wide;  ///< tiles along columns
  Divider tiles;       ///< of a matrix
  StridedIndex<2> outer;
};
/// transpose_BYTES and transpose_BYTES_together.
struct TransposeArgs {
  void* out;
  const void* in;
  Transposition shape;
};
/// Units along either side of a tile, of so many bytes each, of which `together` share a word.
WICK_FN constexpr u32 tile_side(u32 bytes, u32 together) {
  return bytes > 4 ? 32 : together == 4 ? 128 : 64;
}

/// Some planes of n units each, `plane` apart, whose units lie side by side on the other side.
/// `outer` counts such images.
struct Interleave {
  u32 count = 0, n = 0;
  i64 plane = 0;
  u32 tile = 0;     ///< places that a thread block has, a multiple of 16
  Divider tiles;    ///< of an image
  Divider each;     ///< by `count`
  Divider windows;  ///< by those of 16 bytes that a tile's part of a plane may touch
  StridedIndex<2> outer;
};
/// split_planes_BYTES and join_planes_BYTES.
struct PlanesArgs {
  void* out;
  const void* in;
  Interleave planes;
};
/// Most planes; bytes of a tile, the windows' ends included.
inline constexpr u32 kMostPlanes = 32, kInterleaveBytes = 16384;

/// cast_FROM_TO: packs of map_vec() elements, and `rest` elements behind them.
struct CastArgs {
  void* out;
  const void* in;
  StridedIndex<2> strided;
  u32 rest;
};
/// cast_singles_FROM: elements anywhere, to the dtype of this number.
struct CastScalarArgs {
  void* out;
  const void* in;
  StridedIndex<2> strided;
  u32 to;
};

/// Element i is start + i·step, in integers where `whole` isn't 0, else in f64.
struct Sequence {
  u64 first;  ///< i of the first element
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
/// iota_packs_DTYPE: dense elements at a multiple of 16 bytes, 16 bytes at a time.
struct IotaPacksArgs {
  void* out;
  u32 packs;
  Sequence sequence;
};

}  // namespace wick::gpu
