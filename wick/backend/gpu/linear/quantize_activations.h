#pragma once

// Activations on their way into products with quantised weights.

#include "wick/backend/backend.h"
#include "wick/backend/gpu/driver/gpu.h"
#include "wick/math/activation.h"

namespace wick::gpu {

/// Rows of blocks of 32 activations, one row after another, each padded with dead blocks: d = 0,
/// q = 0. Where weights want several blocks to share a scale, each of them has it.
struct RowBlocks {
  int8_t* q = nullptr;                      ///< [rows][padded · 32]
  math::ActivationScale* scales = nullptr;  ///< [rows][padded]
  int64_t padded = 0;                       ///< blocks of a row, at least k / 32
  int64_t shared = 1;                       ///< blocks that share a scale: shared_blocks

  /// Blocks of a row of k values in whole chunks of 8.
  static int64_t padded_blocks(int64_t k) { return (k / 32 + 7) / 8 * 8; }
  /// Blocks that share a scale for weights of a type.
  static int64_t shared_blocks(DType weights) {
    return weights == DType::q4_k ? math::kSharedBlocks : 1;
  }
};

/// Quantises what `fusion.input` makes of x's rows, of which each gives k values: a multiple of 32
/// times out.shared.
/// x: f32, f16 or bf16, of any layout; f32 for inputs other than `plain`. One launch, which may
/// start early: a kernel behind it that is launched early has to wait for it.
void quantize_rows(Gpu& gpu, const LinearFusion& fusion, const ConstView& x, int64_t k,
                   const RowBlocks& out);

}  // namespace wick::gpu
