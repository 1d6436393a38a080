#pragma once

#include <memory>
#include <span>

#include "wick/backend/backend.h"
#include "wick/backend/gpu/driver/gpu.h"
#include "wick/backend/gpu/linear/grouped.h"

namespace wick::gpu {

/// Packs matrices [n_i, k] of f32, f16 or bf16, stacked along n.
std::unique_ptr<PreparedWeight> prepare_float(Gpu& gpu, std::span<const ConstView> parts);
/// x [.., k] → out [.., n], of one float dtype. residual: null, or [.., n] f32 that is added to an
/// f32 product. each: see LinearFusion.
void linear_float(Gpu& gpu, const View& out, const ConstView& x, const PreparedWeight& weight,
                  const ConstView* residual, int64_t each);
/// What ExpertLaunches are given of a weight.
const void* float_weight_data(const PreparedWeight& weight);
/// x [t, k] → out [t, n, width], dense: see Backend::grouped_linear. weight: any of the experts.
void grouped_float(Gpu& gpu, const View& out, const ConstView& x, const PreparedWeight& weight,
                   const ExpertLaunches& launches);

}  // namespace wick::gpu
