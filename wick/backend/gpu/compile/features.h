#pragma once

#include <cstdint>
#include <string_view>

#include "wick/backend/gpu/kernels/device/features.h"

namespace wick::gpu {

/// The feature word (bits of Feature) of an image of kernels/device/features.gpu, in machine code
/// or PTX. Errors: the image has none.
uint32_t features_of(std::string_view image);

/// Errors: the image's kernels work in waves of another size than the device's, which would give
/// wrong results.
void check_waves(uint32_t features, int lanes);

}  // namespace wick::gpu
