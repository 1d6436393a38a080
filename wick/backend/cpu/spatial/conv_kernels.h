#pragma once

#include <cstdint>

#include "wick/backend/cpu/isa.h"
#include "wick/backend/cpu/linear/gemm.h"

namespace wick::cpu {

// What convolutions do with a slab (patches.h). Offsets and strides count elements of the compute
// type; a line is 64 bytes. Kernels may read a line behind what they use.

/// A piece of a panel of 64 bytes of pixels: neighbours in the slab, from `lane` on to the next
/// piece or the end.
struct PanelPiece {
  int64_t base;
  int64_t lane;
};

/// Panels [panel][k][line] of B, of pixels: panel p consists of pieces [first[p], first[p + 1]).
struct PanelArgs {
  const void* slab;
  const int64_t* offsets;  ///< of k terms
  int64_t k;
  const PanelPiece* pieces;
  const int64_t* first;
  int64_t panels_count;
  void* panels;
  int64_t panel_stride;  ///< room for k + 1 lines
};

/// out[r][j] = Σ_t w[r][t] · slab[offsets[t] + j] for few rows r and n neighbouring pixels j, in
/// the order of t. Writes whole lines.
struct DirectArgs {
  int64_t rows, n, k;
  const void* w;
  int64_t w_stride;
  const void* slab;
  const int64_t* offsets;
  void* out;
  int64_t out_stride;
  bool resume;  ///< continue the chains that out holds; else start from 0
};

/// sums[t][lane] += g[j] · slab[offsets[t] + j] for j in [0, n), j to lane j mod 16.
struct DotArgs {
  int64_t n, k;
  const void* g;  ///< a line behind n is readable
  const void* slab;
  const int64_t* offsets;
  void* sums;  ///< [k][16]
};
inline constexpr int kDotLanes = 16;

/// By Compute; null for types that no convolution computes in.
struct ConvKernels {
  void (*panels[2])(const PanelArgs&);
  void (*direct[2])(const DirectArgs&);
  void (*dots[2])(const DotArgs&);
};

WICK_DECLARE_KERNELS(ConvKernels, conv_kernels)

inline const ConvKernels& conv_kernels([[maybe_unused]] Isa isa) {
  return WICK_SELECT_KERNELS(isa, conv_kernels, v4);
}

}  // namespace wick::cpu
