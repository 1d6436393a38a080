#pragma once

#include <cstddef>
#include <cstdint>

#include "wick/base/device.h"
#include "wick/base/dtype.h"

namespace wick::gpu {

/// About how many bytes of a GPU's memory GpuBackend::prepare takes for a matrix [n, k].
size_t prepared_size(DeviceKind kind, DType dtype, int64_t n, int64_t k);

}  // namespace wick::gpu
