// Resampling and its gradients: kernels/spatial/resample.gpu, resample_grad.gpu.

#include <algorithm>
#include <cmath>
#include <optional>

#include "wick/backend/gpu/gpu_backend.h"
#include "wick/backend/gpu/kernels/spatial/spatial_abi.h"
#include "wick/backend/gpu/layout/map_dims.h"
#include "wick/backend/gpu/spatial/plane_parts.h"
#include "wick/backend/gpu/spatial/plane_tiles.h"

namespace wick::gpu {
namespace {

const KernelFamily<ResampleArgs, OneOf<1, 2, 4, 8>> kNearest("resample", "upsample_nearest_{}");
const KernelFamily<ResampleTilesArgs, OneOf<1, 2, 4, 8>> kNearestTiles("resample_tiles",
                                                                       "upsample_nearest_tiles_{}");
const KernelFamily<ResampleArgs, DType> kBilinear("resample", "upsample_bilinear_{}");
const KernelFamily<ResampleAxesArgs> kAxes("resample_grad", "resample_axes");
const KernelFamily<ResampleGradArgs, DType> kNearestGrad("resample_grad",
                                                         "upsample_nearest_grad_{}");
const KernelFamily<ResampleGradArgs, DType> kBilinearGrad("resample_grad",
                                                          "upsample_bilinear_grad_{}");

/// in: shape of the images that the forward op reads.
Resampling resampling_of(const Shape& in, const ResampleParams& params) {
  Resampling resampling{};
  for (int i = 0; i < 2; ++i) {
    resampling.scale[i] = params.scale[i];
    resampling.in_size[i] = in[2 + i];
  }
  resampling.align = params.align_corners ? 1 : 0;
  return resampling;
}

/// Runs the kernel that copies tiles through shared memory. Returns false if it doesn't take these
/// operands, or if most of the input isn't needed.
bool nearest_by_tiles(Gpu& gpu, const View& out, const ConstView& in,
                      const Resampling& resampling) {
  const double* const scale = resampling.scale;
  if (!(scale[0] > 0 && scale[0] <= 1 && scale[1] > 0 && scale[1] <= 1)) return false;
  TileNeeds needs;
  needs.in_rows = [&](int64_t rows) {
    return static_cast<int64_t>(std::floor(static_cast<double>(rows - 1) * scale[0])) + 3;
  };
  // The positions of rows and columns.
  needs.extra = [&](int64_t rows) {
    return (rows + out.layout.shape()[3]) * static_cast<int64_t>(sizeof(uint32_t));
  };
  const std::optional<TilePlan> plan = plan_tiles(gpu, out, in, needs);
  if (!plan) return false;
  Grid grid;
  grid.threads = kResampleThreads;
  grid.blocks[0] = plan->blocks;
  grid.shared_bytes = plan->shared_bytes;
  const Operand to(out), from(in);
  kNearestTiles(to.bytes).launch(gpu, grid,
                                 {to.at(out.layout.offset()), from.at(in.layout.offset()),
                                  plan->tiles, resampling, plan->extra_at});
  return true;
}

/// Device memory for the tables of both axes.
class AxesInScratch {
 public:
  AxesInScratch(Gpu& gpu, const Shape& outputs, const Shape& inputs)
      : scratch_(gpu, bytes_of(outputs, inputs)) {
    char* next = scratch_.data<char>();
    for (int i = 0; i < 2; ++i) {
      tables_[i].entries = reinterpret_cast<AxisEntry*>(next);
      next += outputs[2 + i] * static_cast<int64_t>(sizeof(AxisEntry));
    }
    for (int i = 0; i < 2; ++i) {
      tables_[i].starts = reinterpret_cast<i64*>(next);
      next += (inputs[2 + i] + 1) * static_cast<int64_t>(sizeof(i64));
    }
  }
  const AxisTables& operator[](int axis) const { return tables_[axis]; }

