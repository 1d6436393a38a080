#pragma once

// Launches kernels/attention/flash*.gpu: attention of many queries by matrix units, the bound form
// of docs/design/numerics/attention.md.

#include "wick/backend/gpu/gpu_backend.h"
#include "wick/backend/gpu/kernels/attention/attention_abi.h"

namespace wick::gpu {

/// Queries up to which calls never take the bound form.
inline constexpr int64_t kMostOrderedQueries = 8;

/// Whether a call takes the bound form. `projected`: the queries come from projections. Errors:
/// WICK_GPU_ATTENTION is none of its choices.
bool takes_flash(const Gpu& gpu, const AttentionCall& c, DType cache, bool projected);

/// Launches a kernel for a call that takes_flash(). cache.qkv is null unless the queries come from
/// projections.
void launch_flash(Gpu& gpu, const AttentionCall& c, const CacheCall& cache, DType dtype);

}  // namespace wick::gpu
