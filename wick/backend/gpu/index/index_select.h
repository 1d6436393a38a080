#pragma once

// Slices chosen by ids, and what it shares with rows of blocks.

#include "wick/backend/gpu/driver/gpu.h"
#include "wick/backend/gpu/kernels/index/index_abi.h"

namespace wick::gpu {

/// Ids so many elements further.
const void* id_at(const Ids& ids, int64_t elems);

/// Rows of a matrix of blocks, to floats. `chosen` lacks the step.
void select_blocks(Gpu& gpu, const View& out, const ConstView& in, const ConstView& ids,
                   Ids chosen);

}  // namespace wick::gpu