 private:
  static size_t bytes_of(const Shape& outputs, const Shape& inputs) {
    return static_cast<size_t>(outputs[2] + outputs[3]) * sizeof(AxisEntry) +
           static_cast<size_t>(inputs[2] + inputs[3] + 2) * sizeof(i64);
  }

  Scratch scratch_;
  AxisTables tables_[2];
};

}  // namespace

void GpuBackend::resample(Op op, const View& out, const ConstView& in,
                          const ResampleParams& params) {
  ResampleArgs args{};
  args.resampling = resampling_of(in.layout.shape(), params);
  for (int i = 0; i < 2; ++i) {
    args.out_stride[i] = out.layout.stride(2 + i);
    args.in_stride[i] = in.layout.stride(2 + i);
  }
  if (op == Op::upsample_nearest2d && nearest_by_tiles(gpu_, out, in, args.resampling)) return;
  // Threads take as many rows, up to kResampleRows, as leave enough threads to fill the device.
  const int64_t enough = int64_t{1024} * gpu_.info.multiprocessors;
  args.each = kResampleRows;
  while (args.each > 1 && out.layout.elems() < enough * kResampleColumns * args.each) {
    args.each /= 2;
  }
  const Operand to(out), from(in);
  for_each_part<2>({&out.layout, &in.layout}, 1, [&](const PlanePart<2>& part, const auto& start) {
    args.out = to.at(start[0]);
    args.in = from.at(start[1]);
    args.part = part;
    const int64_t quarter = divide_up(part.columns.by, kResampleColumns);
    const int64_t rows = int64_t{part.planes.elems} * part.rows.by;
    args.quarter = static_cast<uint32_t>(quarter);
    const Grid grid = spread(gpu_, quarter * divide_up(rows, args.each), 1);
    if (op == Op::upsample_nearest2d) {
      kNearest(to.bytes).launch(gpu_, grid, args);
    } else {
      kBilinear(out.dtype).launch(gpu_, grid, args);
    }
  });
}

void GpuBackend::resample_grad(Op op, const View& grad_in, const ConstView& grad_out,
                               const ResampleParams& params) {
  const Shape &inputs = grad_in.layout.shape(), &outputs = grad_out.layout.shape();
  if (inputs.elems() == 0) return;
  const bool nearest = op == Op::upsample_nearest2d;
  const AxesInScratch axes(gpu_, outputs, inputs);
  ResampleAxesArgs tables{};
  ResampleGradArgs args{};
  tables.resampling = resampling_of(inputs, params);
  tables.nearest = nearest ? 1 : 0;
  tables.f64 = grad_in.dtype == DType::f64 ? 1 : 0;
  for (int i = 0; i < 2; ++i) {
    tables.axes[i] = args.axes[i] = axes[i];
    tables.out_size[i] = outputs[2 + i];
    args.in_size[i] = inputs[2 + i];
    args.grad_in_stride[i] = grad_in.layout.stride(2 + i);
    args.grad_out_stride[i] = grad_out.layout.stride(2 + i);
  }
  constexpr int64_t kMostEntries = int64_t{1} << 24;  // threads take several beyond
  const int64_t entries = outputs[2] + outputs[3] + inputs[2] + inputs[3] + 2;
  kAxes().launch(gpu_, spread(gpu_, std::min(entries, kMostEntries), 1), tables);

  const Operand to(grad_in), from(grad_out);
  for_each_part<2>({&grad_in.layout, &grad_out.layout}, 1,
                   [&](const PlanePart<2>& part, const auto& start) {
                     args.grad_in = to.at(start[0]);
                     args.grad_out = from.at(start[1]);
                     args.part = part;
                     (nearest ? kNearestGrad : kBilinearGrad)(grad_in.dtype)
                         .launch(gpu_, spread(gpu_, part.elems, 1), args);
                   });
}

}  // namespace wick::gpu
