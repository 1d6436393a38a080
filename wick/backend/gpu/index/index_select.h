#pragma once

// Ids as kernels take them, and selection by ids: what the ops of this folder and tensors of blocks
// share.

#include <string_view>

#include "wick/backend/gpu/driver/gpu.h"
#include "wick/backend/gpu/kernels/index/index_abi.h"
#include "wick/backend/gpu/layout/map_dims.h"

namespace wick::gpu {

/// Describes ids, which must be below `size`, to kernels. Faults name the op, the tensor x that the
/// ids index, and the ids. The data begins at the ids' storage, without their offset. The caller
/// sets `step`.
/// Errors: the ids' dtype isn't u8, u32, i32 or i64.
Ids make_ids(Gpu& gpu, std::string_view op, const ConstView& x, const ConstView& ids, int64_t size);

/// Reports ids that are out of range, for calls whose results have no elements. `ids` has rank 1.
void check_ids(Gpu& gpu, std::string_view op, const ConstView& x, const ConstView& ids,
               int64_t size);

/// A pointer to the ids, `elems` elements further.
const void* id_at(const Ids& ids, int64_t elems);

/// Copies elements that ids select, in the largest units that the layouts allow. The operands of
/// the dims are the output, the input without the dim that ids index, and the ids. chosen.step
/// counts elements.
void launch_select(Gpu& gpu, const CollapsedDims<3>& elements, const Operand& out,
                   const Operand& in, const Ids& chosen);

/// Selects rows of a matrix of blocks, and dequantises them. The caller leaves chosen.step unset.
void select_blocks(Gpu& gpu, const View& out, const ConstView& in, const ConstView& ids,
                   Ids chosen);

}  // namespace wick::gpu
