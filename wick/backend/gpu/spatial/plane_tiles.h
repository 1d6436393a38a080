#pragma once

// Splits dense planes into tiles that thread blocks copy through shared memory, on AMD:
// kernels/spatial/plane_tiles.h.

#include <cstdint>
#include <functional>
#include <optional>

#include "wick/backend/gpu/driver/gpu.h"
#include "wick/backend/gpu/kernels/spatial/spatial_abi.h"

namespace wick::gpu {

struct TilePlan {
  PlaneTiles tiles;
  unsigned blocks, shared_bytes;
  uint32_t extra_at;  ///< where a kernel's own shared memory lies, in units of 16 bytes
};

/// What a kernel needs to know of the planes.
struct TileNeeds {
  /// The most input rows that some output rows of one plane need.
  std::function<int64_t(int64_t rows)> in_rows;
  /// Bytes of shared memory beside the elements, for some output rows.
  std::function<int64_t(int64_t rows)> extra = [](int64_t) { return 0; };
};

/// Nothing for devices and layouts that the kernels don't take: they need AMD's devices, tensors
/// [b, c, h, w] that are contiguous, begin at multiples of 16 bytes and have fewer than 2^30
/// elements, and rows that fit shared memory.
std::optional<TilePlan> plan_tiles(const Gpu& gpu, const View& out, const ConstView& in,
                                   const TileNeeds& needs);

}  // namespace wick::gpu
