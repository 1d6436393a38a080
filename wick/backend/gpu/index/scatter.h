#pragma once

// Scattered source elements as the kernels of kernels/index/scatter_*.gpu take them.

#include <cstdint>

#include "wick/backend/gpu/driver/gpu.h"
#include "wick/backend/gpu/kernels/index/scatter_abi.h"
#include "wick/backend/gpu/layout/map_dims.h"

namespace wick::gpu {

/// A call of scatter, scatter_add or index_add.
struct Scatter {
  bool add;
  DType dtype;
  Operand out, source;
  Ids ids;  ///< ids.step: elements of the output from one place to the next
  int64_t n, places;
  int64_t source_step, id_step;  ///< elements along the dim
  CollapsedDims<3> lines;        ///< source, output and ids: the dims on which ids depend
  CollapsedDims<2> columns;      ///< output and source: the other dims
};

/// Sorts the ids and launches the kernels for segments. Lines have fewer than 2^31 ids.
void launch_segments(Gpu& gpu, const Scatter& scatter);

}  // namespace wick::gpu
