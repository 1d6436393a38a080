#pragma once

// Launches kernels/attention/decode_paged.gpu: attention with a paged cache, one query for each
// sequence.

#include "wick/backend/gpu/gpu_backend.h"
#include "wick/backend/gpu/kernels/attention/attention_abi.h"

namespace wick::gpu {

/// Launches the kernel and returns true, or returns false without a launch if the kernel doesn't
/// support the call or would be slower than decode.gpu. It supports devices with clusters, one
/// query per sequence, caches of f16 in pages of 256 positions, d and e both 64 or both 128, a
/// multiple of four heads per key head, no window and no soft cap. It is faster if its thread
/// blocks fill nearly all multiprocessors.
bool launch_decode_paged(Gpu& gpu, const AttentionCall& c, const CacheCall& cache, DType dtype,
                         const Blocks& blocks);

}  // namespace wick::gpu
