#pragma once

#include "wick/backend/gpu/linear/gemm.h"

namespace wick::gpu {

/// Lets a vendor's library do it, where there is one that can and WICK_GPU_LIBRARIES lets it.
/// False: nothing has been done. Floats of 16 or 32 bits, whose rows or columns are dense.
bool multiply_by_library(Gpu& gpu, const GemmJob& job);

}  // namespace wick::gpu
