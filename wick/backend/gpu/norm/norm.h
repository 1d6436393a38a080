#pragma once

#include "wick/backend/gpu/driver/gpu.h"

namespace wick::gpu {

/// Backend::rms_norm and Backend::softmax.
void rms_norm(Gpu& gpu, const View& out, const ConstView& in, const ConstView& weight, float eps);
void softmax(Gpu& gpu, const View& out, const ConstView& in, int dim, bool log);

}  // namespace wick::gpu
