#pragma once

#include <cstdint>
#include <string_view>

#include "wick/backend/gpu/kernels/device/features.h"

namespace wick::gpu {

/// The bits (Feature) of an image of kernels/device/features.gpu, which is machine code or PTX.
/// Errors: it has no word.
uint32_t features_of(std::string_view image);

}  // namespace wick::gpu
