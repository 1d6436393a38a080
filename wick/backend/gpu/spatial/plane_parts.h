#pragma once

// Splits the planes of images [b, c, h, w] into parts whose elements kernels count in 32 bits.

#include <algorithm>
#include <array>
#include <cstdint>

#include "wick/backend/gpu/kernels/spatial/planes.h"
#include "wick/backend/gpu/layout/collapsed_dims.h"

namespace wick::gpu {

/// Calls body(part, start) for parts of the elements of layouts[0]; `start` has the offset of the
/// first plane in each operand. The layouts have the same b and c. An element takes `threads`
/// threads.
template <uint32_t N, class Body>
void for_each_part(const std::array<const Layout*, N>& layouts, int64_t threads, Body&& body) {
  const Shape& shape = layouts[0]->shape();
  if (shape.elems() == 0) return;
  const int64_t most = (int64_t{1} << 30) / threads;
  const int64_t columns = std::min(shape[3], most);
  const int64_t rows = std::min(shape[2], most / columns);
  const CollapsedDims<N> planes = collapse<N>(layouts, 0b11u);
  PlanePart<N> part;
  for (part.first[0] = 0; part.first[0] < shape[2]; part.first[0] += rows) {
    const int64_t here = std::min(rows, shape[2] - part.first[0]);
    part.rows = Divider(static_cast<uint32_t>(here));
    for (part.first[1] = 0; part.first[1] < shape[3]; part.first[1] += columns) {
      const int64_t across = std::min(columns, shape[3] - part.first[1]);
      part.columns = Divider(static_cast<uint32_t>(across));
      planes.for_each_piece(here * across * threads, [&](const auto& index, const auto& start) {
        part.planes = index;
        part.elems = static_cast<uint32_t>(index.elems * here * across);
        body(part, start);
      });
    }
  }
}

}  // namespace wick::gpu
