// Copies to another layout: kernels/move/copy.gpu, transpose.gpu and interleave.gpu.

#include <optional>

#include "wick/backend/gpu/gpu_backend.h"
#include "wick/backend/gpu/kernels/move/move_abi.h"
#include "wick/backend/gpu/layout/map_dims.h"

namespace wick::gpu {
namespace {

const KernelFamily<CopyArgs, OneOf<1, 2, 4, 8, 16>> kCopy("copy", "copy_{}");
const KernelFamily<CopyWindowsArgs, OneOf<1, 2, 4>> kCopyWindows("copy", "copy_windows_{}");
const KernelFamily<TransposeArgs, OneOf<1, 2, 4, 8, 16>> kTranspose("transpose", "transpose_{}");
const KernelFamily<TransposeArgs, OneOf<1, 2>> kTransposeTogether("transpose",
                                                                  "transpose_{}_together");
const KernelFamily<InterleaveArgs, OneOf<1, 2, 4>> kDeinterleave("interleave", "deinterleave_{}");
const KernelFamily<InterleaveArgs, OneOf<1, 2, 4>> kInterleave("interleave", "interleave_{}");

/// The fewest rows and columns for which a tile in shared memory pays.
constexpr int64_t kShort = 8;

/// The dim that is dense in the input while the innermost dim, which is dense in the output, isn't;
/// −1 if there is none that is long enough.
int input_columns(const CollapsedDims<2>& collapsed) {
  if (collapsed.dims.size() < 2) return -1;
  const auto& inner = collapsed.dims.back();
  if (inner.stride[0] != 1 || inner.size < kShort || std::abs(inner.stride[1]) <= 1) return -1;
  for (size_t d = 0; d + 1 < collapsed.dims.size(); ++d) {
    if (collapsed.dims[d].stride[1] == 1 && collapsed.dims[d].size >= kShort)
      return static_cast<int>(d);
  }
  return -1;
}

/// Units that share a word of a tile: as many as fit, if sizes, addresses and strides are multiples
/// of that number; otherwise 1.
uint32_t units_together(const CollapsedDims<2>& collapsed, const std::array<Operand, 2>& operands,
                        size_t across) {
  const int64_t bytes = operands[0].bytes, count = bytes < 4 ? 4 / bytes : 1;
  const size_t inner = collapsed.dims.size() - 1;
  bool fits = collapsed.dims[inner].size % count == 0 && collapsed.dims[across].size % count == 0;
  for (size_t k = 0; k < 2; ++k) {
    const size_t along = k == 0 ? inner : across;
    fits = fits && access_of(collapsed, k, operands[k], along).vectors_of(count);
  }
  return fits ? static_cast<uint32_t>(count) : 1;
}

void copy_turned(Gpu& gpu, const CollapsedDims<2>& collapsed,
                 const std::array<Operand, 2>& operands, size_t across) {
  constexpr int64_t kMost = int64_t{1} << 30;
  const auto rows = collapsed.dims.back(), cols = collapsed.dims[across];
  if (std::max(rows.size, cols.size) > kMost) {
    const size_t dim = rows.size > cols.size ? collapsed.dims.size() - 1 : across;
    const auto [low, high] = split(collapsed, dim, kMost);
    copy_turned(gpu, low, operands, across);
    return copy_turned(gpu, high, operands, across);
  }
  const auto bytes = static_cast<uint32_t>(operands[0].bytes);
  const uint32_t together = units_together(collapsed, operands, across);
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
  CollapsedDims<2> outer;
  outer.start = collapsed.start;
  for (size_t d = 0; d + 1 < collapsed.dims.size(); ++d) {
    if (d != across) outer.add(collapsed.dims[d].size, collapsed.dims[d].stride);
  }
  outer.for_each_piece(
      high * wide * kMapThreads, [&](const StridedIndex<2>& strided, const auto& start) {
        t.outer = strided;
        Grid grid;
        grid.blocks[0] = static_cast<unsigned>(strided.elems * high * wide);
        grid.threads = kMapThreads;
        grid.pdl = true;
        kernel.launch(gpu, grid, {operands[0].at(start[0]), operands[1].at(start[1]), t});
      });
}

/// Whether an operand's runs along a dim begin at multiples of 16 bytes.
bool begins_aligned(const CollapsedDims<2>& collapsed, const Operand& operand, size_t k,
                    size_t along) {
  return access_of(collapsed, k, operand, along).begins_at(16);
}

/// The dims of interleaved and of separate channels.
struct InterleaveDims {
  size_t plane, place;  ///< the dims that count channels (planes) and their elements
  bool interleaves;     ///< the output is interleaved, not the input
};

/// Finds planes of small units on one side that are interleaved without gaps on the other side.
std::optional<InterleaveDims> interleave_dims(const CollapsedDims<2>& collapsed, int64_t bytes) {
  constexpr int64_t kLeast =
      kInterleaveBytes / 4;  // bytes of an image, so that a thread block has one or more
  if (collapsed.dims.size() < 2 || bytes > 4) return std::nullopt;
  const size_t inner = collapsed.dims.size() - 1;
  for (size_t d = 0; d < inner; ++d) {
    for (const bool interleaves : {false, true}) {
      const auto& planes = collapsed.dims[interleaves ? inner : d];
      const auto& places = collapsed.dims[interleaves ? d : inner];
      const size_t dense = interleaves ? 0 : 1;  // the operand without gaps
      if (planes.size <= kMostPlanes && planes.size * places.size * bytes >= kLeast &&
          places.size < int64_t{1} << 30 && planes.stride[dense] == 1 &&
          places.stride[dense] == planes.size && places.stride[1 - dense] == 1) {
        return InterleaveDims{interleaves ? inner : d, interleaves ? d : inner, interleaves};
      }
    }
  }
  return std::nullopt;
}

void copy_interleaved(Gpu& gpu, const CollapsedDims<2>& collapsed,
                      const std::array<Operand, 2>& operands, const InterleaveDims& dims) {
  const auto &planes = collapsed.dims[dims.plane], &places = collapsed.dims[dims.place];
  const int64_t bytes = operands[0].bytes;
  // Planes that begin at any address need one more window.
  const size_t apart = dims.interleaves ? 1 : 0;
  const int64_t ends = begins_aligned(collapsed, operands[apart], apart, dims.place) ? 0 : 1;
  const int64_t tile =
      (kInterleaveBytes - 16 * ends * planes.size) / (planes.size * bytes) / 16 * 16;
  const int64_t tiles = divide_up(places.size, tile);
  Interleave p;
  p.count = static_cast<uint32_t>(planes.size);
  p.n = static_cast<uint32_t>(places.size);
  p.plane = planes.stride[apart];
  p.tile = static_cast<uint32_t>(tile);
  p.tiles = Divider(static_cast<uint32_t>(tiles));
  p.each = Divider(p.count);
  p.windows = Divider(static_cast<uint32_t>(tile * bytes / 16 + ends));
  CollapsedDims<2> images;
  images.start = collapsed.start;
  for (size_t d = 0; d < collapsed.dims.size(); ++d) {
    if (d != dims.plane && d != dims.place)
      images.add(collapsed.dims[d].size, collapsed.dims[d].stride);
  }
  const Kernel<InterleaveArgs> kernel =
      dims.interleaves ? kInterleave(bytes) : kDeinterleave(bytes);
  images.for_each_piece(
      tiles * kMapThreads, [&](const StridedIndex<2>& strided, const auto& start) {
        p.outer = strided;
        Grid grid;
        grid.blocks[0] = static_cast<unsigned>(strided.elems * tiles);
        grid.threads = kMapThreads;
        grid.pdl = true;
        kernel.launch(gpu, grid, {operands[0].at(start[0]), operands[1].at(start[1]), p});
      });
}

/// Whether the rows of the output are dense, of small units, and have few enough windows for a
/// strided index.
bool has_windows(const CollapsedDims<2>& collapsed, int64_t bytes) {
  if (bytes > 4 || collapsed.dims.empty() || turned_dim(collapsed) >= 0) return false;
  const auto& inner = collapsed.dims.back();
  const int64_t row = inner.size * bytes;
  return inner.stride[0] == 1 && row >= 64 && row < int64_t{1} << 33;
}

void copy_windows(Gpu& gpu, const CollapsedDims<2>& collapsed,
                  const std::array<Operand, 2>& operands) {
  const int64_t bytes = operands[0].bytes, units = 16 / bytes;
  const auto inner = collapsed.dims.back();
  const bool aligned = begins_aligned(collapsed, operands[0], 0, collapsed.dims.size() - 1);
  CollapsedDims<2> windows = collapsed;
  auto& last = windows.dims.back();
  last.size = divide_up(inner.size, units) + (aligned ? 0 : 1);
  for (int64_t& stride : last.stride) stride *= units;
  windows.elems = collapsed.elems / inner.size * last.size;
  windows.for_each_piece([&](const StridedIndex<2>& strided, const auto& start) {
    kCopyWindows(bytes).launch(gpu, spread(gpu, strided.elems, 1),
                               {operands[0].at(start[0]),
                                operands[1].at(start[1]),
                                strided,
                                {inner.size, inner.stride[1]}});
  });
}

}  // namespace

void GpuBackend::copy(const View& out, const ConstView& in) {
  const CollapsedDims<2> elements = collapse_for_map<2>({&out.layout, &in.layout});
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
  const auto [collapsed, operands] = in_units<2>(elements, whole);
  if (const auto planes = interleave_dims(collapsed, operands[0].bytes)) {
    return copy_interleaved(gpu_, collapsed, operands, *planes);
  }
  if (const int across = input_columns(collapsed); across >= 0) {
    return copy_turned(gpu_, collapsed, operands, static_cast<size_t>(across));
  }
  if (has_windows(collapsed, operands[0].bytes)) return copy_windows(gpu_, collapsed, operands);
  const int64_t bytes = operands[0].bytes;
  for_each_tiled(collapsed, [&, &operands = operands](const CollapsedDims<2>& part) {
    part.for_each_piece([&](const StridedIndex<2>& strided, const auto& start) {
      kCopy(bytes).launch(gpu_,
                          spread(gpu_, strided.elems, copy_unroll(static_cast<uint32_t>(bytes))),
                          {operands[0].at(start[0]), operands[1].at(start[1]), strided});
    });
  });
}

}  // namespace wick::gpu
