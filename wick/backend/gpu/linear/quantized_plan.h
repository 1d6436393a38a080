#pragma once

// What the launches of gemms with quantised weights share: with one weight (quantized_gemm.cpp) and
// in grouped_linear (quantized_grouped.cpp).

#include <algorithm>
#include <string_view>

#include "wick/backend/gpu/linear/quantized_weight.h"

namespace wick::gpu {

/// Shared memory that a kernel may use without allow_shared, on every device.
inline constexpr uint32_t kSharedBytes = 48 << 10;

inline bool is_amd(const Gpu& gpu) { return gpu.device.kind == DeviceKind::hip; }

/// The file of the wgmma kernels of a dtype.
inline std::string_view wgmma_file(DType dtype) {
  if (dtype == DType::q6_k) return "quantized_wgmma_six";
  return unit_format(dtype).halves != 0 ? "quantized_wgmma_super" : "quantized_wgmma";
}
/// The grid of the wgmma kernels of a dtype for so many tiles.
inline Grid wgmma_grid(const Gpu& gpu, DType dtype, uint32_t tiles) {
  const uint32_t stage = wgmma_stage_bytes(unit_format(dtype));
  Grid grid{{std::min(tiles, static_cast<uint32_t>(gpu.info.multiprocessors)), 1, 1}};
  grid.threads = kWgmmaQuantizedThreads;
  grid.shared_bytes = wgmma_stages(stage) * (stage + kWgmmaBarrierBytes);
  grid.pdl = true;
  return grid;
}
/// Launches the kernel that prepares activations for weights of a dtype, for `columns` columns with
/// those that pad the last tile. Sets args.nibbles.
void tile_columns(Gpu& gpu, DType dtype, uint32_t columns, TileColumnsArgs args);

/// Times of the two kernels in the same unit, for R rows and C tiles of 32 columns: wgmma takes
/// `round` for each round of thread blocks, batch takes C · (R + more). Those of q4_0, q4_1, q8_0
/// and q4_k have been measured on an H100; those of q6_k are an estimate; other formats have those
/// of the most similar one.
struct GemmTimes {
  uint32_t round = 16800, more = 2600;

  explicit GemmTimes(DType type) {
    const UnitFormat format = unit_format(type);
    if (type == DType::q6_k) {
      round = 27000, more = 4000;
    } else if (format.halves != 0) {
      round = 16200, more = 3100;
    } else if (format.minimum) {
      round = 32500, more = 3900;
    } else if (format.offset != 0) {
      round = 23000, more = 4850;
    }
  }
};

/// The thread blocks of kernels/linear/quantized_int8.gpu along x, and their shared memory; along y
/// there are `along_y`.
inline Grid int8_grid(const Gpu& gpu, const QuantizedWeight& weight, uint32_t along_y) {
  const UnitFormat format = unit_format(weight.dtype);
  Grid grid{{(weight.row_groups() + kInt8RowGroups - 1) / kInt8RowGroups, along_y, 1}};
  grid.threads = kInt8Threads;
  grid.shared_bytes =
      int8_rows_bytes(format) + staged_bytes(kInt8Columns, 1, takes_sums(format), is_amd(gpu));
  grid.pdl = true;
  return grid;
}
/// Those of kernels/linear/quantized_small_m.gpu.
inline Grid small_m_grid(const Gpu& gpu, const QuantizedWeight& weight, uint32_t along_y) {
  const uint32_t waves = kSmallMQuantizedThreads / static_cast<uint32_t>(gpu.info.wave);
  Grid grid{{(weight.row_groups() + kSmallMRowGroups - 1) / kSmallMRowGroups, along_y, 1}};
  grid.threads = kSmallMQuantizedThreads;
  grid.shared_bytes = small_m_bytes(waves, takes_sums(unit_format(weight.dtype)), is_amd(gpu));
  grid.pdl = true;
  return grid;
}

/// The grid and the shared memory of kernels/linear/quantized_batch.gpu for thread blocks of
/// `columns` columns. thread_blocks: wanted along x; there are more if a segment needs too much
/// shared memory, and at most as many as row tiles.
struct BatchPlan {
  uint32_t columns, thread_blocks, segment, shared;

  BatchPlan(const Gpu& gpu, uint32_t width, uint32_t tiles, uint32_t chunks, uint32_t wanted)
      : columns(width), thread_blocks(std::min(tiles, wanted)) {
    const auto most = static_cast<uint32_t>(gpu.info.shared_bytes);
    // Either all chunks at once, or segments in two alternating buffers with the sums kept in
    // between.
    if (fits(chunks, 1, 0, most)) return;
    for (;; thread_blocks = std::min(2 * thread_blocks, tiles)) {
      for (const uint32_t chunks_each : {32, 16, 8, 4, 2}) {
        if (fits(chunks_each, 2, (tiles + thread_blocks - 1) / thread_blocks, most)) return;
      }
    }
  }

 private:
  bool fits(uint32_t chunks_each, uint32_t buffers, uint32_t kept, uint32_t most) {
    segment = chunks_each;
    shared = batch_bytes(columns, chunks_each, buffers, kept);
    return shared <= most;
  }
};

}  // namespace wick::gpu
