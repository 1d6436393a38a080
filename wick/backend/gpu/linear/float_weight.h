#pragma once

#include <memory>
#include <span>

#include "wick/backend/backend.h"
#include "wick/backend/gpu/gpu.h"

namespace wick::gpu {

// Weights with float products: f32 f16 bf16 (float_weight.cpp).
std::unique_ptr<PreparedWeight> prepare_float(Gpu& gpu, std::span<const ConstView> parts);
/// residual: null, or what is added to the product, f32 as x and out are then.
void linear_float(Gpu& gpu, const View& out, const ConstView& x, const PreparedWeight& weight,
                  const ConstView* residual);

}  // namespace wick::gpu
