#pragma once

#include "wick/backend/gpu/driver/gpu.h"
#include "wick/backend/gpu/kernels/map/map_abi.h"
#include "wick/backend/gpu/layout/map_space.h"

namespace wick::gpu {

/// Kernels of one f32 operand.
inline const KernelFamily<UnaryArgs, Op> kUnaryF32("map_f32", "{}_f32");

/// Launches an op of one f32 operand on n elements in place; n a multiple of four.
inline void launch_unary(Gpu& gpu, Op op, void* data, int64_t n, bool early = false) {
  Space<2> packs;
  packs.add(n / 4, {4, 4});
  packs.for_each_piece([&](const Nest<2>& nest, const auto&) {
    Grid grid = spread(gpu, nest.elems, map_unroll(sizeof(float), sizeof(float)));
    grid.early = early;
    kUnaryF32(op).launch(gpu, grid, {data, data, nest, 0});
  });
}

}  // namespace wick::gpu
