#pragma once

#include <memory>
#include <span>

#include "wick/backend/backend.h"
#include "wick/backend/gpu/driver/gpu.h"

namespace wick::gpu {

/// Packs matrices [n_i, k] of f32, f16 or bf16, stacked along n.
std::unique_ptr<PreparedWeight> prepare_float(Gpu& gpu, std::span<const ConstView> parts);
/// out [.., n] = x [.., k] · weightᵀ, of one float dtype. residual is null, or [.., n] f32, which
/// is added to an f32 result.
void linear_float(Gpu& gpu, const View& out, const ConstView& x, const PreparedWeight& weight,
                  const ConstView* residual);

}  // namespace wick::gpu
