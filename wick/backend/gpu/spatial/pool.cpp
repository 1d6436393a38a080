// Pools and their gradients: kernels/spatial/pool.gpu, pool_grad.gpu.

#include <algorithm>
#include <array>
#include <optional>
#include <string_view>

#include "wick/backend/gpu/gpu_backend.h"
#include "wick/backend/gpu/kernels/spatial/spatial_abi.h"
#include "wick/backend/gpu/layout/map_dims.h"
#include "wick/backend/gpu/spatial/plane_parts.h"
#include "wick/backend/gpu/spatial/plane_tiles.h"

namespace wick::gpu {
namespace {

enum class PoolResult : uint32_t { max, avg, index };
constexpr auto kernel_labels(PoolResult) {
  return std::array{std::string_view("max_pool"), std::string_view("avg_pool"),
                    std::string_view("max_index")};
}
/// Windows of up to 2 or 3 rows and columns, any windows, and windows that a thread block takes.
enum class PoolSize : uint32_t { two, three, any, block };
constexpr auto kernel_labels(PoolSize) {
  return std::array{std::string_view("2"), std::string_view("3"), std::string_view("any"),
                    std::string_view("long")};
}

const KernelFamily<PoolArgs, PoolResult, DType, PoolSize> kPool("pool", "{}_{}_{}");
const KernelFamily<PoolTilesArgs, PoolResult, DType, OneOf<2, 3>> kPoolTiles("pool_tiles",
                                                                             "{}_tiles_{}_{}");
const KernelFamily<PoolGradArgs, DType> kMaxPoolGrad("pool_grad", "max_pool_grad_{}");
const KernelFamily<PoolGradArgs, DType> kMaxPoolGradWide("pool_grad", "max_pool_grad_wide_{}");
const KernelFamily<PoolGradArgs, DType> kAvgPoolGrad("pool_grad", "avg_pool_grad_{}");
const KernelFamily<PoolGradArgs, DType> kAvgPoolGradWide("pool_grad", "avg_pool_grad_wide_{}");

/// in: layout of the pooled images; out: layout of the windows' results.
PoolWindows windows_of(const Layout& in, const Layout& out, const PoolParams& params) {
  PoolWindows windows{};
  for (int i = 0; i < 2; ++i) {
    windows.in_size[i] = in.shape()[2 + i];
    windows.out_size[i] = out.shape()[2 + i];
    windows.kernel[i] = params.kernel[i];
    windows.stride[i] = params.stride[i];
    windows.padding[i] = params.padding[i];
    if (params.stride[i] < kMostPosition) {
      windows.steps[i] = Divider(static_cast<uint32_t>(params.stride[i]));
    }
  }
  windows.count_padding = params.count_include_pad ? 1 : 0;
  return windows;
}

/// Whether positions, and indices in a plane, have 32 bits.
bool is_narrow(const PoolWindows& windows) {
  for (int i = 0; i < 2; ++i) {
    if (std::max({windows.in_size[i], windows.out_size[i], windows.kernel[i], windows.stride[i],
                  windows.padding[i]}) >= kMostPosition) {
      return false;
    }
  }
  return windows.in_size[0] * windows.in_size[1] <= int64_t{UINT32_MAX};
}

PoolSize size_of(const Gpu& gpu, const PoolWindows& windows, const View& out, DType dtype) {
  const int64_t rows = windows.kernel[0], columns = windows.kernel[1];
  if (is_float(dtype) && is_narrow(windows) && rows <= 3 && columns <= 3) {
    return rows <= 2 && columns <= 2 ? PoolSize::two : PoolSize::three;
  }
  // A thread block of its own for each window pays if the windows are too few to fill the device
  // with threads, or so far apart that neighbouring threads would read different cache lines.
  constexpr int64_t kLong = 64, kCacheLine = 128;
  const bool few = out.layout.elems() < 256 * int64_t{gpu.info.multiprocessors};
  const bool distant =
      windows.stride[1] * info(dtype).block_bytes >= kCacheLine && columns >= kLong;
  const bool is_long = rows >= kLong || columns >= kLong || rows * columns >= kLong;
  return is_long && (few || distant) ? PoolSize::block : PoolSize::any;
}

/// The tiles of small windows for the kernels that copy them through shared memory. Windows that
/// leave out rows or columns would copy these, too.
std::optional<TilePlan> tiles_of(const Gpu& gpu, const PoolWindows& windows, const View& out,
                                 const ConstView& in) {
  for (int i = 0; i < 2; ++i) {
    if (windows.stride[i] > windows.kernel[i]) return std::nullopt;
  }
  TileNeeds needs;
  needs.in_rows = [&](int64_t rows) { return (rows - 1) * windows.stride[0] + windows.kernel[0]; };
  return plan_tiles(gpu, out, in, needs);
}

/// Reduces the windows of `in`. For PoolResult::index, `out` has indices of 8 bytes if `wide`, else
/// of 4 bytes.
void pool(Gpu& gpu, PoolResult result, const View& out, const ConstView& in,
          const PoolParams& params, bool wide) {
  PoolArgs args{};
  args.windows = windows_of(in.layout, out.layout, params);
  args.wide = wide ? 1 : 0;
  for (int i = 0; i < 2; ++i) {
    args.out_stride[i] = out.layout.stride(2 + i);
    args.in_stride[i] = in.layout.stride(2 + i);
  }
  const PoolSize size = size_of(gpu, args.windows, out, in.dtype);
  const bool is_block = size == PoolSize::block;
  if (size == PoolSize::two || size == PoolSize::three) {
    if (const auto plan = tiles_of(gpu, args.windows, out, in)) {
      Grid grid;
      grid.threads = kPoolThreads;
      grid.blocks[0] = plan->blocks;
      grid.shared_bytes = plan->shared_bytes;
      const PoolTilesArgs of_tiles{Operand(out).at(out.layout.offset()),
                                   Operand(in).at(in.layout.offset()), plan->tiles, args.windows};
      return kPoolTiles(result, in.dtype, size == PoolSize::two ? 2 : 3)
          .launch(gpu, grid, of_tiles);
    }
  }
  const Operand to(out), from(in);
  for_each_part<2>({&out.layout, &in.layout}, is_block ? kPoolLongThreads : 1,
                   [&](const PlanePart<2>& part, const auto& start) {
                     args.out = to.at(start[0]);
                     args.in = from.at(start[1]);
                     args.part = part;
                     Grid grid = spread(gpu, part.elems, 1);
                     if (is_block) {
                       grid.threads = kPoolLongThreads;
                       grid.blocks[0] = part.elems;
                     }
                     kPool(result, in.dtype, size).launch(gpu, grid, args);
                   });
}

}  // namespace

void GpuBackend::pool2d(Op op, const View& out, const ConstView& in, const PoolParams& params) {
  pool(gpu_, op == Op::max_pool2d ? PoolResult::max : PoolResult::avg, out, in, params, false);
}

void GpuBackend::pool2d_grad(Op op, const View& grad_in, const ConstView& grad_out,
                             const ConstView& in, const PoolParams& params) {
  if (grad_in.layout.elems() == 0) return;
  const bool is_max = op == Op::max_pool2d;
  PoolGradArgs args{};
  args.windows = windows_of(grad_in.layout, grad_out.layout, params);
  const bool narrow = is_narrow(args.windows);
  std::optional<Scratch> scratch;
  View index{nullptr, narrow ? DType::u32 : DType::i64,
             Layout::contiguous(grad_out.layout.shape())};
  if (is_max && index.layout.elems() > 0) {
    scratch.emplace(gpu_, static_cast<size_t>(bytes_of(index.dtype, index.layout.elems())));
    index.data = scratch->data();
    pool(gpu_, PoolResult::index, index, in, params, !narrow);
  }
  for (int i = 0; i < 2; ++i) {
    args.grad_in_stride[i] = grad_in.layout.stride(2 + i);
    args.grad_out_stride[i] = grad_out.layout.stride(2 + i);
  }
  const auto& family = is_max ? (narrow ? kMaxPoolGrad : kMaxPoolGradWide)
                              : (narrow ? kAvgPoolGrad : kAvgPoolGradWide);
  const Operand to(grad_in), from(grad_out), indices(index);
  for_each_part<3>({&grad_in.layout, &grad_out.layout, &index.layout}, 1,
                   [&](const PlanePart<3>& part, const auto& start) {
                     args.grad_in = to.at(start[0]);
                     args.grad_out = from.at(start[1]);
                     args.index = is_max ? indices.at(start[2]) : nullptr;
                     args.part = part;
                     family(grad_in.dtype).launch(gpu_, spread(gpu_, part.elems, 1), args);
                   });
}

}  // namespace wick::gpu
