#pragma once

// Arguments of the convolution kernels, and the sizes that the host and the kernels share.

#include "wick/backend/gpu/kernels/layout/strided_index.h"

namespace wick::gpu {

/// One axis (h or w) of a convolution as a gemm: out[m, n] = Σ_k a[m, k] · b[n, k]. b is an image.
/// A row n of b and a term k each have a digit along the axis; b's element lies at position
/// start + row · row_step + term · term_step. Positions outside the image are zeros.
struct ConvAxis {
  u32 rows = 1, terms = 1;  ///< sizes of the digits
  i64 size = 1;             ///< positions of the image
  i64 start = 0, row_step = 0, term_step = 0;
  i64 b_step = 0;    ///< elements between adjacent positions of b
  i64 a_step = 0;    ///< elements of a between adjacent terms
  i64 out_step = 0;  ///< elements of out between adjacent rows
};

/// The phases of conv2d_input along one axis. Outputs of a phase are `stride` apart, so the same
/// taps reach them, and these taps have a constant distance. Phase f has the outputs f, f + stride,
/// … and the taps whose distance from f + padding is a multiple of the stride.
struct ConvPhases {
  u32 count = 0;  ///< min(stride, outputs); 0: the axis has no phases and is complete
  u32 outputs = 0, taps = 0;
  u32 tap_step = 1;  ///< between the taps of a phase: stride / gcd(stride, dilation)
  i64 stride = 1, padding = 0, dilation = 1;
  i64 a_tap = 0;    ///< elements of a between adjacent taps
  i64 out_tap = 0;  ///< elements of out between adjacent outputs
};

/// A convolution as a batch of gemms, one for each group, slab of terms and phase (conv2d_input).
/// Strides count elements.
///
///                  m  rows n    terms k   a         b         out
///   conv2d         o  b, y, x   c, i, j   w         x         out
///   conv2d_input   c  b, y, x   o, i, j   w         grad_out  grad_x
///   conv2d_weight  o  c, i, j   b, y, x   grad_out  x         grad_w
///
/// Packed operands of conv2d and conv2d_input have their channels innermost, in pieces of eight
/// elements of 16 bits; missing channels of the last piece are zeros. Terms then are pieces, in the
/// order i, j, c, and strides of a and b count pieces.
struct ConvGemm {
  u32 m = 0;
  u32 outer_rows = 0, outer_terms = 0;  ///< sizes of the first digits of n and of k
  u32 most_rows = 0;                    ///< the most rows of b that a gemm of the batch has
  u32 slabs = 1, slab_terms = ~0u;      ///< slabs of each group, terms of a slab
  u32 first = 0;                        ///< the group and slab that the first thread blocks take
  u32 first_phase = 0, phases_at_once = 1;  ///< the phases of both axes that a launch takes
  u32 a_along_k = 0, b_along_k = 0;  ///< not 0: adjacent threads load adjacent terms, not rows
  u32 packed = 0;                    ///< not 0: a and b are packed
  u32 partial = 0;                   ///< not 0: out receives sums, not rounded to its dtype
  i64 a_row = 0, a_outer = 0;
  i64 b_row = 0, b_outer = 0;
  i64 out_m = 0, out_outer = 0;
  i64 a_group = 0, b_group = 0, out_group = 0;
  i64 out_slab = 0;
  ConvAxis axis[2];      // h, w
  ConvPhases phases[2];  // h, w
};

/// conv_DTYPE of conv.gpu, conv_DTYPE_TILE and conv_packed_DTYPE_TILE of conv_mma.gpu,
/// conv_DTYPE_ROWS and conv_pair_DTYPE of conv_wgmma.gpu, conv_f32_ROWS and conv_f32_weight_ROWS of
/// conv_f32.gpu, conv_depthwise_DTYPE_CHANNELS and conv_depthwise_weight_DTYPE of
/// conv_depthwise.gpu.
struct ConvArgs {
  void* out;
  const void *a, *b;
  ConvGemm gemm;
};

/// Elements of a piece of a packed operand.
inline constexpr u32 kConvPiece = 8;
/// conv_wgmma.gpu: threads and columns of conv_DTYPE_ROWS; bytes of dynamic shared memory of a
/// tile. A stage has 128 bytes of each row of a and b; the first one is aligned to 1 KiB.
inline constexpr u32 kConvWgmmaStages = 4;
WICK_FN constexpr u32 conv_wgmma_threads(u32 rows) { return 2 * rows; }
WICK_FN constexpr u32 conv_wgmma_columns(u32 rows) { return 2 * rows; }
WICK_FN constexpr u32 conv_wgmma_bytes(u32 rows, u32 columns) {
  return 1024 + kConvWgmmaStages * (rows + columns) * 128;
}

/// conv_f32.gpu: columns of a tile; threads of a thread block whose tile has `rows` rows.
inline constexpr u32 kConvF32Columns = 256;
WICK_FN constexpr u32 conv_f32_threads(u32 rows) { return 2 * rows; }

/// Terms of the table that a thread block computes at once (ConvTerms).
inline constexpr u32 kTermsAtOnce = 256;

/// conv_depthwise.gpu: threads of a thread block.
inline constexpr u32 kDepthwiseThreads = 256;
/// The most rows of a (CHANNELS) that a thread takes.
inline constexpr u32 kDepthwiseMost = 4;
/// Rows of b that a thread takes together with `channels` rows of a.
WICK_FN constexpr u32 depthwise_each(u32 channels) { return channels == 1 ? 4 : 2; }
/// Rows of b that a thread block of conv_depthwise_weight takes.
inline constexpr u32 kDepthwiseTaps = 9;

/// conv_planes_DTYPE_SIDE_STRIDE. Planes are counted over the batch and the output channels; a
/// thread block takes a tile of each of `planes` planes, from `first` to before `end`. Strides
/// count elements.
struct ConvPlanesArgs {
  void* out;
  const void *in, *weights;
  u32 first, end, planes;
  u32 channels, multiplier;  ///< output channels; those for each input channel
  u32 in_h, in_w, out_h, out_w;
  math::i32 pad_y, pad_x;
  u32 tile_h, tile_w;    ///< outputs of a tile, multiples of kPlaneRows and kPlaneColumns
  u32 tiles_y, tiles_x;  ///< of a plane
  u32 in_rows, pitch;    ///< of a tile's input in shared memory; pitch: a multiple of 4
  u32 vectors;           ///< not 0: kPlaneColumns outputs are stored as one vector
  i64 in_batch, in_channel, in_row, in_column;
  i64 out_batch, out_channel, out_row, out_column;
  i64 weight_out, weight_row, weight_column;
};
/// conv_planes.gpu: threads of a thread block; rows and columns of outputs that a thread computes.
inline constexpr u32 kPlaneThreads = 256, kPlaneRows = 4, kPlaneColumns = 4;

/// conv_combine_DTYPE: out = Σ of the sums of all slabs, in the order of the slabs. `elems` is the
/// number of elements of a slab; `first` is the first one that the launch takes.
struct ConvCombineArgs {
  void* out;
  const void* sums;
  StridedIndex<1> elements;
  u64 elems, first;
  u32 slabs;
};
inline constexpr u32 kCombineThreads = 256;

}  // namespace wick::gpu
