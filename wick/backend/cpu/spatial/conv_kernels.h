#pragma once

#include <cstdint>

#include "wick/backend/cpu/isa.h"
#include "wick/backend/cpu/linear/gemm.h"
#include "wick/math/orders.h"
#include "wick/op/op.h"

namespace wick::cpu {

// What convolutions do with a slab (patches.h). Offsets and strides count elements of the compute
// type; a line is 64 bytes. Kernels may read a line behind what they use.

/// A piece of a panel of pixels: neighbours in the slab, from `lane` on to the next piece or the
/// end.
struct PanelPiece {
  int64_t base;
  int64_t lane;
};

/// Rows of an image on their way into a slab: zeros, elements, zeros, in the compute type.
struct FillArgs {
  const void* from;  ///< the first element of the first row
  int64_t row_stride, stride;
  int64_t rows, left, count, right;
  void* to;
  int64_t pitch;
};

/// Rows of sums on their way into the result, rounded to the dtype.
struct StoreArgs {
  const void* from;
  int64_t pitch;
  int64_t rows, count;
  void* to;
  int64_t row_stride, stride;
};

/// Panels [panel][k][line] of A or B, of pixels: panel p consists of pieces [first[p], first[p +
/// 1]).
struct PanelArgs {
  int64_t line;  ///< elements: 4, 8 or 16
  const void* slab;
  const int64_t* offsets;  ///< of k terms, or of 2k
  int64_t k;
  bool half;  ///< pairs: the last one has only a first term; the second is 0
  const PanelPiece* pieces;
  const int64_t* first;
  int64_t panels_count;
  void* panels;
  int64_t panel_stride;  ///< room for k + 1 lines
};

/// out[r][j] = Σ_t w[r][t] · slab[offsets[t] + j] for few rows r of weights and the pixels j of a
/// plot, rows a pitch apart in both, in the order of t. Writes whole lines.
struct DirectArgs {
  int64_t rows, k;
  int64_t plot_rows, cols, pitch;  ///< of the plot in the slab
  const void* w;
  int64_t w_stride;
  const void* slab;
  const int64_t* offsets;
  void* out;
  int64_t out_stride;
  bool resume;  ///< continue the chains that out holds; else start from 0
};

/// Rows of weights of f32 as rows of terms: to[r][i · count + j] = from[starts[r] + at(i) + j ·
/// stride] for j in [0, count), at(i) = i / lines · channel_stride + i % lines · line_stride.
struct FilterArgs {
  const float* from;
  const int64_t* starts;
  int64_t rows, runs, lines, channel_stride, line_stride;
  int64_t count, stride;
  float* to;
  int64_t to_stride;
};

/// sums[t][lane] += g[r][j] · slab[offsets[t] + r · pitch + j] for rows r and j in [0, n), one row
/// after another, j to lane j mod 16.
struct DotArgs {
  int64_t n, k, rows;
  const void* g;
  int64_t g_stride;  ///< elements between its rows
  const void* slab;
  int64_t pitch;
  const int64_t* offsets;
  void* sums;  ///< [k][16]
};
using math::kDotLanes;

/// What is null no convolution needs.
struct ConvKernels {
  // By dtype.
  void (*fill[kRealDTypeCount])(const FillArgs&);
  void (*store[kRealDTypeCount])(const StoreArgs&);
  /// bf16 into a slab of bf16.
  void (*fill_raw)(const FillArgs&);
  /// Panels of pairs of bf16 from such a slab; null without vdpbf16ps.
  void (*pair_panels)(const PanelArgs&);
  void (*filters)(const FilterArgs&);
  // By Compute.
  void (*panels[2])(const PanelArgs&);
  void (*direct[2])(const DirectArgs&);
  void (*dots[2])(const DotArgs&);
};

constexpr bool complete(const ConvKernels& table) {
  for (int d = 0; d < kRealDTypeCount; ++d) {
    const bool wanted = info(Op::conv2d).dtypes.contains(static_cast<DType>(d));
    if (wanted != (table.fill[d] != nullptr) || wanted != (table.store[d] != nullptr)) return false;
  }
  return true;
}

WICK_DECLARE_KERNELS(ConvKernels, conv_kernels)

inline const ConvKernels& conv_kernels([[maybe_unused]] Isa isa) {
  return WICK_SELECT_KERNELS(isa, conv_kernels, v4);
}

}  // namespace wick::cpu
