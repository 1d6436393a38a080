#pragma once

// Weights of block dtypes on a GPU, and products with them (docs/design/numerics/quantised.md).

#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include "wick/backend/backend.h"
#include "wick/backend/gpu/gpu_backend.h"
#include "wick/backend/gpu/kernels/linear/quantized_abi.h"
#include "wick/backend/gpu/linear/quantize_activations.h"
#include "wick/base/quant.h"

namespace wick::gpu {

/// What a unit of a dtype holds, one of kOwnProducts. Five bits are kept as eight.
constexpr UnitPieces unit_pieces(DType dtype) {
  return dtype == DType::q4_0   ? kUnitOfQ4_0
         : dtype == DType::q4_1 ? kUnitOfQ4_1
         : dtype == DType::q4_k ? kUnitOfQ4_K
         : dtype == DType::q6_k ? kUnitOfQ6_K
                                : kUnitOfQ8_0;
}

/// In units of 16 rows times 256 values: see kernels/linear/quantized.h.
struct QuantizedWeight final : PreparedWeight {
  explicit QuantizedWeight(Gpu& device) : gpu(device) {}
  ~QuantizedWeight() override { gpu.pool.give(units); }
  /// Whose kernels compute with it: five bits are kept as eight, with the same scales.
  DType format() const { return dtype == DType::q5_0 ? DType::q8_0 : dtype; }
  uint32_t blocks() const { return static_cast<uint32_t>(k / 32); }
  uint32_t chunks() const { return (blocks() + kChunkBlocks - 1) / kChunkBlocks; }
  uint32_t row_groups() const { return static_cast<uint32_t>((n + kUnitRows - 1) / kUnitRows); }

  Gpu& gpu;
  void* units = nullptr;
};

/// Memory of the device for rows of activations, as products with weights of a type take them.
class QuantizedRows {
 public:
  QuantizedRows(Gpu& gpu, int64_t rows, int64_t k, DType weights)
      : rows_(static_cast<uint32_t>(rows)),
        padded_(RowBlocks::padded_blocks(k)),
        shared_(RowBlocks::shared_blocks(weights)),
        values_(gpu, static_cast<size_t>(rows * padded_ * 32)),
        scales_(gpu, static_cast<size_t>(rows * padded_) * sizeof(math::ActivationScale)) {}
  uint32_t rows() const { return rows_; }
  RowBlocks blocks() const {
    return {values_.data<int8_t>(), scales_.data<math::ActivationScale>(), padded_, shared_};
  }

 private:
  uint32_t rows_;
  int64_t padded_, shared_;
  Scratch values_, scales_;
};

/// Where kernels put a product, and the residual that they add.
LinearOut linear_out(const View& out, const ConstView* residual);
std::unique_ptr<PreparedWeight> prepare_quantized(Gpu& gpu, std::span<const ConstView> parts);
/// The kernels that a device has for products with a type, by the names that WICK_GPU_LINEAR may
/// take one by; empty: whichever suits the number of columns.
///   dot   dot products of four bytes: one column, and devices without matrix units
///   few   matrix units for bytes, up to 16 columns at once, on NVIDIA 32
///   many  so, too, in larger tiles
///   int8  few or many
///   f16   exact products of f16, on NVIDIA's sm_90a
std::vector<std::string_view> gemm_paths(const Gpu& gpu, DType dtype);
/// What WICK_GPU_LINEAR says; empty: nothing. Errors: no such kernels.
std::string_view forced_gemm_path();
/// x: quantised for weights of this type. residual: null, or what is added to the product, f32 as
/// out is then.
void multiply(const View& out, const QuantizedRows& x, const QuantizedWeight& weight,
              const ConstView* residual);

}  // namespace wick::gpu
