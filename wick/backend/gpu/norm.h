#pragma once

#include "wick/backend/gpu/gpu.h"

namespace wick::gpu {

/// Backend::rms_norm.
void rms_norm(Gpu& gpu, const View& out, const ConstView& in, const ConstView& weight, float eps);

}  // namespace wick::gpu
