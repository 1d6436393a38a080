#pragma once

#include <memory>
#include <optional>
#include <span>

#include "wick/backend/backend.h"
#include "wick/backend/gpu/gpu_backend.h"
#include "wick/backend/gpu/kernels/layout/copy_map.h"
#include "wick/backend/gpu/linear/grouped.h"

namespace wick::gpu {

/// Rows of a weight, `pitch` elements apart, with zeros behind k.
struct FloatWeight final : PreparedWeight {
  FloatWeight(Gpu& gpu, size_t size) : memory(gpu, size) {}
  Scratch memory;
  int64_t pitch = 0;   // elements
  bool finite = true;  // f16: has no infinities and no NaN
  /// For grouped_wgmma.gpu: a map with boxes of 128 rows, then one with boxes of 256 rows, in
  /// device memory. Absent if the kernel can't take the weight.
  std::optional<Scratch> maps;
};

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
/// x [t, k] → out [t, n, width], dense: see Backend::grouped_linear.
void grouped_float(Gpu& gpu, const View& out, const ConstView& x,
                   std::span<const PreparedWeight* const> experts, const ExpertLaunches& launches,
                   const GroupedRows& rows);
/// The same by a matrix unit (grouped_gemm.cpp). False if gemv is the kernel for these operands,
/// which depends on the rows of one sequence, not on all rows.
bool grouped_by_matrix_unit(Gpu& gpu, const View& out, const ConstView& x,
                            std::span<const PreparedWeight* const> experts,
                            const ExpertLaunches& launches, const GroupedRows& rows);
/// Makes FloatWeight::maps.
void make_expert_maps(Gpu& gpu, FloatWeight& weight);

}  // namespace wick::gpu
