#include "wick/backend/gpu/spatial/conv_planes.h"

#include <algorithm>

#include "wick/backend/gpu/driver/kernel.h"
#include "wick/backend/gpu/kernels/spatial/conv_abi.h"
#include "wick/backend/gpu/layout/collapsed_dims.h"
#include "wick/backend/gpu/linear/gemm.h"

namespace wick::gpu {
namespace {

const KernelFamily<ConvPlanesArgs, DType, OneOf<3, 5, 7>, OneOf<1, 2>> kConvPlanes(
    "conv_planes", "conv_planes_{}_{}_{}");

/// The most outputs of a tile along each axis, for strides of 1 and 2: the tile's input takes up to
/// 20 KiB of shared memory.
constexpr int64_t kMostOutputs = 64, kMostStrided = 32;
/// The most output channels for each input channel. With more, gemms read the input less often.
constexpr int64_t kMostMultiplier = 4;
/// The most bytes of inputs in shared memory: several thread blocks fit a multiprocessor.
constexpr int64_t kMostBytes = 32 << 10;

bool is_taken(const ConstView& x, const ConstView& w, const ConvParams& p) {
  const Shape& shape = w.layout.shape();
  const bool dtypes = x.dtype == DType::f32 || x.dtype == DType::f16 || x.dtype == DType::bf16;
  const int64_t side = shape[2];
  return dtypes && shape[1] == 1 && shape[0] <= kMostMultiplier * p.groups && side == shape[3] &&
         (side == 3 || side == 5 || side == 7) && p.stride[0] == p.stride[1] && p.stride[0] <= 2 &&
         p.dilation[0] == 1 && p.dilation[1] == 1 && x.layout.shape()[2] < INT32_MAX / 4 &&
         x.layout.shape()[3] < INT32_MAX / 4 &&
         std::max(p.padding[0], p.padding[1]) < INT32_MAX / 4;
}

/// Divides `size` outputs into tiles of nearly the same size, a multiple of `unit`.
uint32_t tile_of(int64_t size, int64_t most, int64_t unit) {
  const int64_t tiles = divide_up(size, most);
  return static_cast<uint32_t>(divide_up(divide_up(size, tiles), unit) * unit);
}

}  // namespace

bool convolve_planes(Gpu& gpu, const View& out, const ConstView& x, const ConstView& w,
                     const ConvParams& params) {
  if (!is_taken(x, w, params)) return false;
  const Shape &to = out.layout.shape(), &from = x.layout.shape();
  const int64_t side = w.layout.shape()[2], stride = params.stride[0];
  const int64_t most = stride == 1 ? kMostOutputs : kMostStrided;
  const auto u32_of = [](int64_t n) { return static_cast<uint32_t>(n); };

  ConvPlanesArgs a = {};
  a.out = advance(out.data, out.dtype, out.layout.offset());
  a.in = advance(x.data, x.dtype, x.layout.offset());
  a.weights = advance(w.data, w.dtype, w.layout.offset());
  a.channels = u32_of(to[1]);
  a.multiplier = u32_of(to[1] / params.groups);
  a.in_h = u32_of(from[2]), a.in_w = u32_of(from[3]);
  a.out_h = u32_of(to[2]), a.out_w = u32_of(to[3]);
  a.pad_y = static_cast<int32_t>(params.padding[0]);
  a.pad_x = static_cast<int32_t>(params.padding[1]);
  a.tile_h = tile_of(to[2], most, kPlaneRows), a.tile_w = tile_of(to[3], most, kPlaneColumns);
  a.tiles_y = u32_of(divide_up(to[2], a.tile_h)), a.tiles_x = u32_of(divide_up(to[3], a.tile_w));
  a.in_rows = u32_of((a.tile_h - 1) * stride + side);
  a.pitch = u32_of(divide_up((a.tile_w - 1) * stride + side, 4) * 4);
  const Layout &lx = x.layout, &lo = out.layout, &lw = w.layout;
  a.in_batch = lx.stride(0), a.in_channel = lx.stride(1);
  a.in_row = lx.stride(2), a.in_column = lx.stride(3);
  a.out_batch = lo.stride(0), a.out_channel = lo.stride(1);
  a.out_row = lo.stride(2), a.out_column = lo.stride(3);
  a.weight_out = lw.stride(0), a.weight_row = lw.stride(2), a.weight_column = lw.stride(3);
  a.vectors = to[3] % kPlaneColumns == 0 && access_of(out).vectors_of(kPlaneColumns) ? 1 : 0;

  const int64_t bytes = (int64_t{a.in_rows} * a.pitch) * int64_t{sizeof(float)};
  const int64_t tasks = int64_t{a.tile_h / kPlaneRows} * (a.tile_w / kPlaneColumns);
  const int64_t all = to[0] * to[1], tiles = int64_t{a.tiles_y} * a.tiles_x;
  const bool whole = tiles == 1;
  const int64_t planes =
      whole ? std::clamp<int64_t>(std::min(kPlaneThreads / tasks, kMostBytes / bytes), 1, all) : 1;
  a.planes = u32_of(planes);
  const auto shared =
      static_cast<unsigned>(planes * (bytes + side * side * int64_t{sizeof(float)}));
  if (shared > static_cast<unsigned>(gpu.info.shared_bytes) || all > UINT32_MAX / 2 ||
      tiles > kMostBlocks) {
    return false;
  }
  const int64_t at_once = std::max<int64_t>(kMostBlocks / tiles, 1) * planes;
  for (int64_t first = 0; first < all; first += at_once) {
    a.first = u32_of(first), a.end = u32_of(std::min(first + at_once, all));
    const int64_t blocks = divide_up(a.end - a.first, planes) * tiles;
    kConvPlanes(x.dtype, side, stride)
        .launch(gpu,
                Grid{.blocks = {u32_of(blocks), 1, 1},
                     .threads = kPlaneThreads,
                     .shared_bytes = shared,
                     .pdl = true},
                a);
  }
  return true;
}

}  // namespace wick::gpu
