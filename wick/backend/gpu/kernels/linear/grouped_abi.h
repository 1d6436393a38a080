#pragma once

// The arguments of the grouped_linear kernels, shared by host and device.

#include "wick/backend/gpu/kernels/device/fault.h"
#include "wick/backend/gpu/kernels/linear/gemm_abi.h"
#include "wick/backend/gpu/kernels/linear/quantized_abi.h"

namespace wick::gpu {

/// The weights of a mixture of experts, and the ids that choose one for each pair. A pair is a row
/// of x and one of its n ids; pairs lie along the grid's y axis.
struct Experts {
  static constexpr math::u32 kMost = 256;  // per launch, because a kernel takes 4 KiB of arguments

  const void* weights[kMost] = {};
  math::u32 first = 0;             ///< the id of weights[0]
  math::u32 held = 0;              ///< number of weights in this launch
  math::u32 count = 0;             ///< number of all experts
  math::u32 first_pair = 0;        ///< the pair at block_index_y() 0
  math::u32 each = 1;              ///< n, the number of ids of a row
  const math::u32* ids = nullptr;  ///< one for each pair
  FaultLine* line = nullptr;       ///< where an id that is out of range is reported
  math::u32 note = 0;              ///< of the call, for the report
};

/// grouped_DTYPE of gemv_float.gpu and of gemv_stream.gpu. shape: that of one row.
struct GroupedFloatArgs {
  void* out;
  const void* x;
  Experts experts;
  Gemm shape;
  math::u32 format;
};
/// grouped_FORMAT of gemv.gpu. q, scales: as in QuantizedGemm. segment: chunks of a segment.
struct GroupedGemvArgs {
  LinearOut out;
  Experts experts;
  const void* q;
  const math::ActivationScale* scales;
  math::u32 chunks, rows, segment;
};
/// decoded_grouped_FORMAT.
struct GroupedDecodedArgs {
  LinearOut out;
  Experts experts;
  const float* x;  ///< dense rows
  math::u32 rows, k;
};

}  // namespace wick::gpu
