#pragma once

#include "wick/backend/gpu/driver/gpu.h"
#include "wick/backend/gpu/kernels/norm/norm_abi.h"

namespace wick::gpu {

/// A vector of a norm as kernels take it; the vector may be absent.
Weights weights_of(const ConstView& vector);

/// Backend::rms_norm and Backend::softmax.
void rms_norm(Gpu& gpu, const View& out, const ConstView& in, const ConstView& weight, float eps);
/// Backend::rms_norm_add by one kernel. False if there is none for these operands.
bool rms_norm_add(Gpu& gpu, const NormOperands& x, const ConstView& residual, float eps);
void softmax(Gpu& gpu, const View& out, const ConstView& in, int dim, bool log);

}  // namespace wick::gpu
