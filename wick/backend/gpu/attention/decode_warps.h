#pragma once

// Launches kernels/attention/decode_warps.gpu: attention of few queries over keys whose elements
// are contiguous, a chunk for each warp.

#include "wick/backend/gpu/gpu_backend.h"
#include "wick/backend/gpu/kernels/attention/attention_abi.h"

namespace wick::gpu {

/// Launches the kernel and returns true, or returns false without a launch if the kernel doesn't
/// support the call, or if the device doesn't copy to shared memory asynchronously. It supports up
/// to 8 queries, d and e up to 128, keys and values as takes_rows_layout() describes, and pages of
/// whole chunks.
bool launch_decode_warps(Gpu& gpu, const AttentionCall& c, DType dtype);

}  // namespace wick::gpu
