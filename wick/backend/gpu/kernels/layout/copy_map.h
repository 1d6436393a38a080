#pragma once

// The tensor map of a TMA copy (see device/wgmma.h).

#include "wick/math/fn.h"

namespace wick::gpu {

struct alignas(64) CopyMap {
  math::u64 words[16];
};

}  // namespace wick::gpu
