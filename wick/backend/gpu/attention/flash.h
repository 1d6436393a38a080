#pragma once

// Launches kernels/attention/flash*.gpu: attention of many queries by matrix units, the bound form
// of docs/design/numerics/attention.md.

#include "wick/backend/gpu/gpu_backend.h"
#include "wick/backend/gpu/kernels/attention/attention_abi.h"

namespace wick::gpu {

/// Calls with at most so many queries always take the ordered form.
inline constexpr int64_t kMostOrderedQueries = 8;

/// How a kernel takes a call in the bound form.
struct FlashPlan {
  bool takes = false;   ///< false: the call takes the ordered form
  bool terms = false;   ///< whether the kernels for scores with terms take the call
  bool wgmma = false;   ///< whether flash_wgmma.gpu takes the call
  bool fast = false;    ///< wgmma: exponentials and queries are one term
  bool whole = false;   ///< the queries have the dtype of the keys, so that one term is exact
  int64_t width = 0;    ///< elements to which heads are padded
  int64_t rows = 0;     ///< rows of a thread block
  int64_t threads = 0;  ///< threads of a thread block
  int64_t shared = 0;   ///< bytes of shared memory

  /// projected: the queries come from projections. biased: there are masks, slopes or sinks.
  /// may_wgmma: false excludes flash_wgmma.gpu. Errors: WICK_GPU_ATTENTION or WICK_PRECISION is
  /// none of its choices.
  FlashPlan(const Gpu& gpu, const AttentionCall& c, DType cache, bool projected, bool biased,
            bool may_wgmma = true);
};

/// Launches the kernel of a plan that takes the call. cache.qkv is null unless the queries come
/// from projections. bias: null, or the terms of the scores.
void launch_flash(Gpu& gpu, const FlashPlan& plan, const AttentionCall& c, const CacheCall& cache,
                  DType dtype, const ScoreBias* bias = nullptr);

}  // namespace wick::gpu
