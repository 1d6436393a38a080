#pragma once

#include "wick/backend/gpu/driver/gpu.h"

namespace wick::gpu {

/// Backend::reduce and Backend::arg_reduce.
void reduce(Gpu& gpu, Op op, const View& out, const ConstView& in, uint32_t dims);
void arg_reduce(Gpu& gpu, Op op, const View& out, const ConstView& in, int dim);

}  // namespace wick::gpu
