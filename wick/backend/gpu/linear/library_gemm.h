#pragma once

#include "wick/backend/gpu/linear/gemm.h"

namespace wick::gpu {

/// Multiplies by a vendor's library, if one takes the job and WICK_GPU_LIBRARIES allows it.
/// Otherwise returns false and does nothing. Operands are floats of 16 or 32 bits whose rows or
/// columns are dense.
bool multiply_by_library(Gpu& gpu, const GemmJob& job);

}  // namespace wick::gpu
