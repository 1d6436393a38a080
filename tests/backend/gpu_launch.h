#pragma once

#include "wick/backend/gpu/driver/gpu.h"
#include "wick/backend/gpu/kernels/map/map_abi.h"
#include "wick/backend/gpu/layout/map_dims.h"

namespace wick::gpu {

/// Kernels of one f32 operand.
inline const KernelFamily<UnaryArgs, Op> kUnaryF32("map_f32", "{}_f32");

/// Launches an op of one f32 operand in place on n elements. n must be a multiple of four.
inline void launch_unary(Gpu& gpu, Op op, void* data, int64_t n, bool pdl = false) {
  CollapsedDims<2> packs;
  packs.add(n / 4, {4, 4});
  packs.for_each_piece([&](const StridedIndex<2>& strided, const auto&) {
    Grid grid = spread(gpu, strided.elems, map_unroll(sizeof(float), sizeof(float)));
    grid.pdl = pdl;
    kUnaryF32(op).launch(gpu, grid, {data, data, strided, 0});
  });
}

}  // namespace wick::gpu
