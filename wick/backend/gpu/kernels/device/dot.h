#pragma once

// Dot products of four unsigned bytes with four signed bytes, which AMD has from gfx11 on.

#include "wick/backend/gpu/kernels/device/device.h"

#if WICK_DOT4_MIXED

namespace wick::gpu {

/// c + Σ a_i·b_i over the four unsigned bytes of a and the signed ones of b.
WICK_DEVICE i32 dot4_mixed(u32 a, i32 b, i32 c) {
  return __builtin_amdgcn_sudot4(false, static_cast<i32>(a), true, b, c, false);
}

}  // namespace wick::gpu

#endif
