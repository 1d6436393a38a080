#pragma once

#include <functional>

#include "wick/backend/gpu/gpu_backend.h"
#include "wick/backend/gpu/spatial/conv_choices.h"
#include "wick/backend/gpu/spatial/convolution_library.h"

namespace wick::gpu {

/// Whether convolutions of a dtype may be computed by the vendor's library: it is installed, and
/// neither WICK_GPU_CONV=own nor WICK_REPRODUCIBLE=1 is set.
bool may_use_conv_library(const Gpu& gpu, DType dtype);

/// Computes a convolution, whose operands are those of the methods of Backend, by the vendor's
/// library or by `own`, which runs wick's kernels. With WICK_GPU_CONV=library the library computes
/// all convolutions that it takes. Otherwise the first call for a shape measures both, unless the
/// thread captures a graph, and later calls use the faster one. Operands whose layout isn't dense
/// are copied for the library. Returns false, without a result, if `own` is to be used.
bool convolve_by_library(GpuBackend& backend, ConvForm form, const View& result,
                         const ConstView& first, const ConstView& second, const ConvParams& params,
                         const std::function<void()>& own);

/// The fastest of the implementations, from the milliseconds that each takes; infinity: it can't be
/// used. A library must be clearly faster than wick's kernels.
ConvChoice fastest(float own, float channels_first, float channels_last);

}  // namespace wick::gpu
