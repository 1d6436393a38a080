#pragma once

// What describes a matrix to copies of boxes, where a device can do those: see device_wgmma.h.

#include "wick/math/fn.h"

namespace wick::gpu {

struct alignas(64) CopyMap {
  math::u64 words[16];
};

}  // namespace wick::gpu
