#pragma once

#include "wick/backend/backend.h"
#include "wick/backend/gpu/driver/gpu.h"

namespace wick::gpu {

/// conv2d with one input channel in each group, kernels of 3×3, 5×5 or 7×7 taps, strides of 1 or 2
/// and no dilation, in f32, f16 and bf16, for any layout. Returns false for other calls.
bool convolve_planes(Gpu& gpu, const View& out, const ConstView& x, const ConstView& w,
                     const ConvParams& params);

}  // namespace wick::gpu
