#include "wick/backend/gpu/norm.h"

#include <fmt/format.h>

#include <algorithm>

#include "wick/backend/gpu/gpu_backend.h"
#include "wick/backend/gpu/reduce_plan.h"

namespace wick::gpu {
namespace {

constexpr int64_t kChunk = 4096, kAccumulators = 128;
constexpr unsigned kItems = 256, kColumnItems = 512;

// As in kernels/norm_lines.gpu.
struct Weights {
  const void* data;
  int64_t step;
  uint32_t f32;
};

/// Rows along a dim, `each` neighbouring accumulators an item, and the groups they take.
NormRows rows_of(const Gpu& gpu, const Reduction& reduction, const Nest<2>& kept, const Layout& out,
                 int dim, int64_t each, Grid& grid) {
  NormRows rows;
  rows.kept = kept;
  rows.n = static_cast<uint64_t>(reduction.n);
  rows.in_step = reduction.reduced_step();
  rows.out_step = out.stride(dim);
  const int64_t n = reduction.n;
  rows.width_log = ceil_log(static_cast<uint64_t>(divide_up(std::min(n, kAccumulators), each)));
  rows.chunks_log = std::min(ceil_log(static_cast<uint64_t>(divide_up(n, kChunk))), 3u);
  const uint32_t row_items = 1u << (rows.width_log + rows.chunks_log);
  const uint64_t items = uint64_t{kept.elems} * row_items;
  const auto enough = 2 * static_cast<uint64_t>(gpu.info.processors);
  grid.items = std::max(kItems, row_items);
  while (grid.items > std::max(row_items, 64u) && items < enough * grid.items) grid.items /= 2;
  grid.groups[0] = static_cast<unsigned>((items + grid.items - 1) / grid.items);
  return rows;
}

}  // namespace

void rms_norm(Gpu& gpu, const View& out, const ConstView& in, const ConstView& weight, float eps) {
  if (out.layout.elems() == 0) return;
  const int dim = in.layout.rank() - 1;
  const Reduction reduction(in.layout, out.layout, 1u << dim);
  const Weights weights{advance(weight.data, weight.dtype, weight.layout.offset()),
                        weight.layout.stride(0), weight.dtype == DType::f32 ? 1u : 0u};
  reduction.kept.for_each_piece([&](const Nest<2>& kept, const auto& start) {
    const void* x = advance(in.data, in.dtype, start[0]);
    void* y = advance(out.data, out.dtype, start[1]);
    Grid grid;
    const NormRows rows = rows_of(gpu, reduction, kept, out.layout, dim, 4, grid);
    gpu.launch("norm_lines", fmt::format("rms_norm_lines_{}", name(in.dtype)), grid, y, x, weights,
               rows, eps);
  });
}

void GpuBackend::rms_norm(const View& out, const ConstView& in, const ConstView& weight,
                          float eps) {
  gpu::rms_norm(gpu_, out, in, weight, eps);
}

void GpuBackend::softmax(const View& out, const ConstView& in, int dim, bool log) {
  if (out.layout.elems() == 0) return;
  const Reduction reduction(in.layout, out.layout, 1u << dim);
  const uint32_t wants_log = log ? 1 : 0;
  reduction.kept.for_each_piece([&](const Nest<2>& kept, const auto& start) {
    const void* x = advance(in.data, in.dtype, start[0]);
    void* y = advance(out.data, out.dtype, start[1]);
    Grid grid;
    if (!reduction.is_across()) {
      const NormRows rows = rows_of(gpu_, reduction, kept, out.layout, dim, 4, grid);
      gpu_.launch("softmax", fmt::format("softmax_lines_{}", name(in.dtype)), grid, y, x, rows,
                  wants_log);
      return;
    }
    Columns c = columns_of(kept, reduction.n);
    c.lanes_log =
        ceil_log(static_cast<uint64_t>(divide_up(std::min(reduction.n, kAccumulators), 4)));
    c.across_log = std::min(ceil_log(c.columns), ceil_log(kColumnItems >> c.lanes_log));
    c.across_log = std::max(c.across_log, 5 - c.lanes_log);
    c.strips = (c.columns + (1u << c.across_log) - 1) >> c.across_log;
    grid.items = 1u << (c.lanes_log + c.across_log);
    grid.groups[0] = c.outer.elems * c.strips;
    gpu_.launch("softmax", fmt::format("softmax_columns_{}", name(in.dtype)), grid, y, x, c,
                reduction.reduced_step(), out.layout.stride(dim), wants_log);
  });
}

}  // namespace wick::gpu
