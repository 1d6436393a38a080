#pragma once

#include <functional>
#include <vector>

#include "wick/backend/gpu/gpu_backend.h"
#include "wick/backend/gpu/spatial/conv_choices.h"
#include "wick/backend/gpu/spatial/convolution_library.h"

namespace wick::gpu {

/// Whether convolutions of a dtype may be computed by the vendor's library: it is installed, and
/// neither WICK_GPU_CONV=own nor WICK_REPRODUCIBLE=1 is set.
bool may_use_conv_library(const Gpu& gpu, DType dtype);

/// Computes a convolution, whose operands are those of the methods of Backend, by the vendor's
/// library or by `own`, which runs wick's kernels. With WICK_GPU_CONV=library the library computes
/// all convolutions that it takes. Otherwise the first call for a shape measures wick's kernels and
/// the library's algorithms, unless the thread captures a graph, and later calls use the fastest.
/// Operands whose layout isn't dense are copied for the library. Returns false, without a result,
/// if `own` is to be used.
bool convolve_by_library(GpuBackend& backend, ConvForm form, const View& result,
                         const ConstView& first, const ConstView& second, const ConvParams& params,
                         const std::function<void()>& own);

/// A choice, and the milliseconds that it takes; infinity: it can't be used.
struct TimedConv {
  ConvChoice choice;
  float milliseconds = 0;
};
/// The fastest. The first is wick's kernels, than which a library must be clearly faster.
ConvChoice fastest(const std::vector<TimedConv>& all);

}  // namespace wick::gpu
