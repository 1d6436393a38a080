// The same elements under another layout: kernels/move/copy.gpu, transpose.gpu and planes.gpu.

#include <optional>

#include "wick/backend/gpu/gpu_backend.h"
#include "wick/backend/gpu/kernels/move/move_abi.h"
#include "wick/backend/gpu/layout/map_space.h"

namespace wick::gpu {
namespace {

const KernelFamily<CopyArgs, OneOf<1, 2, 4, 8, 16>> kCopy("copy", "copy_{}");
const KernelFamily<CopyWindowsArgs, OneOf<1, 2, 4>> kCopyWindows("copy", "copy_windows_{}");
const KernelFamily<TransposeArgs, OneOf<1, 2, 4, 8, 16>> kTranspose("transpose", "transpose_{}");
const KernelFamily<TransposeArgs, OneOf<1, 2>> kTransposeTogether("transpose",
                                                                  "transpose_{}_together");
const KernelFamily<PlanesArgs, OneOf<1, 2, 4>> kSplitPlanes("planes", "split_planes_{}");
const KernelFamily<PlanesArgs, OneOf<1, 2, 4>> kJoinPlanes("planes", "join_planes_{}");

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
    const size_t along = k == 0 ? inner : across;
    fits = fits && access_of(space, k, operands[k], along).vectors_of(count);
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
  const Kernel<TransposeArgs> kernel = together > 1 ? kTransposeTogether(bytes) : kTranspose(bytes);

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
  outer.for_each_piece(high * wide * kMapItems, [&](const Nest<2>& nest, const auto& start) {
    t.outer = nest;
    Grid grid;
    grid.groups[0] = static_cast<unsigned>(nest.elems * high * wide);
    grid.items = kMapItems;
    grid.early = true;
    kernel.launch(gpu, grid, {operands[0].at(start[0]), operands[1].at(start[1]), t});
  });
}

/// Whether an operand's runs along a dim begin at multiples of 16 bytes.
bool begins_aligned(const Space<2>& space, const Operand& operand, size_t k, size_t along) {
  return access_of(space, k, operand, along).begins_at(16);
}

/// How planes lie in a space.
struct PlaneDims {
  size_t plane, place;  ///< which dims count them and their elements
  bool join;            ///< their elements are interleaved in the output, not in the input
};

/// Some planes of small units on one side, interleaved without gaps on the other.
std::optional<PlaneDims> plane_dims(const Space<2>& space, int64_t bytes) {
  constexpr int64_t kLeast = kPlanesBytes / 4;  // bytes of an image: a group has one or more
  if (space.dims.size() < 2 || bytes > 4) return std::nullopt;
  const size_t inner = space.dims.size() - 1;
  for (size_t d = 0; d < inner; ++d) {
    for (const bool join : {false, true}) {
      const auto& planes = space.dims[join ? inner : d];
      const auto& places = space.dims[join ? d : inner];
      const size_t dense = join ? 0 : 1;  // the operand without gaps
      if (planes.size <= kMostPlanes && planes.size * places.size * bytes >= kLeast &&
          places.size < int64_t{1} << 30 && planes.stride[dense] == 1 &&
          places.stride[dense] == planes.size && places.stride[1 - dense] == 1) {
        return PlaneDims{join ? inner : d, join ? d : inner, join};
      }
    }
  }
  return std::nullopt;
}

void copy_planes(Gpu& gpu, const Space<2>& space, const std::array<Operand, 2>& operands,
                 const PlaneDims& dims) {
  const auto &planes = space.dims[dims.plane], &places = space.dims[dims.place];
  const int64_t bytes = operands[0].bytes;
  // Planes that begin anywhere have the end of a window more.
  const size_t apart = dims.join ? 1 : 0;
  const int64_t ends = begins_aligned(space, operands[apart], apart, dims.place) ? 0 : 1;
  const int64_t tile = (kPlanesBytes - 16 * ends * planes.size) / (planes.size * bytes) / 16 * 16;
  const int64_t tiles = divide_up(places.size, tile);
  Planes p;
  p.count = static_cast<uint32_t>(planes.size);
  p.n = static_cast<uint32_t>(places.size);
  p.plane = planes.stride[apart];
  p.tile = static_cast<uint32_t>(tile);
  p.tiles = Divider(static_cast<uint32_t>(tiles));
  p.each = Divider(p.count);
  p.windows = Divider(static_cast<uint32_t>(tile * bytes / 16 + ends));
  Space<2> images;
  images.start = space.start;
  for (size_t d = 0; d < space.dims.size(); ++d) {
    if (d != dims.plane && d != dims.place) images.add(space.dims[d].size, space.dims[d].stride);
  }
  const Kernel<PlanesArgs> kernel = dims.join ? kJoinPlanes(bytes) : kSplitPlanes(bytes);
  images.for_each_piece(tiles * kMapItems, [&](const Nest<2>& nest, const auto& start) {
    p.outer = nest;
    Grid grid;
    grid.groups[0] = static_cast<unsigned>(nest.elems * tiles);
    grid.items = kMapItems;
    grid.early = true;
    kernel.launch(gpu, grid, {operands[0].at(start[0]), operands[1].at(start[1]), p});
  });
}

/// Rows of small units that are dense in the output, of as many windows as a nest can count.
bool has_windows(const Space<2>& space, int64_t bytes) {
  if (bytes > 4 || space.dims.empty() || turned_dim(space) >= 0) return false;
  const auto& inner = space.dims.back();
  const int64_t row = inner.size * bytes;
  return inner.stride[0] == 1 && row >= 64 && row < int64_t{1} << 33;
}

void copy_windows(Gpu& gpu, const Space<2>& space, const std::array<Operand, 2>& operands) {
  const int64_t bytes = operands[0].bytes, units = 16 / bytes;
  const auto inner = space.dims.back();
  const bool aligned = begins_aligned(space, operands[0], 0, space.dims.size() - 1);
  Space<2> windows = space;
  auto& last = windows.dims.back();
  last.size = divide_up(inner.size, units) + (aligned ? 0 : 1);
  for (int64_t& stride : last.stride) stride *= units;
  windows.elems = space.elems / inner.size * last.size;
  windows.for_each_piece([&](const Nest<2>& nest, const auto& start) {
    kCopyWindows(bytes).launch(
        gpu, spread(gpu, nest.elems, 1),
        {operands[0].at(start[0]), operands[1].at(start[1]), nest, {inner.size, inner.stride[1]}});
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
  if (const auto planes = plane_dims(space, operands[0].bytes)) {
    return copy_planes(gpu_, space, operands, *planes);
  }
  if (const int across = input_columns(space); across >= 0) {
    return copy_turned(gpu_, space, operands, static_cast<size_t>(across));
  }
  if (has_windows(space, operands[0].bytes)) return copy_windows(gpu_, space, operands);
  const int64_t bytes = operands[0].bytes;
  for_each_tiled(space, [&, &operands = operands](const Space<2>& part) {
    part.for_each_piece([&](const Nest<2>& nest, const auto& start) {
      kCopy(bytes).launch(gpu_, spread(gpu_, nest.elems, copy_unroll(static_cast<uint32_t>(bytes))),
                          {operands[0].at(start[0]), operands[1].at(start[1]), nest});
    });
  });
}

}  // namespace wick::gpu
