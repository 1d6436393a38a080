#pragma once

#include "wick/backend/gpu/driver/gpu.h"
#include "wick/backend/gpu/layout/map_dims.h"

namespace wick::gpu {

/// Launches a kernel of one f32 operand, "silu_f32", on n elements in place; n a multiple of four.
inline void launch_unary(Gpu& gpu, std::string_view kernel, void* data, int64_t n,
                         bool pdl = false) {
  CollapsedDims<2> packs;
  packs.add(n / 4, {4, 4});
  packs.for_each_piece([&](const StridedIndex<2>& strided, const auto&) {
    Grid grid = spread(gpu, strided.elems, map_unroll(sizeof(float), sizeof(float)));
    grid.pdl = pdl;
    gpu.launch("map_f32", kernel, grid, data, data, strided, uint32_t{0});
  });
}

}  // namespace wick::gpu
