#pragma once

// Quantisation of activations for gemms with quantised weights.

#include "wick/backend/backend.h"
#include "wick/backend/gpu/driver/gpu.h"
#include "wick/base/quant.h"
#include "wick/math/activation.h"

namespace wick::gpu {

/// Rows of blocks of 32 activations. Each row is padded with blocks of zeros (d = 0, q = 0). Each
/// of the blocks that share a scale stores it.
struct RowBlocks {
  int8_t* q = nullptr;                      ///< [rows][padded · 32]
  math::ActivationScale* scales = nullptr;  ///< [rows][padded]
  int64_t padded = 0;                       ///< blocks of a row, at least k / 32
  int64_t shared = 1;                       ///< blocks that share a scale: see shared_blocks
  bool halves = false;  ///< whether blocks store the sums of their halves: see Blocks

  /// Blocks of a row of k values, rounded up to chunks of 8.
  static int64_t padded_blocks(int64_t k) { return (k / 32 + 7) / 8 * 8; }
  /// Blocks that share a scale for weights of this dtype.
  static int64_t shared_blocks(DType weights) {
    return info(weights).block_elems == 256 && quant(weights).has_minimum() ? math::kSharedBlocks
                                                                            : 1;
  }
  /// Whether weights of this dtype have minima of 16 values.
  static bool has_halves(DType weights) {
    return shared_blocks(weights) != 1 && quant(weights).part == 16;
  }
};

/// Applies `fusion.input` to x's rows and quantises the results, k values for each row; k is a
/// multiple of 32 times out.shared. x is f32, f16 or bf16 of any layout; it is f32 for inputs other
/// than `plain`. It makes one launch with PDL, so a later kernel that uses PDL must call
/// pdl_wait().
void quantize_rows(Gpu& gpu, const LinearFusion& fusion, const ConstView& x, int64_t k,
                   const RowBlocks& out);

}  // namespace wick::gpu
