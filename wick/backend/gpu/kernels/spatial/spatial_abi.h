#pragma once

// Arguments of the kernels of pools and resampling. Pointers point to elements of the dtype in a
// kernel's name; strides count elements. Pairs of numbers belong to h and w.

#include "wick/backend/gpu/kernels/spatial/planes.h"

namespace wick::gpu {

/// The windows of a pool. Window i of an axis begins at element i · stride − padding.
struct PoolWindows {
  i64 in_size[2], out_size[2];
  i64 kernel[2], stride[2], padding[2];
  Divider steps[2];   ///< of the strides; unused by kernels with 64-bit positions
  u32 count_padding;  ///< avg: whether padding counts as elements
};

/// Sizes and positions for which kernels use 32-bit numbers.
inline constexpr i64 kMostPosition = i64{1} << 29;
/// The most threads of a thread block; threads of a thread block of *_DTYPE_long, which takes one
/// window.
inline constexpr u32 kPoolThreads = 256, kPoolLongThreads = 128;

/// max_pool_DTYPE_SIZE, avg_pool_DTYPE_SIZE, and max_index_DTYPE_SIZE, which stores the index of
/// the first largest element of each window within its plane, as u32, or as u64 if `wide` isn't 0.
/// SIZE is the most rows and columns of a window, `any`, or `long` for windows that a thread block
/// takes. The operands of `part` are output and input.
struct PoolArgs {
  void* out;
  const void* in;
  PlanePart<2> part;
  PoolWindows windows;
  i64 out_stride[2], in_stride[2];
  u32 wide;
};

/// Tiles of dense planes, whose tensors begin at multiples of 16 bytes and have fewer than 2^30
/// elements. A tile has `planes` whole planes, or `rows` output rows of one plane.
struct PlaneTiles {
  u32 all_planes, planes;
  Divider per_plane;  ///< tiles of a plane; 1 for whole planes
  u32 rows;
  Divider out_rows;  ///< of a plane
  u32 in_rows, in_columns, out_columns;
  Divider pitch;   ///< threads of an output row
  u32 results_at;  ///< where results lie in dynamic shared memory, in units of 16 bytes
};

/// {max_pool,avg_pool,max_index}_tiles_DTYPE_SIZE: windows of at most SIZE (2 or 3) rows and
/// columns. Strides of windows are at most 3, and results have 32-bit indices.
struct PoolTilesArgs {
  void* out;
  const void* in;
  PlaneTiles tiles;
  PoolWindows windows;
};

/// max_pool_grad_DTYPE and avg_pool_grad_DTYPE with 32-bit positions, *_wide with 64-bit positions.
/// The operands of `part` are grad_in, grad_out and `index`, the result of max_index_DTYPE_SIZE.
struct PoolGradArgs {
  void* grad_in;
  const void *grad_out, *index;
  PlanePart<3> part;
  PoolWindows windows;
  i64 grad_in_stride[2], grad_out_stride[2];
};

/// Where outputs lie between inputs. scale: inputs per output. align: align_corners.
struct Resampling {
  double scale[2];
  i64 in_size[2];
  u32 align;
};

/// The most threads of a thread block, and the columns and the most rows that a thread computes.
inline constexpr u32 kResampleThreads = 256, kResampleColumns = 4, kResampleRows = 8;

/// upsample_nearest_BYTES and upsample_bilinear_DTYPE. The operands of `part` are output and input.
/// Threads take columns `quarter` apart, and `each` neighbouring rows.
struct ResampleArgs {
  void* out;
  const void* in;
  PlanePart<2> part;
  Resampling resampling;
  i64 out_stride[2], in_stride[2];
  u32 quarter, each;
};

/// upsample_nearest_tiles_BYTES. The dynamic shared memory has a u32 for each output row of a tile
/// of one plane, or of a plane, and one for each output column, in front of the results and behind
/// the input.
struct ResampleTilesArgs {
  void* out;
  const void* in;
  PlaneTiles tiles;
  Resampling resampling;
  u32 places_at;  ///< where these numbers lie in dynamic shared memory, in units of 16 bytes
};

/// An output of an axis: the last input at or before its position, and the weight of the next input
/// as the bits of the compute type.
struct AxisEntry {
  i64 low;
  u64 part;
};
/// Tables of an axis for gradients. `entries` has an entry for each output. `starts` has, for each
/// input and for the end of the axis, the first output whose position is at or behind it.
struct AxisTables {
  AxisEntry* entries;
  i64* starts;
};

/// resample_axes: fills in the tables of both axes. nearest: not 0 for upsample_nearest. f64: not 0
/// if the compute type is f64.
struct ResampleAxesArgs {
  AxisTables axes[2];
  Resampling resampling;
  i64 out_size[2];
  u32 nearest, f64;
};

/// upsample_nearest_grad_DTYPE and upsample_bilinear_grad_DTYPE. The operands of `part` are grad_in
/// and grad_out.
struct ResampleGradArgs {
  void* grad_in;
  const void* grad_out;
  PlanePart<2> part;
  AxisTables axes[2];
  i64 in_size[2];
  i64 grad_in_stride[2], grad_out_stride[2];
};

}  // namespace wick::gpu
