#pragma once

// Selection of slices by ids: what dense tensors and tensors of blocks share.

#include "wick/backend/gpu/driver/gpu.h"
#include "wick/backend/gpu/kernels/index/index_abi.h"

namespace wick::gpu {

/// A pointer to the ids, `elems` elements further.
const void* id_at(const Ids& ids, int64_t elems);

/// Selects rows of a matrix of blocks, and dequantises them. The caller leaves chosen.step unset.
void select_blocks(Gpu& gpu, const View& out, const ConstView& in, const ConstView& ids,
                   Ids chosen);

}  // namespace wick::gpu
