#pragma once

#include <cstdint>

#include "wick/backend/cpu/isa.h"
#include "wick/base/quant.h"

namespace wick::cpu {

/// Quantises blocks of one dtype with the least error: x and w have a block's values for each
/// block, w their weights. Null for dtypes outside dtypes::kSearched.
using SearchBlocks = void (*)(const float* x, const float* w, int64_t blocks, uint8_t* out);

struct SearchKernels {
  SearchBlocks blocks[kBlockDTypeCount];

  constexpr SearchBlocks of(DType dtype) const { return blocks[quant_index(dtype)]; }
};

WICK_DECLARE_KERNELS(SearchKernels, search_kernels)

}  // namespace wick::cpu
