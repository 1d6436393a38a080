#pragma once

// How products with weights that are decoded as they are multiplied are spread over thread blocks.

#include "wick/math/fn.h"

namespace wick::gpu {

/// Rows and columns of a thread block of decoded_few, and of either side of one of decoded_many.
inline constexpr math::u32 kFewRows = 16, kFewColumns = 8, kTileSide = 64;

}  // namespace wick::gpu
