#pragma once

// Attention of one query of each of some sequences with a paged cache:
// kernels/attention/decode_paged.gpu.

#include "wick/backend/gpu/gpu_backend.h"
#include "wick/backend/gpu/kernels/attention/attention_abi.h"

namespace wick::gpu {

/// Launches it; false, and nothing done, where the call isn't one of those that it takes: one query
/// a sequence, a cache of f16 in pages of 256 positions, d and e both 64 or both 128, a multiple of
/// four heads a key head, no window, no soft cap; and so many sequences that its blocks keep the
/// device busy.
bool launch_decode_paged(Gpu& gpu, const AttentionCall& c, const CacheCall& cache, DType dtype,
                         const Blocks& blocks);

}  // namespace wick::gpu
