#pragma once

#include <cstddef>
#include <cstdint>

#include "wick/base/dtype.h"
#include "wick/base/export.h"

namespace wick::cpu {

/// Quantises rows [rows, k] of finite values to blocks with the least Σ w·(error)², where w [k] are
/// the columns' weights, for all rows the same; null: all 1. The blocks depend neither on the
/// instruction set nor on the number of threads. Unlike the op `quantize`, which rounds by one
/// rule, this searches scales, and takes some hundred times longer.
///
/// Weights that aren't finite or are below 0 count as 0, and a block whose weights are all 0 is
/// quantised as if they were 1. Values of magnitude 1e18 or above give unspecified quants. Errors:
/// the dtype isn't one of dtypes::kSearched; k isn't a multiple of its block.
WICK_API void search_rows(DType dtype, const float* x, int64_t rows, int64_t k, const float* w,
                          std::byte* out);

}  // namespace wick::cpu
