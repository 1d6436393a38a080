#pragma once

// The arguments of the kernels that choose experts and add their results, shared by host and
// device.

#include "wick/backend/gpu/kernels/device/fault.h"
#include "wick/math/fn.h"

namespace wick::gpu {

/// Threads of a thread block of route_experts, which takes a row for each 32 of them, and of
/// gate_experts and combine_experts.
inline constexpr math::u32 kRouteThreads = 128, kCombineThreads = 256;
/// The most experts that route_experts takes, and the most that a row chooses.
inline constexpr math::u32 kMostRouted = 512, kMostChosen = 32;

/// route_experts_SIZE, for at most SIZE experts. scores: 0 the logits, 1 their softmax, 2 their
/// sigmoid.
struct RouteArgs {
  math::u32* ids;  ///< [rows, used]
  float* weights;  ///< [rows, used]
  const float* logits;
  const float* bias;                    ///< null: none
  math::i64 row_step, step, bias_step;  ///< strides of logits and of the bias
  math::u32 rows, experts, used, scores, softmax_of_chosen, normalize, scaled;
  float scale;
};
/// A bias [experts, k] that is added to rows of k values by their ids, as index_select selects it:
/// 0xffffffff and ids that are out of range add zeros. The latter are reported.
struct ExpertBiases {
  const float* bias = nullptr;     ///< null: none
  const math::u32* ids = nullptr;  ///< one for each row
  math::u32 experts = 0;
  math::u32 note = 0;         ///< of the call, for the report
  FaultLine* line = nullptr;  ///< where an id that is out of range is reported
};
/// gate_experts: y [rows, 2k] → out [rows, k], the clamped SwiGLU. The grid's y axis has the rows.
struct GateArgs {
  float* out;
  const float* y;
  ExpertBiases bias;
  math::u32 k;
  float alpha, limit;
};
/// combine_experts: out [rows, k] = residual + Σ (y [rows, n, k] + bias) · weights [rows, n].
struct CombineArgs {
  float* out;
  const float *y, *weights;
  const float* residual;  ///< null: none
  ExpertBiases bias;
  math::i64 out_row, weights_row, weights_step, residual_row, residual_step;
  math::u32 n, k;
};

}  // namespace wick::gpu
