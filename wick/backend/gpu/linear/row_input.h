#pragma once

// Rows of activations that gemvs prepare by themselves: kernels/linear/row_input.h.

#include <optional>

#include "wick/backend/backend.h"
#include "wick/backend/gpu/driver/gpu.h"
#include "wick/backend/gpu/kernels/linear/row_input_abi.h"

namespace wick::gpu {

/// The rows of x [.., k], or [.., 2k] for silu_mul, with the step of `fusion` before the gemv;
/// nothing if kernels can't prepare them. The step is none, rms_norm or silu_mul.
std::optional<RowInput> row_input(const Gpu& gpu, const LinearFusion& fusion, const ConstView& x,
                                  int64_t k);

/// Whether it pays that each of `thread_blocks` thread blocks prepares a row. A launch takes a
/// microsecond. In that time, multiprocessors read some 10 MB from the L2 cache.
bool pays_in_gemv(const RowInput& input, int64_t thread_blocks);

}  // namespace wick::gpu
