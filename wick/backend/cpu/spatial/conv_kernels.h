#pragma once

#include <cstdint>

#include "wick/backend/cpu/isa.h"
#include "wick/backend/cpu/linear/gemm.h"
#include "wick/math/orders.h"
#include "wick/op/op.h"

namespace wick::cpu {

// Kernels of convolutions over a slab (patches.h). Offsets and strides count elements of the
// compute type. Kernels may read up to 64 bytes behind what they use.

/// A piece of a panel of pixels: contiguous elements of the slab for the lanes from `lane` to the
/// next piece.
struct PanelPiece {
  int64_t base;
  int64_t lane;
};

/// Rows of an image to copy into a slab: zeros, elements, zeros, in the compute type.
struct FillArgs {
  const void* from;  ///< the first element of the first row
  int64_t row_stride, stride;
  int64_t rows, left, count, right;
  void* to;
  int64_t pitch;
};

/// Rows of sums to round to the dtype and store in the result.
struct StoreArgs {
  const void* from;
  int64_t pitch;
  int64_t rows, count;
  void* to;
  int64_t row_stride, stride;
};

/// Panels [panel][k][line] of pixels, for A or B. Panel p consists of pieces [first[p], first[p +
/// 1]).
struct PanelArgs {
  int64_t line;  ///< elements per k of a panel: 4, 8 or 16
  const void* slab;
  const int64_t* offsets;  ///< of k terms, or of 2k for pairs
  int64_t k;
  bool half;  ///< pairs: the second term of the last pair is missing, and counts as 0
  const PanelPiece* pieces;
  const int64_t* first;
  int64_t panels_count;
  void* panels;
  int64_t panel_stride;  ///< at least k + 1 rows of the panel
};

/// out[r][j] = Σ_t w[r][t] · slab[offsets[t] + j], in the order of t, for few rows r of weights and
/// the pixels j of a plot, whose rows are `pitch` apart in both. Writes whole cache lines.
struct DirectArgs {
  int64_t rows, k;
  int64_t plot_rows, cols, pitch;  ///< of the plot in the slab
  const void* w;
  int64_t w_stride;
  const void* slab;
  const int64_t* offsets;
  void* out;
  int64_t out_stride;
  bool resume;  ///< continue the sums in out; else start from 0
};

/// Copies rows of f32 weights to rows of terms: to[r][i · count + j] = from[starts[r] + at(i) + j ·
/// stride] for j in [0, count), at(i) = i / lines · channel_stride + i % lines · line_stride.
struct FilterArgs {
  const float* from;
  const int64_t* starts;
  int64_t rows, runs, lines, channel_stride, line_stride;
  int64_t count, stride;
  float* to;
  int64_t to_stride;
};

/// sums[t][j mod 16] += g[r][j] · slab[offsets[t] + r · pitch + j] for j in [0, n), one row r after
/// another.
struct DotArgs {
  int64_t n, k, rows;
  const void* g;
  int64_t g_stride;  ///< elements between rows of g
  const void* slab;
  int64_t pitch;
  const int64_t* offsets;
  void* sums;  ///< [k][16]
};
using math::kDotLanes;

/// Null entries belong to dtypes without convolutions.
struct ConvKernels {
  // By dtype.
  void (*fill[kRealDTypeCount])(const FillArgs&);
  void (*store[kRealDTypeCount])(const StoreArgs&);
  /// Fills a slab of bf16 with bf16.
  void (*fill_raw)(const FillArgs&);
  /// Packs panels of pairs from such a slab; null without AVX-512.
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
  return WICK_SELECT_KERNELS(isa, conv_kernels, no_dots);
}

}  // namespace wick::cpu
