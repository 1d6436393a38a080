#pragma once

#include <cstdint>

#include "wick/backend/cpu/isa.h"
#include "wick/base/export.h"
#include "wick/base/quant.h"

namespace wick::cpu {

/// Quantises blocks of one dtype with the least error: x and w have a block's values for each
/// block, w their weights.
using SearchBlocks = void (*)(const float* x, const float* w, int64_t blocks, uint8_t* out);

/// The searches that one source has, and null for other dtypes.
struct SearchKernels {
  SearchBlocks blocks[kBlockDTypeCount];

  constexpr SearchBlocks of(DType dtype) const { return blocks[quant_index(dtype)]; }
};

/// lattice_kernels has the formats with codebooks, search_kernels all others.
WICK_DECLARE_KERNELS(SearchKernels, search_kernels)
WICK_DECLARE_KERNELS(SearchKernels, lattice_kernels)

/// The search for a dtype, from either table; null for dtypes outside dtypes::kSearched.
WICK_API SearchBlocks search_blocks(Isa isa, DType dtype);

}  // namespace wick::cpu
