#pragma once

// Quantised weights on a GPU, and gemms with them (docs/design/numerics/quantised.md).

#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include "wick/backend/backend.h"
#include "wick/backend/gpu/gpu_backend.h"
#include "wick/backend/gpu/kernels/linear/quantized_abi.h"
#include "wick/backend/gpu/linear/grouped.h"
#include "wick/backend/gpu/linear/quantize_activations.h"
#include "wick/base/quant.h"

namespace wick::gpu {

/// How a dtype of kOwnProducts is stored and multiplied.
constexpr UnitFormat unit_format(DType dtype) {
  switch (dtype) {
#define WICK_OWN_QUANT(name, Type, ...) \
  case DType::name:                     \
    return kFormatOf##Type;
#include "wick/math/quants_by_products.def"
    default:
      return {};
  }
}

/// A weight in units of 16 rows by 256 values: see kernels/linear/quantized.h.
struct QuantizedWeight final : PreparedWeight {
  explicit QuantizedWeight(Gpu& device) : gpu(device) {}
  ~QuantizedWeight() override { gpu.pool.give(units); }
  uint32_t blocks() const { return static_cast<uint32_t>(k / 32); }
  uint32_t chunks() const { return (blocks() + kChunkBlocks - 1) / kChunkBlocks; }
  uint32_t row_groups() const { return static_cast<uint32_t>((n + kUnitRows - 1) / kUnitRows); }

  Gpu& gpu;
  void* units = nullptr;
};

/// Device memory for quantised rows of activations, in the form that weights of a dtype need.
class QuantizedRows {
 public:
  QuantizedRows(Gpu& gpu, int64_t rows, int64_t k, DType weights)
      : rows_(static_cast<uint32_t>(rows)),
        padded_(RowBlocks::padded_blocks(k)),
        shared_(RowBlocks::shared_blocks(weights)),
        halves_(RowBlocks::has_halves(weights)),
        values_(gpu, static_cast<size_t>(rows * padded_ * 32)),
        scales_(gpu, static_cast<size_t>(rows * padded_) * sizeof(math::ActivationScale)) {}
  uint32_t rows() const { return rows_; }
  RowBlocks blocks() const {
    return {values_.data<int8_t>(), scales_.data<math::ActivationScale>(), padded_, shared_,
            halves_};
  }

 private:
  uint32_t rows_;
  int64_t padded_, shared_;
  bool halves_;
  Scratch values_, scales_;
};

/// The output arguments of linear kernels.
LinearOut linear_out(const View& out, const ConstView* residual);
std::unique_ptr<PreparedWeight> prepare_quantized(Gpu& gpu, std::span<const ConstView> parts);
/// Bytes of a prepared weight [n, k].
size_t quantized_bytes(DeviceKind kind, DType dtype, int64_t n, int64_t k);
/// The kernels that a device has for gemms with weights of a dtype, by the names with which
/// WICK_GPU_LINEAR selects them. The empty name selects by the number of columns.
///   dot   dot products of four bytes: one column, and devices without matrix units
///   few   int8 matrix units, up to 16 columns at once, on NVIDIA 32
///   many  int8 matrix units with larger tiles
///   int8  few or many
///   f16   exact f16 multiplication by wgmma, on sm_90a
std::vector<std::string_view> gemm_paths(const Gpu& gpu, DType dtype);
/// The value of WICK_GPU_LINEAR; empty if it isn't set. Errors: no such kernels.
std::string_view forced_gemm_path();
/// out = x · weightᵀ (+ residual). x is quantised for weights of this dtype. residual is null, or
/// has out's shape; then both are f32.
void multiply(const View& out, const QuantizedRows& x, const QuantizedWeight& weight,
              const ConstView* residual);
/// x [t, k], quantised, → out [t, n, width], dense: see Backend::grouped_linear. weight is one of
/// the experts, from which the sizes and the dtype are read. early: whether the ids were written
/// before the previous kernel began; see GroupedGemvArgs.
void multiply_grouped(const View& out, const QuantizedRows& x, const QuantizedWeight& weight,
                      const ExpertLaunches& launches, bool early);

}  // namespace wick::gpu
