#pragma once

// Weights of block dtypes without kernels of their own: rows in file layout, decoded as they are
// multiplied (kernels/linear/decoded.gpu, docs/design/numerics/quantised.md).

#include <memory>
#include <span>

#include "wick/backend/gpu/gpu_backend.h"
#include "wick/backend/gpu/linear/grouped.h"

namespace wick::gpu {

/// Stacks matrices [n_i, k].
std::unique_ptr<PreparedWeight> prepare_decoded(GpuBackend& backend,
                                                std::span<const ConstView> parts);
/// x [.., k] f32, dense. residual: null, or what is added to the product, f32 as out is then.
void linear_decoded(Gpu& gpu, const View& out, const ConstView& x, const PreparedWeight& weight,
                    const ConstView* residual);
/// What ExpertLaunches are given of a weight.
const void* decoded_weight_data(const PreparedWeight& weight);
/// x [t, k] f32, dense, → out [t, n, width], dense: see Backend::grouped_linear. weight: any of the
/// experts.
void grouped_decoded(Gpu& gpu, const View& out, const ConstView& x, const PreparedWeight& weight,
                     const ExpertLaunches& launches);

}  // namespace wick::gpu
