#pragma once

// Tile sizes of decoded.gpu, which the host and the kernels share.

#include "wick/math/fn.h"

namespace wick::gpu {

/// Rows and columns of a thread block of decoded_few; rows, and columns, of one of decoded_many.
inline constexpr math::u32 kFewRows = 16, kFewColumns = 8, kTileSide = 64;

}  // namespace wick::gpu
