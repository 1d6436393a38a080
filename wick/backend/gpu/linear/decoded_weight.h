#pragma once

// Weights of block dtypes whose gemms compute in f32: they are decoded during the gemm
// (kernels/linear/decoded_few.gpu and decoded_many.gpu, docs/design/numerics/quantised.md).

#include <memory>
#include <span>

#include "wick/backend/gpu/gpu_backend.h"
#include "wick/backend/gpu/linear/grouped.h"

namespace wick::gpu {

/// Stacks matrices [n_i, k] along n.
std::unique_ptr<PreparedWeight> prepare_decoded(Gpu& gpu, std::span<const ConstView> parts);
/// out = x · weightᵀ (+ residual). x is [.., k], f32 and dense. residual is null, or has out's
/// shape; then both are f32.
void linear_decoded(Gpu& gpu, const View& out, const ConstView& x, const PreparedWeight& weight,
                    const ConstView* residual);
/// The pointer to the weight that ExpertLaunches takes.
const void* decoded_weight_data(const PreparedWeight& weight);
/// x [t, k] f32, dense, → out [t, n, width], dense: see Backend::grouped_linear. weight is one of
/// the experts, from which the sizes and the dtype are read.
void grouped_decoded(Gpu& gpu, const View& out, const ConstView& x, const PreparedWeight& weight,
                     const ExpertLaunches& launches);

}  // namespace wick::gpu
