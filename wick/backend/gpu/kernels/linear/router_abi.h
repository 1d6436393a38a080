#pragma once

// The arguments of gemv_route.gpu, shared by host and device.

#include "wick/backend/gpu/kernels/linear/experts_abi.h"
#include "wick/backend/gpu/kernels/linear/gemm_abi.h"

namespace wick::gpu {

/// route_row_SIZE, for at most SIZE experts. gemv: as for gemv_f32_1. route: the choice from the
/// gemv's result. arrived: a counter of thread blocks, which is zero before and after.
struct RouterArgs {
  StreamGemvArgs gemv;
  RouteArgs route;
  math::u32* arrived;
};

}  // namespace wick::gpu
