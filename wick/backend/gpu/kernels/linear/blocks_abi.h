#pragma once

// Arguments of the kernels that dequantise block dtypes and that quantise floats to them.

#include "wick/backend/gpu/kernels/index/index_abi.h"
#include "wick/backend/gpu/kernels/layout/strided_index.h"

namespace wick::gpu {

/// The float operand of a conversion.
struct BlockFloats {
  u32 dtype;  ///< its number in dtypes.def
  u32 dense;  ///< not 0: values are contiguous, and aligned to eight of them
  i64 step;   ///< elements from one value to the next
};

/// dequantize_FORMAT. The strided index has the output in elements, the input in values and, if
/// there are ids, the ids.
struct DequantizeArgs {
  void* out;
  const void* in;
  StridedIndex<3> strided;
  BlockFloats floats;
  Ids ids;
};
/// quantize_FORMAT. The strided index has the output in blocks and the input in elements.
struct QuantizeArgs {
  void* out;
  const void* in;
  StridedIndex<2> strided;
  BlockFloats floats;
};

}  // namespace wick::gpu
