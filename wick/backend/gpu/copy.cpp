// The same elements under another layout: kernels/copy.gpu and kernels/transpose.gpu.

#include <fmt/format.h>

#include "wick/backend/gpu/gpu_backend.h"
#include "wick/backend/gpu/kernels/tile.h"
#include "wick/backend/gpu/map_space.h"

namespace wick::gpu {
namespace {

/// Rows and columns from which a tile through shared memory is worth it.
constexpr int64_t kShort = 8;

/// The dim that is dense in the input while the innermost, dense in the output, isn't; −1: none
/// that is long enough.
int input_columns(const Space<2>& space) {
  if (space.dims.size() < 2) return -1;
  const auto& inner = space.dims.back();
  if (inner.stride[0] != 1 || inner.size < kShort || std::abs(inner.stride[1]) <= 1) return -1;
  for (size_t d = 0; d + 1 < space.dims.size(); ++d) {
    if (space.dims[d].stride[1] == 1 && space.dims[d].size >= kShort) return static_cast<int>(d);
  }
  return -1;
}

/// Units that share a word of a tile: all that a word has room for, if sizes, places and strides
/// are multiples of it.
uint32_t units_together(const Space<2>& space, const std::array<Operand, 2>& operands,
                        size_t across) {
  const int64_t bytes = operands[0].bytes, count = bytes < 4 ? 4 / bytes : 1;
  const size_t inner = space.dims.size() - 1;
  bool fits = space.dims[inner].size % count == 0 && space.dims[across].size % count == 0;
  for (size_t k = 0; k < 2; ++k) {
    fits = fits && operands[k].is_aligned(space.start[k], 4);
    for (size_t d = 0; d <= inner; ++d) {
      const bool dense = d == (k == 0 ? inner : across);
      fits = fits && (dense || space.dims[d].stride[k] % count == 0);
    }
  }
  return fits ? static_cast<uint32_t>(count) : 1;
}

void copy_turned(Gpu& gpu, const Space<2>& space, const std::array<Operand, 2>& operands,
                 size_t across) {
  constexpr int64_t kMost = int64_t{1} << 30;
  const auto rows = space.dims.back(), cols = space.dims[across];
  if (std::max(rows.size, cols.size) > kMost) {
    const size_t dim = rows.size > cols.size ? space.dims.size() - 1 : across;
    const auto [low, high] = split(space, dim, kMost);
    copy_turned(gpu, low, operands, across);
    return copy_turned(gpu, high, operands, across);
  }
  const auto bytes = static_cast<uint32_t>(operands[0].bytes);
  const uint32_t together = units_together(space, operands, across);
  const auto side = static_cast<int64_t>(tile_side(bytes, together));
  const int64_t high = (rows.size + side - 1) / side, wide = (cols.size + side - 1) / side;
  const std::string kernel = fmt::format("transpose_{}{}", bytes, together > 1 ? "_together" : "");

  Transposition t;
  t.rows = static_cast<uint32_t>(rows.size);
  t.cols = static_cast<uint32_t>(cols.size);
  t.in_row = rows.stride[1];
  t.out_col = cols.stride[0];
  t.tiles_wide = Divider(static_cast<uint32_t>(wide));
  t.tiles = Divider(static_cast<uint32_t>(high * wide));
  Space<2> outer;
  outer.start = space.start;
  for (size_t d = 0; d + 1 < space.dims.size(); ++d) {
    if (d != across) outer.add(space.dims[d].size, space.dims[d].stride);
  }
  outer.for_each_piece([&](const Nest<2>& nest, const auto& start) {
    t.outer = nest;
    Grid grid;
    grid.groups[0] = static_cast<unsigned>(nest.elems * high * wide);
    grid.items = kMapItems;
    grid.early = true;
    gpu.launch("transpose", kernel, grid, operands[0].at(start[0]), operands[1].at(start[1]), t);
  });
}

}  // namespace

void GpuBackend::copy(const View& out, const ConstView& in) {
  const Space<2> elements = map_space<2>({&out.layout, &in.layout});
  if (elements.elems == 0) return;
  const std::array whole{Operand(out), Operand(in)};
  if (elements.dims.empty() ||
      (elements.dims.size() == 1 && elements.dims[0].stride == std::array<int64_t, 2>{1, 1})) {
    gpu_.enter();
    gpu_.check(gpu_.driver.api.copy_on_device(
                   whole[0].at(elements.start[0]), whole[1].at(elements.start[1]),
                   static_cast<size_t>(elements.elems * whole[0].bytes), gpu_.stream()),
               "copying on the device");
    return;
  }
  const auto [space, operands] = in_units<2>(elements, whole);
  if (const int across = input_columns(space); across >= 0) {
    return copy_turned(gpu_, space, operands, static_cast<size_t>(across));
  }
  const int64_t bytes = operands[0].bytes;
  const std::string kernel = fmt::format("copy_{}", bytes);
  for_each_tiled(space, [&, &operands = operands](const Space<2>& part) {
    part.for_each_piece([&](const Nest<2>& nest, const auto& start) {
      gpu_.launch("copy", kernel,
                  spread(gpu_, nest.elems, copy_unroll(static_cast<uint32_t>(bytes))),
                  operands[0].at(start[0]), operands[1].at(start[1]), nest);
    });
  });
}

}  // namespace wick::gpu
