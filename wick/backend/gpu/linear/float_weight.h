#pragma once

#include <memory>
#include <span>

#include "wick/backend/backend.h"
#include "wick/backend/gpu/driver/gpu.h"
#include "wick/backend/gpu/linear/grouped.h"

namespace wick::gpu {

/// Packs matrices [n_i, k] of f32, f16 or bf16, stacked along n.
std::unique_ptr<PreparedWeight> prepare_float(Gpu& gpu, std::span<const ConstView> parts);
/// Bytes of a prepared weight [n, k].
size_t float_bytes(DType dtype, int64_t n, int64_t k);
/// out [.., n] = x [.., k] · weightᵀ, of one float dtype, for few rows. residual is null, or
/// [.., n] f32, which is added to an f32 result. each: see LinearFusion. Returns false, without
/// doing anything, for more rows and for layouts that gemv doesn't take.
bool linear_gemv(Gpu& gpu, const View& out, const ConstView& x, const PreparedWeight& weight,
                 const ConstView* residual, int64_t each);
/// The same for rows that linear_gemv doesn't take.
void linear_float(Gpu& gpu, const View& out, const ConstView& x, const PreparedWeight& weight,
                  const ConstView* residual, int64_t each);
/// Whether linear_float takes no residual for these operands, because it adds products of parts of
/// k.
bool adds_residual_apart(Gpu& gpu, const View& out, const ConstView& x,
                         const PreparedWeight& weight, int64_t each);
/// The pointer to the weight that ExpertLaunches takes.
const void* float_weight_data(const PreparedWeight& weight);
/// x [t, k] → out [t, n, width], dense: see Backend::grouped_linear. weight is one of the experts,
/// from which the sizes and the dtype are read.
void grouped_float(Gpu& gpu, const View& out, const ConstView& x, const PreparedWeight& weight,
                   const ExpertLaunches& launches);

}  // namespace wick::gpu
