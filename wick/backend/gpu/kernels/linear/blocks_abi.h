#pragma once

// Arguments of the kernels that make floats of block dtypes and blocks of floats.

#include "wick/backend/gpu/kernels/index/index_abi.h"
#include "wick/backend/gpu/kernels/layout/strided_index.h"

namespace wick::gpu {

/// The float side of a conversion.
struct BlockFloats {
  u32 dtype;  ///< its number in dtypes.def
  u32 dense;  ///< not 0: neighbours are neighbours in memory, and eight of them lie aligned
  i64 step;   ///< elements from one value to the next
};

/// dequantize_FORMAT: the nest has the output in elements, the input in values and, where there are
/// ids, these.
struct DequantizeArgs {
  void* out;
  const void* in;
  StridedIndex<3> strided;
  BlockFloats floats;
  Ids ids;
};
/// quantize_FORMAT: the nest has the output in blocks, the input in elements.
struct QuantizeArgs {
  void* out;
  const void* in;
  StridedIndex<2> strided;
  BlockFloats floats;
};

}  // namespace wick::gpu
