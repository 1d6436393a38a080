#pragma once

#include <array>
#include <cstdint>

#include "wick/backend/cpu/isa.h"
#include "wick/base/dtype.h"

namespace wick::cpu {

/// Rows of a panel of a weight matrix. f32 and f16 are packed as [k][16], bf16 as [k/2][16][2],
/// with zeros behind an odd k.
inline constexpr int kWeightPanelRows = 16;
/// The most columns of one pass over a panel; further columns take another pass, from the cache.
inline constexpr int kDecodeColumns = 4;

struct PackPanelArgs {
  const void* rows[kWeightPanelRows];  ///< null for rows past the end
  int64_t k_stride[kWeightPanelRows];  ///< of each row, in elements
  int64_t k;
  void* panel;
};

/// y[c][row] = Σ_p w[row][p] · x[c][p], one chain of fused multiply-adds a row.
struct DecodeArgs {
  const void* weight;           ///< the first panel
  int64_t panel_bytes, panels;  ///< of this range
  int64_t k;                    ///< even for bf16
  const float* x;               ///< [cols][x_stride], already rounded to the weights' dtype
  int64_t x_stride;
  int64_t cols;
  float* y;                ///< [cols][y_stride], 16 rows a panel
  int64_t prefetch_bytes;  ///< prefetch distance, over all panels together
  int64_t y_stride;
};

/// The kernels of one instruction set, by weight dtype: f32, f16, bf16.
struct FloatWeightKernels {
  std::array<void (*)(const PackPanelArgs&), 3> pack;
  std::array<void (*)(const DecodeArgs&), 3> decode;
  /// Converts `k` (even) steps of a bf16 panel to f32 [k][16].
  void (*unpack_bf16)(const void* panel, int64_t k, float* to);
};

/// True when there are kernels for every float dtype of weights.
constexpr bool complete(const FloatWeightKernels& table) {
  size_t floats = 0;
  for (int d = 0; d < kRealDTypeCount; ++d) {
    floats += dtypes::kWeights.contains(static_cast<DType>(d)) ? 1 : 0;
  }
  for (size_t i = 0; i < table.pack.size(); ++i) {
    if (table.pack[i] == nullptr || table.decode[i] == nullptr) return false;
  }
  return floats == table.pack.size() && table.unpack_bf16 != nullptr;
}

WICK_DECLARE_KERNELS(FloatWeightKernels, float_weight_kernels)

inline const FloatWeightKernels& float_weight_kernels([[maybe_unused]] Isa isa) {
  return WICK_SELECT_KERNELS(isa, float_weight_kernels, no_dots);
}

}  // namespace wick::cpu
