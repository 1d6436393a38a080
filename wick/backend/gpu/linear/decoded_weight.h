#pragma once

// Weights of block dtypes without kernels of their own: rows in file layout, which are decoded
// during the gemm (kernels/linear/decoded.gpu, docs/design/numerics/quantised.md).

#include <memory>
#include <span>

#include "wick/backend/gpu/gpu_backend.h"

namespace wick::gpu {

/// Stacks matrices [n_i, k] along n.
std::unique_ptr<PreparedWeight> prepare_decoded(GpuBackend& backend,
                                                std::span<const ConstView> parts);
/// out = x · weightᵀ (+ residual). x is [.., k], f32 and dense. residual is null, or has out's
/// shape; then both are f32.
void linear_decoded(Gpu& gpu, const View& out, const ConstView& x, const PreparedWeight& weight,
                    const ConstView* residual);

}  // namespace wick::gpu
