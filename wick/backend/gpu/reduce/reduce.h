#pragma once

#include "wick/backend/gpu/driver/gpu.h"
#include "wick/backend/gpu/kernels/layout/strided_index.h"

namespace wick::gpu {

/// Backend::reduce and Backend::arg_reduce.
void reduce(Gpu& gpu, Op op, const View& out, const ConstView& in, uint32_t dims);
void arg_reduce(Gpu& gpu, Op op, const View& out, const ConstView& in, int dim);
/// Combines the partial sums of the blocks of results, [outer][blocks][columns], to the results.
/// Partial sums and results have the dtype f32 or f64. kept: the results, outer dims and then
/// columns; its operand 1 gives their offsets in out.
void combine_sums(Gpu& gpu, DType dtype, void* out, const void* partials,
                  const StridedIndex<2>& kept, uint32_t columns, uint32_t blocks);

}  // namespace wick::gpu
